//! The blob store: data too large to travel through the queues.
//!
//! A blob is written and synced before the event that refers to it is committed, under a key made
//! of the event's identity and content, so that a repeated publish writes the same blob again.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::clock::Millis;

/// Why a blob could not be kept or fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is kept under this key.
    #[error("there is no blob {key}")]
    Missing { key: String },
    /// The backend refused or did not answer.
    #[error("the blob store did not answer")]
    Backend(#[source] object_store::Error),
    /// The folder cannot be made.
    #[error("the blob folder cannot be made")]
    Folder(#[source] std::io::Error),
}

/// A place for blobs; clones share it.
#[derive(Debug, Clone)]
pub struct Blobs(Arc<dyn ObjectStore>);

impl Blobs {
    /// Blobs as synced files below `folder`, which is made when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made or read.
    pub fn dir(folder: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(Error::Folder)?;
        let files = LocalFileSystem::new_with_prefix(folder)
            .map_err(Error::Backend)?
            .with_fsync(true);
        Ok(Self(Arc::new(files)))
    }

    /// Blobs in memory, for tests.
    #[must_use]
    pub fn memory() -> Self {
        Self(Arc::new(InMemory::new()))
    }

    /// Keeps `bytes` durably under `key`, in place of what was there.
    ///
    /// # Errors
    /// When the backend refuses, such as for want of space.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error> {
        self.0
            .put(&Key::from(key), bytes.into())
            .await
            .map_err(Error::Backend)?;
        Ok(())
    }

    /// The bytes under `key`.
    ///
    /// # Errors
    /// [`Error::Missing`] when there are none.
    pub async fn get(&self, key: &str) -> Result<Bytes, Error> {
        let found = self.0.get(&Key::from(key)).await;
        match found {
            Ok(found) => found.bytes().await.map_err(Error::Backend),
            Err(object_store::Error::NotFound { .. }) => Err(Error::Missing {
                key: key.to_owned(),
            }),
            Err(error) => Err(Error::Backend(error)),
        }
    }

    /// Removes the blob under `key`, if there is one.
    ///
    /// # Errors
    /// When the backend refuses.
    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        match self.0.delete(&Key::from(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Error::Backend(error)),
        }
    }

    /// Keys of blobs written before `before`, at most `limit`.
    ///
    /// # Errors
    /// When the backend cannot list.
    pub async fn older_than(&self, before: Millis, limit: usize) -> Result<Vec<String>, Error> {
        let mut listing = self.0.list(None);
        let mut keys = Vec::new();
        while let Some(blob) = listing.try_next().await.map_err(Error::Backend)? {
            if blob.last_modified.timestamp_millis() < before {
                keys.push(blob.location.to_string());
            }
            if keys.len() == limit {
                break;
            }
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_blob_survives_in_its_folder_until_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let blobs = Blobs::dir(folder.path()).expect("a blob store");
        blobs
            .put("ab/cd", Bytes::from_static(b"large"))
            .await
            .expect("kept");
        let again = Blobs::dir(folder.path()).expect("the same blob store");
        assert_eq!(again.get("ab/cd").await.expect("found"), "large");
        assert_eq!(
            again.older_than(Millis::MAX, 10).await.expect("listed"),
            ["ab/cd"]
        );
        again.remove("ab/cd").await.expect("removed");
        assert!(matches!(
            again.get("ab/cd").await,
            Err(Error::Missing { .. })
        ));
        again
            .remove("ab/cd")
            .await
            .expect("removing twice is no error");
    }
}
