//! What a target gets: the stored event, its data put back or referred to, its rule's transform
//! applied.

use super::link::Links;
use crate::blob::{self, Blobs};
use crate::catalog::Catalog;
use crate::clock::Millis;
use crate::event::{Attribute, Data, Event};
use crate::store::{self, StoredEvent};
use crate::target::Payload;
use crate::target::outcome::Reason;

/// Why an event could not be made ready for its target.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It will never be; the delivery is a dead letter.
    #[error("{detail}")]
    Never { reason: Reason, detail: String },
    /// The blob store did not answer; later it may.
    #[error("the data could not be fetched")]
    Later(#[source] blob::Error),
}

/// Makes events ready.
#[derive(Clone)]
pub struct Render {
    pub blobs: Blobs,
    pub links: Links,
}

impl Render {
    /// The event as `target` is to get it.
    ///
    /// # Errors
    /// When its data is lost, cannot be fetched now, or a transform fails on it.
    pub async fn render(
        &self,
        catalog: &Catalog,
        stored: &StoredEvent,
        (target, payload): (&str, Payload),
        now: Millis,
    ) -> Result<Event, Error> {
        let transform = catalog.bus(&stored.bus).and_then(|bus| {
            let rules = stored.facts.rules_for(target);
            rules
                .into_iter()
                .filter_map(|name| bus.rule(name))
                .find_map(|rule| rule.transform.as_ref())
        });
        if transform.is_none() && stored.claim.is_some() && payload == Payload::Reference {
            return Ok(self.by_reference(stored, now));
        }
        let event = self.whole(stored).await?;
        let Some(transform) = transform else {
            return Ok(event);
        };
        transform.apply(&event).map_err(|error| Error::Never {
            reason: Reason::TransformError,
            detail: error.to_string(),
        })
    }

    /// The event with its data, wherever that lies.
    ///
    /// # Errors
    /// When its data is lost or cannot be fetched now.
    pub async fn whole(&self, stored: &StoredEvent) -> Result<Event, Error> {
        let Some(claim) = &stored.claim else {
            return Ok(stored.event.clone());
        };
        match self.blobs.get(&claim.key).await {
            Ok(bytes) => Ok(store::restore(
                stored.event.clone(),
                stored.data_kind,
                bytes,
            )),
            Err(error @ blob::Error::Missing { .. }) => Err(Error::Never {
                reason: Reason::BlobMissing,
                detail: error.to_string(),
            }),
            Err(error) => Err(Error::Later(error)),
        }
    }

    /// The event without data and with `dataref` (CloudEvents claim-check extension).
    fn by_reference(&self, stored: &StoredEvent, now: Millis) -> Event {
        let (mut attributes, _) = stored.event.clone().into_parts();
        attributes.retain(|attribute| attribute.name != "dataref");
        let address = self.links.address(stored.seq, now);
        attributes.push(Attribute::text("dataref", address));
        Event::new(attributes, Data::Absent).expect("an address is a valid attribute value")
    }
}
