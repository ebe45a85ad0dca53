//! A histogram that is only atomics; the client library's own takes a lock for each observation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Counts of observations by bucket, and their sum. Clones are the same histogram.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Upper bounds, inclusive and ascending.
    bounds: &'static [f64],
    /// One more than there are bounds; the last is for everything above them.
    counts: Box<[AtomicU64]>,
    /// The bits of an `f64`.
    sum: AtomicU64,
}

impl Histogram {
    /// An empty histogram with these upper bounds, which ascend.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        let inner = Inner {
            bounds,
            counts,
            sum: AtomicU64::new(0.0_f64.to_bits()),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(super) fn observe(&self, value: f64) {
        let Inner {
            bounds,
            counts,
            sum,
        } = &*self.inner;
        let at = bounds.partition_point(|bound| *bound < value);
        counts[at].fetch_add(1, Ordering::Relaxed);
        // The update never answers `None`, so it never fails.
        let _ = sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
            Some((f64::from_bits(bits) + value).to_bits())
        });
    }

    /// Observes a duration in seconds.
    pub(super) fn observe_duration(&self, duration: Duration) {
        self.observe(duration.as_secs_f64());
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        let counts: Vec<u64> = self
            .inner
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .collect();
        let bounds = self.inner.bounds.iter().copied();
        // The encoder makes the bucket without a bound from the count of all.
        let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
        let count = counts.iter().sum();
        let sum = f64::from_bits(self.inner.sum.load(Ordering::Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
