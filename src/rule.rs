//! One rule: a pattern and the targets that get what it matches.

mod transform;

use std::sync::Arc;

use crate::document::{Fault, Fields, Name, Node};
use crate::event::Event;
use crate::pattern::{self, Pattern};

pub use transform::{Transform, TransformError};

/// Most targets one rule may name.
pub const TARGETS_MAX: usize = 100;

/// A rule as its document describes it, checked.
#[derive(Debug)]
pub struct Rule {
    pub name: Name,
    pub bus: Name,
    pub description: Option<String>,
    pub enabled: bool,
    pub pattern: Arc<Pattern>,
    /// Each with its place in the document.
    pub targets: Vec<(Name, crate::document::Position)>,
    pub transform: Option<Transform>,
    pub tests: Vec<Test>,
}

/// An example in a rule's file: an event, and whether the rule is to match it.
#[derive(Debug, Clone)]
pub struct Test {
    pub name: String,
    pub at: crate::document::Position,
    /// The event as a JSON object, perhaps without the attributes that do not matter.
    pub event: String,
    pub matches: bool,
}

/// Something wrong with a rule's document.
#[derive(Debug, Clone)]
pub struct RuleFault {
    /// Stable name of the kind of fault.
    pub code: &'static str,
    pub fault: Fault,
    /// JSON Pointer into the document.
    pub pointer: Option<String>,
}

impl Rule {
    /// Reads a rule's document.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn parse(node: &Node) -> Result<Self, Vec<RuleFault>> {
        let mut faults = Vec::new();
        let mut fields = Fields::new(node, "a rule");
        fields.ignore("kind");
        let name = fields.required_name("name");
        let bus = fields.name("bus");
        let description = fields.string("description").map(str::to_owned);
        let enabled = fields.bool("enabled").unwrap_or(true);
        let pattern = fields
            .required_node("pattern")
            .and_then(|node| read_pattern(node, &mut faults));
        let targets = read_targets(&mut fields);
        let transform = fields
            .node("transform")
            .and_then(|node| read_transform(node, &mut faults));
        let tests = read_tests(&mut fields);
        faults.extend(fields.finish().into_iter().map(|fault| RuleFault {
            code: "invalid-rule",
            fault,
            pointer: None,
        }));
        match (name, pattern) {
            (Some(name), Some(pattern)) if faults.is_empty() => Ok(Self {
                name,
                bus: bus.unwrap_or_else(default_bus),
                description,
                enabled,
                pattern,
                targets,
                transform,
                tests,
            }),
            _ => Err(faults),
        }
    }

    /// Whether the rule's pattern matches an event, and if not, why.
    #[must_use]
    pub fn explain(&self, event: &Event) -> pattern::Explanation {
        pattern::explain(&self.pattern, &pattern::Input::event(event))
    }
}

/// The bus that always exists.
#[must_use]
pub fn default_bus() -> Name {
    Name::parse("default").expect("`default` is a name")
}

fn read_pattern(node: &Node, faults: &mut Vec<RuleFault>) -> Option<Arc<Pattern>> {
    match Pattern::parse_with(&node.to_json(), &pattern::Limits::for_events()) {
        Ok(pattern) => Some(Arc::new(pattern)),
        Err(error) => {
            let at = node.position_of_pointer(&error.pointer);
            faults.push(RuleFault {
                code: "invalid-pattern",
                fault: Fault::new(at, error.message()).with_hint(error.help()),
                pointer: Some(format!("/pattern{}", error.pointer)),
            });
            None
        }
    }
}

fn read_targets(fields: &mut Fields<'_>) -> Vec<(Name, crate::document::Position)> {
    fields.require("targets");
    let targets = fields.names("targets").unwrap_or_default();
    if targets.len() > TARGETS_MAX {
        let message = format!(
            "{} targets, of which a rule may name {TARGETS_MAX}",
            targets.len()
        );
        fields.fault("targets", message, None);
    }
    let mut unique: Vec<(Name, crate::document::Position)> = Vec::with_capacity(targets.len());
    for (name, at) in targets {
        if !unique.iter().any(|(known, _)| *known == name) {
            unique.push((name, at));
        }
    }
    unique
}

fn read_transform(node: &Node, faults: &mut Vec<RuleFault>) -> Option<Transform> {
    match Transform::parse(node) {
        Ok(transform) => Some(transform),
        Err(wrong) => {
            faults.extend(wrong.into_iter().map(|fault| RuleFault {
                code: "invalid-transform",
                fault,
                pointer: Some("/transform".into()),
            }));
            None
        }
    }
}

fn read_tests(fields: &mut Fields<'_>) -> Vec<Test> {
    let mut tests = Vec::new();
    for node in fields.list("tests").unwrap_or_default() {
        let mut test = Fields::new(node, "a test");
        let name = test.string("name").unwrap_or("unnamed").to_owned();
        let event = test.required_node("event").map(Node::to_json);
        test.require("match");
        let matches = test.bool("match");
        fields.absorb(test);
        if let (Some(event), Some(matches)) = (event, matches) {
            tests.push(Test {
                name,
                at: node.at,
                event,
                matches,
            });
        }
    }
    tests
}
