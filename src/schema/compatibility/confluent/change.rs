//! The changes that Confluent's registry tells apart, by their names there.

/// One change and where it is, as a JSON pointer.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) change: Change,
    pub(super) path: String,
}

impl Found {
    pub(super) fn path_or_root(&self) -> &str {
        if self.path.is_empty() {
            "/"
        } else {
            &self.path
        }
    }
}

/// How a limit or a schema-valued keyword changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Added,
    Removed,
    Increased,
    Decreased,
    Extended,
    Narrowed,
    Changed,
}

/// What a keyword's change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    MaxLength,
    MinLength,
    Pattern,
    Maximum,
    Minimum,
    ExclusiveMaximum,
    ExclusiveMinimum,
    MultipleOf,
    MaxProperties,
    MinProperties,
    MaxItems,
    MinItems,
    MaxContains,
    MinContains,
    UniqueItems,
    AdditionalProperties,
    AdditionalItems,
    DependencyArray,
    DependencySchema,
    EnumArray,
    Type,
    CombinedType,
    ProductType,
    SumType,
    NotType,
}

/// How open an object or an array was to a member or an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    PropertyRemovedFromOpen,
    PropertyRemovedFromClosed,
    PropertyWithFalseRemovedFromClosed,
    PropertyRemovedCovered,
    PropertyRemovedNotCovered,
    PropertyWithEmptySchemaAddedToOpen,
    OptionalPropertyAddedToOpen,
    RequiredPropertyAddedToOpen,
    RequiredPropertyWithDefaultAddedToOpen,
    OptionalPropertyAddedToUnopen,
    RequiredPropertyAddedToUnopen,
    RequiredPropertyWithDefaultAddedToUnopen,
    PropertyAddedCovered,
    PropertyAddedNotCovered,
    ItemRemovedFromOpen,
    ItemRemovedFromClosed,
    ItemWithFalseRemovedFromClosed,
    ItemRemovedCovered,
    ItemRemovedNotCovered,
    ItemWithEmptySchemaAddedToOpen,
    ItemAddedToOpen,
    ItemAddedToClosed,
    ItemAddedCovered,
    ItemAddedNotCovered,
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Keyword(Subject, Move),
    Part(Part),
    RequiredAttributeAdded,
    RequiredAttributeWithDefaultAdded,
    RequiredAttributeRemoved,
    SubschemasChanged,
    SchemaAdded,
    SchemaRemoved,
}

impl Change {
    /// Whether the registry accepts the change under BACKWARD, by its strict or lenient policy.
    pub(super) fn is_compatible(self, is_lenient: bool) -> bool {
        match self {
            Self::Keyword(subject, moved) => is_compatible_move(subject, moved, is_lenient),
            Self::Part(part) => is_compatible_part(part, is_lenient),
            Self::RequiredAttributeWithDefaultAdded
            | Self::RequiredAttributeRemoved
            | Self::SchemaRemoved => true,
            Self::RequiredAttributeAdded | Self::SubschemasChanged | Self::SchemaAdded => false,
        }
    }

    /// The registry's name of the change.
    pub(super) fn name(self) -> String {
        match self {
            Self::Keyword(subject, moved) => match (subject, moved) {
                (Subject::MultipleOf, Move::Decreased) => "MULTIPLE_OF_REDUCED".to_owned(),
                (Subject::MultipleOf, Move::Increased) => "MULTIPLE_OF_EXPANDED".to_owned(),
                _ => format!(
                    "{}_{}",
                    snake(&format!("{subject:?}")),
                    snake(&format!("{moved:?}"))
                ),
            },
            Self::Part(part) => part_name(part),
            Self::SubschemasChanged => "COMBINED_TYPE_SUBSCHEMAS_CHANGED".to_owned(),
            other => snake(&format!("{other:?}")),
        }
    }
}

fn is_compatible_move(subject: Subject, moved: Move, is_lenient: bool) -> bool {
    match subject {
        Subject::MaxLength
        | Subject::Maximum
        | Subject::ExclusiveMaximum
        | Subject::MaxProperties
        | Subject::MaxItems
        | Subject::MaxContains => matches!(moved, Move::Increased | Move::Removed),
        Subject::MinLength
        | Subject::Minimum
        | Subject::ExclusiveMinimum
        | Subject::MinProperties
        | Subject::MinItems
        | Subject::MinContains
        | Subject::MultipleOf => matches!(moved, Move::Decreased | Move::Removed),
        Subject::Pattern | Subject::UniqueItems | Subject::DependencySchema => {
            moved == Move::Removed
        }
        Subject::DependencyArray => matches!(moved, Move::Removed | Move::Narrowed),
        Subject::AdditionalProperties => {
            matches!(moved, Move::Added | Move::Extended)
                || (is_lenient && matches!(moved, Move::Removed | Move::Narrowed))
        }
        Subject::AdditionalItems => matches!(moved, Move::Added | Move::Extended),
        Subject::EnumArray | Subject::Type | Subject::CombinedType | Subject::SumType => {
            moved == Move::Extended
        }
        Subject::ProductType | Subject::NotType => moved == Move::Narrowed,
    }
}

fn is_compatible_part(part: Part, is_lenient: bool) -> bool {
    match part {
        Part::PropertyRemovedFromOpen
        | Part::PropertyWithFalseRemovedFromClosed
        | Part::PropertyRemovedCovered
        | Part::PropertyWithEmptySchemaAddedToOpen
        | Part::OptionalPropertyAddedToUnopen
        | Part::RequiredPropertyWithDefaultAddedToUnopen
        | Part::PropertyAddedCovered
        | Part::ItemRemovedFromOpen
        | Part::ItemWithFalseRemovedFromClosed
        | Part::ItemRemovedCovered
        | Part::ItemWithEmptySchemaAddedToOpen
        | Part::ItemAddedToClosed
        | Part::ItemAddedCovered => true,
        Part::PropertyRemovedFromClosed
        | Part::OptionalPropertyAddedToOpen
        | Part::RequiredPropertyWithDefaultAddedToOpen => is_lenient,
        Part::PropertyRemovedNotCovered
        | Part::RequiredPropertyAddedToOpen
        | Part::RequiredPropertyAddedToUnopen
        | Part::PropertyAddedNotCovered
        | Part::ItemRemovedFromClosed
        | Part::ItemRemovedNotCovered
        | Part::ItemAddedToOpen
        | Part::ItemAddedNotCovered => false,
    }
}

fn part_name(part: Part) -> String {
    let name = snake(&format!("{part:?}"));
    let covered = "IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL";
    let uncovered = "NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL";
    if let Some(what) = name.strip_suffix("NOT_COVERED") {
        return format!("{what}{uncovered}");
    }
    if let Some(what) = name.strip_suffix("COVERED") {
        return format!("{what}{covered}");
    }
    format!("{name}_CONTENT_MODEL")
}

/// `MaxLength` as `MAX_LENGTH`.
fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_uppercase());
    }
    text
}
