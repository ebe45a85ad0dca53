//! One document: where it came from, and what it compiled to.

use std::sync::Arc;

use serde_json::Value;

use super::UnknownTypes;
use super::id::{Id, Kind};
use crate::clock::Millis;
use crate::document::{Content, Fault, Fields, Finding, Node, Position, parse_json, parse_yaml};
use crate::rule::Rule;
use crate::schema::{self, DefaultVersion, Mode, Schema};
use crate::store::StoredDocument;
use crate::target::Target;

/// Longest event type a schema may describe, in bytes.
const TYPE_BYTES_MAX: usize = 255;
/// What stands in place of a secret when a document is shown.
const HIDDEN: &str = "***";

/// Settings of a bus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BusSettings {
    pub description: Option<String>,
    pub unknown_types: UnknownTypes,
}

/// How events of a type are validated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    pub mode: Mode,
    pub default_version: DefaultVersion,
}

/// What a document compiled to.
#[derive(Debug, Clone)]
pub enum Part {
    Bus(BusSettings),
    Schema(Arc<Schema>),
    Policy(Policy),
    Number(u32),
    Target(Arc<Target>),
    Rule(Arc<Rule>),
}

/// A document that was read and found good by itself.
#[derive(Debug)]
pub struct Document {
    pub id: Id,
    pub part: Part,
    /// Its JSON text; for a schema, the text as it was sent.
    pub text: String,
    /// The file or request it came from.
    pub file: String,
    pub created_at: Millis,
    pub updated_at: Millis,
    node: Node,
}

/// Text that is not yet a document.
#[derive(Debug, Clone, Copy)]
pub struct Unread<'a> {
    pub text: &'a str,
    /// The file or request it came from, for findings.
    pub file: &'a str,
    pub now: Millis,
}

impl Document {
    /// Reads a bus, policy, target or rule from a tree.
    ///
    /// # Errors
    /// Everything wrong with it, each with its place.
    pub fn read(node: Node, unread: Unread<'_>) -> Result<Self, Vec<Finding>> {
        let file = unread.file;
        let kind = kind_of(&node).map_err(|fault| one("unknown-kind", file, fault))?;
        if let Some(fault) = hidden_secret(&node) {
            return Err(one("hidden-secret", file, fault));
        }
        let (bus, name, part) = match kind {
            Kind::Bus => read_bus(&node, file)?,
            Kind::SchemaPolicy => read_policy(&node, file)?,
            Kind::Target => read_target(&node, file)?,
            Kind::Rule => read_rule(&node, file)?,
            Kind::Schema | Kind::SchemaNumber => {
                let fault = Fault::new(node.at, "a schema is a file of its own")
                    .with_hint("put it at schemas/<type>/<version>.json");
                return Err(one("schema-in-document", file, fault));
            }
        };
        Ok(Self {
            id: Id {
                kind,
                bus,
                name,
                version: 0,
            },
            part,
            text: node.to_json(),
            file: file.to_owned(),
            created_at: unread.now,
            updated_at: unread.now,
            node,
        })
    }

    /// Reads one version of an event type's schema.
    ///
    /// # Errors
    /// What is wrong with the type or the schema.
    pub fn read_schema(
        event_type: &str,
        version: u32,
        unread: Unread<'_>,
    ) -> Result<Self, Vec<Finding>> {
        if event_type.is_empty()
            || event_type.len() > TYPE_BYTES_MAX
            || event_type.chars().any(char::is_control)
        {
            let message =
                format!("an event type has 1 to {TYPE_BYTES_MAX} bytes and no control characters");
            return Err(one(
                "invalid-type",
                unread.file,
                Fault::new(Position::START, message),
            ));
        }
        let node =
            parse_json(unread.text).map_err(|fault| one("invalid-json", unread.file, fault))?;
        let schema =
            Schema::compile(unread.text, &schema::Options::default()).map_err(|error| {
                let pointer = schema_pointer(&error);
                let fault = Fault::new(node.position_of_pointer(pointer), error.to_string());
                let finding = Finding::error("invalid-schema", unread.file, fault);
                vec![finding.with_pointer(pointer)]
            })?;
        Ok(Self {
            id: Id::schema(event_type, version),
            part: Part::Schema(Arc::new(schema)),
            text: unread.text.to_owned(),
            file: unread.file.to_owned(),
            created_at: unread.now,
            updated_at: unread.now,
            node,
        })
    }

