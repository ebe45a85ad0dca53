//! Bounded label values and the metrics that carry them.
//!
//! Prometheus keeps a series for every combination of label values, so values that clients choose must
//! have a limit: the first ones seen keep their names, the rest fold into [`OTHER`].

use std::sync::Arc;

use parking_lot::RwLock;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};
use rustc_hash::FxHashMap;

/// What label values beyond the limit are called.
pub(super) const OTHER: &str = "other";

/// Longest label value in bytes; longer ones fold into [`OTHER`].
const VALUE_BYTES_MAX: usize = 256;

/// The values of one kind of label, such as the types of events.
#[derive(Debug)]
pub(super) struct Labels {
    values_max: usize,
    known: RwLock<Known>,
}

#[derive(Debug)]
struct Known {
    labels: FxHashMap<Box<str>, Label>,
    next: u32,
}

/// A label value by number; numbers are never used again for another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Label(u32);

impl Label {
    const OTHER: Label = Label(0);
}

impl Labels {
    pub(super) fn new(values_max: usize) -> Self {
        let known = Known {
            labels: FxHashMap::default(),
            next: 1,
        };
        Self {
            values_max,
            known: RwLock::new(known),
        }
    }

    /// The label of a value, [`Label::OTHER`] when there are too many or it is too long.
    fn fold(&self, value: &str) -> Label {
        {
            let known = self.known.read();
            if let Some(label) = known.labels.get(value) {
                return *label;
            }
            if known.labels.len() >= self.values_max || value.len() > VALUE_BYTES_MAX {
                return Label::OTHER;
            }
        }
        self.admit(value)
    }

    #[cold]
    fn admit(&self, value: &str) -> Label {
        let mut known = self.known.write();
        if let Some(label) = known.labels.get(value) {
            return *label;
        }
        if known.labels.len() >= self.values_max || known.next == u32::MAX {
            return Label::OTHER;
        }
        let label = Label(known.next);
        known.next += 1;
        known.labels.insert(value.into(), label);
        label
    }

    /// Gives a value's place to another, and returns its label if it had one.
    pub(super) fn forget(&self, value: &str) -> Option<Label> {
        self.known.write().labels.remove(value)
    }
}

/// One metric for each combination of `N` label values. Clones are the same set.
#[derive(Debug)]
pub(super) struct Set<M, const N: usize> {
    inner: Arc<Inner<M, N>>,
}

#[derive(Debug)]
struct Inner<M, const N: usize> {
    names: [&'static str; N],
    make: fn() -> M,
    children: RwLock<FxHashMap<[Label; N], Child<M, N>>>,
}

#[derive(Debug)]
struct Child<M, const N: usize> {
    metric: M,
    pairs: [(&'static str, String); N],
}

impl<M, const N: usize> Clone for Set<M, N> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<M, const N: usize> Set<M, N> {
    /// An empty set whose members `make` builds and whose labels have these names.
    pub(super) fn new(names: [&'static str; N], make: fn() -> M) -> Self {
        let inner = Inner {
            names,
            make,
            children: RwLock::new(FxHashMap::default()),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Acts on the metric of these values. Costs a few look-ups and, but for the first time, no
    /// allocation.
    pub(super) fn with(&self, values: [(&Labels, &str); N], act: impl FnOnce(&M)) {
        let key = values.map(|(labels, value)| labels.fold(value));
        {
            let children = self.inner.children.read();
            if let Some(child) = children.get(&key) {
                return act(&child.metric);
            }
        }
        let mut children = self.inner.children.write();
        let child = children.entry(key).or_insert_with(|| Child {
            metric: (self.inner.make)(),
            pairs: std::array::from_fn(|at| {
                let value = if key[at] == Label::OTHER {
                    OTHER
                } else {
                    values[at].1
                };
                (self.inner.names[at], value.to_owned())
            }),
        });
        act(&child.metric);
    }

    /// Removes every metric whose first label is this one.
    pub(super) fn forget(&self, first: Label) {
        self.inner
            .children
            .write()
            .retain(|key, _| key.first() != Some(&first));
    }
}

impl<M, const N: usize> EncodeMetric for Set<M, N>
where
    M: EncodeMetric + TypedMetric,
{
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        for child in self.inner.children.read().values() {
            child.metric.encode(encoder.encode_family(&child.pairs)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.inner.children.read().is_empty()
    }
}
