//! Claim check: large data goes to the blob store before its event is committed.

use super::{Candidate, Error, Ingest};
use crate::event::{Data, Event};
use crate::store::{Accept, Claim};

impl Ingest {
    /// Offloads the large data of every candidate that is still good.
    pub(super) async fn offload(&self, candidates: &mut [Candidate]) -> Result<(), Error> {
        for candidate in candidates {
            let bytes = candidate.accept.event.data_bytes().len() as u64;
            if candidate.refusal.is_none() && bytes > self.options.claim_check_threshold {
                self.offload_one(&mut candidate.accept).await?;
            }
        }
        Ok(())
    }

    async fn offload_one(&self, accept: &mut Accept) -> Result<(), Error> {
        let key = key(accept);
        let data = accept.event.data_bytes().clone();
        let bytes = data.len() as u64;
        self.blobs.put(&key, data).await?;
        let (attributes, _) = accept.event.clone().into_parts();
        accept.event = without_data(attributes);
        accept.claim = Some(Claim { key, bytes });
        Ok(())
    }
}

fn without_data(attributes: Vec<crate::event::Attribute>) -> Event {
    Event::new(attributes, Data::Absent).expect("the attributes are those of a valid event")
}

/// Identity and content make the key, so that a repeated publish writes the same blob again and a
/// conflicting one never touches it.
fn key(accept: &Accept) -> String {
    let identity = hex(&accept.identity);
    format!("{}/{identity}-{}", &identity[..2], hex(&accept.content))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
