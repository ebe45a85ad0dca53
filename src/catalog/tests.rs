//! The catalog judged as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::event::{Attribute, Data, Event};
use crate::pattern::Scratch;

fn documents(yaml: &str) -> BTreeMap<Id, Arc<Document>> {
    read(yaml).expect("good documents")
}

fn read(yaml: &str) -> Result<BTreeMap<Id, Arc<Document>>, Vec<Finding>> {
    let unread = Unread {
        text: yaml,
        file: "rules.yaml",
        now: 0,
    };
    let (read, findings) = Document::read_all(unread);
    if !findings.is_empty() {
        return Err(findings);
    }
    Ok(read
        .into_iter()
        .map(|document| (document.id.clone(), Arc::new(document)))
        .collect())
}

fn event(event_type: &str) -> Event {
    let attributes = [
        ("specversion", "1.0"),
        ("id", "1"),
        ("source", "/s"),
        ("type", event_type),
    ];
    let attributes = attributes.map(|(name, value)| Attribute::text(name, value));
    Event::new(attributes.to_vec(), Data::Absent).expect("an event")
}

fn matched(catalog: &Catalog, event_type: &str) -> Vec<String> {
    let bus = catalog.bus("default").expect("the default bus");
    let rules = bus.matches(&event(event_type), &mut Scratch::default());
    let rules = rules.expect("within limits");
    rules.iter().map(|rule| rule.name.to_string()).collect()
}

#[test]
fn an_unknown_target_is_found_with_its_place_and_the_one_that_was_meant() {
    let documents = documents(
        "kind: Rule\nname: r\npattern: {type: [a]}\ntargets: [audti]\n---\nkind: Target\nname: audit\ntype: pull\n",
    );
    let findings = Catalog::compile(documents, None).expect_err("a finding");
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].code, "unknown-target");
    assert_eq!((findings[0].at.line, findings[0].at.column), (4, 11));
    assert_eq!(findings[0].hint.as_deref(), Some("did you mean `audit`?"));
}

#[test]
fn every_fault_of_every_document_is_told() {
    let findings = read(
        "kind: Rule\nname: r\npattern: {type: a}\ntargets: [t]\ntarget: x\n---\nkind: Target\nname: t\ntype: pul\n---\nkind: Thing\n",
    )
    .expect_err("findings");
    let codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(
        codes,
        [
            "invalid-pattern",
            "invalid-rule",
            "invalid-target",
            "unknown-kind"
        ]
    );
    assert!(
        findings.iter().all(|finding| finding.at.line > 1),
        "{findings:#?}"
    );
}

#[test]
fn a_default_version_that_is_not_there_is_refused() {
    let documents = documents("kind: SchemaPolicy\ntype: order\ndefault_version: 3\n");
    let findings = Catalog::compile(documents, None).expect_err("a finding");
    assert_eq!(findings[0].code, "unknown-version");
}

#[test]
fn a_shown_document_with_hidden_secrets_is_not_taken_back() {
    let target = "kind: Target\nname: t\ntype: webhook\nurl: https://example.com/\nheaders: {authorization: '***'}\n";
    let findings = read(target).expect_err("a finding");
    assert_eq!(findings[0].code, "hidden-secret");
}

#[test]
fn a_type_that_no_schema_describes_is_a_warning_once_there_are_schemas() {
    let mut documents = documents(
        "kind: Rule\nname: r\npattern: {type: [order.placd]}\ntargets: [t]\n---\nkind: Target\nname: t\ntype: pull\n",
    );
    let unread = Unread {
        text: "{}",
        file: "schemas/order.placed/1.json",
        now: 0,
    };
    let schema = Document::read_schema("order.placed", 1, unread).expect("a schema");
    documents.insert(schema.id.clone(), Arc::new(schema));
    let catalog = Catalog::compile(documents, None).expect("no error");
    let warnings = catalog.warnings();
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].hint.as_deref(),
        Some("did you mean `order.placed`?")
    );
}

#[test]
fn a_changed_catalog_matches_like_one_compiled_afresh() {
    let rule = |at: usize, round: usize| {
        format!(
            "kind: Rule\nname: r{at:04}\npattern: {{type: [t{}]}}\ntargets: [t]\nenabled: {}\n---\n",
            (at + round) % 7,
            !(at * 31 + round).is_multiple_of(5),
        )
    };
    let target = "kind: Target\nname: t\ntype: pull\n";
    let all: String = (0..600).map(|at| rule(at, 0)).collect();
    let mut current = documents(&format!("{all}{target}"));
    let mut catalog = Catalog::compile(current.clone(), None).expect("good");
    for round in 1..40 {
        let changed: String = (0..20)
            .map(|n| rule((n * 29 + round * 13) % 600, round))
            .collect();
        for (id, document) in documents(&changed) {
            current.insert(id, document);
        }
        current.remove(&Id::rule("default", &format!("r{:04}", round * 7)));
        catalog = Catalog::compile(current.clone(), Some(&catalog)).expect("good");
        let fresh = Catalog::compile(current.clone(), None).expect("good");
        for event_type in ["t0", "t3", "t6", "other"] {
            let now = matched(&catalog, event_type);
            assert_eq!(now, matched(&fresh, event_type), "round {round}");
            assert_eq!(event_type == "other", now.is_empty());
        }
    }
}
