//! Settings: flags, `DAK_*` variables, `dak.toml` and defaults become one checked [`Config`].
//!
//! Every setting is one line of a table, which reads it, shows it and is the reference in
//! `docs/configuration.md`. All faults are told together. What the values are for is left to their
//! owners.

mod fault;
mod file;
mod settings;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::document::closest;
use crate::target::webhook;
use crate::{ingest, telemetry};

pub use fault::{Fault, Origin, Why};
pub use settings::{Group, Setting, all as settings};

/// The file that is read when none is named and it is there.
pub const FILE: &str = "dak.toml";
/// The prefix of the variables that settings come from.
pub const VARIABLE_PREFIX: &str = "DAK_";

/// Variables with the prefix that are none of the server's settings: those of the client commands
/// and of the project's own tests.
const OTHER_VARIABLES: [&str; 3] = ["DAK_URL", "DAK_KEY", "DAK_SHARED"];
/// The database file inside the data folder.
const DATABASE_FILE: &str = "dak.db";
/// The folder of offloaded data inside the data folder.
const BLOBS_DIR: &str = "blobs";
/// What a body may hold beside the data of one event: its attributes and the JSON around it.
const BODY_ROOM_BYTES: u64 = 1024 * 1024;

/// All settings, checked, by the module that uses them.
#[derive(Debug, Clone)]
pub struct Config {
    pub server: Server,
    pub api: Api,
    /// Its `public_urls` hold [`Server::public_url`].
    pub ingest: ingest::Options,
    pub store: Store,
    pub webhook: Webhook,
    pub telemetry: telemetry::Options,
    /// Where each setting that is not at its default came from.
    origins: BTreeMap<&'static str, Origin>,
}

/// Settings of the process and its listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The folder of everything durable.
    pub data_dir: PathBuf,
    /// The address under which clients reach the server, without a slash at the end.
    pub public_url: String,
    /// Whether a non-loopback address may be listened on without any API key.
    pub insecure: bool,
    /// Most connections served at once.
    pub connections_max: usize,
    /// Longest time to receive a request's head and body.
    pub request_timeout: Duration,
    /// Longest time to finish what is in flight when stopping.
    pub shutdown_timeout: Duration,
}

/// Settings of the HTTP API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    /// Largest request body, in bytes.
    pub body_bytes_max: u64,
    /// Most events in one batch.
    pub batch_events_max: usize,
    /// Largest request head, in bytes.
    pub header_bytes_max: usize,
}

/// Settings of what is kept on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The folder of data that is offloaded.
    pub blobs_dir: PathBuf,
    /// Most writes committed together.
    pub commit_batch_max: usize,
}

/// Settings of all webhook targets.
#[derive(Debug, Clone)]
pub struct Webhook {
    pub client: webhook::Options,
    pub private_addresses: PrivateAddresses,
}

/// Whether webhooks may reach loopback, link-local and private addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrivateAddresses {
    /// Where the target's own document says so.
    #[default]
    PerTarget,
    /// Never, whatever a document says.
    Never,
}

/// One setting as it is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    pub setting: &'static Setting,
    pub value: String,
    pub origin: Origin,
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Self {
            server: Server {
                listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
                data_dir: PathBuf::from("./dak-data"),
                public_url: String::new(),
                insecure: false,
                connections_max: 10_000,
                request_timeout: Duration::from_secs(30),
                shutdown_timeout: Duration::from_secs(20),
            },
            api: Api {
                body_bytes_max: 0,
                batch_events_max: 1_000,
                header_bytes_max: 64 * 1024,
            },
            ingest: ingest::Options::default(),
            store: Store {
                blobs_dir: PathBuf::new(),
                commit_batch_max: 2_000,
            },
            webhook: Webhook {
                client: webhook::Options::default(),
                private_addresses: PrivateAddresses::default(),
            },
            telemetry: telemetry::Options::default(),
            origins: BTreeMap::new(),
        };
        config.derive();
        config
    }
}

impl Config {
    /// Reads settings: `flags` (key and value) over `environment` over `file` over the defaults.
    ///
    /// An empty variable counts as none. A value that another one overrides is checked all the
    /// same.
    ///
    /// # Errors
    /// Every fault in any of the three.
    pub fn load(
        flags: &[(String, String)],
        environment: impl IntoIterator<Item = (String, String)>,
        file: Option<&Path>,
    ) -> Result<Self, Vec<Fault>> {
        let mut reading = Reading::default();
        if let Some(path) = file {
            reading.file(path);
        }
        let mut variables: Vec<(String, String)> = environment.into_iter().collect();
        variables.sort();
        for (name, value) in &variables {
            reading.variable(name, value);
        }
        for (key, value) in flags {
            reading.take(key, value, Origin::Flag);
        }
        reading.finish()
    }

