//! What is measured: a server in a process of its own, with the schema, rules and targets of the
//! benchmark, and what it says and costs.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::load::{self, EVENT_TYPE};

/// Rules there are, of which [`MATCHING`] match.
pub const RULES: usize = 100;
/// Rules that match every event, each with a target of its own.
pub const MATCHING: usize = 3;
/// What every sync takes longer when it is delayed.
pub const SYNC_DELAY: Duration = Duration::from_millis(2);
/// Longest wait for a server to be ready.
const START_WAIT: Duration = Duration::from_secs(20);
/// Ticks of processor time in a second, fixed in what Linux tells programs.
const TICKS: f64 = 100.0;

/// A kind of server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// dak as it comes.
    Dak(Program),
    /// Another dak, as it comes.
    Other(Program),
    /// dak that commits each request by itself.
    Alone(Program),
    /// A handler that reads the body and does nothing.
    Bare,
}

/// Where dak is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    File(PathBuf),
    /// This program, which holds the library.
    Own,
}

impl Program {
    /// What `DAK_BIN` names, else the `dak` built with this program, else this program.
    pub fn find() -> Self {
        let built = option_env!("CARGO_BIN_EXE_dak").map(PathBuf::from);
        std::env::var_os("DAK_BIN")
            .map(PathBuf::from)
            .or(built.filter(|path| path.is_file()))
            .map_or(Self::Own, Self::File)
    }
}

/// A server that runs until it is dropped.
pub struct Server {
    process: Child,
    pub address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its data goes too, so there is nothing to stop in order.
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

/// What a server has done so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct Reading {
    /// Processor time of its process; none where the system does not tell.
    pub cpu: Option<f64>,
    pub accepted: f64,
    pub duplicate: f64,
    pub enqueued: f64,
    pub commits: f64,
    /// Events in these commits.
    pub committed: f64,
}

impl Server {
    /// Starts a server on a folder, with this library preloaded if any, and waits until it is ready.
    pub async fn start(
        subject: &Subject,
        folder: &Path,
        slow_sync: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let log = folder.join("log");
        let mut command = command(subject, folder, address)?;
        command.current_dir(folder).stderr(File::create(&log)?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DAK_") {
                command.env_remove(name);
            }
        }
        if let Some(library) = slow_sync {
            command.env("LD_PRELOAD", library);
            command.env("SLOW_SYNC_US", SYNC_DELAY.as_micros().to_string());
        }
        let process = command
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let mut server = Self { process, address };
        server.wait_until_ready(&log).await?;
        Ok(server)
    }

    async fn wait_until_ready(&mut self, log: &Path) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_WAIT;
        loop {
            let answer = load::call(self.address, Method::GET, "/readyz", "").await;
            if answer.is_ok_and(|(status, _)| status == StatusCode::OK) {
                return Ok(());
            }
            let ended = self.process.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                bail!("the server is not ready ({ended:?}): {said}");
            }
            // Whether it listens is only known by asking, and asking without pause slows its start.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Applies the schema, the rules and the targets, and sees with one event that they work.
    pub async fn prepare(&self) -> anyhow::Result<()> {
        let body = documents().to_string();
        let (status, answer) = load::call(self.address, Method::POST, "/v1/apply", body).await?;
        ensure!(
            status == StatusCode::OK,
            "apply: {status}: {}",
            answer.escape_ascii()
        );
        let event = load::event("probe");
        let (status, answer) = load::call(self.address, Method::POST, "/v1/events", event).await?;
        ensure!(
            status == StatusCode::ACCEPTED,
            "publish: {status}: {}",
            answer.escape_ascii()
        );
        let answer: Value = serde_json::from_slice(&answer)?;
        let count = |list: &str| answer[list].as_array().map_or(0, Vec::len);
        ensure!(
            count("rules") == MATCHING
                && count("targets") == MATCHING
                && answer["schema"]["version"] == 1,
            "the event met other rules or no schema: {answer}"
        );
        Ok(())
    }

    /// What it has done so far.
    pub async fn read(&self) -> anyhow::Result<Reading> {
        let (status, text) = load::call(self.address, Method::GET, "/metrics", "").await?;
        ensure!(status == StatusCode::OK, "metrics: {status}");
        let text = String::from_utf8_lossy(&text);
        Ok(Reading {
            cpu: self.cpu_seconds(),
            accepted: sum(&text, "dak_events_accepted_total"),
            duplicate: sum(&text, "dak_events_duplicate_total"),
            enqueued: sum(&text, "dak_deliveries_enqueued_total"),
            commits: sum(&text, "dak_commit_batch_events_count"),
            committed: sum(&text, "dak_commit_batch_events_sum"),
        })
    }

    fn cpu_seconds(&self) -> Option<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).ok()?;
        // Fields 14 and 15, counted from the name in parentheses, which may hold spaces.
        let (_, fields) = text.rsplit_once(')')?;
        let mut ticks = fields.split_whitespace().skip(11);
        let user: f64 = ticks.next()?.parse().ok()?;
        let system: f64 = ticks.next()?.parse().ok()?;
        Some((user + system) / TICKS)
    }
}

