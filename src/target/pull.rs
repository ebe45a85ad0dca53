//! Pull targets: consumers receive, then acknowledge, release, reject or renew.

use std::time::Duration;

use crate::document::Fields;

/// The kind's name in documents.
pub const NAME: &str = "pull";
/// Longest time a lease may be given or renewed for: twelve hours, as in SQS.
pub const LEASE_MAX: Duration = Duration::from_secs(12 * 3_600);
/// Most deliveries of one queue that may be leased at once.
pub const LEASED_MAX: u64 = 100_000;

/// Settings of a pull target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// How long a consumer holds a delivery when it does not say.
    pub lease: Duration,
    /// Deliveries that may be leased at once; beyond it, receiving answers an error.
    pub leased_max: u32,
}

impl Pull {
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        let lease = fields.duration_within("lease", Duration::from_secs(1)..=LEASE_MAX);
        let leased_max = fields.integer("leased_max", 1..=LEASED_MAX);
        Self {
            lease: lease.unwrap_or(Duration::from_secs(30)),
            leased_max: leased_max.map_or(10_000, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        }
    }
}
