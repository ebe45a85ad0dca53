//! Whether a new version of a schema may follow an old one.
