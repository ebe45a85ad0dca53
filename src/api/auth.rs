//! API keys: who may publish, consume and administer.
//!
//! A key is `dak_<name>_<secret>`; the store keeps only its SHA-256. While there is no key at all,
//! everything is open, which the server allows on loopback only.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::problem::{Kind, Problem};
use crate::catalog::{self, Catalog};
use crate::clock::Millis;
use crate::store::{self, Key, Store};

const PREFIX: &str = "dak_";
const SECRET_BYTES: usize = 32;

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Publish,
    Consume,
    /// Everything.
    Admin,
}

impl Scope {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Consume => "consume",
            Self::Admin => "admin",
        }
    }

    /// The scope of that word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Publish, Self::Consume, Self::Admin]
            .into_iter()
            .find(|scope| scope.as_str() == word)
    }
}

/// A new key: its text, shown once, and what is stored of it.
#[must_use]
pub fn mint(name: &str, scopes: &[Scope], bus: Option<String>, now: Millis) -> (String, Key) {
    let secret: [u8; SECRET_BYTES] = rand::random();
    let text = format!("{PREFIX}{name}_{}", URL_SAFE_NO_PAD.encode(secret));
    let key = Key {
        name: name.to_owned(),
        digest: digest(&text),
        scopes: scopes
            .iter()
            .map(|scope| scope.as_str().to_owned())
            .collect(),
        bus,
        created_at: now,
    };
    (text, key)
}

fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).to_vec()
}

/// The keys in force.
pub struct Keys {
    store: Arc<dyn Store>,
    current: ArcSwap<HashMap<String, Key>>,
}

impl Keys {
    /// Reads the keys there are.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, store::Error> {
        let keys = Self {
            store,
            current: ArcSwap::default(),
        };
        keys.reload().await?;
        Ok(keys)
    }

    /// Whether there is any key.
    #[must_use]
    pub fn any(&self) -> bool {
        !self.current.load().is_empty()
    }

    /// Adds a key; false when the name is taken.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn add(&self, key: Key) -> Result<bool, store::Error> {
        let added = self.store.add_key(key).await?;
        self.reload().await?;
        Ok(added)
    }

    /// Removes a key; false when there is none of that name.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn remove(&self, name: &str) -> Result<bool, store::Error> {
        let removed = self.store.remove_key(name.to_owned()).await?;
        self.reload().await?;
        Ok(removed)
    }

    /// Whether no key but this one administers every bus.
    #[must_use]
    pub fn is_last_admin(&self, name: &str) -> bool {
        let keys = self.current.load();
        let administers = |key: &Key| {
            key.bus.is_none() && key.scopes.iter().any(|held| held == Scope::Admin.as_str())
        };
        keys.get(name).is_some_and(administers)
            && keys.values().filter(|key| administers(key)).count() == 1
    }

    /// All keys, without their secrets.
    #[must_use]
    pub fn list(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.current.load().values().cloned().collect();
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        keys
    }

    async fn reload(&self) -> Result<(), store::Error> {
        let keys = self.store.keys().await?;
        let by_name = keys.into_iter().map(|key| (key.name.clone(), key));
        self.current.store(Arc::new(by_name.collect()));
        Ok(())
    }

    /// Checks that a request may do what `scope` stands for, on `bus` when that matters.
    ///
    /// # Errors
    /// The 401 or 403 to answer.
    pub fn check(
        &self,
        headers: &HeaderMap,
        scope: Scope,
        bus: Option<&str>,
    ) -> Result<(), Problem> {
        match (self.only_bus(headers, scope)?, bus) {
            (Some(only), Some(bus)) if only != bus => Err(only_for(&only)),
            (Some(only), None) if scope == Scope::Admin => Err(only_for(&only)),
            _ => Ok(()),
        }
    }

    /// Checks that a request may take from a target's queue. A key for one bus may where every
    /// rule that leads to the target is on that bus.
    ///
    /// # Errors
    /// The 401 or 403 to answer.
    pub fn check_queue(
        &self,
        headers: &HeaderMap,
        target: &str,
        catalog: &Catalog,
    ) -> Result<(), Problem> {
        let Some(only) = self.only_bus(headers, Scope::Consume)? else {
            return Ok(());
        };
        let mut leading = catalog
            .of_kind(catalog::Kind::Rule)
            .filter(|rule| rule.leads_to(target))
            .peekable();
        if leading.peek().is_some() && leading.all(|rule| rule.id.bus == only) {
            return Ok(());
        }
        Err(only_for(&only))
    }

    /// The only bus that the request's key is for, if it is for one; an error when it may not use
    /// the scope at all.
    fn only_bus(&self, headers: &HeaderMap, scope: Scope) -> Result<Option<String>, Problem> {
        let keys = self.current.load();
        if keys.is_empty() {
            return Ok(None);
        }
        let key = bearer(headers).and_then(|text| find(&keys, text));
        let Some(key) = key else {
            let detail = "send `Authorization: Bearer <key>`; `dak keys create` makes one";
            return Err(Problem::new(Kind::Unauthorized, detail));
        };
        let is_admin = key.scopes.iter().any(|held| held == Scope::Admin.as_str());
        let has_scope = is_admin || key.scopes.iter().any(|held| held == scope.as_str());
        if !has_scope {
            let detail = format!("key `{}` lacks the scope `{}`", key.name, scope.as_str());
            return Err(Problem::new(Kind::Forbidden, detail).with("scope", scope.as_str()));
        }
        Ok(key.bus.clone())
    }
}

fn only_for(bus: &str) -> Problem {
    Problem::new(Kind::Forbidden, format!("the key is for bus `{bus}` only")).with("bus", bus)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, text) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

fn find<'a>(keys: &'a HashMap<String, Key>, text: &str) -> Option<&'a Key> {
    // The secret is base64url, which may hold underscores itself; its length is fixed.
    let rest = text.strip_prefix(PREFIX)?;
    let secret_at = rest.len().checked_sub(1 + (SECRET_BYTES * 8).div_ceil(6))?;
    let (name, _) = rest.split_at_checked(secret_at)?;
    let key = keys.get(name)?;
    bool::from(key.digest.ct_eq(&digest(text))).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_key_is_found_by_its_text_and_by_nothing_else() {
        let (text, key) = mint("shop_1", &[Scope::Publish], None, 0);
        let keys = HashMap::from([("shop_1".to_owned(), key)]);
        assert!(find(&keys, &text).is_some());
        assert!(find(&keys, &format!("{text}x")).is_none());
        assert!(find(&keys, &text[..text.len() - 1]).is_none());
        assert!(find(&keys, "dak_shop_1_").is_none());
        assert!(find(&keys, "").is_none());
    }
}
