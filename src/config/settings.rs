//! The table of all settings: the one place where a setting is named, read, shown and explained.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::fault::Why;
use super::value::Text;
use super::{Config, PrivateAddresses, VARIABLE_PREFIX};
use crate::document::{duration_text, size_text};
use crate::event::json::BATCH_EVENTS_MAX;
use crate::target::webhook::TIMEOUT_MAX;
use crate::telemetry::LogFormat;

/// Sizes of requests and events, in bytes.
const SIZES: RangeInclusive<u64> = 1..=1024 * 1024 * 1024;
const SIZE: &str = "a size such as 64KiB or 16MiB, from 1 byte to 1GiB";
const URL: &str = "an http or https URL without user name, query and fragment";
const HEADER_SIZES: RangeInclusive<u64> = 8 * 1024..=1024 * 1024;
const LOG_FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];
const PRIVATE_ADDRESSES: [(&str, PrivateAddresses); 2] = [
    ("per-target", PrivateAddresses::PerTarget),
    ("never", PrivateAddresses::Never),
];
/// What stands for a setting that is not set.
const NONE: &str = "";

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name in `dak.toml` and on the command line.
    pub key: &'static str,
    pub group: Group,
    /// What it is for, one sentence.
    pub help: &'static str,
    /// What it takes.
    pub allowed: &'static str,
    set: fn(&mut Config, Text<'_>) -> Result<(), Why>,
    show: fn(&Config) -> String,
}

/// The headings under which settings are explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Server,
    Limits,
    Storage,
    Webhooks,
    Telemetry,
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Setting {}

impl Setting {
    /// The environment variable it is read from: `DAK_` and the key in capitals.
    #[must_use]
    pub fn variable(&self) -> String {
        let key = self.key.to_ascii_uppercase().replace('.', "_");
        format!("{VARIABLE_PREFIX}{key}")
    }

    /// Its default, as it may be written; empty when it is not set by default.
    #[must_use]
    pub fn default_text(&self) -> String {
        self.show(&Config::default())
    }

    /// The tables that settings stand in: what comes before the dot of a key.
    pub(super) fn sections() -> impl Iterator<Item = &'static str> {
        all()
            .iter()
            .filter_map(|setting| Some(setting.key.split_once('.')?.0))
    }

    pub(super) fn set(&self, config: &mut Config, text: &str) -> Result<(), Why> {
        let allowed = self.allowed;
        (self.set)(config, Text { text, allowed })
    }

    pub(super) fn show(&self, config: &Config) -> String {
        (self.show)(config)
    }
}

impl Group {
    /// All groups in the order of the reference.
    pub const ALL: [Self; 5] = [
        Self::Server,
        Self::Limits,
        Self::Storage,
        Self::Webhooks,
        Self::Telemetry,
    ];

    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::Limits => "Limits",
            Self::Storage => "Storage",
            Self::Webhooks => "Webhooks",
            Self::Telemetry => "Logs and traces",
        }
    }
}

/// All settings, in the order of the reference.
#[must_use]
pub fn all() -> &'static [Setting] {
    &SETTINGS
}

