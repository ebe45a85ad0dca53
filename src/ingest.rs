//! The way in: validate, match, offload, commit. One function a stop.
//!
//! Decoding a request is the API's business and handing deliveries out is `delivery`'s; between the
//! two stands [`Ingest::accept`].

mod digest;
mod judge;
mod offload;
pub mod sweep;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use tracing::Span;

use crate::blob::{self, Blobs};
use crate::catalog::{Bus, Catalog, Live};
use crate::clock::Clock;
use crate::event::Event;
use crate::pattern::Scratch;
use crate::schema::Invalid;
use crate::store::{self, Accept, Accepted, Facts, JudgedBy, Members, Seq, Store};
use crate::telemetry::Metrics;
use crate::telemetry::trace::{self, EventFacts, TraceContext};

/// Limits and addresses of the way in.
#[derive(Debug, Clone)]
pub struct Options {
    /// Largest event accepted, in bytes of its data.
    pub event_bytes_max: u64,
    /// Data larger than this goes to the blob store, in bytes.
    pub claim_check_threshold: u64,
    /// Addresses under which this registry is known; a `dataschema` below one of them names a
    /// version here.
    pub public_urls: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            event_bytes_max: 16 * 1024 * 1024,
            claim_check_threshold: 64 * 1024,
            public_urls: Vec::new(),
        }
    }
}

/// Tells a target's queue that something was committed for it.
pub type Wake = Arc<dyn Fn(&str) + Send + Sync>;

/// The way in; clones share it.
#[derive(Clone)]
pub struct Ingest {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Blobs,
    pub(crate) live: Arc<Live>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Clock,
    pub(crate) wake: Wake,
    pub(crate) options: Arc<Options>,
}

/// What a producer is told of an accepted event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub seq: Seq,
    /// The same event came before; the facts are those of its first acceptance.
    pub duplicate: bool,
    pub facts: Arc<Facts>,
}

/// Why one event was not accepted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// Its data breaks the schema of its type.
    #[error("the data breaks version {} of the schema of `{}`", .by.version, .by.event_type)]
    SchemaViolation { by: JudgedBy, invalid: Invalid },
    /// Its type has no schema, and the bus takes only types that have one.
    #[error("no schema describes the type `{event_type}`, and bus `{bus}` takes no others")]
    UnknownType { event_type: String, bus: String },
    /// Its `dataschema` names a version of this registry that cannot judge it.
    #[error("`dataschema` names {named}, but {why}")]
    WrongSchema { named: String, why: WrongSchema },
    /// The same source and id came before with other content.
    #[error("an event with this source and id was accepted before with other content")]
    Conflict { seq: Seq },
    /// Its data is larger than the limit.
    #[error("the data has {bytes} bytes, of which {bytes_max} are taken")]
    TooLarge { bytes: u64, bytes_max: u64 },
    /// Matching it would cost more than the limits allow.
    #[error("matching the event would cost too much: {limit}")]
    TooComplex { limit: String },
    /// It is good, but another member of its batch is not.
    #[error("another member of the batch was refused")]
    Withheld,
}

impl Refusal {
    /// The stable name of the reason, for problem documents and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::SchemaViolation { .. } => "schema-violation",
            Self::UnknownType { .. } => "unknown-type",
            Self::WrongSchema { .. } => "wrong-schema",
            Self::Conflict { .. } => "event-conflict",
            Self::TooLarge { .. } => "event-too-large",
            Self::TooComplex { .. } => "event-too-complex",
            Self::Withheld => "withheld",
        }
    }
}

/// Why a named schema version cannot judge an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongSchema {
    /// It describes another type.
    #[error("it describes another type than the event's")]
    OtherType,
    /// There is no such version.
    #[error("there is no such version")]
    NoSuchVersion,
}

