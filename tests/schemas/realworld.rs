//! Published schemas and events: every schema compiles, every verdict is the known one.

use std::{collections::BTreeMap, path::Path, time::Instant};

use dak::schema::{
    Error, Options, Schema,
    compatibility::{CheckOptions, Direction, Level, Verdict, check},
};
use serde_json::Value;

/// Schemas whose `$ref` leads nowhere because an `id` in between changes what it is relative to.
const UNRESOLVABLE: &str = "google.cloud.firestore.document.v1.";

fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the file is readable");
    serde_json::from_str(&text).expect("the file is JSON")
}

/// Every schema file of the index with its entry, in order of versions.
fn versions(folder: &Path) -> Vec<(String, String, Value)> {
    let index = read_json(&folder.join("schemas/index.json"));
    let mut versions = Vec::new();
    for entry in index.as_array().expect("the index is a list") {
        let name = entry["type"].as_str().expect("a type has a name");
        for version in entry["versions"].as_array().expect("a type has versions") {
            let path = folder.join(version["file"].as_str().expect("a version has a file"));
            let text = std::fs::read_to_string(path).expect("the schema is readable");
            versions.push((name.to_owned(), text, version.clone()));
        }
    }
    versions
}

#[test]
fn every_published_schema_compiles_or_is_refused_for_its_broken_reference() {
    let Some(folder) = crate::shared("realworld") else {
        return;
    };
    let (mut compiled, mut refused) = (0, BTreeMap::new());
    for (name, text, version) in versions(&folder) {
        match Schema::compile(&text, &Options::default()) {
            Ok(schema) => {
                compiled += 1;
                assert_eq!(
                    schema.content_hash().to_string(),
                    version["sha256"],
                    "{name}"
                );
            }
            Err(error @ Error::UnresolvableReference { .. }) => {
                refused.insert(version["file"].to_string(), error.to_string());
            }
            Err(error) => panic!("{name} {}: {error}", version["version"]),
        }
    }
    println!("{compiled} schemas compile, {} are refused", refused.len());
    for (file, reason) in &refused {
        println!("  {file}: {reason}");
    }
    assert!(refused.keys().all(|file| file.contains(UNRESOLVABLE)));
}

#[test]
fn every_published_event_has_the_known_verdict() {
    let Some(folder) = crate::shared("realworld") else {
        return;
    };
    let schemas: BTreeMap<String, Option<Schema>> = versions(&folder)
        .into_iter()
        .map(|(name, text, version)| {
            let key = format!(
                "{name}/{}",
                version["version"].as_str().expect("it has a version")
            );
            (key, Schema::compile(&text, &Options::default()).ok())
        })
        .collect();
    let own = read_json(&folder.join("events/expected.json"));
    let others = read_json(&folder.join("events/expected_versions.json"));
    let manifest = std::fs::read_to_string(folder.join("manifest.jsonl")).expect("it is readable");
    let schema_of: BTreeMap<String, String> = manifest
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"))
        .filter_map(|line| {
            let file = line["schema"]
                .as_str()?
                .strip_prefix("schemas/")?
                .strip_suffix(".json")?;
            Some((line["id"].as_str()?.to_owned(), file.to_owned()))
        })
        .collect();
    let (mut judged, mut judged_by_others) = (0, 0);
    for origin in ["aws", "azure", "cdevents", "github", "google"] {
        let path = folder.join(format!("events/{origin}.jsonl"));
        for line in std::fs::read_to_string(path)
            .expect("it is readable")
            .lines()
        {
            let event: Value = serde_json::from_str(line).expect("a line is JSON");
            let id = event["id"].as_str().expect("an event has an id");
            if let Some(expected) = own[id].as_bool() {
                let schema = schemas[&schema_of[id]]
                    .as_ref()
                    .expect("the schema compiles");
                let bytes = event["data"].to_string();
                let verdict = schema.validate(bytes.as_bytes());
                assert_eq!(verdict.is_ok(), expected, "{id}: {verdict:?}");
                judged += 1;
            }
            let versions = others[id]["versions"].as_object().into_iter().flatten();
            for (version, expected) in versions {
                let name = others[id]["type"].as_str().expect("a type has a name");
                let schema = schemas[&format!("{name}/{version}")].as_ref();
                let verdict = schema.map(|schema| schema.is_valid(&event["data"]));
                assert_eq!(verdict, expected.as_bool(), "{id} against {name} {version}");
                judged_by_others += 1;
            }
        }
    }
    println!("{judged} events judged by their own schema, {judged_by_others} by other versions");
    assert_eq!(judged, own.as_object().map_or(0, serde_json::Map::len));
}

#[test]
fn consecutive_versions_are_compared_and_no_verdict_contradicts_an_event() {
    let Some(folder) = crate::shared("realworld") else {
        return;
    };
    let mut types: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (name, text, version) in versions(&folder) {
        let version = version["version"]
            .as_str()
            .expect("it has a version")
            .to_owned();
        types.entry(name).or_default().push((version, text));
    }
    types.retain(|_, versions| versions.len() > 1);
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut times, mut unproved) = (Vec::new(), 0);
    let mut compatible: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (name, versions) in &types {
        for pair in versions.windows(2) {
            let [(old_version, old), (new_version, new)] = pair else {
                continue;
            };
            for (level, direction) in [
                (Level::Backward, Direction::Backward),
                (Level::Forward, Direction::Forward),
            ] {
                let start = Instant::now();
                let one = check(old, new, level, &CheckOptions::default());
                let place = format!("{name} {old_version} -> {new_version} {direction:?}");
                times.push((start.elapsed(), place));
                assert!(one.differences.len() <= CheckOptions::default().differences_max);
                *verdicts
                    .entry(format!("{direction:?} {:?}", one.verdict))
                    .or_default() += 1;
                if one.verdict == Verdict::Undecided {
                    println!(
                        "undecided: {name} {old_version} -> {new_version} {direction:?}: {:?}",
                        one.differences[0]
                    );
                }
                let has_witness = one.differences.iter().any(|one| one.witness.is_some());
                unproved += usize::from(one.verdict == Verdict::Incompatible && !has_witness);
                if one.verdict == Verdict::Compatible {
                    let (giving, accepting) = match direction {
                        Direction::Backward => (old_version, new_version),
                        Direction::Forward => (new_version, old_version),
                    };
                    let pairs = compatible.entry(name.clone()).or_default();
                    pairs.push((giving.clone(), accepting.clone()));
                }
            }
        }
    }
    times.sort();
    println!(
        "{} types, {} checks, verdicts {verdicts:?}, {unproved} incompatible without a witness; \
         p50 {:?}, p99 {:?}, slowest {:?}",
        types.len(),
        times.len(),
        times[times.len() / 2].0,
        times[(times.len() - 1) * 99 / 100].0,
        times.last(),
    );
    let expected = read_json(&folder.join("events/expected_versions.json"));
    let mut held = 0;
    for (id, entry) in expected.as_object().into_iter().flatten() {
        let pairs = compatible.get(entry["type"].as_str().expect("it has a type"));
        for (giving, accepting) in pairs.into_iter().flatten() {
            let (taken, then) = (&entry["versions"][giving], &entry["versions"][accepting]);
            let is_refuted = taken == &Value::from(true) && then == &Value::from(false);
            assert!(
                !is_refuted,
                "{id}: {giving} -> {accepting} is called compatible"
            );
            held += usize::from(taken == &Value::from(true) && then == &Value::from(true));
        }
    }
    println!("{held} events hold across versions that are called compatible");
}
