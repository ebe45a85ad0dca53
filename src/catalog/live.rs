//! The catalog in force, swapped whole when documents change.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;

use super::{Catalog, Document, Id, Kind, Part};
use crate::document::{Fault, Finding, Position};
use crate::store::{self, Change, Store};

/// Why documents could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The documents together would not be valid; nothing was changed.
    #[error("{} findings", .0.len())]
    Refused(Vec<Finding>),
    /// There is no such document to delete.
    #[error("there is no {0}")]
    Missing(Id),
    /// The documents could not be stored.
    #[error("the documents could not be stored")]
    Store(#[from] store::Error),
}

/// One edit of the documents.
#[derive(Debug)]
pub enum Edit {
    Put(Document),
    Delete(Id),
}

/// The catalog that judges right now; readers take it without a lock.
pub struct Live {
    current: ArcSwap<Catalog>,
    store: Arc<dyn Store>,
    /// Lets one change through at a time.
    turn: Semaphore,
}

impl Live {
    /// Compiles what the store holds.
    ///
    /// # Errors
    /// When the documents cannot be read, or are no longer valid.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, ChangeError> {
        let mut documents = BTreeMap::new();
        let mut findings = Vec::new();
        for stored in store.documents().await? {
            match Document::stored(&stored) {
                Ok(document) => {
                    documents.insert(document.id.clone(), Arc::new(document));
                }
                Err(found) => findings.extend(found),
            }
        }
        if !findings.is_empty() {
            return Err(ChangeError::Refused(findings));
        }
        let catalog = Catalog::compile(documents, None).map_err(ChangeError::Refused)?;
        Ok(Self {
            current: ArcSwap::from_pointee(catalog),
            store,
            turn: Semaphore::new(1),
        })
    }

    /// The catalog in force.
    #[must_use]
    pub fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Applies all edits or none: compiles, stores, then swaps.
    ///
    /// # Errors
    /// Findings of the documents together; a document to delete that is not there; the store.
    pub async fn change(&self, edits: Vec<Edit>) -> Result<Arc<Catalog>, ChangeError> {
        self.change_with(|_| Ok(edits)).await
    }

    /// As [`Live::change`], with edits that depend on the catalog in force, such as the next
    /// version of a schema.
    ///
    /// # Errors
    /// As [`Live::change`], and whatever `plan` refuses.
    pub async fn change_with(
        &self,
        plan: impl FnOnce(&Catalog) -> Result<Vec<Edit>, ChangeError>,
    ) -> Result<Arc<Catalog>, ChangeError> {
        let _turn = self.turn.acquire().await;
        let before = self.current();
        let edits = plan(&before)?;
        if edits.is_empty() {
            return Ok(before);
        }
        let (documents, changes) = edit(before.documents().clone(), edits)?;
        if changes.is_empty() {
            return Ok(before);
        }
        let after = Catalog::compile(documents, Some(&before)).map_err(ChangeError::Refused)?;
        self.store.change_documents(changes).await?;
        let after = Arc::new(after);
        self.current.store(Arc::clone(&after));
        Ok(after)
    }
}

type Documents = BTreeMap<Id, Arc<Document>>;

fn edit(
    mut documents: Documents,
    edits: Vec<Edit>,
) -> Result<(Documents, Vec<Change>), ChangeError> {
    let mut changes = Vec::with_capacity(edits.len());
    let mut findings = Vec::new();
    for edit in edits {
        match edit {
            Edit::Put(document) => {
                let before = documents.get(&document.id);
                if before.is_some_and(|before| before.text == document.text) {
                    continue;
                }
                if let Some(finding) = before.and_then(|before| rewritten(before, &document)) {
                    findings.push(finding);
                    continue;
                }
                let created_at = before.map_or(document.created_at, |before| before.created_at);
                let mut document = document;
                document.created_at = created_at;
                changes.push(Change::Put(document.to_stored()));
                documents.insert(document.id.clone(), Arc::new(document));
            }
            Edit::Delete(id) => {
                if documents.remove(&id).is_none() {
                    return Err(ChangeError::Missing(id));
                }
                changes.push(Change::Delete {
                    kind: id.kind.as_str().to_owned(),
                    bus: id.bus,
                    name: id.name,
                    version: id.version,
                });
            }
        }
    }
    if findings.is_empty() {
        Ok((documents, changes))
    } else {
        Err(ChangeError::Refused(findings))
    }
}

/// A schema version never changes its content once it is there.
fn rewritten(before: &Document, after: &Document) -> Option<Finding> {
    let (Part::Schema(old), Part::Schema(new)) = (&before.part, &after.part) else {
        return None;
    };
    if old.content_hash() == new.content_hash() {
        return None;
    }
    let message = format!(
        "{} is there with other content, and versions never change",
        after.id
    );
    let fault = Fault::new(Position::START, message)
        .with_hint("register it as a new version: add a file with the next number");
    debug_assert_eq!(after.id.kind, Kind::Schema);
    Some(Finding::error("version-immutable", &after.file, fault))
}
