//! Many events, one a line, published in batches that take the good and tell of the others.

use std::path::Path;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Args, BATCH, address, complain_of_line, line};
use crate::cli::client::Client;
use crate::cli::lines::{Chunks, is_blank, lines};
use crate::cli::problem::Problem;
use crate::cli::progress::Progress;
use crate::cli::{Error, Exit, output};

/// Most events of one request.
const BATCH_EVENTS_MAX: usize = 500;
/// Bytes of a batch beyond which no further event joins it.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The events of the next request.
#[derive(Debug, Default)]
struct Batch {
    /// For each event, its line, from 1.
    numbers: Vec<u64>,
    /// The array without its closing bracket.
    text: Vec<u8>,
}

impl Batch {
    fn add(&mut self, number: u64, event: &[u8]) {
        self.text
            .push(if self.numbers.is_empty() { b'[' } else { b',' });
        self.text.extend_from_slice(event);
        self.numbers.push(number);
    }

    fn has_room_for(&self, event: &[u8]) -> bool {
        let fits = self.text.len() + event.len() <= BATCH_BYTES;
        self.numbers.is_empty() || fits && self.numbers.len() < BATCH_EVENTS_MAX
    }

    fn take(&mut self) -> (Vec<u64>, Bytes) {
        let mut text = std::mem::take(&mut self.text);
        text.push(b']');
        (std::mem::take(&mut self.numbers), text.into())
    }
}

pub(super) async fn run(args: &Args, client: &Client, file: &Path) -> Result<Exit, Error> {
    let read = |source| Error::read(file, source);
    let mut chunks = Chunks::open(file).map_err(read)?;
    let mut sender = Sender {
        args,
        client,
        batch: Batch::default(),
        refused: 0,
        progress: Progress::new("events"),
    };
    let mut number = 0;
    while let Some(chunk) = chunks.next().map_err(read)? {
        for line in lines(&chunk) {
            number += 1;
            if !is_blank(&line) {
                sender.take(number, &line).await?;
            }
        }
    }
    sender.flush().await?;
    Ok(if sender.refused > 0 {
        Exit::Found
    } else {
        Exit::Clean
    })
}

struct Sender<'a> {
    args: &'a Args,
    client: &'a Client,
    batch: Batch,
    refused: u64,
    progress: Progress,
}

impl Sender<'_> {
    /// Takes a line into the batch. One that is no JSON would break the batch, so it stays out.
    async fn take(&mut self, number: u64, text: &[u8]) -> Result<(), Error> {
        if let Err(error) = serde_json::from_slice::<IgnoredAny>(text) {
            self.refused += 1;
            output::complain(&format!("line {number} is not JSON: {error}"));
            return Ok(());
        }
        if !self.batch.has_room_for(text) {
            self.flush().await?;
        }
        self.batch.add(number, text);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let (numbers, body) = self.batch.take();
        let Some(last) = numbers.last() else {
            return Ok(());
        };
        let url = address(self.client, &self.args.bus, true);
        let answer = self.client.send(Method::POST, url, BATCH, body).await?;
        let answer = answer.json()?;
        let results = answer["events"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut receipts = String::new();
        for (number, result) in numbers.iter().zip(results) {
            if is_accepted(result) {
                receipts.push_str(&line(result, self.args.format));
            } else {
                self.refused += 1;
                complain_of_line(*number, &Problem::of_member(result));
            }
        }
        self.progress.at(*last);
        output::print(&receipts)
    }
}

/// Whether a member's result is a receipt.
fn is_accepted(result: &Value) -> bool {
    let accepted = u64::from(StatusCode::ACCEPTED.as_u16());
    result["status"]
        .as_u64()
        .is_none_or(|status| status == accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_an_array_of_its_lines_and_starts_afresh() {
        let mut batch = Batch::default();
        batch.add(1, b"{}");
        batch.add(3, br#"{"a":1.0}"#);

        assert_eq!(batch.take(), (vec![1, 3], Bytes::from(r#"[{},{"a":1.0}]"#)));
        assert!(batch.numbers.is_empty() && batch.text.is_empty());
    }

    #[test]
    fn a_batch_is_full_at_its_limits_but_takes_any_first_event() {
        let mut batch = Batch::default();
        let large = vec![b' '; BATCH_BYTES + 1];
        assert!(batch.has_room_for(&large));
        for number in 1..BATCH_EVENTS_MAX as u64 {
            batch.add(number, b"{}");
        }
        assert!(batch.has_room_for(b"{}"));
        assert!(!batch.has_room_for(&large));
        batch.add(BATCH_EVENTS_MAX as u64, b"{}");

        assert!(!batch.has_room_for(b"{}"));
    }
}
