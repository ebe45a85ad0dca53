//! Logs, traces and metrics: set-up, and everything that is named in them.
//!
//! Logs go to standard error, as text or JSON. Traces go to an OTLP collector when one is configured:
//! [`trace`] makes their spans. [`Metrics`] holds every counter, gauge and histogram that `/metrics`
//! shows. What is measured and when is left to the modules above.

mod context;
mod export;
mod histogram;
mod labels;
mod metrics;
pub mod names;
#[cfg(test)]
mod tests;
pub mod trace;

use std::io::IsTerminal as _;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanExporter};
use tracing::{Dispatch, Level};
use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, Registry};

pub use metrics::{CONTENT_TYPE, Metrics};

/// Longest time [`Guard::flush`] and [`Guard::shutdown`] wait for the collector.
pub const FLUSH_WAIT: Duration = Duration::from_secs(5);

/// Settings of logs and traces.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Which log lines appear: `info`, or directives such as `warn,dak::delivery=debug`.
    pub log_filter: String,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Where spans go, `http://host:4317` (OTLP over gRPC). No traces are made without it.
    pub otlp_endpoint: Option<String>,
    /// `service.name` of the exported spans.
    pub service_name: String,
    /// Share, 0 to 1, of the traces that start here to record. A trace that was started elsewhere is
    /// recorded if its caller does so.
    pub sample_ratio: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log_filter: "info".to_owned(),
            log_format: LogFormat::Text,
            otlp_endpoint: None,
            service_name: "dak".to_owned(),
            sample_ratio: 1.0,
        }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people; in colour on a terminal.
    Text,
    /// One JSON object a line.
    Json,
}