    /// Notes the highest version number that an event type ever gave out.
    #[must_use]
    pub fn last_number(event_type: &str, number: u32, now: Millis) -> Self {
        Self {
            id: Id::shared(Kind::SchemaNumber, event_type),
            part: Part::Number(number),
            text: number.to_string(),
            file: format!("schemas/{event_type}"),
            created_at: now,
            updated_at: now,
            node: Node::from_value(&number.into()),
        }
    }

    /// Reads what the store kept.
    ///
    /// # Errors
    /// When a document that was good once is no longer, such as after a downgrade.
    pub fn stored(stored: &StoredDocument) -> Result<Self, Vec<Finding>> {
        let kind = Kind::of(&stored.kind);
        let file = match kind {
            Some(Kind::Schema) => format!("schemas/{}/{}.json", stored.name, stored.version),
            _ => format!("{} {}", stored.kind, stored.name),
        };
        let unread = Unread {
            text: &stored.text,
            file: &file,
            now: stored.updated_at,
        };
        let document = match kind {
            Some(Kind::Schema) => Self::read_schema(&stored.name, stored.version, unread)?,
            Some(Kind::SchemaNumber) => {
                let number = stored.text.parse().map_err(|_| {
                    let fault = Fault::new(Position::START, "this is no version number");
                    one("invalid-number", &file, fault)
                })?;
                Self::last_number(&stored.name, number, stored.updated_at)
            }
            _ => {
                let node =
                    parse_json(&stored.text).map_err(|fault| one("invalid-json", &file, fault))?;
                Self::read(node, unread)?
            }
        };
        Ok(Self {
            created_at: stored.created_at,
            ..document
        })
    }

    /// Reads all documents in a YAML or JSON text: the good ones, and everything wrong with the
    /// others.
    #[must_use]
    pub fn read_all(unread: Unread<'_>) -> (Vec<Self>, Vec<Finding>) {
        let nodes = match parse_yaml(unread.text) {
            Ok(nodes) => nodes,
            Err(fault) => return (Vec::new(), one("invalid-yaml", unread.file, fault)),
        };
        let mut documents = Vec::new();
        let mut findings = Vec::new();
        for node in nodes.into_iter().filter(|node| !node.is_null()) {
            match Self::read(node, unread) {
                Ok(document) => documents.push(document),
                Err(found) => findings.extend(found),
            }
        }
        (documents, findings)
    }

    /// The schema as another version.
    #[must_use]
    pub fn with_version(mut self, version: u32) -> Self {
        self.file = format!("schemas/{}/{version}.json", self.id.name);
        self.id.version = version;
        self
    }

