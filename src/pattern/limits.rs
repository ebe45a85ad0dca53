//! What a pattern may be, and what matching one event may cost.

/// Bounds and dialect of pattern text; every refusal by a bound names its measure and the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Read `detail-type` as `type` and `detail` as `data` at the top level, so that a pattern
    /// copied from EventBridge fits a CloudEvent.
    pub aliases: bool,
    /// Allow the operators that EventBridge does not have (`all-of`, `wildcard` in any case).
    pub extensions: bool,
    /// Bytes of text.
    pub text_bytes_max: usize,
    /// Objects and lists inside one another.
    pub depth_max: usize,
    /// Conjunctions after every `$or` is multiplied out.
    pub conjunctions_max: usize,
    /// Fields of one conjunction; 64 at most whatever is set here.
    pub fields_max: usize,
    /// Values listed for one field, those inside `anything-but` and `all-of` counted.
    pub values_max: usize,
    /// `*` in one wildcard. EventBridge accepts three and refuses six.
    pub stars_max: usize,
    /// `*` in the whole pattern.
    pub stars_total_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            aliases: false,
            extensions: false,
            text_bytes_max: 64 * 1024,
            depth_max: 32,
            conjunctions_max: 256,
            fields_max: FIELDS_MAX,
            values_max: 1_000,
            stars_max: 5,
            stars_total_max: 256,
        }
    }
}

/// Fields of one conjunction, whatever the settings: the width of a bit set.
pub(crate) const FIELDS_MAX: usize = 64;

impl Limits {
    /// The default bounds, with the EventBridge names `detail-type` and `detail` understood:
    /// what rules on CloudEvents are read with.
    pub fn for_events() -> Self {
        Self {
            aliases: true,
            ..Self::default()
        }
    }
}

/// What matching one event may cost before it ends in [`LimitReached`](super::LimitReached).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimits {
    /// Objects and lists inside one another, counted only where a pattern reads.
    pub depth_max: usize,
    /// Leaves at paths that a pattern reads.
    pub leaves_max: usize,
    /// Steps of work, about a test of one value each.
    pub work_max: u64,
}

impl Default for EventLimits {
    fn default() -> Self {
        Self {
            depth_max: 128,
            leaves_max: 1_000_000,
            work_max: 200_000_000,
        }
    }
}

/// Matching an event would cost more than [`EventLimits`] allow; nothing is known of its matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    /// The event nests deeper than allowed where patterns read it.
    #[error("the event nests deeper than {depth_max} where patterns read it")]
    Depth {
        /// The bound that was reached.
        depth_max: usize,
    },
    /// Too many values at paths that patterns read.
    #[error("the event has more than {leaves_max} values at paths that patterns read")]
    Leaves {
        /// The bound that was reached.
        leaves_max: usize,
    },
    /// Too many steps.
    #[error("matching the event takes more than {work_max} steps")]
    Work {
        /// The bound that was reached.
        work_max: u64,
    },
}
