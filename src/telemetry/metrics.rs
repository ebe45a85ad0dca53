//! Every counter, gauge and histogram of dak, and their Prometheus text.
//!
//! Counting takes atomics and short shared locks only. Labels that outsiders can fill (types, routes,
//! reasons) are bounded; beyond the bound a value counts as `other`.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use super::histogram::Histogram;
use super::labels::{Labels, Set};

/// Media type of [`Metrics::render`]: the Prometheus text format 0.0.4.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Most event types that have series of their own.
pub(super) const TYPES_MAX: usize = 200;
/// Most buses that have series of their own.
const BUSES_MAX: usize = 1_000;
/// Most targets that have series of their own.
const TARGETS_MAX: usize = 10_000;
/// Most reasons (of refusals, retries, dead letters, holds) that have series of their own.
const REASONS_MAX: usize = 100;
/// Most HTTP routes that have series of their own.
const ROUTES_MAX: usize = 200;
/// Most HTTP status codes that have series of their own.
const STATUSES_MAX: usize = 64;

/// Upper bounds in seconds of durations inside dak.
const COMMIT_SECONDS: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
];
/// Upper bounds in seconds of HTTP exchanges, as the semantic conventions advise, with finer first steps.
const EXCHANGE_SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0,
    7.5, 10.0, 30.0,
];
/// Upper bounds in seconds of the time from acceptance to delivery: milliseconds to days.
const LAG_SECONDS: &[f64] = &[
    0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 21_600.0,
    86_400.0,
];
/// Upper bounds in events of a commit.
const BATCH_EVENTS: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0,
];

type Seconds = Gauge<f64, AtomicU64>;

/// All metrics of one server. Share it by reference or `Arc`; every method takes `&self`.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    values: Values,
    events: Events,
    deliveries: Deliveries,
    http_requests: Set<Counter, 2>,
}

/// The label values seen so far.
#[derive(Debug)]
struct Values {
    buses: Labels,
    targets: Labels,
    types: Labels,
    reasons: Labels,
    routes: Labels,
    statuses: Labels,
}

/// What happens to events until they are committed.
#[derive(Debug)]
struct Events {
    accepted: Set<Counter, 1>,
    rejected: Set<Counter, 2>,
    duplicate: Set<Counter, 1>,
    conflict: Set<Counter, 1>,
    matched: Set<Counter, 1>,
    unmatched: Set<Counter, 2>,
    schema_warnings: Set<Counter, 1>,
    unknown_type: Set<Counter, 1>,
    foreign_dataschema: Counter,
    commit_batch: Histogram,
    commit_duration: Histogram,
    publish_duration: Histogram,
}

