//! Behaviour of the comparison of versions.