/// Why logs and traces could not be set up or flushed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directive of the log filter does not parse.
    #[error("log_filter `{filter}` is not a list of directives such as `info,dak::api=debug`")]
    LogFilter {
        /// The filter as configured.
        filter: String,
        /// What is wrong with it.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// The sample ratio is no share.
    #[error("sample_ratio is {ratio}, but must be between 0 and 1")]
    SampleRatio {
        /// The ratio as configured.
        ratio: f64,
    },
    /// The OTLP endpoint cannot be used.
    #[error("otlp_endpoint `{endpoint}` must be like `http://localhost:4317`")]
    Endpoint {
        /// The endpoint as configured.
        endpoint: String,
        /// What the exporter has against it, unless the form alone is wrong.
        #[source]
        source: Option<opentelemetry_otlp::ExporterBuildError>,
    },
    /// Exporting needs a tokio runtime, and there is none here.
    #[error("spans can be exported only from within a tokio runtime")]
    NoRuntime(#[source] tokio::runtime::TryCurrentError),
    /// This process has a subscriber already.
    #[error("logs were set up before in this process")]
    AlreadySet(#[source] TryInitError),
    /// The collector did not take the last spans in time.
    #[error("the last spans were not exported within {} s", waited.as_secs())]
    FlushTimedOut {
        /// How long was waited.
        waited: Duration,
    },
}

/// Keeps the exporter to flush and stop it. Shut it down before the process ends, or the last second of
/// spans is lost.
#[derive(Debug)]
#[must_use = "spans of the last second are lost unless the guard is shut down"]
pub struct Guard {
    exporter: Option<export::Control>,
}

impl Guard {
    /// Exports the spans that have ended so far; waits at most [`FLUSH_WAIT`].
    ///
    /// # Errors
    /// [`Error::FlushTimedOut`]. A collector that refuses spans is reported in the log instead.
    pub async fn flush(&self) -> Result<(), Error> {
        match &self.exporter {
            None => Ok(()),
            Some(exporter) => within_flush_wait(exporter.flush()).await,
        }
    }

    /// Exports the spans that have ended so far and stops the exporter; waits at most [`FLUSH_WAIT`].
    ///
    /// # Errors
    /// [`Error::FlushTimedOut`]. A collector that refuses spans is reported in the log instead.
    pub async fn shutdown(self) -> Result<(), Error> {
        match &self.exporter {
            None => Ok(()),
            Some(exporter) => within_flush_wait(exporter.stop()).await,
        }
    }
}

async fn within_flush_wait(flush: impl Future<Output = ()>) -> Result<(), Error> {
    tokio::time::timeout(FLUSH_WAIT, flush)
        .await
        .map_err(|_| Error::FlushTimedOut { waited: FLUSH_WAIT })
}

/// Sets up logs and traces for the whole process, once. With an OTLP endpoint this must be called
/// within a tokio runtime, which then also runs the exporter; the collector need not be up yet.
///
/// # Errors
/// All variants of [`Error`] but the last.
pub fn init(options: &Options) -> Result<Guard, Error> {
    let (dispatch, guard) = build(options)?;
    dispatch.try_init().map_err(Error::AlreadySet)?;
    Ok(guard)
}

/// Like [`init`], but leaves it to the caller where the subscriber applies, for example to one test
/// with [`tracing::dispatcher::set_default`].
///
/// # Errors
/// As [`init`], except [`Error::AlreadySet`].
pub fn build(options: &Options) -> Result<(Dispatch, Guard), Error> {
    let exporter = match &options.otlp_endpoint {
        None => None,
        Some(endpoint) => Some(otlp_exporter(endpoint)?),
    };
    assemble(options, exporter, BoxMakeWriter::new(std::io::stderr))
}

fn otlp_exporter(endpoint: &str) -> Result<opentelemetry_otlp::SpanExporter, Error> {
    tokio::runtime::Handle::try_current().map_err(Error::NoRuntime)?;
    let fault = |source| Error::Endpoint {
        endpoint: endpoint.to_owned(),
        source,
    };
    if !endpoint.contains("://") {
        return Err(fault(None));
    }
    export::otlp(endpoint).map_err(|source| fault(Some(source)))
}

type Layers = Vec<Box<dyn Layer<Registry> + Send + Sync>>;

/// Puts the layers together. Each has a filter of its own and no layer is optional by `Option`: so a
/// span that no layer wants is disabled at its callsite for good, which makes traces free while off.
fn assemble<E>(
    options: &Options,
    exporter: Option<E>,
    writer: BoxMakeWriter,
) -> Result<(Dispatch, Guard), Error>
where
    E: SpanExporter + 'static,
{
    if !(0.0..=1.0).contains(&options.sample_ratio) {
        return Err(Error::SampleRatio {
            ratio: options.sample_ratio,
        });
    }
    let mut layers: Layers = vec![log_layer(options, writer)?];
    let mut guard = Guard { exporter: None };
    if let Some(exporter) = exporter {
        let (layer, control) = trace_layer(options, exporter);
        layers.push(layer);
        guard.exporter = Some(control);
    }
    let subscriber = tracing_subscriber::registry().with(layers);
    Ok((Dispatch::new(subscriber), guard))
}

fn log_layer(
    options: &Options,
    writer: BoxMakeWriter,
) -> Result<Box<dyn Layer<Registry> + Send + Sync>, Error> {
    let filter = EnvFilter::builder()
        .parse(&options.log_filter)
        .map_err(|source| Error::LogFilter {
            filter: options.log_filter.clone(),
            source,
        })?
        .and(filter_fn(|metadata| metadata.target() != trace::TARGET));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal());
    Ok(match options.log_format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    })
}

fn trace_layer<E>(
    options: &Options,
    exporter: E,
) -> (Box<dyn Layer<Registry> + Send + Sync>, export::Control)
where
    E: SpanExporter + 'static,
{
    let resource = Resource::builder()
        .with_service_name(options.service_name.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let (queue, control) = export::start(exporter, &resource);
    let sampler = Sampler::TraceIdRatioBased(options.sample_ratio);
    let provider = SdkTracerProvider::builder()
        .with_span_processor(queue)
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .with_resource(resource)
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("dak"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(Targets::new().with_target(trace::TARGET, Level::INFO));
    (layer.boxed(), control)
}
