//! Matching on the shared workload, side by side with the `quamina` crate and with `sonic-rs`
//! walking the same paths. Give the workload's folder as the argument or as `DAK_WORKLOAD`; without
//! one, a handful of rules and events run once.
//!
//! Times are of this thread on the processor where the system tells them, so that other work on
//! the machine disturbs less; engines take turns, and the median of the turns counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dak::pattern::{Index, Input, Pattern, RuleId, Scratch};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Turns of each engine, and time of one.
const TURNS: usize = 5;

fn main() {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
        .or_else(|| std::env::var("DAK_WORKLOAD").ok())
        .map(PathBuf::from);
    match folder {
        Some(folder) => bench_workload(&folder),
        None => check_small(),
    }
}

/// Counts what is allocated, to show memory of an index and that matching allocates nothing.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Deserialize)]
struct Rule {
    name: String,
    pattern: Box<RawValue>,
}

#[derive(Deserialize)]
struct Expected {
    matches: u64,
    checksum: String,
}

/// What one engine came to on one rule file.
#[derive(Default, Clone)]
struct Figures {
    load: Duration,
    bytes: u64,
    events_per_second: f64,
    matches: u64,
    checksum: u64,
    allocations: u64,
}

fn bench_workload(folder: &Path) {
    let expected: BTreeMap<String, Expected> = std::fs::read(folder.join("expected.json"))
        .ok()
        .map(|text| serde_json::from_slice(&text).expect("expected.json is the workload's"))
        .unwrap_or_default();
    println!(
        "{:<28} {:>7} {:>10} {:>9} {:>8} {:>7} {:>10} {:>7} {:>10} {:>7}  checked",
        "rules",
        "number",
        "dak ev/s",
        "load ms",
        "B/rule",
        "allocs",
        "quamina",
        "ratio",
        "sonic-rs",
        "ratio"
    );
    let wanted = std::env::var("DAK_BENCH_ONLY").unwrap_or_default();
    for kind in ["orders", "geo"] {
        let Ok(events) = std::fs::read_to_string(folder.join(kind).join("events.jsonl")) else {
            continue;
        };
        let events: Vec<&[u8]> = events.lines().map(str::as_bytes).collect();
        for path in rule_files(&folder.join(kind)) {
            let name = format!("{kind}/{}", path.file_name().unwrap_or_default().display());
            if name.contains(&wanted) {
                bench_file(&name, &path, &events, expected.get(&name));
            }
        }
    }
    if wanted.is_empty() || wanted == "worst" {
        worst_cases();
    }
}