/// Why nothing could be decided at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such bus.
    #[error("there is no bus `{0}`")]
    UnknownBus(String),
    /// The store did not commit.
    #[error("the events could not be committed")]
    Store(#[from] store::Error),
    /// Large data could not be offloaded.
    #[error("the data could not be offloaded")]
    Blob(#[from] blob::Error),
}

/// The answer for one event.
pub type Verdict = Result<Receipt, Refusal>;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// An event on its way to the commit.
struct Candidate {
    accept: Accept,
    refusal: Option<Refusal>,
    publish: Span,
}

impl Ingest {
    /// Accepts events on a bus; answers in order, after the commit has been synced.
    ///
    /// Members of an [`Members::Atomic`] batch stand or fall together: when one is refused, the
    /// good ones answer [`Refusal::Withheld`] and nothing is stored.
    ///
    /// # Errors
    /// When there is no such bus, or the store or the blob store fails; then nothing is accepted.
    pub async fn accept(
        &self,
        bus_name: &str,
        events: Vec<Event>,
        members: Members,
        incoming: Option<&TraceContext>,
    ) -> Result<Vec<Verdict>, Error> {
        let mut candidates = self.consider_all(bus_name, events, incoming)?;
        let repeated = self.repeated(&candidates).await?;
        let verdicts = if members == Members::Atomic && is_refused(&candidates, &repeated) {
            self.withhold(candidates).await?
        } else {
            self.offload(&mut candidates).await?;
            self.commit(candidates, repeated, members).await?
        };
        Ok(self.count(bus_name, verdicts))
    }

    /// Refuses the well-formed members of an atomic batch that holds malformed ones: says what else
    /// is wrong with it, [`Refusal::Withheld`] for the good ones. Nothing is stored.
    ///
    /// # Errors
    /// When there is no such bus, or the store fails.
    pub async fn refuse(
        &self,
        bus_name: &str,
        events: Vec<Event>,
        incoming: Option<&TraceContext>,
    ) -> Result<Vec<Verdict>, Error> {
        let candidates = self.consider_all(bus_name, events, incoming)?;
        let verdicts = self.withhold(candidates).await?;
        Ok(self.count(bus_name, verdicts))
    }

    fn consider_all(
        &self,
        bus_name: &str,
        events: Vec<Event>,
        incoming: Option<&TraceContext>,
    ) -> Result<Vec<Candidate>, Error> {
        let catalog = self.live.current();
        let bus = catalog
            .bus(bus_name)
            .ok_or_else(|| Error::UnknownBus(bus_name.to_owned()))?;
        let consider = |event| self.consider(&catalog, bus, event, incoming);
        Ok(events.into_iter().map(consider).collect())
    }

    /// Validates and matches one event.
    fn consider(
        &self,
        catalog: &Catalog,
        bus: &Bus,
        event: Event,
        incoming: Option<&TraceContext>,
    ) -> Candidate {
        let facts_of = EventFacts {
            bus: &bus.name,
            id: event.id(),
            source: event.source(),
            event_type: event.event_type(),
            subject: event.subject(),
        };
        let judged = self.validate(catalog, bus, &event, &facts_of);
        let (facts, refusal) = match judged {
            Ok(judged) => match find_rules(bus, &event, judged) {
                Ok(facts) => (facts, None),
                Err(refusal) => (Facts::default(), Some(refusal)),
            },
            Err(refusal) => (Facts::default(), Some(refusal)),
        };
        let publish = match refusal {
            None => trace::publish_span(&facts_of, event.data_bytes().len() as u64),
            // What is refused is not published.
            Some(_) => Span::none(),
        };
        let context = trace::context_or(&publish, incoming);
        Candidate {
            accept: Accept {
                bus: Arc::clone(&bus.name),
                claim: None,
                data_kind: event.data().kind_code(),
                identity: digest::identity(&bus.name, &event),
                content: digest::content(&event),
                facts: Arc::new(facts),
                trace: context.and_then(|context| serde_json::to_string(&context).ok()),
                accepted_at: self.clock.now(),
                event,
            },
            refusal,
            publish,
        }
    }

    /// For each refused candidate, the receipt of its first acceptance if it was accepted before:
    /// a retried publish gets the same answer, even if schemas have changed since.
    async fn repeated(&self, candidates: &[Candidate]) -> Result<Vec<Option<Receipt>>, Error> {
        let mut repeated = vec![None; candidates.len()];
        let refused: Vec<usize> = (0..candidates.len())
            .filter(|at| candidates[*at].refusal.is_some())
            .collect();
        if refused.is_empty() {
            return Ok(repeated);
        }
        let identities = refused
            .iter()
            .map(|at| candidates[*at].accept.identity)
            .collect();
        for (at, found) in refused.into_iter().zip(self.store.find(identities).await?) {
            repeated[at] = found
                .filter(|found| found.content == candidates[at].accept.content)
                .map(|found| Receipt {
                    seq: found.seq,
                    duplicate: true,
                    facts: Arc::new(found.facts),
                });
        }
        Ok(repeated)
    }

    /// The verdicts on a batch that is not stored: every member with something wrong says so, those
    /// included that only the store would have found.
    async fn withhold(&self, candidates: Vec<Candidate>) -> Result<Vec<Verdict>, Error> {
        let identities = candidates.iter().map(|it| it.accept.identity).collect();
        let known = self.store.find(identities).await?;
        let mut within = HashMap::with_capacity(candidates.len());
        let verdicts = candidates.into_iter().zip(known).map(|(candidate, known)| {
            let Accept {
                identity, content, ..
            } = candidate.accept;
            let earlier = within.insert(identity, content);
            let refusal = match (known, earlier, candidate.refusal) {
                (Some(known), _, _) if known.content == content => Refusal::Withheld,
                (_, _, Some(refusal)) => refusal,
                (Some(known), _, None) => Refusal::Conflict { seq: known.seq },
                (None, Some(earlier), None) if earlier != content => Refusal::Conflict { seq: 0 },
                (None, _, None) => Refusal::Withheld,
            };
            trace::record_error(&candidate.publish, refusal.reason());
            Err(refusal)
        });
        Ok(verdicts.collect())
    }

    async fn commit(
        &self,
        candidates: Vec<Candidate>,
        repeated: Vec<Option<Receipt>>,
        members: Members,
    ) -> Result<Vec<Verdict>, Error> {
        let mut spans = Vec::with_capacity(candidates.len());
        let mut batch = Vec::with_capacity(candidates.len());
        let mut verdicts: Vec<Option<Verdict>> = Vec::with_capacity(candidates.len());
        for (candidate, repeated) in candidates.into_iter().zip(repeated) {
            match (repeated, candidate.refusal) {
                (Some(receipt), _) => verdicts.push(Some(Ok(receipt))),
                (None, Some(refusal)) => verdicts.push(Some(Err(refusal))),
                (None, None) => {
                    verdicts.push(None);
                    batch.push(candidate.accept);
                    spans.push(candidate.publish);
                }
            }
        }
        let facts: Vec<Arc<Facts>> = batch
            .iter()
            .map(|accept| Arc::clone(&accept.facts))
            .collect();
        let accepted = if batch.is_empty() {
            Vec::new()
        } else {
            self.store.accept(batch, members).await?
        };
        for (span, accepted) in spans.iter().zip(&accepted) {
            if let Accepted::Conflict { .. } = accepted {
                trace::record_error(span, "event-conflict");
            }
        }
        drop(spans);
        let mut accepted = accepted.into_iter().zip(facts);
        let verdicts = verdicts
            .into_iter()
            .map(|verdict| {
                verdict.or_else(|| {
                    accepted
                        .next()
                        .map(|(accepted, facts)| self.told(accepted, facts))
                })
            })
            .map(|verdict| verdict.unwrap_or(Err(Refusal::Withheld)))
            .collect();
        Ok(verdicts)
    }

    fn told(&self, accepted: Accepted, facts: Arc<Facts>) -> Verdict {
        match accepted {
            Accepted::New { seq } => {
                for target in &facts.targets {
                    (self.wake)(target);
                }
                Ok(Receipt {
                    seq,
                    duplicate: false,
                    facts,
                })
            }
            Accepted::Duplicate { seq, facts } => Ok(Receipt {
                seq,
                duplicate: true,
                facts,
            }),
            Accepted::Conflict { seq } => Err(Refusal::Conflict { seq }),
            Accepted::Withheld => Err(Refusal::Withheld),
        }
    }

    fn count(&self, bus: &str, verdicts: Vec<Verdict>) -> Vec<Verdict> {
        for verdict in &verdicts {
            match verdict {
                Ok(receipt) if receipt.duplicate => self.metrics.duplicate(bus),
                Ok(receipt) => {
                    self.metrics.accepted(bus, 1);
                    if !receipt.facts.rules.is_empty() {
                        self.metrics.matched(bus, 1);
                    }
                    for target in &receipt.facts.targets {
                        self.metrics.enqueued(target, 1);
                    }
                }
                Err(Refusal::Conflict { .. }) => {
                    self.metrics.conflict(bus);
                    self.metrics.rejected(bus, "event-conflict");
                }
                Err(refusal) => self.metrics.rejected(bus, refusal.reason()),
            }
        }
        verdicts
    }
}

fn is_refused(candidates: &[Candidate], repeated: &[Option<Receipt>]) -> bool {
    candidates
        .iter()
        .zip(repeated)
        .any(|(candidate, repeated)| candidate.refusal.is_some() && repeated.is_none())
}

/// Matches an event and notes which rules lead to which targets.
fn find_rules(bus: &Bus, event: &Event, mut facts: Facts) -> Result<Facts, Refusal> {
    let span = trace::match_span(&bus.name);
    let _entered = span.enter();
    let rules = SCRATCH.with_borrow_mut(|scratch| bus.matches(event, scratch));
    let rules = rules.map_err(|limit| Refusal::TooComplex {
        limit: limit.to_string(),
    })?;
    trace::record_match(&span, bus.rules().len(), rules.len());
    for (at, rule) in rules.iter().enumerate() {
        facts.rules.push(rule.name.to_string());
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        for (target, _) in &rule.targets {
            match facts
                .targets
                .iter()
                .position(|known| known == target.as_str())
            {
                Some(known) => facts.routes[known].push(at),
                None => {
                    facts.targets.push(target.to_string());
                    facts.routes.push(vec![at]);
                }
            }
        }
    }
    Ok(facts)
}
