//! Events that matched no rule, and the rule that came nearest.

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::IntoParams;

use super::auth::Scope;
use super::problem::Problem;
use super::{Api, Shared, edge, shown};
use crate::clock::rfc3339;
use crate::store::{StoredEvent, Unmatched};

/// Groups listed at most.
const GROUPS_MAX: u32 = 500;

/// Which groups are listed.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Listing {
    /// Only this bus; all when absent.
    bus: Option<String>,
    /// At most this many, 50 when absent.
    limit: Option<u32>,
}

#[derive(Serialize)]
struct Group<'a> {
    bus: &'a str,
    source: &'a str,
    #[serde(rename = "type")]
    event_type: &'a str,
    count: i64,
    first_seen: String,
    last_seen: String,
    sample: Option<shown::Stored<'a>>,
    /// The rule that came nearest to matching the sample, and the conditions that failed.
    nearest: Option<Value>,
}

#[derive(Serialize)]
struct Groups<'a> {
    unmatched: Vec<Group<'a>>,
}

/// Events that matched no rule, grouped by bus, source and type, newest first.
#[utoipa::path(get, path = "/v1/unmatched", tag = "events", params(Listing), responses((status = 200)))]
pub(super) async fn list(
    State(api): Shared,
    Query(listing): Query<Listing>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.keys
        .check(&headers, Scope::Admin, listing.bus.as_deref())?;
    let limit = listing.limit.unwrap_or(50).clamp(1, GROUPS_MAX);
    let groups = api.store.unmatched(listing.bus, limit).await?;
    let mut samples: Vec<i64> = groups.iter().map(|group| group.sample).collect();
    samples.sort_unstable();
    let samples = api.store.events(samples).await?;
    let mut unmatched = Vec::with_capacity(groups.len());
    for group in &groups {
        let sample = samples.iter().find(|sample| sample.seq == group.sample);
        let nearest = match sample {
            Some(sample) => nearest(&api, sample).await?,
            None => None,
        };
        unmatched.push(describe(group, sample, nearest));
    }
    Ok(edge::json(StatusCode::OK, &Groups { unmatched }))
}

fn describe<'a>(
    group: &'a Unmatched,
    sample: Option<&'a StoredEvent>,
    nearest: Option<Value>,
) -> Group<'a> {
    Group {
        bus: &group.bus,
        source: &group.source,
        event_type: &group.event_type,
        count: group.count,
        first_seen: rfc3339(group.first_seen),
        last_seen: rfc3339(group.last_seen),
        sample: sample.map(Into::into),
        nearest,
    }
}

/// The first of the sample's verdicts: a match when today's rules match it, else the nearest miss.
async fn nearest(api: &Api, sample: &StoredEvent) -> Result<Option<Value>, Problem> {
    let whole = api.deliveries.whole(sample).await?;
    let event = whole.unwrap_or_else(|| sample.event.clone());
    let catalog = api.live.current();
    let Some(bus) = catalog.bus(&sample.bus) else {
        return Ok(None);
    };
    let verdicts = shown::explained(bus.rules(), &event, None);
    Ok(verdicts.into_iter().next())
}