    /// All settings as they are in force, in the order of the reference.
    #[must_use]
    pub fn effective(&self) -> Vec<Effective> {
        let effective = |setting: &'static Setting| Effective {
            setting,
            value: setting.show(self),
            origin: self.origin(setting.key),
        };
        settings().iter().map(effective).collect()
    }

    /// Where a setting came from.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or_default()
    }

    /// The database file.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        database(&self.server.data_dir)
    }

    /// Notes the port that was taken when `listen` left it open.
    pub fn listening_on(&mut self, address: SocketAddr) {
        self.server.listen = address;
        self.derive();
    }

    /// Fills in the settings whose default follows from another setting.
    fn derive(&mut self) {
        if !self.origins.contains_key("public_url") {
            self.server.public_url = url_of(self.server.listen);
        }
        self.ingest.public_urls = vec![self.server.public_url.clone()];
        if !self.origins.contains_key("claim_check.dir") {
            self.store.blobs_dir = self.server.data_dir.join(BLOBS_DIR);
        }
        if !self.origins.contains_key("max_body_bytes") {
            self.api.body_bytes_max = self.ingest.event_bytes_max.saturating_add(BODY_ROOM_BYTES);
        }
    }
}

/// The database file in a data folder.
#[must_use]
pub fn database(data_dir: &Path) -> PathBuf {
    data_dir.join(DATABASE_FILE)
}

/// The URL under which this machine reaches a listener; one on all addresses is reached on the
/// loopback one.
fn url_of(listen: SocketAddr) -> String {
    let reached = match listen.ip() {
        ip if !ip.is_unspecified() => listen,
        IpAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), listen.port()),
        IpAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), listen.port()),
    };
    format!("http://{reached}")
}

/// A configuration in the making.
#[derive(Default)]
struct Reading {
    config: Config,
    faults: Vec<Fault>,
}

impl Reading {
    fn file(&mut self, path: &Path) {
        let contents = file::read(path);
        self.faults.extend(contents.faults);
        for entry in contents.entries {
            self.take(&entry.key, &entry.value, entry.origin);
        }
    }

    fn variable(&mut self, name: &str, value: &str) {
        let is_other = OTHER_VARIABLES.contains(&name) || is_service_link(name);
        if !name.starts_with(VARIABLE_PREFIX) || is_other || value.is_empty() {
            return;
        }
        let origin = Origin::Variable(name.to_owned());
        match settings().iter().find(|setting| setting.variable() == name) {
            Some(setting) => self.set(setting, value, origin),
            None => {
                let names: Vec<String> = settings().iter().map(Setting::variable).collect();
                let meant = closest(name, names.iter().map(String::as_str)).map(str::to_owned);
                let why = Why::UnknownVariable { meant };
                self.faults.push(Fault::new(name, origin, why));
            }
        }
    }

    fn take(&mut self, key: &str, value: &str, origin: Origin) {
        match settings().iter().find(|setting| setting.key == key) {
            Some(setting) => self.set(setting, value, origin),
            None => self.faults.push(Fault::unknown(key, origin)),
        }
    }

    fn set(&mut self, setting: &'static Setting, value: &str, origin: Origin) {
        match setting.set(&mut self.config, value) {
            Ok(()) => {
                self.config.origins.insert(setting.key, origin);
            }
            Err(why) => self.faults.push(Fault::new(setting.key, origin, why)),
        }
    }

    fn finish(mut self) -> Result<Config, Vec<Fault>> {
        self.config.derive();
        self.check_body();
        if self.faults.is_empty() {
            Ok(self.config)
        } else {
            Err(self.faults)
        }
    }

    /// An event as large as may be must fit into a body.
    fn check_body(&mut self) {
        let (body, event) = ("max_body_bytes", "max_event_bytes");
        let is_faulty = |fault: &Fault| [body, event].contains(&fault.key.as_str());
        let event_bytes_max = self.config.ingest.event_bytes_max;
        if self.config.api.body_bytes_max >= event_bytes_max || self.faults.iter().any(is_faulty) {
            return;
        }
        let why = Why::BodyBelowEvent { event_bytes_max };
        self.faults
            .push(Fault::new(body, self.config.origin(body), why));
    }
}

/// Whether an orchestrator made the variable for a service that is called `dak`, as Kubernetes and
/// older Docker versions do (`DAK_SERVICE_HOST`, `DAK_PORT_8080_TCP_ADDR`).
fn is_service_link(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(VARIABLE_PREFIX) else {
        return false;
    };
    let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    matches!(rest, "SERVICE_HOST" | "PORT" | "NAME")
        || rest.starts_with("SERVICE_PORT")
        || rest.strip_prefix("PORT_").is_some_and(digits)
}
