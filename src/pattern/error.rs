//! Why a pattern is refused, where, and what would be right.

/// A pattern that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at {place}, byte {offset}): {help}", place = self.place(), help = self.kind.help())]
pub struct Error {
    /// JSON Pointer (RFC 6901) to the part of the pattern that is wrong; empty for the whole.
    pub pointer: String,
    /// Byte of the pattern text at which that part begins.
    pub offset: usize,
    /// What is wrong.
    pub kind: Fault,
}

/// What is wrong with a pattern. `Display` is EventBridge's own wording where it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not JSON (RFC 8259), or more than one JSON text.
    #[error("Event pattern is not valid JSON: {0}")]
    Json(JsonFault),
    /// JSON, but not an object.
    #[error("Filter is not an object")]
    NotAnObject,
    /// A field with a bare value.
    #[error("{key:?} must be an object or an array")]
    BareValue {
        /// The field's key.
        key: String,
        /// The value as written.
        value: String,
    },
    /// `[]` where values belong.
    #[error("Empty arrays are not allowed")]
    EmptyArray,
    /// `{}` where fields belong.
    #[error("Empty objects are not allowed")]
    EmptyObject,
    /// A list inside a list.
    #[error("Match value must be String, number, true, false, or null")]
    NestedList,
    /// A match expression with no key, or with several.
    #[error("Only one key allowed in match expression")]
    NotOneKey,
    /// No such operator.
    #[error("Unrecognized match type {name}")]
    UnknownOperator {
        /// The operator as written.
        name: String,
        /// The operator that was perhaps meant.
        meant: Option<&'static str>,
    },
    /// An operator that takes text got something else.
    #[error("{operator} match pattern must be a string")]
    NotAString {
        /// The operator as EventBridge names it in this place.
        operator: &'static str,
    },
    /// An empty prefix or suffix inside `anything-but`, which would exclude every string.
    #[error("Null prefix/suffix not allowed")]
    EmptyAffix,
    /// `exists` with something other than true or false.
    #[error("exists match pattern must be either true or false.")]
    NotABoolean,
    /// `anything-but` with something it does not take.
    #[error("Value of anything-but must be an array or single string/number value.")]
    AnythingButValue,
    /// `null`, `true`, `false` or a list inside an `anything-but` list.
    #[error("Inside anything but list, start|null|boolean is not supported.")]
    AnythingButMember,
    /// Strings and numbers in one `anything-but` list.
    #[error(
        "Inside anything but list, either all values are number or string, mixed type is not supported"
    )]
    AnythingButMixed,
    /// Something other than strings inside `anything-but` with `equals-ignore-case`.
    #[error(
        "Inside anything-but/equals-ignore-case list, number|start|null|boolean is not supported."
    )]
    AnythingButIgnoreCase,
    /// `numeric` without a list.
    #[error("Value of numeric must be an array.")]
    NumericNotAList,
    /// A comparison that does not exist.
    #[error("Unrecognized numeric range operator: {operator}")]
    NumericOperator {
        /// The comparison as written.
        operator: String,
    },
    /// A second comparison that does not close the range of the first.
    #[error("Bad numeric range operator: {operator}")]
    NumericRangeOperator {
        /// The comparison as written.
        operator: String,
    },
    /// A comparison without a number.
    #[error("Value of {operator} must be numeric")]
    NumericOperand {
        /// The comparison as written.
        operator: String,
    },
    /// More after the second bound.
    #[error("Too many elements in numeric expression")]
    NumericTooMany,
    /// No number is in the range.
    #[error("Bottom must be less than top")]
    NumericEmpty,
    /// A number that EventBridge cannot compare.
    #[error("Numeric value {number} is out of range or cannot be compared exactly")]
    NumberRange {
        /// The number as written.
        number: String,
    },
    /// No slash, or several.
    #[error("Malformed CIDR, one '/' required")]
    CidrSlash,
    /// The part after the slash is no number.
    #[error("Malformed CIDR, mask bits must be an integer")]
    CidrMask,
    /// The part after the slash is too large.
    #[error("IP mask bits must be between 0 and {bits_max}")]
    CidrMaskRange {
        /// 32 for IPv4, 128 for IPv6.
        bits_max: u8,
    },
    /// The part before the slash is no address.
    #[error("Nonstandard IP address: {address}")]
    CidrAddress {
        /// The address as written.
        address: String,
    },
    /// `**`.
    #[error("Consecutive wildcard characters at pos {position}")]
    WildcardConsecutive {
        /// Characters before the first of them.
        position: usize,
    },
    /// A backslash before anything but `*` and `\`.
    #[error("Invalid escape character at pos {position}")]
    WildcardEscape {
        /// Characters before the backslash.
        position: usize,
    },
    /// `$or` without a list.
    #[error("$or must be an array of objects")]
    OrNotAList,
    /// `$or` with fewer than two branches.
    #[error("$or must have at least two branches")]
    OrTooFew,
    /// A branch of `$or` that is no object.
    #[error("Every branch of $or must be an object")]
    OrBranch,
    /// A reserved word as a field inside `$or`.
    #[error("{word:?} is reserved and cannot be a field inside $or")]
    OrReserved {
        /// The word.
        word: String,
    },
    /// Too many `*`.
    #[error(
        "Rule is too complex - try using fewer wildcard characters or fewer repeating character sequences after a wildcard character"
    )]
    TooManyStars {
        /// How many there are.
        found: usize,
        /// How many are allowed.
        max: usize,
    },
    /// Some other bound of [`Limits`](super::Limits).
    #[error("Rule is too complex: {found} {measure}, {max} allowed")]
    TooComplex {
        /// What is counted.
        measure: &'static str,
        /// How many there are.
        found: usize,
        /// How many are allowed.
        max: usize,
    },
    /// `all-of` without a list.
    #[error("Value of all-of must be an array.")]
    AllOfNotAList,
    /// `exists` or `all-of` inside `all-of`.
    #[error("Inside all-of, exists and all-of are not supported.")]
    AllOfMember,
    /// An operator beyond EventBridge while [`Limits::extensions`](super::Limits) is off.
    #[error("Unrecognized match type {name}")]
    Extension {
        /// The operator.
        name: &'static str,
    },
}

