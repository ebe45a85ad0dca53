//! Behaviour of the whole, through its HTTP surface, with real parts.

mod otlp_collector;
mod smoke;
mod support;
