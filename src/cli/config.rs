//! `dak config`: the settings in force, and where each came from.

use serde_json::{Value, json};

use super::output::{self, Format, Table};
use super::{Error, Exit, settings};
use crate::config::{Config, Effective};

/// Flags of `dak config`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: settings::Flags,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args) -> Result<Exit, Error> {
    let config = args.settings.load()?;
    let text = match args.format {
        Format::Table => table(&config),
        Format::Json => document(&config),
    };
    output::print(&text)?;
    Ok(Exit::Clean)
}

fn table(config: &Config) -> String {
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for Effective {
        setting,
        value,
        origin,
    } in config.effective()
    {
        let value = if value.is_empty() {
            "-".to_owned()
        } else {
            value
        };
        table.add(vec![setting.key.to_owned(), value, origin.to_string()]);
    }
    table.to_text()
}

fn document(config: &Config) -> String {
    let settings: Vec<Value> = config
        .effective()
        .into_iter()
        .map(|one| {
            json!({
                "key": one.setting.key,
                "value": Some(one.value).filter(|value| !value.is_empty()),
                "from": one.origin.to_string(),
                "default": Some(one.setting.default_text()).filter(|value| !value.is_empty()),
                "variable": one.setting.variable(),
                "help": one.setting.help,
                "allowed": one.setting.allowed,
            })
        })
        .collect();
    format!("{}\n", json!({ "settings": settings }))
}
