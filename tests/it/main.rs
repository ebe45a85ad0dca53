//! Behaviour of the whole, through its HTTP surface, with real parts.

mod cloudevents;
mod ingest;
mod otlp_collector;
mod realworld;
mod smoke;
mod support;
