//! A webhook's settings read from its target's document.

use std::time::Duration;

use super::{Endpoint, Headers, Mode, TIMEOUT_MAX, Webhook};
use crate::document::Fields;
use crate::target::sign::{Key, Keys};

impl Webhook {
    /// Reads the fields of a webhook; `None` when one that it cannot be without is wrong.
    pub(in crate::target) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let url = read_url(fields);
        let timeout = fields.duration_within("timeout", Duration::from_millis(100)..=TIMEOUT_MAX);
        let headers = read_headers(fields);
        let keys = read_keys(fields);
        let mode = fields.choice_of(
            "mode",
            &[("binary", Mode::Binary), ("structured", Mode::Structured)],
        );
        let allow_private = fields.bool("allow_private").unwrap_or(false);
        let webhook = Self::new(url?);
        if let (false, Some(range)) = (allow_private, webhook.url.refused()) {
            fields.fault(
                "url",
                format!(
                    "{} leads to {range}, which this target may not reach",
                    webhook.url
                ),
                Some("say `allow_private: true` if it is meant to".into()),
            );
        }
        Some(Self {
            timeout: timeout.unwrap_or(webhook.timeout),
            headers: headers.unwrap_or_default(),
            keys: keys.unwrap_or_default(),
            mode: mode.unwrap_or_default(),
            allow_private,
            ..webhook
        })
    }
}

fn read_url(fields: &mut Fields<'_>) -> Option<Endpoint> {
    let text = fields.required_string("url")?;
    match Endpoint::parse(text) {
        Ok(url) => Some(url),
        Err(error) => {
            let hint = "an absolute URL such as https://example.com/hook";
            fields.fault(
                "url",
                format!("this is no webhook URL: {error}"),
                Some(hint.into()),
            );
            None
        }
    }
}

fn read_headers(fields: &mut Fields<'_>) -> Option<Headers> {
    let given = fields.string_map("headers")?;
    let pairs = given.iter().map(|(key, value)| (key.text.as_str(), *value));
    match Headers::new(pairs) {
        Ok(headers) => Some(headers),
        Err(error) => {
            fields.fault("headers", error.to_string(), None);
            None
        }
    }
}

fn read_keys(fields: &mut Fields<'_>) -> Option<Keys> {
    let texts = fields.strings("secrets")?;
    let keys = texts.into_iter().map(Key::parse).collect::<Result<_, _>>();
    match keys.and_then(Keys::new) {
        Ok(keys) => Some(keys),
        Err(error) => {
            let hint =
                "`whsec_` and 24 to 64 random bytes in base64; two while one replaces the other";
            fields.fault("secrets", error.to_string(), Some(hint.into()));
            None
        }
    }
}
