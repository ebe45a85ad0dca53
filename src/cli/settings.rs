//! The settings that are given as flags.

use std::path::{Path, PathBuf};

use super::Error;
use crate::config::{Config, FILE};

/// Flags of settings; every setting may also be given by `--set`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Flags {
    /// The file of settings [default: dak.toml, when it is there].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The folder of everything durable [default: ./dak-data].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The URL under which clients reach the server.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Allow an address that other machines reach although there is no API key.
    #[arg(long)]
    insecure: bool,
    /// Log more: -v for dak's own debug lines, -vv for everything.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Any setting, such as `--set max_event_bytes=1MiB`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

impl Flags {
    /// The configuration of these flags, the environment and the file.
    pub(super) fn load(&self) -> Result<Config, Error> {
        let variables = std::env::vars_os().map(|(name, value)| {
            let name = name.to_string_lossy().into_owned();
            (name, value.to_string_lossy().into_owned())
        });
        let usual = Some(Path::new(FILE)).filter(|path| path.is_file());
        let file = self.config.as_deref().or(usual);
        Config::load(&self.overrides(), variables, file).map_err(Error::Config)
    }

    /// The flags as settings, a flag of its own after `--set`.
    fn overrides(&self) -> Vec<(String, String)> {
        let log_filter = match self.verbose {
            0 => None,
            1 => Some("info,dak=debug".to_owned()),
            _ => Some("trace".to_owned()),
        };
        let flags = [
            ("listen", self.listen.clone()),
            ("data_dir", self.data_dir.clone()),
            ("public_url", self.public_url.clone()),
            ("insecure", self.insecure.then(|| "true".to_owned())),
            ("log.filter", log_filter),
        ];
        let flags = flags
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        self.set.iter().cloned().chain(flags).collect()
    }
}

/// Reads `KEY=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE"),
    }
}