/// What is wrong with a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The text ends too soon.
    #[error("the text ends too soon")]
    End,
    /// Something that cannot stand here.
    #[error("unexpected character")]
    Unexpected,
    /// More after the pattern.
    #[error("more text after the pattern")]
    Trailing,
    /// A number that JSON does not allow.
    #[error("malformed number")]
    Number,
    /// A control character inside a string.
    #[error("control character inside a string")]
    Control,
    /// A backslash before something that JSON does not allow.
    #[error("malformed escape")]
    Escape,
    /// A `\u` escape that is half a character.
    #[error("lone surrogate")]
    Surrogate,
}

impl Error {
    /// EventBridge's wording where it has one.
    pub fn message(&self) -> String {
        self.kind.to_string()
    }

    /// What would be right.
    pub fn help(&self) -> String {
        self.kind.help()
    }

    fn place(&self) -> &str {
        if self.pointer.is_empty() {
            "the top"
        } else {
            &self.pointer
        }
    }
}

impl Fault {
    /// What would be right, as a sentence with an example where one helps.
    pub fn help(&self) -> String {
        match self {
            Self::Json(fault) => json_help(*fault).into(),
            Self::NotAnObject => r#"a pattern is an object of fields: {"source": ["/orders"]}"#.into(),
            Self::BareValue { key, value } => {
                format!("put the values in a list: {key:?}: [{value}]")
            }
            Self::EmptyArray => "list at least one value; to ask for any value write [{\"exists\": true}]".into(),
            Self::EmptyObject => "name at least one field, or leave the key out".into(),
            Self::NestedList => "write the values directly in the one list: [\"a\", \"b\"]".into(),
            Self::NotOneKey => {
                "give each operator an object of its own: [{\"prefix\": \"a\"}, {\"suffix\": \"b\"}] (either may hold)".into()
            }
            Self::UnknownOperator { meant: Some(meant), .. } => format!("did you mean {meant:?}?"),
            Self::UnknownOperator { meant: None, .. } => {
                "the operators are prefix, suffix, equals-ignore-case, wildcard, anything-but, numeric, exists, cidr".into()
            }
            Self::Extension { .. } => "an extension beyond EventBridge, which the settings here do not allow".into(),
            other => other.operator_help(),
        }
    }

