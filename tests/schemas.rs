//! Schemas against real ones and against other programs' compatibility cases.
//!
//! The cases are read from the folder that `DAK_SHARED` names (default `../shared`); without it
//! the tests say that they were skipped, and fail where `CI` is set.

#[path = "schemas/compatibility.rs"]
mod compatibility;
#[path = "schemas/mutations.rs"]
mod mutations;
#[path = "schemas/realworld.rs"]
mod realworld;

use std::path::PathBuf;

/// The folder of shared cases, or `None` (said aloud) where there is none.
pub fn shared(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DAK_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let folder = root.join(part);
    if folder.exists() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{} must exist where CI is set",
        folder.display()
    );
    println!("skipped: {} does not exist", folder.display());
    None
}
