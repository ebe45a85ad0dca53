//! `dak match`: events against rules, offline, and why they match or do not.
//!
//! A line of the events is a CloudEvent in JSON, or with `--raw` any JSON object. One JSON line
//! answers each, or a total over all with `--count`.

mod measure;
mod rules;
mod tally;

use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::lines::{Chunks, is_blank, lines};
use super::progress::Progress;
use super::{Error, Exit, output};
use crate::event::{self, Event};
use crate::pattern::{self, Explanation, Index, Input, RuleId, Scratch};
use measure::Measured;
use rules::Rules;
use tally::Tally;

/// Flags of `dak match`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Rule files, folders of them, or files with a JSON object {"name", "pattern"} on each line.
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    rules: Vec<PathBuf>,
    /// A file with an event in JSON on each line; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    events: PathBuf,
    /// Take any JSON objects: paths as written, no envelope, no EventBridge names.
    #[arg(long)]
    raw: bool,
    /// Print totals and a checksum over all matches instead of a line for each event.
    #[arg(long)]
    count: bool,
    /// Print events per second, load time and memory: with the totals, or on standard error.
    #[arg(long)]
    stats: bool,
    /// Add each rule's verdict to the line of an event: matches first, then the nearest misses.
    #[arg(long, conflicts_with = "count")]
    explain: bool,
    /// Go on without the patterns that are refused.
    #[arg(long)]
    keep_going: bool,
}

/// The answer for one event.
#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Its line, from 1.
    event: u64,
    rules: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanations: Option<Vec<Explained<'a>>>,
}

/// One rule's verdict on an event.
#[derive(Debug, Serialize)]
struct Explained<'a> {
    rule: &'a str,
    #[serde(flatten)]
    explanation: Explanation,
}

pub(super) fn run(args: &Args) -> Result<Exit, Error> {
    let begun_at = Instant::now();
    let (rules, refused) = rules::read(&args.rules, args.raw)?;
    for refusal in &refused {
        output::complain(&json!(refusal).to_string());
    }
    if !refused.is_empty() && !args.keep_going {
        return Ok(Exit::Found);
    }
    let memory_before = measure::resident_bytes();
    let index = Index::build(rules.numbered());
    let mut run = Run {
        args,
        load_time: begun_at.elapsed(),
        memory_before,
        index,
        rules,
        scratch: Scratch::default(),
        tally: Tally::default(),
        match_time: Duration::ZERO,
        failed: 0,
        output: BufWriter::new(io::stdout().lock()),
    };
    run.events()?;
    run.finish()?;
    let is_clean = refused.is_empty() && run.failed == 0;
    Ok(if is_clean { Exit::Clean } else { Exit::Found })
}

struct Run<'a> {
    args: &'a Args,
    rules: Rules,
    index: Index,
    scratch: Scratch,
    tally: Tally,
    load_time: Duration,
    memory_before: Option<u64>,
    /// Time spent in matching alone.
    match_time: Duration,
    /// Events that could not be judged.
    failed: u64,
    output: BufWriter<io::StdoutLock<'a>>,
}

/// One event ready to be matched.
enum Candidate {
    Event(Event),
    Document(Bytes),
    /// The line is no JSON.
    Broken(serde_json::Error),
}

impl Candidate {
    fn input(&self) -> Option<Input<'_>> {
        match self {
            Self::Event(event) => Some(Input::event(event)),
            Self::Document(document) => Some(Input::raw(document)),
            Self::Broken(_) => None,
        }
    }
}

