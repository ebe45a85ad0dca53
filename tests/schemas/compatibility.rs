//! Compatibility against the cases of other registries and checkers.