    fn operator_help(&self) -> String {
        match self {
            Self::NotAString { .. } => {
                "write the text in quotes; several alternatives are several objects in the list".into()
            }
            Self::EmptyAffix => "an empty prefix would exclude every string; name at least one character".into(),
            Self::NotABoolean => "write {\"exists\": true} or {\"exists\": false}".into(),
            Self::AnythingButValue => {
                "write {\"anything-but\": \"a\"}, {\"anything-but\": [1, 2]} or {\"anything-but\": {\"prefix\": \"a\"}} (prefix, suffix, wildcard, equals-ignore-case)".into()
            }
            Self::AnythingButMember | Self::AnythingButMixed => "list only strings, or only numbers".into(),
            Self::AnythingButIgnoreCase => "list only strings".into(),
            Self::NumericNotAList => "write {\"numeric\": [\"=\", 5]} or {\"numeric\": [\">\", 0, \"<=\", 5]}".into(),
            Self::NumericOperator { .. } => "the comparisons are =, <, <=, > and >=".into(),
            Self::NumericRangeOperator { .. } => {
                "a range is a lower bound, then an upper one: [\">\", 0, \"<=\", 5]".into()
            }
            Self::NumericOperand { .. } => "each comparison is followed by a number: [\">\", 0]".into(),
            Self::NumericTooMany => "one or two comparisons with a number each".into(),
            Self::NumericEmpty => "no number lies in this range; put the lower bound first".into(),
            Self::NumberRange { .. } => {
                "use a number that a double holds exactly, or list the value itself, which is compared digit by digit".into()
            }
            Self::CidrSlash | Self::CidrMask | Self::CidrMaskRange { .. } | Self::CidrAddress { .. } => {
                "write a block such as \"10.0.0.0/8\" or \"2001:db8::/32\"".into()
            }
            Self::WildcardConsecutive { .. } => "one * already stands for any run of characters".into(),
            Self::WildcardEscape { .. } => r"write \* for a star and \\ for a backslash".into(),
            Self::OrNotAList | Self::OrTooFew | Self::OrBranch => {
                "write {\"$or\": [{\"a\": [1]}, {\"b\": [2]}]}".into()
            }
            Self::OrReserved { .. } => "an operator belongs in the list of a field: \"field\": [{\"prefix\": \"a\"}]".into(),
            Self::AllOfNotAList => "write {\"all-of\": [{\"prefix\": \"a\"}, {\"suffix\": \"b\"}]}".into(),
            Self::AllOfMember => "a value that passes a test exists; list the tests in one all-of".into(),
            Self::TooManyStars { found, max } => format!("{found} * here, {max} allowed"),
            Self::TooComplex { .. } => "split the pattern into several rules".into(),
            _ => String::new(),
        }
    }
}

fn json_help(fault: JsonFault) -> &'static str {
    match fault {
        JsonFault::End => "close every string, list and object",
        JsonFault::Unexpected => "JSON has double quotes, no comments and no trailing commas",
        JsonFault::Trailing => "a pattern is one JSON object and nothing else",
        JsonFault::Number => "write numbers as 5, -0.5 or 1e3",
        JsonFault::Control => r"write control characters as escapes, such as \n",
        JsonFault::Escape => r#"the escapes are \" \\ \/ \b \f \n \r \t \uXXXX"#,
        JsonFault::Surrogate => r"write the whole pair, such as \ud83d\ude00",
    }
}
