//! Claim check: large data goes to the blob store before its event is committed.

use super::{Candidate, Error, Ingest};
use crate::event::Data;
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
        accept.event = accept.event.clone().with_data(Data::Absent);
        accept.claim = Some(Claim { key, bytes });
        Ok(())
    }
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
