//! Published schemas, events and patterns through the whole gateway: every verdict is the known
//! one, every match arrives at a webhook and by pull, and nothing is lost or doubled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{Gateway, Receiver, event, shared};

const EVENT_TYPE: &str = "application/cloudevents+json";
/// Schemas whose `$ref` leads nowhere because an `id` in between changes what it is relative to.
const UNRESOLVABLE: &str = "schemas/google.cloud.firestore.document.v1.";
/// A pattern with `$or` as the name of a field, which event-ruler takes for old times' sake only.
const OR_AS_FIELD: &str =
    "event-ruler/the-backward-compatibility-of-using-or-as-field-name-in-the-rule-l456";

/// The published material.
struct Pack {
    folder: PathBuf,
    /// What is known of each event, by its id.
    manifest: BTreeMap<String, Value>,
}

/// The versions that were registered: event type and schema file to number.
type Versions = BTreeMap<(String, String), u64>;

impl Pack {
    fn open() -> Option<Self> {
        let folder = shared()?.join("realworld");
        let lines = read_lines(&folder.join("manifest.jsonl"));
        let manifest = lines.into_iter().map(|line| (text(&line["id"]), line));
        Some(Self {
            manifest: manifest.collect(),
            folder,
        })
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.join(file)).expect("a file of the pack")
    }

    /// Every schema file in the order of the index, with the event types it describes.
    fn schemas(&self) -> Vec<(String, BTreeSet<String>)> {
        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in self
            .manifest
            .values()
            .filter(|line| line["schema"].is_string())
        {
            used.entry(text(&line["schema"]))
                .or_default()
                .insert(text(&line["type"]));
        }
        let index: Value = serde_json::from_str(&self.read("schemas/index.json")).expect("JSON");
        let mut schemas = Vec::new();
        for entry in index.as_array().expect("types") {
            for version in entry["versions"].as_array().expect("versions") {
                let file = text(&version["file"]);
                let mut types = used.remove(&file).unwrap_or_default();
                types.insert(
                    version["ce_type"]
                        .as_str()
                        .map_or_else(|| text(&entry["type"]), str::to_owned),
                );
                types.extend(
                    entry["also_types"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(text),
                );
                schemas.push((file, types));
            }
        }
        assert!(
            used.is_empty(),
            "schemas that are not in the index: {used:?}"
        );
        schemas
    }

    /// Every event as its text, with the schema version named that its publisher meant.
    fn events(&self, gateway: &Gateway, versions: &Versions) -> Vec<Published> {
        let mut events = Vec::new();
        for origin in ["aws", "azure", "cdevents", "github", "google"] {
            for line in self.read(&format!("events/{origin}.jsonl")).lines() {
                let mut members: BTreeMap<String, Box<RawValue>> =
                    serde_json::from_str(line).expect("an event");
                let [id, source, event_type] = ["id", "source", "type"]
                    .map(|name| serde_json::from_str::<String>(members[name].get()).expect("text"));
                let schema = self.manifest[&id]["schema"].as_str().map(|file| {
                    let version = versions[&(event_type.clone(), file.to_owned())];
                    json!({"type": event_type, "version": version})
                });
                if let Some(schema) = &schema {
                    let path = versions_path(&event_type);
                    let address = gateway.address();
                    let url = json!(format!("http://{address}{path}/{}", schema["version"]));
                    let raw = RawValue::from_string(url.to_string()).expect("JSON");
                    members.insert("dataschema".into(), raw);
                }
                events.push(Published {
                    id,
                    source,
                    text: serde_json::to_string(&members).expect("JSON"),
                    schema: schema.unwrap_or_default(),
                });
            }
        }
        events
    }

    fn patterns(&self) -> Vec<Value> {
        [
            "awsdocs",
            "event-ruler",
            "localstack",
            "serverless-patterns",
        ]
        .iter()
        .flat_map(|origin| read_lines(&self.folder.join(format!("patterns/{origin}.jsonl"))))
        .collect()
    }
}

/// An event as it is published.
struct Published {
    id: String,
    source: String,
    text: String,
    /// What the receipt must say of its schema.
    schema: Value,
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn read_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file of the pack");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// The address of a type's versions; types have characters that a path has not.
fn versions_path(event_type: &str) -> String {
    let mut path = "/v1/schemas/".to_owned();
    for byte in event_type.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            write!(path, "%{byte:02X}").expect("a string takes any text");
        }
    }
    path + "/versions"
}