/// What happens to deliveries, and how the queues stand.
#[derive(Debug)]
struct Deliveries {
    enqueued: Set<Counter, 1>,
    delivered: Set<Counter, 1>,
    retried: Set<Counter, 2>,
    dead_lettered: Set<Counter, 2>,
    leases_expired: Set<Counter, 1>,
    queue_depth: Set<Gauge, 1>,
    queue_oldest_age: Set<Seconds, 1>,
    dead_letters: Set<Gauge, 1>,
    held: Set<Gauge, 2>,
    attempt_duration: Set<Histogram, 1>,
    lag: Set<Histogram, 1>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics at zero. Families with labels appear with their first value.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("dak_build", "The running version of dak", version);
        let events = Events::register(&mut registry);
        let deliveries = Deliveries::register(&mut registry);
        let http_requests = register(
            &mut registry,
            "dak_http_requests",
            "HTTP requests answered",
            Set::new(["route", "status"], Counter::default),
        );
        Self {
            registry,
            values: Values {
                buses: Labels::new(BUSES_MAX),
                targets: Labels::new(TARGETS_MAX),
                types: Labels::new(TYPES_MAX),
                reasons: Labels::new(REASONS_MAX),
                routes: Labels::new(ROUTES_MAX),
                statuses: Labels::new(STATUSES_MAX),
            },
            events,
            deliveries,
            http_requests,
        }
    }

    /// Every metric in the Prometheus text format; see [`CONTENT_TYPE`].
    pub fn render(&self) -> String {
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.registry)
            .expect("writing to a string cannot fail");
        text
    }

    /// `count` events were committed, duplicates not among them.
    pub fn accepted(&self, bus: &str, count: u64) {
        add(&self.events.accepted, [(&self.values.buses, bus)], count);
    }

    /// An event was refused; `reason` is a slug of the problem.
    pub fn rejected(&self, bus: &str, reason: &str) {
        let values = [(&self.values.buses, bus), (&self.values.reasons, reason)];
        add(&self.events.rejected, values, 1);
    }

    /// An event was published again with the same content.
    pub fn duplicate(&self, bus: &str) {
        add(&self.events.duplicate, [(&self.values.buses, bus)], 1);
    }

    /// An event was published again with other content.
    pub fn conflict(&self, bus: &str) {
        add(&self.events.conflict, [(&self.values.buses, bus)], 1);
    }

    /// `count` accepted events matched a rule or more.
    pub fn matched(&self, bus: &str, count: u64) {
        add(&self.events.matched, [(&self.values.buses, bus)], count);
    }

    /// An accepted event matched no rule.
    pub fn unmatched(&self, bus: &str, event_type: &str) {
        let values = [(&self.values.buses, bus), (&self.values.types, event_type)];
        add(&self.events.unmatched, values, 1);
    }

    /// An event broke a schema whose mode is `warn`.
    pub fn schema_warning(&self, event_type: &str) {
        let values = [(&self.values.types, event_type)];
        add(&self.events.schema_warnings, values, 1);
    }

    /// An event came whose type has no schema.
    pub fn unknown_type(&self, event_type: &str) {
        let values = [(&self.values.types, event_type)];
        add(&self.events.unknown_type, values, 1);
    }

    /// An event named a `dataschema` outside this registry.
    pub fn foreign_dataschema(&self) {
        self.events.foreign_dataschema.inc();
    }

    /// One transaction committed `events` events and took `duration`.
    pub fn committed(&self, events: usize, duration: Duration) {
        self.events.commit_batch.observe(events as f64);
        self.events.commit_duration.observe_duration(duration);
    }

    /// A publish call was answered `duration` after its body was read.
    pub fn published(&self, duration: Duration) {
        self.events.publish_duration.observe_duration(duration);
    }

    /// `count` deliveries entered a target's queue.
    pub fn enqueued(&self, target: &str, count: u64) {
        let values = [(&self.values.targets, target)];
        add(&self.deliveries.enqueued, values, count);
    }

    /// `count` deliveries of a target were delivered.
    pub fn delivered(&self, target: &str, count: u64) {
        let values = [(&self.values.targets, target)];
        add(&self.deliveries.delivered, values, count);
    }

    /// A delivery was delivered `lag` after its event was accepted.
    pub fn delivery_lag(&self, target: &str, lag: Duration) {
        self.deliveries
            .lag
            .with([(&self.values.targets, target)], |histogram| {
                histogram.observe_duration(lag);
            });
    }

    /// One attempt to deliver took `duration`, whatever its outcome.
    pub fn attempted(&self, target: &str, duration: Duration) {
        self.deliveries
            .attempt_duration
            .with([(&self.values.targets, target)], |histogram| {
                histogram.observe_duration(duration);
            });
    }

    /// A delivery will be tried again; `reason` is the class of the failure.
    pub fn retried(&self, target: &str, reason: &str) {
        let values = [
            (&self.values.targets, target),
            (&self.values.reasons, reason),
        ];
        add(&self.deliveries.retried, values, 1);
    }

    /// A delivery became a dead letter; `reason` is its reason class.
    pub fn dead_lettered(&self, target: &str, reason: &str) {
        let values = [
            (&self.values.targets, target),
            (&self.values.reasons, reason),
        ];
        add(&self.deliveries.dead_lettered, values, 1);
    }

    /// `count` leases of a target ran out unsettled.
    pub fn lease_expired(&self, target: &str, count: u64) {
        let values = [(&self.values.targets, target)];
        add(&self.deliveries.leases_expired, values, count);
    }

    /// A target's queue holds `depth` deliveries, leased ones among them.
    pub fn queue_depth(&self, target: &str, depth: u64) {
        let values = [(&self.values.targets, target)];
        set(&self.deliveries.queue_depth, values, depth);
    }

    /// The oldest delivery in a target's queue was accepted `age` ago; zero for an empty queue.
    pub fn queue_oldest_age(&self, target: &str, age: Duration) {
        let values = [(&self.values.targets, target)];
        self.deliveries.queue_oldest_age.with(values, |gauge| {
            gauge.set(age.as_secs_f64());
        });
    }

    /// A target has `count` dead letters.
    pub fn dead_letters(&self, target: &str, count: u64) {
        let values = [(&self.values.targets, target)];
        set(&self.deliveries.dead_letters, values, count);
    }

    /// Whether a target is held for this cause (paused, breaker, retry-after, …).
    pub fn held(&self, target: &str, why: &str, held: bool) {
        let values = [(&self.values.targets, target), (&self.values.reasons, why)];
        set(&self.deliveries.held, values, u64::from(held));
    }

    /// A request was answered; `route` is the template, not the path.
    pub fn http_request(&self, route: &str, status: StatusCode) {
        let values = [
            (&self.values.routes, route),
            (&self.values.statuses, status.as_str()),
        ];
        add(&self.http_requests, values, 1);
    }

    /// Removes every series of a target that is no more.
    pub fn forget_target(&self, target: &str) {
        if let Some(label) = self.values.targets.forget(target) {
            let Deliveries {
                enqueued,
                delivered,
                retried,
                dead_lettered,
                leases_expired,
                queue_depth,
                queue_oldest_age,
                dead_letters,
                held,
                attempt_duration,
                lag,
            } = &self.deliveries;
            for counters in [enqueued, delivered, leases_expired] {
                counters.forget(label);
            }
            for counters in [retried, dead_lettered] {
                counters.forget(label);
            }
            for gauges in [queue_depth, dead_letters] {
                gauges.forget(label);
            }
            for histograms in [attempt_duration, lag] {
                histograms.forget(label);
            }
            queue_oldest_age.forget(label);
            held.forget(label);
        }
    }
}

