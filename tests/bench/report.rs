//! The figures of a run, and the tables of all of them beside the bars they are held against.

use std::fmt;
use std::io::Read as _;

use crate::load::{EVENT_BYTES, Seen};
use crate::subject::{MATCHING, Program, RULES, Reading, SYNC_DELAY, Subject};
use crate::{Args, BATCHES, Load, ONE, SINGLES, Variant};

/// What one run came to.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub events_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// None for a server that commits nothing.
    pub commits_per_second: Option<f64>,
    events_per_commit: Option<f64>,
    cpu_us_per_event: Option<f64>,
}

impl Run {
    /// Of what clients saw and what the server said when the window of `seconds` opened and closed.
    pub fn new(seen: &Seen, seconds: f64, before: Reading, after: Reading) -> Self {
        let events = seen.in_window as f64;
        let commits = after.commits - before.commits;
        let commits = (commits > 0.0).then_some(commits);
        let committed = after.committed - before.committed;
        let cpu = after
            .cpu
            .zip(before.cpu)
            .map(|(after, before)| after - before);
        Self {
            events_per_second: events / seconds,
            p50_ms: seen.latency_ms(0.5),
            p99_ms: seen.latency_ms(0.99),
            max_ms: seen.latency_ms(1.0),
            commits_per_second: commits.map(|commits| commits / seconds),
            events_per_commit: commits.map(|commits| committed / commits),
            cpu_us_per_event: cpu.map(|cpu| cpu * 1e6 / events.max(1.0)),
        }
    }
}

/// What is wanted of a variant.
struct Bar {
    load: &'static Load,
    delayed: bool,
    wanted: Wanted,
}

enum Wanted {
    EventsPerSecond(f64),
    P50Ms(f64),
    P99Ms(f64),
}

const BARS: [Bar; 5] = [
    Bar {
        load: &SINGLES,
        delayed: false,
        wanted: Wanted::EventsPerSecond(12_000.0),
    },
    Bar {
        load: &SINGLES,
        delayed: false,
        wanted: Wanted::P99Ms(40.0),
    },
    Bar {
        load: &BATCHES,
        delayed: false,
        wanted: Wanted::EventsPerSecond(20_000.0),
    },
    Bar {
        load: &ONE,
        delayed: false,
        wanted: Wanted::P50Ms(0.5),
    },
    Bar {
        load: &SINGLES,
        delayed: true,
        wanted: Wanted::EventsPerSecond(6_000.0),
    },
];

impl Wanted {
    /// The bar, and whether the median of the runs clears it.
    fn compare(&self, runs: &[Run]) -> String {
        let median = |figure: fn(&Run) -> f64| Spread::of(runs.iter().map(figure)).median;
        let (bar, met) = match self {
            Self::EventsPerSecond(bar) => {
                let found = median(|run| run.events_per_second);
                (format!(">= {}/s", whole(*bar)), found >= *bar)
            }
            Self::P50Ms(bar) => (format!("p50 < {bar} ms"), median(|run| run.p50_ms) < *bar),
            Self::P99Ms(bar) => (format!("p99 <= {bar} ms"), median(|run| run.p99_ms) <= *bar),
        };
        format!("{bar}: {}", if met { "met" } else { "missed" })
    }
}

impl Subject {
    /// Its name in the tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dak(_) => "dak",
            Self::Other(_) => "other dak",
            Self::Alone(_) => "each alone",
            Self::Bare => "bare handler",
        }
    }
}

/// The median of some figures, the lowest and the highest.
#[derive(Debug, Clone, Copy)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = figures.collect();
        all.sort_by(f64::total_cmp);
        let at = |at: usize| all.get(at).copied().unwrap_or(f64::NAN);
        let last = all.len().saturating_sub(1);
        Self {
            median: f64::midpoint(at(last / 2), at(last.div_ceil(2))),
            low: at(0),
            high: at(last),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, low, high] = [self.median, self.low, self.high].map(short);
        f.pad(&format!("{median} [{low}-{high}]"))
    }
}

/// A number with as many digits as say something; a dash for none.
fn short(number: f64) -> String {
    match number.abs() {
        size if !size.is_finite() => "-".to_owned(),
        size if size < 10.0 => format!("{number:.2}"),
        size if size < 100.0 => format!("{number:.1}"),
        _ => whole(number),
    }
}

