//! Behaviour of the whole, through its HTTP surface, with real parts.

mod admin;
mod auth;
mod claim_check;
mod cloudevents;
mod crash;
mod dead_letters;
mod delivery;
mod ingest;
mod limits;
mod otlp_collector;
mod process;
mod queues;
mod quick_start;
mod realworld;
mod schemas;
mod sdk_client;
mod smoke;
mod stop;
mod store;
mod support;
mod telemetry;