/// Registers every schema; answers with the versions and with the files that were refused.
async fn register_all(gateway: &Gateway, pack: &Pack) -> (Versions, BTreeSet<String>) {
    let (mut versions, mut refused) = (Versions::new(), BTreeSet::new());
    for (file, types) in pack.schemas() {
        let schema = pack.read(&file);
        for event_type in types {
            let path = versions_path(&event_type);
            let media_type = "application/schema+json";
            let answer = gateway
                .http
                .publish_text(&path, media_type, schema.clone())
                .await;
            if answer.status.is_success() {
                let registered = answer.ok();
                assert_eq!(registered["type"], event_type);
                let version = registered["version"].as_u64().expect("a number");
                versions.insert((event_type, file.clone()), version);
                continue;
            }
            let problem = answer.problem(422, "findings");
            let finding = &problem["findings"][0];
            assert_eq!(finding["code"], "invalid-schema", "{problem}");
            assert_eq!(finding["file"], format!("schemas/{event_type}"));
            assert!(finding["line"].as_u64() >= Some(1), "{finding}");
            assert!(finding["column"].as_u64() > Some(1), "{finding}");
            assert!(text(&finding["pointer"]).ends_with("/$ref"), "{finding}");
            assert!(
                text(&finding["message"]).contains("#/definitions/Value"),
                "{finding}"
            );
            assert!(file.starts_with(UNRESOLVABLE), "{file}: {finding}");
            refused.insert(file.clone());
        }
    }
    (versions, refused)
}

/// The body of a rule with a pattern as its origin spells it. A text with a repeated key stands
/// for its last occurrence at its origin; dak refuses it in a document, so the reading is sent.
fn rule_body(pattern: &Value, targets: &Value) -> String {
    let parsed = &pattern["pattern"];
    let has_repeated_key = pattern["name"] == "localstack/complex_multi_key";
    let spelled = match pattern["pattern_raw"].as_str() {
        Some(raw) if !has_repeated_key => raw.to_owned(),
        _ => parsed.to_string(),
    };
    format!("{{\"pattern\": {spelled}, \"targets\": {targets}}}")
}