impl Run<'_> {
    fn events(&mut self) -> Result<(), Error> {
        let read = |source| Error::read(&self.args.events, source);
        let mut chunks = Chunks::open(&self.args.events).map_err(read)?;
        let mut progress = Progress::new("events");
        let mut number = 0;
        while let Some(chunk) = chunks.next().map_err(read)? {
            let mut candidates = Vec::new();
            for line in lines(&chunk) {
                number += 1;
                if !is_blank(&line) {
                    candidates.push((number, self.read(line)));
                }
            }
            self.chunk(&candidates)?;
            progress.at(number);
        }
        Ok(())
    }

    /// Reads a line. What is no CloudEvent is matched as the JSON it is, so that the attributes
    /// that do not matter may be left out.
    fn read(&self, line: Bytes) -> Candidate {
        if !self.args.raw
            && let Ok(event) = event::json::decode(&line)
        {
            return Candidate::Event(event);
        }
        match serde_json::from_slice::<IgnoredAny>(&line) {
            Ok(_) => Candidate::Document(line),
            Err(error) => Candidate::Broken(error),
        }
    }

    /// Matches the events of a chunk; with `--count` nothing else happens while the time is taken.
    fn chunk(&mut self, candidates: &[(u64, Candidate)]) -> Result<(), Error> {
        let begun_at = Instant::now();
        let mut writing = Duration::ZERO;
        for (number, candidate) in candidates {
            let Some(input) = candidate.input() else {
                self.broken(*number, candidate)?;
                continue;
            };
            let matched = self.index.matches(&input, &mut self.scratch);
            let matched = match matched {
                Ok(ids) => {
                    self.tally.add(ids, |id| self.rules.number(id));
                    Ok(ids)
                }
                Err(limit) => {
                    self.failed += 1;
                    self.tally.add(&[], |id| self.rules.number(id));
                    Err(limit.to_string())
                }
            };
            if !self.args.count {
                let written_at = Instant::now();
                let line = answer(*number, matched, &self.rules);
                let line = match self.args.explain {
                    true => with_explanations(line, &self.rules, &input),
                    false => line,
                };
                write_line(&mut self.output, &line)?;
                writing += written_at.elapsed();
            } else if let Err(error) = matched {
                output::complain(&json!({ "event": number, "error": error }).to_string());
            }
        }
        self.match_time += begun_at.elapsed().saturating_sub(writing);
        Ok(())
    }

    /// Tells of a line that is no JSON, in its turn.
    fn broken(&mut self, number: u64, candidate: &Candidate) -> Result<(), Error> {
        let Candidate::Broken(error) = candidate else {
            return Ok(());
        };
        self.failed += 1;
        self.tally.add(&[], |id| self.rules.number(id));
        let error = format!("the line is no JSON: {error}");
        output::complain(&json!({ "event": number, "error": error }).to_string());
        if self.args.count {
            return Ok(());
        }
        write_line(&mut self.output, &answer(number, Err(error), &self.rules))
    }

    fn finish(&mut self) -> Result<(), Error> {
        let mut document = Map::new();
        if self.args.count {
            document.extend(self.tally.totals(self.rules.len()));
        }
        if self.args.stats {
            let measured = Measured {
                load_time: self.load_time,
                match_time: self.match_time,
                events: self.tally.events(),
                memory_before: self.memory_before,
            };
            document.extend(measured.facts(&self.index));
        }
        self.output.flush().map_err(Error::Output)?;
        let document = Value::Object(document);
        if self.args.count {
            return write_line(&mut self.output, &document)
                .and_then(|()| self.output.flush().map_err(Error::Output));
        }
        if self.args.stats {
            output::complain(&document.to_string());
        }
        Ok(())
    }
}

fn answer<'a>(number: u64, matched: Result<&[RuleId], String>, rules: &'a Rules) -> Line<'a> {
    let (ids, error) = match matched {
        Ok(ids) => (ids, None),
        Err(error) => (&[][..], Some(error)),
    };
    Line {
        event: number,
        rules: ids.iter().map(|id| rules.name(*id)).collect(),
        error,
        explanations: None,
    }
}

fn with_explanations<'a>(line: Line<'a>, rules: &'a Rules, input: &Input<'_>) -> Line<'a> {
    let verdicts = rules.all().map(|(rule, pattern)| Explained {
        rule,
        explanation: pattern::explain(pattern, input),
    });
    let mut verdicts: Vec<Explained<'_>> = verdicts.collect();
    verdicts.sort_by_key(|verdict| {
        let Explanation {
            matched,
            held,
            failures,
        } = &verdict.explanation;
        (!matched, failures.len(), std::cmp::Reverse(*held))
    });
    Line {
        explanations: Some(verdicts),
        ..line
    }
}

fn write_line(output: &mut impl io::Write, line: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(&mut *output, line)
        .map_err(io::Error::from)
        .and_then(|()| output.write_all(b"\n"))
        .map_err(Error::Output)
}
