//! Sweeping blobs whose event was never committed.

use std::time::Duration;

use super::Ingest;
use crate::clock::millis;

/// A blob this young may still wait for its commit.
const GRACE: Duration = Duration::from_secs(3_600);
/// Time between two sweeps.
const EVERY: Duration = Duration::from_secs(3_600);
/// Blobs looked at in one go.
const CHUNK: usize = 500;

impl Ingest {
    /// Removes blobs that are old and that no event refers to; says how many.
    ///
    /// # Errors
    /// When the store or the blob store fails.
    pub async fn sweep(&self) -> Result<u64, super::Error> {
        let before = self.clock.now() - millis(GRACE);
        let keys = self.blobs.older_than(before, usize::MAX).await?;
        let mut removed = 0;
        for chunk in keys.chunks(CHUNK) {
            let used = self.store.blobs_in_use(chunk.to_vec()).await?;
            for key in chunk.iter().filter(|key| !used.contains(key)) {
                self.blobs.remove(key).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Sweeps for ever; meant for a task that ends with the server.
    pub async fn keep_sweeping(&self) {
        loop {
            self.clock
                .sleep_until(self.clock.now() + millis(EVERY))
                .await;
            match self.sweep().await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "swept blobs of events never committed"),
                Err(error) => tracing::warn!(%error, "blobs could not be swept; tried again later"),
            }
        }
    }
}