static SETTINGS: [Setting; 21] = [
    Setting {
        key: "listen",
        group: Group::Server,
        help: "Where to listen. Port 0 takes any free port.",
        allowed: "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080",
        set: |config, text| text.address().map(|value| config.server.listen = value),
        show: |config| config.server.listen.to_string(),
    },
    Setting {
        key: "data_dir",
        group: Group::Server,
        help: "The folder of everything durable: the database and offloaded data.",
        allowed: "a path",
        set: |config, text| text.path().map(|value| config.server.data_dir = value),
        show: |config| config.server.data_dir.display().to_string(),
    },
    Setting {
        key: "public_url",
        group: Group::Server,
        help: "The URL under which clients reach the server, for links to data and schemas. It follows `listen` when not set.",
        allowed: URL,
        set: |config, text| text.url().map(|value| config.server.public_url = value),
        show: |config| config.server.public_url.clone(),
    },
    Setting {
        key: "insecure",
        group: Group::Server,
        help: "Allow a `listen` address that other machines reach although there is no API key.",
        allowed: "true or false",
        set: |config, text| text.flag().map(|value| config.server.insecure = value),
        show: |config| config.server.insecure.to_string(),
    },
    Setting {
        key: "request_timeout",
        group: Group::Server,
        help: "The longest time to receive a request's head and body.",
        allowed: "a duration such as 30s or 500ms, from 10ms to 1h",
        set: |config, text| {
            let value = text.duration(Duration::from_millis(10)..=Duration::from_secs(3600))?;
            config.server.request_timeout = value;
            Ok(())
        },
        show: |config| duration_text(config.server.request_timeout),
    },
    Setting {
        key: "shutdown_timeout",
        group: Group::Server,
        help: "The longest time to finish requests and deliveries in flight when stopping.",
        allowed: "a duration such as 20s, from 0s to 1h",
        set: |config, text| {
            let value = text.duration(Duration::ZERO..=Duration::from_secs(3600))?;
            config.server.shutdown_timeout = value;
            Ok(())
        },
        show: |config| duration_text(config.server.shutdown_timeout),
    },
    Setting {
        key: "max_connections",
        group: Group::Limits,
        help: "The most connections served at once; more wait to be accepted.",
        allowed: "a whole number from 1 to 1000000",
        set: |config, text| {
            config.server.connections_max = text.count(1..=1_000_000)?;
            Ok(())
        },
        show: |config| config.server.connections_max.to_string(),
    },
    Setting {
        key: "max_header_bytes",
        group: Group::Limits,
        help: "The largest head of a request.",
        allowed: "a size such as 64KiB, from 8KiB to 1MiB",
        set: |config, text| {
            let value = text.size(HEADER_SIZES)?;
            config.api.header_bytes_max = usize::try_from(value).unwrap_or(usize::MAX);
            Ok(())
        },
        show: |config| size_text(config.api.header_bytes_max as u64),
    },
    Setting {
        key: "max_body_bytes",
        group: Group::Limits,
        help: "The largest body of a request. It follows `max_event_bytes`, with 1MiB of room, when not set.",
        allowed: SIZE,
        set: |config, text| {
            text.size(SIZES)
                .map(|value| config.api.body_bytes_max = value)
        },
        show: |config| size_text(config.api.body_bytes_max),
    },
    Setting {
        key: "max_event_bytes",
        group: Group::Limits,
        help: "The largest data of one event.",
        allowed: SIZE,
        set: |config, text| {
            text.size(SIZES)
                .map(|value| config.ingest.event_bytes_max = value)
        },
        show: |config| size_text(config.ingest.event_bytes_max),
    },
    Setting {
        key: "max_batch_events",
        group: Group::Limits,
        help: "The most events in one batch.",
        allowed: "a whole number from 1 to 10000",
        set: |config, text| {
            config.api.batch_events_max = text.count(1..=BATCH_EVENTS_MAX)?;
            Ok(())
        },
        show: |config| config.api.batch_events_max.to_string(),
    },
    Setting {
        key: "claim_check.threshold",
        group: Group::Storage,
        help: "Data larger than this is offloaded: it is kept as a file and the queues carry a reference.",
        allowed: "a size such as 64KiB, from 0 bytes to 1GiB",
        set: |config, text| {
            config.ingest.claim_check_threshold = text.size(0..=*SIZES.end())?;
            Ok(())
        },
        show: |config| size_text(config.ingest.claim_check_threshold),
    },
    Setting {
        key: "claim_check.dir",
        group: Group::Storage,
        help: "The folder of offloaded data. It is `blobs` inside `data_dir` when not set.",
        allowed: "a path",
        set: |config, text| text.path().map(|value| config.store.blobs_dir = value),
        show: |config| config.store.blobs_dir.display().to_string(),
    },
    Setting {
        key: "commit_batch_max",
        group: Group::Storage,
        help: "The most writes committed together; 1 commits each by itself.",
        allowed: "a whole number from 1 to 100000",
        set: |config, text| {
            config.store.commit_batch_max = text.count(1..=100_000)?;
            Ok(())
        },
        show: |config| config.store.commit_batch_max.to_string(),
    },
    Setting {
        key: "webhook.connect_timeout",
        group: Group::Webhooks,
        help: "The longest time to look up a webhook's host and connect to it.",
        allowed: "a duration such as 5s, from 1ms to 10m",
        set: |config, text| {
            let value = text.duration(Duration::from_millis(1)..=TIMEOUT_MAX)?;
            config.webhook.client.connect_timeout = value;
            Ok(())
        },
        show: |config| duration_text(config.webhook.client.connect_timeout),
    },
    Setting {
        key: "webhook.private_addresses",
        group: Group::Webhooks,
        help: "Whether webhooks may reach loopback, link-local and private addresses: where the target says so, or never.",
        allowed: "`per-target` or `never`",
        set: |config, text| {
            config.webhook.private_addresses = text.choice(&PRIVATE_ADDRESSES)?;
            Ok(())
        },
        show: |config| word(&PRIVATE_ADDRESSES, config.webhook.private_addresses),
    },
    Setting {
        key: "log.filter",
        group: Group::Telemetry,
        help: "Which log lines appear: a level, or levels by module.",
        allowed: "a level (error, warn, info, debug, trace) or directives such as `info,dak::delivery=debug`",
        set: |config, text| {
            text.log_filter()
                .map(|value| config.telemetry.log_filter = value)
        },
        show: |config| config.telemetry.log_filter.clone(),
    },
    Setting {
        key: "log.format",
        group: Group::Telemetry,
        help: "How log lines are written.",
        allowed: "`text` or `json`",
        set: |config, text| {
            config.telemetry.log_format = text.choice(&LOG_FORMATS)?;
            Ok(())
        },
        show: |config| word(&LOG_FORMATS, config.telemetry.log_format),
    },
    Setting {
        key: "otlp.endpoint",
        group: Group::Telemetry,
        help: "Where traces go, as OTLP over gRPC. Nothing is traced when not set.",
        allowed: URL,
        set: |config, text| {
            config.telemetry.otlp_endpoint = Some(text.url()?);
            Ok(())
        },
        show: |config| {
            let endpoint = config.telemetry.otlp_endpoint.as_deref();
            endpoint.unwrap_or(NONE).to_owned()
        },
    },
    Setting {
        key: "otlp.sample_ratio",
        group: Group::Telemetry,
        help: "The share of the traces that begin here to record. A trace that was begun elsewhere is recorded if its caller does so.",
        allowed: "a number from 0 to 1",
        set: |config, text| {
            text.share()
                .map(|value| config.telemetry.sample_ratio = value)
        },
        show: |config| config.telemetry.sample_ratio.to_string(),
    },
    Setting {
        key: "service_name",
        group: Group::Telemetry,
        help: "The name of this server in traces.",
        allowed: "a line of text",
        set: |config, text| {
            text.line()
                .map(|value| config.telemetry.service_name = value)
        },
        show: |config| config.telemetry.service_name.clone(),
    },
];

/// The word for a value.
fn word<T: PartialEq + Copy>(words: &[(&str, T)], value: T) -> String {
    let found = words.iter().find(|(_, known)| *known == value);
    found.map_or_else(String::new, |(word, _)| (*word).to_owned())
}