fn add<const N: usize>(counters: &Set<Counter, N>, values: [(&Labels, &str); N], count: u64) {
    counters.with(values, |counter| {
        counter.inc_by(count);
    });
}

fn set<const N: usize>(gauges: &Set<Gauge, N>, values: [(&Labels, &str); N], value: u64) {
    gauges.with(values, |gauge| {
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    });
}

/// Registers a clone of the metric and hands it back. The encoder adds `_total` to counters and a full
/// stop to `help`.
fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Registers counters with these labels.
fn counters<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    labels: [&'static str; N],
) -> Set<Counter, N> {
    register(registry, name, help, Set::new(labels, Counter::default))
}

impl Events {
    fn register(registry: &mut Registry) -> Self {
        let r = registry;
        let foreign = "Events that named a dataschema outside this registry";
        Self {
            accepted: counters(r, "dak_events_accepted", "Events committed", ["bus"]),
            rejected: counters(
                r,
                "dak_events_rejected",
                "Events refused",
                ["bus", "reason"],
            ),
            duplicate: counters(
                r,
                "dak_events_duplicate",
                "Events published again with the same content",
                ["bus"],
            ),
            conflict: counters(
                r,
                "dak_events_conflict",
                "Events refused because their source and id were used for other content",
                ["bus"],
            ),
            matched: counters(
                r,
                "dak_events_matched",
                "Accepted events that matched a rule or more",
                ["bus"],
            ),
            unmatched: counters(
                r,
                "dak_events_unmatched",
                "Accepted events that matched no rule",
                ["bus", "type"],
            ),
            schema_warnings: counters(
                r,
                "dak_schema_warnings",
                "Events accepted although they broke a schema in warn mode",
                ["type"],
            ),
            unknown_type: counters(
                r,
                "dak_unknown_type",
                "Events whose type has no schema",
                ["type"],
            ),
            foreign_dataschema: register(r, "dak_foreign_dataschema", foreign, Counter::default()),
            commit_batch: register(
                r,
                "dak_commit_batch_events",
                "Events in one transaction",
                Histogram::new(BATCH_EVENTS),
            ),
            commit_duration: register(
                r,
                "dak_commit_duration_seconds",
                "Time of one transaction of events",
                Histogram::new(COMMIT_SECONDS),
            ),
            publish_duration: register(
                r,
                "dak_publish_duration_seconds",
                "Time from a read publish request to its answer",
                Histogram::new(EXCHANGE_SECONDS),
            ),
        }
    }
}

impl Deliveries {
    fn register(registry: &mut Registry) -> Self {
        let r = registry;
        let reason = ["target", "reason"];
        let attempt_duration = Set::new(["target"], || Histogram::new(EXCHANGE_SECONDS));
        let lag = Set::new(["target"], || Histogram::new(LAG_SECONDS));
        let seconds = Set::new(["target"], Seconds::default);
        let held = Set::new(["target", "why"], Gauge::default);
        let depth = "Deliveries in the queue, leased ones included";
        let retried = "Attempts after which a delivery waits for another";
        let dead_lettered = "Deliveries that became dead letters";
        let expired = "Leases that ran out unsettled";
        Self {
            enqueued: counters(
                r,
                "dak_deliveries_enqueued",
                "Deliveries that entered a queue",
                ["target"],
            ),
            delivered: counters(
                r,
                "dak_deliveries_delivered",
                "Deliveries delivered",
                ["target"],
            ),
            retried: counters(r, "dak_deliveries_retried", retried, reason),
            dead_lettered: counters(r, "dak_deliveries_dead_lettered", dead_lettered, reason),
            leases_expired: counters(r, "dak_leases_expired", expired, ["target"]),
            queue_depth: register(r, "dak_queue_depth", depth, gauges()),
            queue_oldest_age: register(
                r,
                "dak_queue_oldest_age_seconds",
                "Time since the oldest waiting event was accepted",
                seconds,
            ),
            dead_letters: register(r, "dak_dead_letters", "Dead letters kept", gauges()),
            held: register(
                r,
                "dak_target_held",
                "1 while the target is held for this cause",
                held,
            ),
            attempt_duration: register(
                r,
                "dak_delivery_attempt_duration_seconds",
                "Time of one attempt to deliver",
                attempt_duration,
            ),
            lag: register(
                r,
                "dak_delivery_lag_seconds",
                "Time from acceptance to delivery",
                lag,
            ),
        }
    }
}

fn gauges() -> Set<Gauge, 1> {
    Set::new(["target"], Gauge::default)
}