/// An address that nobody listens on at the moment.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn command(subject: &Subject, folder: &Path, address: SocketAddr) -> anyhow::Result<Command> {
    let own = std::env::current_exe()?;
    let (program, commit_batch_max) = match subject {
        Subject::Dak(program) | Subject::Other(program) => (program, None),
        Subject::Alone(program) => (program, Some(1)),
        Subject::Bare => {
            let mut command = Command::new(own);
            command.arg("bare").arg(address.to_string());
            return Ok(command);
        }
    };
    let mut command = match program {
        Program::File(path) => Command::new(std::path::absolute(path)?),
        Program::Own => Command::new(own),
    };
    command.arg("serve");
    command.args(["--set", &format!("listen={address}")]);
    command.args(["--set", &format!("data_dir={}", folder.display())]);
    if let Some(most) = commit_batch_max {
        command.args(["--set", &format!("commit_batch_max={most}")]);
    }
    Ok(command)
}

/// The sum of a counter over its labels, 0 when it is not there.
fn sum(metrics: &str, name: &str) -> f64 {
    metrics
        .lines()
        .filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
        })
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Serves a handler that reads the body and does nothing.
pub async fn serve_bare(address: SocketAddr) -> anyhow::Result<()> {
    use axum::serve::ListenerExt as _;

    let router = axum::Router::new()
        .route("/readyz", get(async || "ok\n"))
        .route("/metrics", get(async || ""))
        .route("/v1/events", post(async |_: Bytes| StatusCode::ACCEPTED));
    let listener = tokio::net::TcpListener::bind(address).await?;
    let listener = listener.tap_io(|stream| {
        // Without it answers may come late, which the figures would show.
        let _refused = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

/// Serves dak from the library, with settings as `dak serve` takes them.
pub async fn serve_own(settings: &[(String, String)]) -> anyhow::Result<()> {
    let config = dak::config::Config::load(settings, [], None)
        .map_err(|faults| anyhow::anyhow!("the settings are not valid: {faults:?}"))?;
    Ok(dak::server::run(config).await?)
}

fn documents() -> Value {
    let targets = (0..MATCHING)
        .map(|number| json!({"kind": "Target", "name": target(number), "type": "pull"}));
    let rules = patterns().into_iter().enumerate().map(|(number, pattern)| {
        let name = format!("rule-{number:03}");
        json!({"kind": "Rule", "name": name, "pattern": pattern, "targets": [target(number % MATCHING)]})
    });
    let text: Vec<String> = targets
        .chain(rules)
        .map(|document| document.to_string())
        .collect();
    let schema = json!({
        "type": EVENT_TYPE,
        "version": 1,
        "file": "order.placed.json",
        "text": schema().to_string(),
    });
    json!({
        "documents": [{"file": "rules.yaml", "text": text.join("\n---\n")}],
        "schemas": [schema],
    })
}

fn target(number: usize) -> String {
    format!("queue-{number}")
}

/// The patterns of all rules: the first [`MATCHING`] match the event, a third of the others are
/// about other types, and the rest are about this type and fail in one field.
fn patterns() -> Vec<Value> {
    let matching = [
        json!({"type": [EVENT_TYPE], "data": {"country": ["BD", "IN"], "amount": [{"numeric": [">=", 5000]}]}}),
        json!({"source": [{"prefix": "/shop/"}], "data": {"tags": ["vip", "fragile"], "coupon": [null]}}),
        json!({"type": [EVENT_TYPE], "data": {"items": {"sku": [{"prefix": "SKU-ELC-"}]}, "gift": [false]}}),
    ];
    let missing = (0..RULES - MATCHING).map(|number| {
        let (kind, number) = (number % 9, number / 9);
        match kind {
            0 => json!({"type": [format!("com.example.order.cancelled.v{number}")]}),
            1 => json!({"type": [format!("com.example.payment.{number}")], "data": {"amount": [{"numeric": [">", 100]}]}}),
            2 => json!({"source": [{"prefix": format!("/warehouse/{number}/")}], "data": {"status": ["placed"]}}),
            3 => json!({"type": [EVENT_TYPE], "data": {"country": [format!("X{number}"), "ZZ"]}}),
            4 => json!({"type": [EVENT_TYPE], "data": {"amount": [{"numeric": [">", 10_000 + number * 500]}]}}),
            5 => json!({"type": [EVENT_TYPE], "data": {"email": [{"suffix": format!("@shop-{number}.example.org")}]}}),
            6 => json!({"type": [EVENT_TYPE], "data": {"customer_id": [{"prefix": format!("C-9{number}")}], "channel": ["web"]}}),
            7 => json!({"type": [EVENT_TYPE], "data": {"status": [{"anything-but": ["placed", "paid"]}], "priority": [number]}}),
            _ => json!({"data": {"carrier": [{"equals-ignore-case": format!("Carrier-{number}")}], "refund": [{"exists": true}]}}),
        }
    });
    matching.into_iter().chain(missing).collect()
}

fn schema() -> Value {
    let text = |bytes_max: u64| json!({"type": "string", "maxLength": bytes_max});
    let amount = json!({"type": "number", "minimum": 0});
    let item = json!({
        "type": "object",
        "required": ["sku", "quantity", "price"],
        "properties": {
            "sku": {"type": "string", "pattern": "^SKU-[A-Z]{3}-[0-9]{4}$"},
            "quantity": {"type": "integer", "minimum": 1},
            "price": amount,
        },
        "additionalProperties": false,
    });
    let properties = json!({
        "order_id": {"type": "string", "pattern": "^ORD-[0-9]{8}$"},
        "customer_id": {"type": "string", "pattern": "^C-[0-9]{6}$"},
        "email": {"type": "string", "format": "email"},
        "placed_at": {"type": "string", "format": "date-time"},
        "status": {"enum": ["placed", "paid", "shipped", "cancelled"]},
        "channel": {"enum": ["web", "ios", "android", "partner"]},
        "country": {"type": "string", "minLength": 2, "maxLength": 2},
        "city": text(100),
        "currency": {"type": "string", "minLength": 3, "maxLength": 3},
        "amount": amount,
        "tax": amount,
        "shipping_cost": amount,
        "discount": amount,
        "priority": {"type": "integer", "minimum": 0, "maximum": 9},
        "gift": {"type": "boolean"},
        "coupon": {"type": ["string", "null"]},
        "payment_method": {"enum": ["card", "wallet", "invoice"]},
        "carrier": text(50),
        "items": {"type": "array", "minItems": 1, "items": item},
        "tags": {"type": "array", "items": text(20), "uniqueItems": true},
        "note": text(500),
    });
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}
