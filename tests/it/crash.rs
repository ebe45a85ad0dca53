//! The promise of the 202: the server is killed again and again under load, and a ledger is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::process::{Process, Program};
use crate::support::{Answer, Http, NoAnswer, Receiver, event, until};

const CLIENTS: usize = 8;
const KILLS: usize = 20;
/// Longest time the whole may take.
const TIME_MAX: Duration = Duration::from_secs(300);

/// What the world outside knows of the server.
struct Ledger {
    http: Http,
    is_up: watch::Sender<bool>,
    published: AtomicUsize,
    unanswered: AtomicUsize,
    /// Answers that said `duplicate`: the first try was committed, its answer lost.
    duplicates: AtomicUsize,
    answered: watch::Sender<usize>,
    /// By id: position and targets, as the 202 said.
    accepted: Mutex<BTreeMap<String, (i64, Vec<String>)>>,
    /// By target: how often each id came.
    delivered: Mutex<BTreeMap<&'static str, BTreeMap<String, usize>>>,
    is_enough: AtomicBool,
    is_drained: AtomicBool,
}

impl Ledger {
    fn new(http: Http) -> Self {
        Self {
            http,
            is_up: watch::Sender::new(true),
            published: AtomicUsize::new(0),
            unanswered: AtomicUsize::new(0),
            duplicates: AtomicUsize::new(0),
            answered: watch::Sender::new(0),
            accepted: Mutex::default(),
            delivered: Mutex::default(),
            is_enough: AtomicBool::new(false),
            is_drained: AtomicBool::new(false),
        }
    }

    async fn post(&self, path: &str, media_type: &str, body: &Value) -> Result<Answer, NoAnswer> {
        let request = Request::post(path).header("content-type", media_type);
        let body = Full::from(body.to_string());
        self.http
            .try_send(request.body(body).expect("a request"))
            .await
    }

    /// Waits until the server is there again.
    async fn up(&self) {
        let mut is_up = self.is_up.subscribe();
        is_up
            .wait_for(|is_up| *is_up)
            .await
            .expect("the ledger stays open");
    }

    fn note_receipt(&self, event: &Value, receipt: &Value) {
        let id = event["id"].as_str().expect("an id").to_owned();
        let seq = receipt["seq"].as_i64().expect("a position");
        let targets = receipt["targets"].as_array().expect("targets");
        let targets = targets
            .iter()
            .map(|name| name.as_str().expect("a name").to_owned())
            .collect();
        if receipt["duplicate"] == true {
            self.duplicates.fetch_add(1, Ordering::SeqCst);
        }
        let known = self.accepted.lock().insert(id, (seq, targets));
        assert_eq!(known, None, "{event} was answered before");
        self.answered.send_modify(|answered| *answered += 1);
    }

    fn note_delivery(&self, target: &'static str, id: &str) {
        let mut delivered = self.delivered.lock();
        *delivered
            .entry(target)
            .or_default()
            .entry(id.to_owned())
            .or_default() += 1;
    }
}

/// Publishes until it is enough, one by one and in batches; what gets no answer is sent again.
async fn publish(client: usize, ledger: Arc<Ledger>) {
    for round in 0.. {
        if ledger.is_enough.load(Ordering::SeqCst) {
            break;
        }
        let members = if round % 4 == 3 { 5 } else { 1 };
        let events: Vec<Value> = (0..members)
            .map(|member| {
                // Every eighth event is large enough to be offloaded.
                let text = "x".repeat(if round % 8 == 7 { 6_000 } else { 100 });
                let data = json!({"n": round, "text": text});
                event(&format!("{client}-{round}-{member}"), "order", data)
            })
            .collect();
        ledger.published.fetch_add(members, Ordering::SeqCst);
        let receipts = answered(&ledger, &events).await;
        for (event, receipt) in events.iter().zip(&receipts) {
            ledger.note_receipt(event, receipt);
        }
    }
}

/// The receipts for some events, asked for until there is an answer.
async fn answered(ledger: &Ledger, events: &[Value]) -> Vec<Value> {
    let (media_type, body) = match events {
        [one] => ("application/cloudevents+json", one.clone()),
        _ => ("application/cloudevents-batch+json", json!(events)),
    };
    loop {
        match ledger.post("/v1/events", media_type, &body).await {
            Ok(answer) => {
                assert_eq!(answer.status, 202, "{}", answer.text());
                let answer = answer.json();
                let receipts = answer["events"].as_array().cloned();
                return receipts.unwrap_or_else(|| vec![answer]);
            }
            Err(_) => {
                ledger.unanswered.fetch_add(1, Ordering::SeqCst);
                ledger.up().await;
            }
        }
    }
}

/// Receives and acknowledges until the queues are drained.
async fn consume(target: &'static str, ledger: Arc<Ledger>) {
    let (receive, acknowledge) = (
        format!("/v1/queues/{target}/receive"),
        format!("/v1/queues/{target}/acknowledge"),
    );
    let ask = json!({"max_events": 50, "wait_seconds": 1, "lease_seconds": 2});
    while !ledger.is_drained.load(Ordering::SeqCst) {
        let Ok(answer) = ledger.post(&receive, "application/json", &ask).await else {
            ledger.up().await;
            continue;
        };
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        let events = answer["events"].as_array().expect("events");
        if events.is_empty() {
            continue;
        }
        for one in events {
            ledger.note_delivery(target, one["event"]["id"].as_str().expect("an id"));
        }
        let tokens: Vec<&Value> = events.iter().map(|one| &one["lease_token"]).collect();
        let settle = json!({"lease_tokens": tokens});
        // Without an answer the leases run out, and what was settled or not shows by what comes.
        let _settled = ledger.post(&acknowledge, "application/json", &settle).await;
    }
}

