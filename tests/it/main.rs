//! Behaviour of the whole, through its HTTP surface, with real parts.

mod admin;
mod auth;
mod claim_check;
mod cloudevents;
mod ingest;
mod otlp_collector;
mod quick_start;
mod realworld;
mod schemas;
mod sdk_client;
mod smoke;
mod support;
mod telemetry;
