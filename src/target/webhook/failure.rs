//! Reads an error of the HTTP client as an outcome.

use std::error::Error;
use std::io;

use http::uri::Scheme;
use hyper_util::client::legacy;

use super::connect;
use super::settings::Endpoint;
use crate::target::outcome::{Cause, Outcome};

/// How many errors beneath an error are looked at.
const DEPTH_MAX: usize = 16;

/// What it means that there was no answer.
pub(super) fn outcome(error: &legacy::Error, url: &Endpoint) -> Outcome {
    let chain = chain(error);
    let known = chain.iter().find_map(|error| {
        if let Some(error) = error.downcast_ref::<connect::Error>() {
            Some(error.cause())
        } else if error.is::<rustls::Error>() {
            Some(Cause::Tls)
        } else {
            None
        }
    });
    let is_https = url.uri().scheme() == Some(&Scheme::HTTPS);
    let cause = match known {
        Some(cause) => cause,
        // The TCP connection has its own errors, so what failed is the handshake upon it.
        None if error.is_connect() && is_https => Cause::Tls,
        None => Cause::Protocol,
    };
    Outcome::failed(cause, &text(&chain))
}

/// The error and those beneath it, the outermost first. An `io::Error` that only wraps another
/// hides it from `source`, so it is looked into.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut chain = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next
        && chain.len() < DEPTH_MAX
    {
        chain.push(error);
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    chain
}

/// The messages of the chain, each said once; the client's own wrapper tells a person nothing.
fn text(chain: &[&(dyn Error + 'static)]) -> String {
    let mut messages: Vec<String> = Vec::new();
    for error in chain {
        if error.is::<legacy::Error>() && chain.len() > 1 {
            continue;
        }
        let message = error.to_string();
        if !messages.iter().any(|said| said.contains(&message)) {
            messages.push(message);
        }
    }
    messages.join(": ")
}