/// Makes a rule of every valid pattern on a bus; answers how many are valid and how many are not.
async fn apply_patterns(
    gateway: &Gateway,
    pack: &Pack,
    bus: &str,
    targets: &Value,
) -> (usize, usize) {
    let (mut valid, mut invalid) = (0, 0);
    for (number, pattern) in pack.patterns().iter().enumerate() {
        let path = format!("/v1/rules/p{number}?bus={bus}");
        let answer = gateway
            .http
            .put_text(&path, rule_body(pattern, targets))
            .await;
        if pattern["expected"] == "invalid" || pattern["name"] == OR_AS_FIELD {
            let problem = answer.problem(422, "findings");
            let finding = &problem["findings"][0];
            assert_eq!(
                finding["severity"], "error",
                "{}: {problem}",
                pattern["name"]
            );
            assert!(
                finding["line"].as_u64() >= Some(1),
                "{}: {problem}",
                pattern["name"]
            );
            invalid += 1;
        } else {
            assert!(
                answer.status.is_success(),
                "{}: {}",
                pattern["name"],
                answer.text()
            );
            valid += 1;
        }
    }
    (valid, invalid)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn published_events_get_their_verdicts_and_arrive_once_at_every_target() {
    let Some(pack) = Pack::open() else {
        return;
    };
    let gateway = Gateway::start().await;
    let receiver = Receiver::start().await;
    let (versions, refused) = register_all(&gateway, &pack).await;
    gateway.webhook("hook", &receiver.url(), json!({})).await;
    gateway
        .http
        .put("/v1/targets/pull", &json!({"type": "pull"}))
        .await
        .ok();
    let targets = json!(["hook", "pull"]);
    let (valid, invalid) = apply_patterns(&gateway, &pack, "default", &targets).await;

    let events = pack.events(&gateway, &versions);
    let expected: BTreeMap<String, bool> =
        serde_json::from_str(&pack.read("events/expected.json")).expect("verdicts");
    let mut receipts = BTreeMap::new();
    let mut due = BTreeSet::new();
    let mut matches = 0;
    for event in &events {
        let answer = gateway
            .http
            .publish_text("/v1/events", EVENT_TYPE, event.text.clone())
            .await;
        if expected.get(&event.id) == Some(&false) {
            let problem = answer.problem(422, "schema-violation");
            assert_eq!(problem["schema"], event.schema);
            let count = problem["violation_count"].as_u64().expect("a count");
            let listed = problem["violations"].as_array().expect("violations").len() as u64;
            assert!(count >= listed && listed >= 1, "{problem}");
            continue;
        }
        let receipt = answer.ok();
        assert_eq!(receipt["duplicate"], false, "{}", event.id);
        assert_eq!(receipt["schema"], event.schema, "{}", event.id);
        let rules = receipt["rules"].as_array().expect("rules").len();
        assert_eq!(
            receipt["targets"],
            if rules > 0 {
                targets.clone()
            } else {
                json!([])
            }
        );
        if rules > 0 {
            due.insert((event.source.clone(), event.id.clone()));
        }
        matches += rules;
        receipts.insert(event.id.clone(), receipt);
    }
    let refused_events = events.len() - receipts.len();
    assert_eq!(
        refused_events,
        expected.values().filter(|valid| !**valid).count()
    );
    assert!(due.len() > 50, "only {} events matched", due.len());

    for event in &events {
        let answer = gateway
            .http
            .publish_text("/v1/events", EVENT_TYPE, event.text.clone())
            .await;
        match receipts.get(&event.id) {
            None => {
                answer.problem(422, "schema-violation");
            }
            Some(first) => {
                let mut again = first.clone();
                again["duplicate"] = true.into();
                assert_eq!(answer.ok(), again);
            }
        }
    }
    arrived_once(&gateway, &receiver, &due).await;
    println!(
        "real input: {} schema versions registered, {} files refused; {valid} patterns applied, \
         {invalid} refused; {} events accepted, {refused_events} refused, {matches} matches, {} \
         deliveries to each of 2 targets, {} duplicates",
        versions.len(),
        refused.len(),
        receipts.len(),
        due.len(),
        receipts.len(),
    );
}

/// Both targets got these events, and nothing else and nothing twice.
async fn arrived_once(gateway: &Gateway, receiver: &Receiver, due: &BTreeSet<(String, String)>) {
    // An event of today ends the line: what came before it has been handed out when it is.
    gateway
        .rule("last", &json!({"type": ["test.last"]}), &["hook", "pull"])
        .await;
    gateway
        .http
        .publish(&event("last", "test.last", json!({})))
        .await
        .ok();
    let count = due.len() + 1;
    let got = receiver.wait_for(count).await;
    assert_eq!(got.len(), count);
    let pushed: BTreeSet<(String, String)> = got
        .iter()
        .map(|got| (got.attribute("source"), got.attribute("id")))
        .collect();
    let mut pulled = Vec::new();
    while pulled.len() < count {
        let received = gateway.receive("pull", 100).await;
        assert!(
            !received.is_empty(),
            "{} of {count} could be pulled",
            pulled.len()
        );
        let tokens: Vec<&Value> = received
            .iter()
            .map(|delivery| &delivery["lease_token"])
            .collect();
        let settle = json!({"lease_tokens": tokens});
        gateway
            .http
            .post("/v1/queues/pull/acknowledge", &settle)
            .await
            .ok();
        let named = |delivery: &Value| {
            let event = &delivery["event"];
            (text(&event["source"]), text(&event["id"]))
        };
        pulled.extend(received.iter().map(named));
    }
    assert_eq!(pulled.len(), count);
    let pulled: BTreeSet<(String, String)> = pulled.into_iter().collect();
    let mut all = due.clone();
    all.insert(("/test".into(), "last".into()));
    assert_eq!(pushed.difference(&all).next(), None);
    assert_eq!(pushed.len(), count);
    assert_eq!(pulled, all);
    assert!(gateway.receive("pull", 100).await.is_empty());
    gateway.deliver("hook").await;
    for target in ["hook", "pull"] {
        let line = format!("dak_deliveries_enqueued_total{{target=\"{target}\"}}");
        assert_eq!(gateway.metric(&line).await, count as f64);
    }
}

/// Whether an EventBridge event and a pattern use only what a CloudEvent carries too.
fn is_portable(pattern: &Value) -> bool {
    let keys = |value: &Value, known: &[&str]| {
        let members = value.as_object();
        members.is_some_and(|members| members.keys().all(|key| known.contains(&key.as_str())))
    };
    keys(
        &pattern["pattern"],
        &[
            "source",
            "detail-type",
            "detail",
            "account",
            "region",
            "time",
        ],
    ) && keys(
        &pattern["event"],
        &[
            "version",
            "id",
            "detail-type",
            "source",
            "account",
            "time",
            "region",
            "resources",
            "detail",
        ],
    ) && pattern["event"]["detail-type"].is_string()
        && pattern["expected"].is_boolean()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn published_patterns_match_the_events_that_came_with_them() {
    let Some(pack) = Pack::open() else {
        return;
    };
    let gateway = Gateway::start().await;
    gateway.http.put("/v1/buses/pairs", &json!({})).await.ok();
    gateway
        .http
        .put("/v1/targets/pull", &json!({"type": "pull"}))
        .await
        .ok();
    apply_patterns(&gateway, &pack, "pairs", &json!(["pull"])).await;
    let mut counts = (0, 0);
    for (number, pattern) in pack.patterns().iter().enumerate() {
        if !is_portable(pattern) {
            continue;
        }
        let envelope = &pattern["event"];
        let mut event = json!({"specversion": "1.0", "id": format!("pair-{number}"),
            "source": envelope["source"], "type": envelope["detail-type"], "time": envelope["time"]});
        for (name, from) in [
            ("account", "account"),
            ("region", "region"),
            ("data", "detail"),
        ] {
            if let Some(value) = envelope.get(from) {
                event[name] = value.clone();
            }
        }
        let path = "/v1/buses/pairs/events";
        let receipt = gateway
            .http
            .publish_text(path, EVENT_TYPE, event.to_string())
            .await
            .ok();
        let rules = receipt["rules"].as_array().expect("rules");
        let has_matched = rules.contains(&json!(format!("p{number}")));
        assert_eq!(
            has_matched,
            pattern["expected"] == true,
            "{}: {event}",
            pattern["name"]
        );
        if has_matched {
            counts.0 += 1
        } else {
            counts.1 += 1
        }
    }
    println!("real pairs: {} match, {} do not", counts.0, counts.1);
    assert!(counts.0 >= 20 && counts.1 >= 20, "{counts:?}");
}
