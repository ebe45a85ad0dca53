//! Texts read as the values of settings, and the values shown again.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use url::Url;

use super::fault::Why;
use crate::document::{parse_duration, parse_size};

/// A text to be read as a setting's value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) text: &'a str,
    /// What the setting takes, for the fault.
    pub(super) allowed: &'static str,
}

impl Text<'_> {
    pub(super) fn fault(self) -> Why {
        Why::Value {
            value: self.text.to_owned(),
            allowed: self.allowed,
        }
    }

    /// An IP address and a port; `localhost` stands for 127.0.0.1.
    pub(super) fn address(self) -> Result<SocketAddr, Why> {
        let local = self.text.strip_prefix("localhost:");
        let local = local.and_then(|port| Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into()));
        local
            .or_else(|| self.text.parse().ok())
            .ok_or_else(|| self.fault())
    }

    pub(super) fn path(self) -> Result<PathBuf, Why> {
        if self.text.is_empty() {
            return Err(self.fault());
        }
        Ok(PathBuf::from(self.text))
    }

    pub(super) fn flag(self) -> Result<bool, Why> {
        match self.text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.fault()),
        }
    }

    /// A whole number in a range.
    pub(super) fn count(self, range: RangeInclusive<usize>) -> Result<usize, Why> {
        let count = self.text.parse().ok();
        count
            .filter(|count| range.contains(count))
            .ok_or_else(|| self.fault())
    }

    /// Bytes in a range.
    pub(super) fn size(self, range: RangeInclusive<u64>) -> Result<u64, Why> {
        let size = parse_size(self.text).map_err(|source| self.quantity(source))?;
        range
            .contains(&size)
            .then_some(size)
            .ok_or_else(|| self.fault())
    }

    /// A duration in a range.
    pub(super) fn duration(self, range: RangeInclusive<Duration>) -> Result<Duration, Why> {
        let duration = parse_duration(self.text).map_err(|source| self.quantity(source))?;
        range
            .contains(&duration)
            .then_some(duration)
            .ok_or_else(|| self.fault())
    }

    /// A share from 0 to 1.
    pub(super) fn share(self) -> Result<f64, Why> {
        let share = self.text.parse::<f64>().ok();
        share
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or_else(|| self.fault())
    }

    /// An `http` or `https` URL without credentials, query and fragment; no slash at its end.
    pub(super) fn url(self) -> Result<String, Why> {
        let url = Url::parse(self.text).map_err(|_| self.guarded())?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Why::Credentials {
                allowed: self.allowed,
            });
        }
        let is_plain = url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !is_plain {
            return Err(self.guarded());
        }
        Ok(url.as_str().trim_end_matches('/').to_owned())
    }

    /// Directives of a log filter.
    pub(super) fn log_filter(self) -> Result<String, Why> {
        let parsed = EnvFilter::builder().parse(self.text);
        parsed.map_err(|source| Why::LogFilter {
            value: self.text.to_owned(),
            allowed: self.allowed,
            source,
        })?;
        Ok(self.text.to_owned())
    }

    /// One line of text that is not empty.
    pub(super) fn line(self) -> Result<String, Why> {
        if self.text.trim().is_empty() || self.text.chars().any(char::is_control) {
            return Err(self.fault());
        }
        Ok(self.text.to_owned())
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(self, words: &[(&str, T)]) -> Result<T, Why> {
        let found = words.iter().find(|(word, _)| *word == self.text);
        found.map(|(_, value)| *value).ok_or_else(|| self.fault())
    }

    fn quantity(self, source: crate::document::QuantityError) -> Why {
        Why::Quantity {
            value: self.text.to_owned(),
            allowed: self.allowed,
            source,
        }
    }

    /// The fault of a text that is no URL of ours, without showing what may be a password.
    fn guarded(self) -> Why {
        if self.text.contains('@') {
            return Why::Credentials {
                allowed: self.allowed,
            };
        }
        self.fault()
    }
}
