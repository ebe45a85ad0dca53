//! Documents, API keys and facts about the database.

use rusqlite::{OptionalExtension, params};
use sqlx::{Row, SqlitePool};

use super::writer::Transaction;
use crate::store::{Change, Key, StoredDocument};

/// All documents.
pub(super) async fn documents(reads: &SqlitePool) -> Result<Vec<StoredDocument>, sqlx::Error> {
    let rows =
        sqlx::query("SELECT kind, bus, name, version, text, created_at, updated_at FROM document")
            .fetch_all(reads)
            .await?;
    rows.iter()
        .map(|row| {
            Ok(StoredDocument {
                kind: row.try_get(0)?,
                bus: row.try_get(1)?,
                name: row.try_get(2)?,
                version: row.try_get(3)?,
                text: row.try_get(4)?,
                created_at: row.try_get(5)?,
                updated_at: row.try_get(6)?,
            })
        })
        .collect()
}

/// Applies all changes.
pub(super) fn change_documents(
    transaction: &mut Transaction<'_>,
    changes: &[Change],
) -> rusqlite::Result<()> {
    for change in changes {
        match change {
            Change::Put(document) => put(transaction, document)?,
            Change::Delete {
                kind,
                bus,
                name,
                version,
            } => {
                transaction.connection.execute(
                    "DELETE FROM document \
                     WHERE kind = ?1 AND bus = ?2 AND name = ?3 AND version = ?4",
                    params![kind, bus, name, version],
                )?;
            }
        }
    }
    Ok(())
}

fn put(transaction: &Transaction<'_>, document: &StoredDocument) -> rusqlite::Result<()> {
    transaction
        .connection
        .prepare_cached(
            "INSERT INTO document (kind, bus, name, version, text, created_at, updated_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (kind, bus, name, version) \
             DO UPDATE SET text = excluded.text, updated_at = excluded.updated_at",
        )?
        .execute(params![
            document.kind,
            document.bus,
            document.name,
            document.version,
            document.text,
            document.created_at,
            document.updated_at
        ])?;
    Ok(())
}

/// All API keys.
pub(super) async fn keys(reads: &SqlitePool) -> Result<Vec<Key>, sqlx::Error> {
    let rows =
        sqlx::query("SELECT name, digest, scopes, bus, created_at FROM api_key ORDER BY name")
            .fetch_all(reads)
            .await?;
    rows.iter()
        .map(|row| {
            let scopes: String = row.try_get(2)?;
            Ok(Key {
                name: row.try_get(0)?,
                digest: row.try_get(1)?,
                scopes: scopes.split(' ').map(str::to_owned).collect(),
                bus: row.try_get(3)?,
                created_at: row.try_get(4)?,
            })
        })
        .collect()
}

/// Adds a key; false when the name is taken.
pub(super) fn add_key(transaction: &mut Transaction<'_>, key: &Key) -> rusqlite::Result<bool> {
    let added = transaction.connection.execute(
        "INSERT INTO api_key (name, digest, scopes, bus, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        params![
            key.name,
            key.digest,
            key.scopes.join(" "),
            key.bus,
            key.created_at
        ],
    )?;
    Ok(added > 0)
}

/// Removes a key; false when there is none of that name.
pub(super) fn remove_key(transaction: &mut Transaction<'_>, name: &str) -> rusqlite::Result<bool> {
    let removed = transaction
        .connection
        .execute("DELETE FROM api_key WHERE name = ?1", [name])?;
    Ok(removed > 0)
}

/// The value under a name, `fresh` being kept when there is none yet.
pub(super) fn meta(
    transaction: &mut Transaction<'_>,
    name: &str,
    fresh: Vec<u8>,
) -> rusqlite::Result<Vec<u8>> {
    let kept = transaction
        .connection
        .query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(kept) = kept {
        return Ok(kept);
    }
    transaction.connection.execute(
        "INSERT INTO meta (name, value) VALUES (?1, ?2)",
        params![name, fresh],
    )?;
    Ok(fresh)
}
