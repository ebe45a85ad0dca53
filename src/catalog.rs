//! Documents compiled to the one immutable value that judges, matches and routes.
//!
//! [`Document::read`] judges a document by itself, [`Catalog::compile`] all of them together; the
//! linter, `apply`, the admin API and start-up all go through these two and nothing else.

mod bus;
pub mod dir;
mod document;
mod id;
mod live;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::document::{Fault, Finding, Name, closest};
use crate::rule::{Rule, default_bus};
use crate::schema::{DefaultVersion, Mode, Schema};
use crate::target::Target;

pub use bus::Bus;
pub use document::{BusSettings, Document, Part, Policy, Unread};
pub use id::{Id, Kind};
pub use live::{ChangeError, Edit, Live};

/// What to do with an event whose type has no schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownTypes {
    #[default]
    Accept,
    Reject,
}

/// All documents, compiled. Immutable; a change makes a new one.
#[derive(Debug)]
pub struct Catalog {
    documents: BTreeMap<Id, Arc<Document>>,
    buses: HashMap<String, Bus>,
    subjects: HashMap<String, Subject>,
    targets: BTreeMap<String, Arc<Target>>,
}

/// The versions and the policy of one event type.
#[derive(Debug, Default)]
pub struct Subject {
    pub versions: BTreeMap<u32, Arc<Schema>>,
    pub policy: Policy,
    /// The highest number given to a version that was deleted since; 0 for none.
    given: u32,
}

impl Catalog {
    /// A catalog with the default bus and nothing else.
    #[must_use]
    pub fn empty() -> Self {
        Self::compile(BTreeMap::new(), None).unwrap_or_else(|_| Self {
            documents: BTreeMap::new(),
            buses: HashMap::new(),
            subjects: HashMap::new(),
            targets: BTreeMap::new(),
        })
    }

    /// Judges documents together and compiles them. What `earlier` compiled already and is the
    /// same now is taken over.
    ///
    /// # Errors
    /// All findings, when at least one of them is an error.
    pub fn compile(
        documents: BTreeMap<Id, Arc<Document>>,
        earlier: Option<&Self>,
    ) -> Result<Self, Vec<Finding>> {
        let mut subjects: HashMap<String, Subject> = HashMap::new();
        let mut targets = BTreeMap::new();
        let mut settings: BTreeMap<String, BusSettings> = BTreeMap::new();
        let mut rules: BTreeMap<String, Vec<Arc<Rule>>> = BTreeMap::new();
        settings.insert(default_bus().to_string(), BusSettings::default());
        for (id, document) in &documents {
            match &document.part {
                Part::Schema(schema) => {
                    let subject = subjects.entry(id.name.clone()).or_default();
                    subject.versions.insert(id.version, Arc::clone(schema));
                }
                Part::Number(number) => {
                    subjects.entry(id.name.clone()).or_default().given = *number;
                }
                Part::Policy(policy) => {
                    subjects.entry(id.name.clone()).or_default().policy = policy.clone();
                }
                Part::Target(target) => {
                    targets.insert(id.name.clone(), Arc::clone(target));
                }
                Part::Bus(bus) => {
                    settings.insert(id.name.clone(), bus.clone());
                }
                Part::Rule(rule) => {
                    let bus = rules.entry(id.bus.clone()).or_default();
                    if rule.enabled {
                        bus.push(Arc::clone(rule));
                    }
                }
            }
        }
        let findings = cross_check(&documents, &subjects, &targets, &settings);
        if findings.iter().any(Finding::is_error) {
            return Err(findings);
        }
        let buses = settings
            .into_iter()
            .map(|(name, settings)| {
                let rules = rules.remove(&name).unwrap_or_default();
                let before = earlier.and_then(|earlier| earlier.buses.get(&name));
                let bus = Bus::new(&name, settings, rules, before);
                (name, bus)
            })
            .collect();
        Ok(Self {
            documents,
            buses,
            subjects,
            targets,
        })
    }

    /// Findings that do not stop anything but deserve a look.
    #[must_use]
    pub fn warnings(&self) -> Vec<Finding> {
        let mut warnings = Vec::new();
        for document in self.documents.values() {
            if matches!(document.part, Part::Rule(_)) {
                self.warn_of_types(document, &mut warnings);
            }
        }
        warnings
    }

