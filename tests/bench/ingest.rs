//! Publishing, end to end: clients post events over HTTP to a server in a process of its own, which
//! validates them, matches them and answers when they are on disk. Beside it, in turns with it: the
//! same server that commits each request by itself, and a handler that only reads the body; and all
//! of it again on a disk whose every sync takes longer.
//!
//! Client and server share the machine. Bars are printed beside what was measured, never asserted;
//! that every accepted event is counted, once, is.

mod load;
mod report;
mod subject;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};
use tokio::time::Instant;

use load::{Load, Seen, Window};
use report::Run;
use subject::{MATCHING, Program, Reading, SYNC_DELAY, Server, Subject};

/// The allocator of the program itself, for when it serves in its stead.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Threads of the clients.
const CLIENT_THREADS: usize = 2;
/// Accepted before the load, to see that rules and schema work.
const PROBES: u64 = 1;

const SINGLES: Load = Load {
    name: "64 x 1",
    connections: 64,
    events: 1,
};
const BATCHES: Load = Load {
    name: "8 x 100",
    connections: 8,
    events: 100,
};
const ONE: Load = Load {
    name: "1 x 1",
    connections: 1,
    events: 1,
};

/// How fast dak takes events, each made durable before its answer.
#[derive(Debug, Parser)]
struct Args {
    /// Measure each variant so long, in seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Send so long before that, in seconds.
    #[arg(long, default_value_t = 1.0)]
    warm_up: f64,
    /// Take so many turns of all variants.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only variants with this in their name, as the first three columns show it.
    #[arg(long, default_value = "")]
    only: String,
    /// Another dak to measure in turn with this one, such as an older build.
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// Make data folders here; it should be on a disk [default: cargo's folder for such things].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The library that delays every sync of a server.
    #[arg(long, value_name = "LIBRARY", env = "DAK_BENCH_SLOW_SYNC")]
    slow_sync: Option<PathBuf>,
    /// Run everything once, shortly, only to see that it runs.
    #[arg(long)]
    smoke: bool,
    /// Given by cargo when it runs benchmarks, not tests.
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

/// What the program is in a process that it starts itself.
#[derive(Debug, Subcommand)]
enum Role {
    /// dak, when there is no such program.
    #[command(hide = true)]
    Serve {
        #[arg(long = "set", value_parser = pair)]
        settings: Vec<(String, String)>,
    },
    /// A handler that reads the body and does nothing.
    #[command(hide = true)]
    Bare { address: SocketAddr },
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq)]
struct Variant {
    load: &'static Load,
    subject: Subject,
    /// Whether its syncs are delayed.
    delayed: bool,
}

impl Variant {
    fn disk(&self) -> &'static str {
        if self.delayed { "slow" } else { "as is" }
    }

    fn name(&self) -> String {
        format!("{} {} {}", self.disk(), self.load.name, self.subject.name())
    }
}

fn main() -> anyhow::Result<()> {
    let mut args = Args::parse();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all();
    match args.role.take() {
        Some(Role::Serve { settings }) => runtime.build()?.block_on(subject::serve_own(&settings)),
        Some(Role::Bare { address }) => runtime.build()?.block_on(subject::serve_bare(address)),
        None => {
            if args.smoke || !args.bench {
                (args.seconds, args.warm_up, args.rounds) = (0.3, 0.1, 1);
            }
            let runtime = runtime.worker_threads(CLIENT_THREADS).build()?;
            runtime.block_on(measure_all(&args))
        }
    }
}

async fn measure_all(args: &Args) -> anyhow::Result<()> {
    let dak = Program::find();
    let variants = variants(args, &dak);
    report::heading(args, &dak);
    let mut runs = vec![Vec::with_capacity(args.rounds); variants.len()];
    for round in 0..args.rounds {
        for (variant, runs) in variants.iter().zip(&mut runs) {
            eprintln!("round {} of {}: {}", round + 1, args.rounds, variant.name());
            let run = measure(args, variant)
                .await
                .with_context(|| variant.name())?;
            runs.push(run);
        }
    }
    let rows: Vec<(Variant, Vec<Run>)> = variants.into_iter().zip(runs).collect();
    report::table(&rows);
    report::ratios(&rows);
    Ok(())
}

/// All variants, in the order of a round.
fn variants(args: &Args, dak: &Program) -> Vec<Variant> {
    let other = args.against.clone().map(Program::File);
    let mut variants = Vec::new();
    for delayed in [false, true] {
        if delayed && args.slow_sync.is_none() {
            eprintln!("left out: delayed syncs, which need --slow-sync, as scripts/bench gives it");
            continue;
        }
        for load in [&SINGLES, &BATCHES, &ONE] {
            let mut subjects = vec![Subject::Dak(dak.clone())];
            subjects.extend(other.clone().map(Subject::Other));
            if *load != ONE {
                subjects.push(Subject::Alone(dak.clone()));
            }
            if *load != ONE && !delayed {
                subjects.push(Subject::Bare);
            }
            variants.extend(subjects.into_iter().map(|subject| Variant {
                load,
                subject,
                delayed,
            }));
        }
    }
    variants.retain(|variant| variant.name().contains(&args.only));
    variants
}

/// Measures a variant once, on a server and a folder of its own.
async fn measure(args: &Args, variant: &Variant) -> anyhow::Result<Run> {
    let place = args.dir.as_deref();
    let place = place.unwrap_or(env!("CARGO_TARGET_TMPDIR").as_ref());
    std::fs::create_dir_all(place)?;
    let folder = tempfile::tempdir_in(place)?;
    let slow_sync = args.slow_sync.as_deref().filter(|_| variant.delayed);
    let server = Server::start(&variant.subject, folder.path(), slow_sync).await?;
    let is_dak = variant.subject != Subject::Bare;
    if is_dak {
        server.prepare().await?;
    }
    let opens = Instant::now() + Duration::try_from_secs_f64(args.warm_up)?;
    let window = Window {
        opens,
        closes: opens + Duration::try_from_secs_f64(args.seconds)?,
    };
    let clients = tokio::spawn(load::run(server.address, variant.load, window));
    tokio::time::sleep_until(window.opens).await;
    let before = server.read().await?;
    tokio::time::sleep_until(window.closes).await;
    let after = server.read().await?;
    let seen = clients.await??;
    if is_dak {
        check(&seen, server.read().await?)?;
    }
    let run = Run::new(&seen, args.seconds, before, after);
    if let Some(commits) = run.commits_per_second.filter(|_| variant.delayed) {
        let most = 1.0 / SYNC_DELAY.as_secs_f64();
        ensure!(
            commits <= most * 1.05,
            "{commits:.0} commits/s, so the syncs were not delayed"
        );
    }
    Ok(run)
}

/// What was answered is what was accepted, once, and entered every queue.
fn check(seen: &Seen, counted: Reading) -> anyhow::Result<()> {
    let answered = (seen.accepted + PROBES) as f64;
    ensure!(
        counted.accepted == answered
            && counted.enqueued == answered * MATCHING as f64
            && counted.duplicate == 0.0,
        "{answered} events were answered, but the server says {counted:?}"
    );
    Ok(())
}
