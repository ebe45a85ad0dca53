//! The HTTP edge: publishing, queues, administration.
//!
//! One file for each noun; [`problem`] makes HTTP of errors, [`auth`] checks keys. What happens to
//! an event is `ingest`'s and `delivery`'s business.

mod apply;
pub mod auth;
mod blobs;
mod buses;
mod dead_letters;
mod edge;
mod events;
mod health;
mod keys;
pub mod problem;
mod queues;
mod rules;
mod schemas;
mod shown;
mod status;
mod targets;
mod unmatched;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use tokio::sync::Semaphore;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::catalog::Live;
use crate::clock::{Clock, Millis};
use crate::delivery::Deliveries;
use crate::ingest::Ingest;
use crate::store::Store;
use crate::telemetry::Metrics;

/// Limits of requests.
#[derive(Debug, Clone)]
pub struct Options {
    /// Largest body accepted, in bytes.
    pub body_bytes_max: usize,
    /// Most events in one batch.
    pub batch_events_max: usize,
    /// Longest time a body may take to arrive.
    pub body_timeout: Duration,
    /// Memory that the bodies of all requests may take together, in bytes.
    pub inflight_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            body_bytes_max: 17 * 1024 * 1024,
            batch_events_max: 1_000,
            body_timeout: Duration::from_secs(30),
            inflight_bytes_max: 256 * 1024 * 1024,
        }
    }
}

/// What the handlers share.
pub struct Api {
    pub ingest: Ingest,
    pub deliveries: Arc<Deliveries>,
    pub live: Arc<Live>,
    pub store: Arc<dyn Store>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    pub keys: auth::Keys,
    pub options: Options,
    /// Memory for the bodies of requests; [`memory`] makes it.
    pub room: Arc<Semaphore>,
    pub started_at: Millis,
}

/// The memory that the bodies of all requests may take together.
#[must_use]
pub fn memory(options: &Options) -> Arc<Semaphore> {
    edge::room(options.inflight_bytes_max)
}

/// The handlers' shared state.
type Shared = axum::extract::State<Arc<Api>>;

#[derive(OpenApi)]
#[openapi(info(
    title = "dak",
    description = "An event bus that you run yourself: schemas at the door, content rules, durable queues.",
    license(name = "Apache-2.0", identifier = "Apache-2.0")
))]
struct Described;

/// All routes, and the description that is served at `/openapi.json`.
pub fn router(api: Arc<Api>) -> Router {
    let limit = DefaultBodyLimit::max(api.options.body_bytes_max);
    let (router, mut description) = routes().split_for_parts();
    description.info.version = env!("CARGO_PKG_VERSION").into();
    let described = health::openapi(&description);
    router
        .route("/openapi.json", described)
        .fallback(edge::no_such_address)
        .method_not_allowed_fallback(edge::no_such_method)
        .layer(from_fn_with_state(Arc::clone(&api), edge::observe))
        .layer(limit)
        .with_state(api)
}

/// The description of all routes (OpenAPI 3.1).
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    routes().into_openapi()
}

fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(events::publish))
        .routes(routes!(events::publish_to_bus, events::list))
        .routes(routes!(events::show))
        .routes(routes!(events::explain))
        .routes(routes!(queues::receive))
        .routes(routes!(queues::acknowledge))
        .routes(routes!(queues::release))
        .routes(routes!(queues::reject))
        .routes(routes!(queues::renew))
        .routes(routes!(schemas::list))
        .routes(routes!(schemas::show))
        .routes(routes!(schemas::register))
        .routes(routes!(schemas::version, schemas::remove))
        .routes(routes!(schemas::policy, schemas::set_policy))
        .routes(routes!(rules::list))
        .routes(routes!(rules::show, rules::put, rules::remove))
        .routes(routes!(targets::list))
        .routes(routes!(targets::show, targets::put, targets::remove))
        .routes(routes!(targets::pause))
        .routes(routes!(targets::resume))
        .routes(routes!(targets::enable))
        .routes(routes!(buses::list))
        .routes(routes!(buses::show, buses::put, buses::remove))
        .routes(routes!(apply::apply))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::show))
        .routes(routes!(dead_letters::redrive))
        .routes(routes!(dead_letters::purge))
        .routes(routes!(unmatched::list))
        .routes(routes!(status::status))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::remove))
        .routes(routes!(blobs::fetch))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
}