    fn warn_of_types(&self, document: &Document, warnings: &mut Vec<Finding>) {
        if self.subjects.is_empty() {
            return;
        }
        let types = document.listed("/pattern/type");
        for (event_type, at) in types.chain(document.listed("/pattern/detail-type")) {
            if self.subjects.contains_key(event_type) {
                continue;
            }
            let mut fault = Fault::new(at, format!("no schema describes the type `{event_type}`"));
            let known = self.subjects.keys().map(String::as_str);
            if let Some(meant) = closest(event_type, known) {
                fault = fault.with_hint(format!("did you mean `{meant}`?"));
            }
            warnings.push(Finding::warning("unknown-type", &document.file, fault));
        }
    }

    /// The bus of that name.
    #[must_use]
    pub fn bus(&self, name: &str) -> Option<&Bus> {
        self.buses.get(name)
    }

    /// All buses, in no order.
    pub fn buses(&self) -> impl Iterator<Item = &Bus> {
        self.buses.values()
    }

    /// The target of that name.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<&Arc<Target>> {
        self.targets.get(name)
    }

    /// All targets by name.
    pub fn targets(&self) -> impl Iterator<Item = &Arc<Target>> {
        self.targets.values()
    }

    /// The schemas of an event type.
    #[must_use]
    pub fn subject(&self, event_type: &str) -> Option<&Subject> {
        self.subjects.get(event_type)
    }

    /// All documents, by kind, bus, name and version.
    #[must_use]
    pub fn documents(&self) -> &BTreeMap<Id, Arc<Document>> {
        &self.documents
    }

    /// Documents of one kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Arc<Document>> {
        self.documents
            .values()
            .filter(move |document| document.id.kind == kind)
    }
}

impl Subject {
    /// The version that judges events which name none.
    #[must_use]
    pub fn default_version(&self) -> Option<(u32, &Arc<Schema>)> {
        let found = match self.policy.default_version {
            DefaultVersion::Latest => self.versions.last_key_value(),
            DefaultVersion::Number(number) => self.versions.get_key_value(&number),
        };
        found.map(|(version, schema)| (*version, schema))
    }

    /// The number of the next version; none is ever given twice.
    #[must_use]
    pub fn next_version(&self) -> u32 {
        let newest = self.versions.last_key_value();
        newest.map_or(0, |(version, _)| *version).max(self.given) + 1
    }

    /// What happens to events that the schema refuses.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.policy.mode
    }
}

fn cross_check(
    documents: &BTreeMap<Id, Arc<Document>>,
    subjects: &HashMap<String, Subject>,
    targets: &BTreeMap<String, Arc<Target>>,
    buses: &BTreeMap<String, BusSettings>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in documents.values() {
        match &document.part {
            Part::Rule(rule) => check_rule(document, rule, targets, buses, &mut findings),
            Part::Policy(policy) => check_policy(document, policy, subjects, &mut findings),
            Part::Schema(_) | Part::Number(_) | Part::Target(_) | Part::Bus(_) => {}
        }
    }
    findings
}

fn check_rule(
    document: &Document,
    rule: &Rule,
    targets: &BTreeMap<String, Arc<Target>>,
    buses: &BTreeMap<String, BusSettings>,
    findings: &mut Vec<Finding>,
) {
    for (target, at) in &rule.targets {
        if !targets.contains_key(target.as_str()) {
            let fault = unknown(*at, "target", target, targets.keys());
            findings.push(Finding::error("unknown-target", &document.file, fault));
        }
    }
    if !buses.contains_key(rule.bus.as_str()) {
        let fault = unknown(document.position("/bus"), "bus", &rule.bus, buses.keys());
        findings.push(Finding::error("unknown-bus", &document.file, fault));
    }
}

fn check_policy(
    document: &Document,
    policy: &Policy,
    subjects: &HashMap<String, Subject>,
    findings: &mut Vec<Finding>,
) {
    let DefaultVersion::Number(number) = policy.default_version else {
        return;
    };
    let known = subjects
        .get(&document.id.name)
        .is_some_and(|subject| subject.versions.contains_key(&number));
    if !known {
        let message = format!("`{}` has no version {number}", document.id.name);
        let fault = Fault::new(document.position("/default_version"), message)
            .with_hint("register the version first, or say `latest`");
        findings.push(Finding::error("unknown-version", &document.file, fault));
    }
}

fn unknown<'a>(
    at: crate::document::Position,
    what: &str,
    name: &Name,
    known: impl Iterator<Item = &'a String>,
) -> Fault {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let hint = match closest(name.as_str(), known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("define it as a document of its own with `name: {name}`"),
    };
    Fault::new(at, format!("there is no {what} `{name}`")).with_hint(hint)
}