    /// The document as the store keeps it.
    #[must_use]
    pub fn to_stored(&self) -> StoredDocument {
        StoredDocument {
            kind: self.id.kind.as_str().to_owned(),
            bus: self.id.bus.clone(),
            name: self.id.name.clone(),
            version: self.id.version,
            text: self.text.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    /// The document as a person may see it: secrets are hidden.
    #[must_use]
    pub fn shown(&self) -> Value {
        let mut value = self.node.to_value();
        if self.id.kind == Kind::Target {
            hide(&mut value, "secrets");
            hide(&mut value, "headers");
        }
        value
    }

    /// Whether this is a rule that names `target`, enabled or not.
    #[must_use]
    pub fn leads_to(&self, target: &str) -> bool {
        match &self.part {
            Part::Rule(rule) => rule.targets.iter().any(|(name, _)| name.as_str() == target),
            Part::Bus(_)
            | Part::Number(_)
            | Part::Schema(_)
            | Part::Policy(_)
            | Part::Target(_) => false,
        }
    }

    /// The strings listed at a JSON pointer, each with its place.
    pub(super) fn listed(&self, pointer: &str) -> impl Iterator<Item = (&str, Position)> {
        let list = self.node.at_pointer(pointer).and_then(Node::as_list);
        list.unwrap_or_default()
            .iter()
            .filter_map(|item| Some((item.as_str()?, item.at)))
    }

    /// Where a JSON pointer leads to in the document.
    #[must_use]
    pub fn position(&self, pointer: &str) -> Position {
        self.node.position_of_pointer(pointer)
    }
}

/// The place in a schema that an error is about.
fn schema_pointer(error: &schema::Error) -> &str {
    match error {
        schema::Error::MetaSchema { pointer, .. }
        | schema::Error::RemoteReference { pointer, .. }
        | schema::Error::UnresolvableReference { pointer, .. }
        | schema::Error::Pattern { pointer, .. }
        | schema::Error::TooBranchy { pointer } => pointer,
        schema::Error::UnknownDraft { .. } => "/$schema",
        schema::Error::TooLarge { .. }
        | schema::Error::TooDeep { .. }
        | schema::Error::NotJson { .. }
        | schema::Error::NotASchema { .. }
        | schema::Error::Engine => "",
    }
}

fn one(code: &'static str, file: &str, fault: Fault) -> Vec<Finding> {
    vec![Finding::error(code, file, fault)]
}

fn all(code: &'static str, file: &str, faults: Vec<Fault>) -> Vec<Finding> {
    faults
        .into_iter()
        .map(|fault| Finding::error(code, file, fault))
        .collect()
}

fn kind_of(node: &Node) -> Result<Kind, Fault> {
    let kinds = || {
        let names: Vec<&str> = Kind::ALL
            .into_iter()
            .filter(|kind| kind.is_written())
            .map(Kind::as_str)
            .collect();
        format!("`kind` is one of {}", names.join(", "))
    };
    let Some(given) = node.get("kind") else {
        return Err(Fault::new(node.at, "a document needs a `kind`").with_hint(kinds()));
    };
    given
        .as_str()
        .and_then(Kind::of)
        .ok_or_else(|| Fault::new(given.at, "there is no such kind of document").with_hint(kinds()))
}

type Read = Result<(String, String, Part), Vec<Finding>>;

fn read_bus(node: &Node, file: &str) -> Read {
    let mut fields = Fields::new(node, "a bus");
    fields.ignore("kind");
    let name = fields.required_name("name");
    let description = fields.string("description").map(str::to_owned);
    let unknown_types = fields.choice_of(
        "unknown_types",
        &[
            ("accept", UnknownTypes::Accept),
            ("reject", UnknownTypes::Reject),
        ],
    );
    let faults = fields.finish();
    match name {
        Some(name) if faults.is_empty() => {
            let settings = BusSettings {
                description,
                unknown_types: unknown_types.unwrap_or_default(),
            };
            Ok((String::new(), name.to_string(), Part::Bus(settings)))
        }
        _ => Err(all("invalid-bus", file, faults)),
    }
}

fn read_policy(node: &Node, file: &str) -> Read {
    let mut fields = Fields::new(node, "a schema policy");
    fields.ignore("kind");
    let event_type = fields.required_string("type").map(str::to_owned);
    let mode = fields.choice_of(
        "mode",
        &[
            ("enforce", Mode::Enforce),
            ("warn", Mode::Warn),
            ("off", Mode::Off),
        ],
    );
    let default_version = fields.node("default_version").map(default_version);
    if let Some(None) = default_version {
        let hint = "`latest`, or the number of a version".to_owned();
        fields.fault("default_version", "this names no version", Some(hint));
    }
    let faults = fields.finish();
    match event_type {
        Some(event_type) if faults.is_empty() => {
            let policy = Policy {
                mode: mode.unwrap_or_default(),
                default_version: default_version.flatten().unwrap_or_default(),
            };
            Ok((String::new(), event_type, Part::Policy(policy)))
        }
        _ => Err(all("invalid-policy", file, faults)),
    }
}

fn default_version(node: &Node) -> Option<DefaultVersion> {
    if node.as_str() == Some("latest") {
        return Some(DefaultVersion::Latest);
    }
    let number = u32::try_from(node.as_u64()?).ok()?;
    (number > 0).then_some(DefaultVersion::Number(number))
}

fn read_target(node: &Node, file: &str) -> Read {
    let target = Target::parse(node).map_err(|faults| all("invalid-target", file, faults))?;
    let name = target.name.to_string();
    Ok((String::new(), name, Part::Target(Arc::new(target))))
}

fn read_rule(node: &Node, file: &str) -> Read {
    let rule = Rule::parse(node).map_err(|faults| {
        faults
            .into_iter()
            .map(|wrong| {
                let finding = Finding::error(wrong.code, file, wrong.fault);
                match wrong.pointer {
                    Some(pointer) => finding.with_pointer(pointer),
                    None => finding,
                }
            })
            .collect::<Vec<_>>()
    })?;
    let (bus, name) = (rule.bus.to_string(), rule.name.to_string());
    Ok((bus, name, Part::Rule(Arc::new(rule))))
}

/// A document that was shown and sent back still has its secrets hidden; taking it would replace
/// them by the mask.
fn hidden_secret(node: &Node) -> Option<Fault> {
    let is_hidden = |node: &Node| node.as_str() == Some(HIDDEN);
    let secrets = node
        .get("secrets")
        .and_then(Node::as_list)
        .unwrap_or_default();
    let headers = node
        .get("headers")
        .and_then(Node::as_map)
        .unwrap_or_default();
    let found = secrets
        .iter()
        .chain(headers.iter().map(|(_, value)| value))
        .find(|node| is_hidden(node))?;
    let hint = "secrets are never shown; write the value itself";
    Some(Fault::new(found.at, format!("`{HIDDEN}` stands for a hidden value")).with_hint(hint))
}

fn hide(value: &mut Value, field: &str) {
    match value.get_mut(field) {
        Some(Value::Array(items)) => items.iter_mut().for_each(|item| *item = HIDDEN.into()),
        Some(Value::Object(members)) => members
            .values_mut()
            .for_each(|member| *member = HIDDEN.into()),
        Some(other) => *other = HIDDEN.into(),
        None => {}
    }
}

/// Sets a field of a document's tree, in place of what it had.
pub(super) fn set(node: &mut Node, field: &str, text: &str) {
    let value = Node {
        value: Content::String(text.to_owned()),
        at: node.at,
    };
    let at = node.at;
    if let Content::Map(members) = &mut node.value {
        members.retain(|(key, _)| key.text != field);
        let key = crate::document::Key {
            text: field.to_owned(),
            at,
        };
        members.push((key, value));
    }
}

impl Document {
    /// Reads a document sent to an address that already says its kind and name. Where the text
    /// says them too, they must agree.
    ///
    /// # Errors
    /// Everything wrong with it.
    pub fn read_at(id: &Id, mut node: Node, unread: Unread<'_>) -> Result<Self, Vec<Finding>> {
        let name_field = if id.kind == Kind::SchemaPolicy {
            "type"
        } else {
            "name"
        };
        let mut expected = vec![("kind", id.kind.as_str()), (name_field, id.name.as_str())];
        if id.kind == Kind::Rule {
            expected.push(("bus", id.bus.as_str()));
        }
        for (field, meant) in expected {
            match node.get(field) {
                Some(given) if given.as_str() != Some(meant) => {
                    let message = format!("`{field}` must be `{meant}`, as in the address");
                    return Err(one(
                        "wrong-address",
                        unread.file,
                        Fault::new(given.at, message),
                    ));
                }
                Some(_) => {}
                None => set(&mut node, field, meant),
            }
        }
        Self::read(node, unread)
    }
}