fn rule_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<(u64, PathBuf)> = std::fs::read_dir(folder)
        .expect("the workload's folder can be read")
        .map(|entry| entry.expect("the workload's folder can be read").path())
        .filter(|path| !path.ends_with("events.jsonl"))
        .map(|path| {
            (
                std::fs::metadata(&path).map_or(0, |found| found.len()),
                path,
            )
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

fn bench_file(name: &str, path: &Path, events: &[&[u8]], expected: Option<&Expected>) {
    let text = std::fs::read_to_string(path).expect("a rule file can be read");
    let rules: Vec<(RuleId, Box<RawValue>)> = text
        .lines()
        .map(|line| {
            let rule: Rule = serde_json::from_str(line).expect("a line is a rule");
            (
                rule.name[1..].parse().expect("rules are named r0, r1 …"),
                rule.pattern,
            )
        })
        .collect();
    let mut dak = Dak::load(&rules);
    let mut quamina = Quamina::load(&rules);
    let sonic = Sonic::load(&rules, events[0]);
    let turn = Duration::from_millis(if rules.len() > 5_000 { 400 } else { 250 });
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..TURNS {
        rates[0].push(rate(events, turn, |event| dak.count(event)));
        if let Some(quamina) = &mut quamina {
            rates[1].push(rate(events, turn, |event| quamina.count(event)));
        }
        rates[2].push(rate(events, turn, |event| sonic.count(event)));
    }
    let [ours, theirs, walk] = rates.map(median);
    dak.figures.events_per_second = ours;
    dak.check(events);
    let verdict = match expected {
        Some(expected) => {
            let same = dak.figures.matches == expected.matches
                && format!("{:016x}", dak.figures.checksum) == expected.checksum;
            if same { "same" } else { "DIFFERENT" }
        }
        None => "-",
    };
    let peer = quamina.map_or_else(|| "-".into(), |_| format!("{theirs:.0}"));
    println!(
        "{name:<28} {:>7} {:>10.0} {:>9.1} {:>8} {:>7} {peer:>10} {:>7.1} {walk:>10.0} {:>7.2}  {verdict}",
        rules.len(),
        ours,
        dak.figures.load.as_secs_f64() * 1e3,
        dak.figures.bytes / rules.len() as u64,
        dak.figures.allocations,
        ours / theirs,
        ours / walk,
    );
}

struct Dak {
    index: Index,
    scratch: Scratch,
    figures: Figures,
}

impl Dak {
    fn load(rules: &[(RuleId, Box<RawValue>)]) -> Self {
        let before = LIVE_BYTES.load(Ordering::Relaxed);
        let start = Instant::now();
        let patterns = rules.iter().map(|(id, raw)| {
            let pattern = Pattern::parse(raw.get()).expect("a pattern of the workload is correct");
            (*id, Arc::new(pattern))
        });
        let index = Index::build(patterns);
        let figures = Figures {
            load: start.elapsed(),
            bytes: LIVE_BYTES.load(Ordering::Relaxed) - before,
            ..Figures::default()
        };
        Self {
            index,
            scratch: Scratch::default(),
            figures,
        }
    }

    fn count(&mut self, event: &[u8]) -> usize {
        let matched = self.index.matches(&Input::raw(event), &mut self.scratch);
        matched
            .expect("no event of the workload reaches a limit")
            .len()
    }

    /// Counts matches, the workload's checksum over them, and allocations once warm.
    fn check(&mut self, events: &[&[u8]]) {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for (number, event) in (0u64..).zip(events) {
            let matched = self.index.matches(&Input::raw(event), &mut self.scratch);
            for rule in matched.expect("no event of the workload reaches a limit") {
                self.figures.matches += 1;
                let pair = mix(number << 32 | u64::from(*rule));
                self.figures.checksum = self.figures.checksum.wrapping_add(pair);
            }
        }
        self.figures.allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    }
}

struct Quamina {
    engine: quamina::Quamina<RuleId>,
}

impl Quamina {
    /// None when it refuses a rule, or panics as it does with many values on one field.
    fn load(rules: &[(RuleId, Box<RawValue>)]) -> Option<Self> {
        if rules.len() > 1_000 {
            return None;
        }
        let mut engine = quamina::Quamina::new();
        for (id, raw) in rules {
            engine.add_pattern(*id, raw.get()).ok()?;
        }
        Some(Self { engine })
    }

    fn count(&mut self, event: &[u8]) -> usize {
        self.engine
            .matches_for_event(event)
            .map_or(0, |found| found.len())
    }
}

/// Finds the paths of the rules in an event and does nothing with them.
struct Sonic {
    tree: sonic_rs::PointerTree,
}

impl Sonic {
    fn load(rules: &[(RuleId, Box<RawValue>)], sample: &[u8]) -> Self {
        let sample: serde_json::Value = serde_json::from_slice(sample).expect("an event is JSON");
        let mut paths: Vec<String> = Vec::new();
        for (_, raw) in rules {
            let pattern = Pattern::parse(raw.get()).expect("a pattern of the workload is correct");
            paths.extend(pattern.paths().into_iter().map(str::to_owned));
        }
        paths.sort();
        paths.dedup();
        let mut pointers: Vec<Vec<String>> = paths
            .iter()
            .map(|path| {
                let mut value = Some(&sample);
                let mut pointer = Vec::new();
                for key in path.split('.') {
                    if value.is_some_and(serde_json::Value::is_array) {
                        break;
                    }
                    value = value.and_then(|value| value.get(key));
                    pointer.push(key.to_owned());
                }
                pointer
            })
            .collect();
        pointers.sort();
        pointers.dedup();
        let mut tree = sonic_rs::PointerTree::new();
        for pointer in pointers {
            tree.add_path(&pointer);
        }
        Self { tree }
    }

    fn count(&self, event: &[u8]) -> usize {
        sonic_rs::get_many(event, &self.tree).map_or(0, |found| found.len())
    }
}

/// Events a second over whole rounds of the events, for about `turn`.
fn rate(events: &[&[u8]], turn: Duration, mut count: impl FnMut(&[u8]) -> usize) -> f64 {
    let start = Instant::now();
    let cpu = cpu_time();
    let mut done = 0;
    for event in events.iter().cycle() {
        black_box(count(event));
        done += 1;
        if done % 64 == 0 && start.elapsed() >= turn {
            break;
        }
    }
    let used = match (cpu, cpu_time()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed(),
    };
    f64::from(done) / used.as_secs_f64()
}

/// Time of this thread on the processor, where the system tells it.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The finaliser of splitmix64, with which the workload makes its checksum.
fn mix(pair: u64) -> u64 {
    let mixed = pair.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

fn check_small() {
    let rules = [
        r#"{"a": ["x"]}"#,
        r#"{"a": [{"prefix": "y"}]}"#,
        r#"{"b": [{"numeric": [">", 3]}]}"#,
    ];
    let rules: Vec<(RuleId, Box<RawValue>)> = (0..)
        .zip(rules)
        .map(|(id, text)| {
            (
                id,
                RawValue::from_string(text.into()).expect("a pattern is JSON"),
            )
        })
        .collect();
    let mut dak = Dak::load(&rules);
    let mut quamina = Quamina::load(&rules).expect("quamina takes these rules");
    for event in [
        r#"{"a": "x", "b": 4}"#,
        r#"{"a": "yes", "b": 2}"#,
        r#"{"b": 3}"#,
    ] {
        assert_eq!(
            dak.count(event.as_bytes()),
            quamina.count(event.as_bytes()),
            "{event}"
        );
    }
    println!("a small workload matched; give the folder of the whole one for figures");
}

/// What hurts others, each measured alone.
fn worst_cases() {
    println!(
        "\n{:<58} {:>10} {:>10} {:>12} {:>8}",
        "worst cases", "load ms", "us/event", "B/rule", "matches"
    );
    let number = |count: usize, pattern: &dyn Fn(usize) -> String| -> Vec<String> {
        (0..count).map(pattern).collect()
    };
    let arrays = |length: usize| {
        let list = |key: &str| vec![format!("{{\"{key}\":1}}"); length].join(",");
        format!(
            "{{\"a\":[{}],\"b\":[{}],\"c\":\"no\"}}",
            list("x"),
            list("y")
        )
    };
    let large = format!(
        "{{\"pad\":[{}],\"a\":\"x\"}}",
        vec![r#"{"text":"some \"quoted\" words","n":[1,2.5,null]}"#; 21_000].join(",")
    );
    let cases = [
        (
            "1,000 wildcards *-appN-* on one field",
            number(1_000, &|n| {
                format!(r#"{{"f":[{{"wildcard":"*-app{n}-*"}}]}}"#)
            }),
            r#"{"f":"prod-app77-eu-west-1"}"#.to_owned(),
        ),
        (
            "10,000 wildcards *-appN-* on one field",
            number(10_000, &|n| {
                format!(r#"{{"f":[{{"wildcard":"*-app{n}-*"}}]}}"#)
            }),
            r#"{"f":"prod-app77-eu-west-1"}"#.to_owned(),
        ),
        (
            "10,000 anything-but lists on one field, nearly all match",
            number(10_000, &|n| {
                format!(r#"{{"f":[{{"anything-but":["v{n}","w{n}"]}}]}}"#)
            }),
            r#"{"f":"v77"}"#.to_owned(),
        ),
        (
            "10,000 ranges that overlap at one point, all match",
            number(10_000, &|n| {
                format!(
                    r#"{{"f":[{{"numeric":[">",{},"<",{}]}}]}}"#,
                    10_000 - n,
                    20_000 + n
                )
            }),
            r#"{"f":15000}"#.to_owned(),
        ),
        (
            "10,000 ranges, none at the point",
            number(10_000, &|n| {
                format!(
                    r#"{{"f":[{{"numeric":[">",{},"<",{}]}}]}}"#,
                    n * 10,
                    n * 10 + 9
                )
            }),
            r#"{"f":50009}"#.to_owned(),
        ),
        (
            "one rule of three fields, two lists of 1,000",
            vec![r#"{"a":{"x":[1]},"b":{"y":[1]},"c":["yes"]}"#.into()],
            arrays(1_000),
        ),
        (
            "the same, all fields hold",
            vec![r#"{"a":{"x":[1]},"b":{"y":[1]},"c":["no"]}"#.into()],
            arrays(1_000),
        ),
        (
            "one rule, an event of 1 MiB",
            vec![r#"{"a":["x"]}"#.into()],
            large.clone(),
        ),
        (
            "one rule on every element, an event of 1 MiB",
            vec![r#"{"pad":{"n":[1],"text":[{"suffix":"zz"}]}}"#.into()],
            large,
        ),
        (
            "100,000 exact rules of three fields",
            number(100_000, &|n| {
                format!(
                    r#"{{"source":["s{}"],"type":["t{}"],"data":{{"region":["r{}"]}}}}"#,
                    n % 100,
                    n / 100 % 100,
                    n / 10_000
                )
            }),
            r#"{"source":"s7","type":"t9","data":{"region":"r3"}}"#.to_owned(),
        ),
    ];
    for (name, patterns, event) in cases {
        worst_case(name, &patterns, event.as_bytes());
    }
}

fn worst_case(name: &str, patterns: &[String], event: &[u8]) {
    let rules: Vec<(RuleId, Box<RawValue>)> = (0..)
        .zip(patterns)
        .map(|(id, text)| {
            (
                id,
                RawValue::from_string(text.clone()).expect("a pattern is JSON"),
            )
        })
        .collect();
    let mut dak = Dak::load(&rules);
    let matches = dak.count(event);
    let events = [event];
    let per_second = median(
        (0..3)
            .map(|_| {
                rate(&events, Duration::from_millis(100), |event| {
                    dak.count(event)
                })
            })
            .collect(),
    );
    println!(
        "{name:<58} {:>10.1} {:>10.2} {:>12} {matches:>8}",
        dak.figures.load.as_secs_f64() * 1e3,
        1e6 / per_second,
        dak.figures.bytes / rules.len() as u64,
    );
    let again = Arc::new(Pattern::parse(rules[0].1.get()).expect("it was correct before"));
    let start = Instant::now();
    let index = dak.index.with_added([(RuleId::MAX, again)]);
    let added = start.elapsed();
    let start = Instant::now();
    black_box(index.with_removed([RuleId::MAX]));
    if rules.len() >= 100_000 {
        println!(
            "{:<58} {:>10.3} {:>10.3}",
            "  one rule added to them, removed again (ms)",
            added.as_secs_f64() * 1e3,
            start.elapsed().as_secs_f64() * 1e3
        );
    }
}