/// A whole number with its thousands apart.
fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Says what is measured on what.
pub fn heading(args: &Args, dak: &Program) {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let server = match dak {
        Program::File(path) => path.display().to_string(),
        Program::Own => "the library in this program".to_owned(),
    };
    let Args {
        rounds,
        seconds,
        warm_up,
        ..
    } = args;
    println!(
        "Events of {} bytes, one schema, {RULES} rules of which {MATCHING} match, {MATCHING} pull targets, fsync on.\n\
         {rounds} x {seconds} s after {warm_up} s of warm-up, on {cores} cores that clients and server share.\n\
         dak: {server}",
        whole(EVENT_BYTES as f64),
    );
    if let Some(other) = &args.against {
        println!("other dak: {}", other.display());
    }
    println!("Load before: {}\n", load_average());
}

/// How busy the machine was without us.
fn load_average() -> String {
    let mut text = String::new();
    let read =
        std::fs::File::open("/proc/loadavg").and_then(|mut file| file.read_to_string(&mut text));
    read.map_or_else(|_| "unknown".to_owned(), |_| text.trim().to_owned())
}

/// The columns of the table and their widths.
const COLUMNS: [(&str, usize); 11] = [
    ("disk", 5),
    ("load", 7),
    ("server", 12),
    ("events/s", 23),
    ("p50 ms", 16),
    ("p99 ms", 17),
    ("max ms", 14),
    ("commits/s", 9),
    ("events/commit", 13),
    ("CPU us/event", 12),
    ("bar", 0),
];

/// Prints what every variant came to: the median of its runs, and of some the lowest and the highest.
pub fn table(rows: &[(Variant, Vec<Run>)]) {
    println!(
        "Slow: every sync takes {} ms longer. Load: connections x events of a request.\n",
        SYNC_DELAY.as_millis()
    );
    println!(
        "{}",
        COLUMNS
            .map(|(name, width)| format!("{name:<width$}"))
            .join(" ")
    );
    for (variant, runs) in rows {
        let spread = |figure: fn(&Run) -> f64| Spread::of(runs.iter().map(figure)).to_string();
        let median = |figure: fn(&Run) -> Option<f64>| {
            let figures: Option<Vec<f64>> = runs.iter().map(figure).collect();
            figures.map_or_else(String::new, |all| short(Spread::of(all.into_iter()).median))
        };
        let cells = [
            variant.disk().to_owned(),
            variant.load.name.to_owned(),
            variant.subject.name().to_owned(),
            spread(|run| run.events_per_second),
            spread(|run| run.p50_ms),
            spread(|run| run.p99_ms),
            spread(|run| run.max_ms),
            median(|run| run.commits_per_second),
            median(|run| run.events_per_commit),
            median(|run| run.cpu_us_per_event),
            bars(variant, runs),
        ];
        let mut line = String::new();
        for (cell, (_, width)) in cells.iter().zip(COLUMNS) {
            line.push_str(&format!("{cell:<width$} "));
        }
        println!("{}", line.trim_end());
    }
}

fn bars(variant: &Variant, runs: &[Run]) -> String {
    let bars: Vec<String> = BARS
        .iter()
        .filter(|_| matches!(variant.subject, Subject::Dak(_)))
        .filter(|bar| bar.load == variant.load && bar.delayed == variant.delayed)
        .map(|bar| bar.wanted.compare(runs))
        .collect();
    bars.join(", ")
}

/// Prints how many times as many events a second dak takes as what it is compared with, each round
/// by itself.
pub fn ratios(rows: &[(Variant, Vec<Run>)]) {
    println!("\nEvents/s of dak, in times of");
    for (variant, runs) in rows {
        if !matches!(variant.subject, Subject::Dak(_)) {
            continue;
        }
        for (other, other_runs) in rows {
            let same_disk = other.delayed == variant.delayed || other.subject == Subject::Bare;
            let same_load = other.load == variant.load;
            // A batch is one request, so only single events are committed each by itself.
            let each_event = *variant.load == BATCHES
                && *other.load == SINGLES
                && matches!(other.subject, Subject::Alone(_));
            if other == variant || !same_disk || !(same_load || each_event) {
                continue;
            }
            let ratios = runs
                .iter()
                .zip(other_runs)
                .map(|(ours, theirs)| ours.events_per_second / theirs.events_per_second);
            println!(
                "{:<6} {:<8} {:<13} {:<8} {}",
                variant.disk(),
                variant.load.name,
                other.subject.name(),
                other.load.name,
                Spread::of(ratios)
            );
        }
    }
}
