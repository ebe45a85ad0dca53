//! Sending finished spans to an OTLP collector in batches, from a task of the tokio runtime.
//!
//! The SDK's own batch processor owns a thread, blocks while it flushes, and is silent about spans it
//! drops. This one never blocks whoever ends a span: a full queue drops the span and counts it, and
//! failures are reported to the log at most once in [`REPORT_EVERY`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// Most spans waiting for export; beyond it new ones are dropped and counted.
pub(super) const QUEUED_SPANS_MAX: usize = 8_192;
/// Most spans in one export call.
const BATCH_SPANS_MAX: usize = 512;
/// Longest time a span waits for its batch to fill.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Longest time one export call may take, the exporter's own retries included.
const EXPORT_WAIT: Duration = Duration::from_secs(10);
/// Shortest time between two log lines about a failing export.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// An exporter that speaks OTLP over gRPC. Connects on the first export, inside the current runtime.
pub(super) fn otlp(endpoint: &str) -> Result<opentelemetry_otlp::SpanExporter, ExporterBuildError> {
    opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(EXPORT_WAIT)
        .build()
}

/// The sending half: takes finished spans from the SDK.
#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<Message>,
    dropped: Arc<AtomicU64>,
}

/// Asks the export task to flush or to stop.
#[derive(Debug)]
pub(super) struct Control {
    sender: mpsc::Sender<Message>,
}

#[derive(Debug)]
enum Message {
    Span(Box<SpanData>),
    Flush(oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
}

/// Starts the export task on the current runtime.
pub(super) fn start<E>(mut exporter: E, resource: &Resource) -> (Queue, Control)
where
    E: SpanExporter + 'static,
{
    exporter.set_resource(resource);
    let (sender, receiver) = mpsc::channel(QUEUED_SPANS_MAX);
    let dropped = Arc::new(AtomicU64::new(0));
    let task = Task {
        exporter,
        receiver,
        batch: Vec::new(),
        report: Report::new(dropped.clone()),
    };
    tokio::spawn(task.run());
    let control = Control {
        sender: sender.clone(),
    };
    (Queue { sender, dropped }, control)
}

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.sender.try_send(Message::Span(Box::new(span))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Flushing waits, which this call may not: [`Control::flush`] does it.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    /// Stopping waits, which this call may not: [`Control::stop`] does it.
    fn shutdown_with_timeout(&self, _wait: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Control {
    /// Exports everything queued so far. Returns when that was tried.
    pub(super) async fn flush(&self) {
        self.ask(Message::Flush).await;
    }

    /// Exports everything queued so far and ends the task.
    pub(super) async fn stop(&self) {
        self.ask(Message::Stop).await;
    }

    /// A task that is gone has nothing left to do, so that counts as done.
    async fn ask(&self, message: impl FnOnce(oneshot::Sender<()>) -> Message) {
        let (done, wait) = oneshot::channel();
        if self.sender.send(message(done)).await.is_ok() {
            let _ = wait.await;
        }
    }
}

/// The receiving half: gathers spans and exports them.
struct Task<E> {
    exporter: E,
    receiver: mpsc::Receiver<Message>,
    batch: Vec<SpanData>,
    report: Report,
}

/// Why a batch is complete.
enum Complete {
    /// It is full or has waited long enough.
    Due,
    /// Someone waits for it.
    Flush(oneshot::Sender<()>),
    /// It is the last one.
    Stop(Option<oneshot::Sender<()>>),
}

impl<E: SpanExporter> Task<E> {
    async fn run(mut self) {
        loop {
            let complete = self.gather().await;
            self.export().await;
            match complete {
                Complete::Due => {}
                Complete::Flush(done) => {
                    // The asker may have given up waiting.
                    let _ = done.send(());
                }
                Complete::Stop(done) => {
                    // Nothing is left to be done about an exporter that does not close well.
                    let _ = self.exporter.shutdown();
                    if let Some(done) = done {
                        let _ = done.send(());
                    }
                    return;
                }
            }
        }
    }

    async fn gather(&mut self) -> Complete {
        let mut due: Option<Instant> = None;
        while self.batch.len() < BATCH_SPANS_MAX {
            let message = match due {
                None => self.receiver.recv().await,
                Some(due) => match timeout_at(due, self.receiver.recv()).await {
                    Ok(message) => message,
                    Err(_) => return Complete::Due,
                },
            };
            match message {
                Some(Message::Span(span)) => {
                    self.batch.push(*span);
                    due.get_or_insert_with(|| Instant::now() + BATCH_WAIT);
                }
                Some(Message::Flush(done)) => return Complete::Flush(done),
                Some(Message::Stop(done)) => return Complete::Stop(Some(done)),
                None => return Complete::Stop(None),
            }
        }
        Complete::Due
    }

    async fn export(&mut self) {
        let spans = self.batch.len();
        if spans == 0 {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        match timeout(EXPORT_WAIT, self.exporter.export(batch)).await {
            Ok(Ok(())) => self.report.exported(),
            Ok(Err(error)) => self.report.failed(spans, &error),
            Err(late) => self.report.failed(spans, &late),
        }
    }
}

/// What the log is told of the export, and how often.
struct Report {
    /// Spans that found the queue full.
    dropped: Arc<AtomicU64>,
    /// Spans lost and not yet reported.
    lost: u64,
    reported_at: Option<Instant>,
    /// Whether the log was told of a failure and not yet of its end.
    failure_open: bool,
}

impl Report {
    fn new(dropped: Arc<AtomicU64>) -> Self {
        Self {
            dropped,
            lost: 0,
            reported_at: None,
            failure_open: false,
        }
    }

    fn exported(&mut self) {
        self.lost += self.dropped.swap(0, Ordering::Relaxed);
        if self.failure_open {
            self.failure_open = false;
            let spans_lost = std::mem::take(&mut self.lost);
            tracing::info!(spans_lost, "exporting spans works again");
        } else if self.lost > 0 && self.due() {
            let spans_lost = std::mem::take(&mut self.lost);
            tracing::warn!(
                spans_lost,
                "spans end faster than the collector takes them; lower the sample ratio"
            );
        }
    }

    fn failed(&mut self, spans: usize, error: &dyn std::fmt::Display) {
        self.lost += self.dropped.swap(0, Ordering::Relaxed) + spans as u64;
        if self.due() {
            self.failure_open = true;
            let spans_lost = std::mem::take(&mut self.lost);
            tracing::warn!(
                spans_lost,
                %error,
                "the collector did not take spans; is the OTLP endpoint right and up?"
            );
        }
    }

    /// Whether enough time has passed since the last warning; if so it counts as given now.
    fn due(&mut self) -> bool {
        let due = self
            .reported_at
            .is_none_or(|reported_at| reported_at.elapsed() >= REPORT_EVERY);
        if due {
            self.reported_at = Some(Instant::now());
        }
        due
    }
}