async fn set_up(http: &Http, hook: &Receiver) {
    http.put("/v1/targets/audit", &json!({"type": "pull"}))
        .await
        .ok();
    http.put("/v1/targets/billing", &json!({"type": "pull"}))
        .await
        .ok();
    let webhook = json!({"type": "webhook", "url": hook.url(), "allow_private": true,
        "retry": {"min_delay": "50ms", "max_delay": "200ms"}});
    http.put("/v1/targets/hook", &webhook).await.ok();
    let all = json!({"pattern": {"type": ["order"]}, "targets": ["audit", "hook"]});
    http.put("/v1/rules/all", &all).await.ok();
    let early =
        json!({"pattern": {"data": {"n": [{"numeric": ["<", 40]}]}}, "targets": ["billing"]});
    http.put("/v1/rules/early", &early).await.ok();
}

/// Kills the server in the middle of its work and starts it again, many times.
async fn kill_and_start(program: &Program, mut process: Process, ledger: &Ledger) -> Process {
    for _ in 0..KILLS {
        let more = 5 + usize::from(rand::random::<u8>()) / 2;
        let enough = *ledger.answered.borrow() + more;
        let mut answered = ledger.answered.subscribe();
        answered
            .wait_for(|answered| *answered >= enough)
            .await
            .expect("open");
        ledger.is_up.send_replace(false);
        process.kill();
        process = program.start().await;
        ledger.is_up.send_replace(true);
    }
    process
}

/// The whole log: by id, every position it has.
async fn log(http: &Http) -> BTreeMap<String, Vec<i64>> {
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut before = i64::MAX;
    loop {
        let path = format!("/v1/buses/default/events?limit=500&before={before}");
        let page = http.get(&path).await.ok();
        let events = page["events"].as_array().expect("events");
        for stored in events {
            before = stored["seq"].as_i64().expect("a position");
            let id = stored["event"]["id"].as_str().expect("an id").to_owned();
            found.entry(id).or_default().push(before);
        }
        if events.is_empty() {
            return found;
        }
    }
}

fn is_empty(queue: &Value) -> bool {
    ["ready", "delayed", "leased"]
        .iter()
        .all(|name| queue[name] == 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_202_survives_twenty_kills_and_nothing_is_accepted_twice() {
    tokio::time::timeout(TIME_MAX, run())
        .await
        .expect("it takes its time, but not so much");
}

async fn run() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::new(
        folder.path(),
        &["claim_check.threshold=4KiB", "log.filter=warn,dak=info"],
    );
    let hook = Receiver::start().await;
    let process = program.start().await;
    set_up(&process.http, &hook).await;
    let ledger = Arc::new(Ledger::new(process.http.clone()));
    let publishers: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(publish(client, Arc::clone(&ledger))))
        .collect();
    let consumers: Vec<_> = ["audit", "audit", "billing"]
        .map(|target| tokio::spawn(consume(target, Arc::clone(&ledger))))
        .into();

    let process = kill_and_start(&program, process, &ledger).await;
    ledger.is_enough.store(true, Ordering::SeqCst);
    for publisher in publishers {
        publisher
            .await
            .expect("every publish is answered in the end");
    }
    for target in ["audit", "billing", "hook"] {
        let path = format!("/v1/targets/{target}");
        let ask = async || process.http.get(&path).await.ok()["queue"].clone();
        let queue = until(ask, is_empty).await;
        assert_eq!(queue["dead"], 0, "{target}: {queue}");
    }
    ledger.is_drained.store(true, Ordering::SeqCst);
    for consumer in consumers {
        consumer.await.expect("a consumer");
    }
    for got in hook.got() {
        ledger.note_delivery("hook", got.header("ce-id"));
    }
    check(&ledger, &log(&process.http).await);
}

fn check(ledger: &Ledger, log: &BTreeMap<String, Vec<i64>>) {
    let accepted = ledger.accepted.lock();
    let published = ledger.published.load(Ordering::SeqCst);
    assert_eq!(
        accepted.len(),
        published,
        "every publish was answered in the end"
    );
    assert_eq!(
        log.len(),
        published,
        "the log holds what was published, and nothing else"
    );
    for (id, (seq, _)) in &*accepted {
        assert_eq!(
            log.get(id),
            Some(&vec![*seq]),
            "{id} stands once, where the 202 said"
        );
    }
    let delivered = ledger.delivered.lock();
    let mut again = 0;
    for target in ["audit", "billing", "hook"] {
        let due: BTreeSet<&String> = accepted
            .iter()
            .filter(|(_, (_, targets))| targets.iter().any(|name| name == target))
            .map(|(id, _)| id)
            .collect();
        assert!(!due.is_empty(), "{target} was to get something");
        let came: BTreeSet<&String> = delivered[target].keys().collect();
        let lost: Vec<_> = due.difference(&came).collect();
        let strange: Vec<_> = came.difference(&due).collect();
        assert!(
            lost.is_empty() && strange.is_empty(),
            "{target}: lost {lost:?}, strange {strange:?}"
        );
        again += delivered[target].values().sum::<usize>() - came.len();
    }
    println!(
        "published {published}, acknowledged {}, kills {KILLS}, unanswered {}, answered as duplicates {}, \
         deliveries {}, of these again {again}",
        accepted.len(),
        ledger.unanswered.load(Ordering::SeqCst),
        ledger.duplicates.load(Ordering::SeqCst),
        delivered.values().map(BTreeMap::len).sum::<usize>() + again,
    );
}
