//! `dak serve`: run the server until it is told to stop.

use super::{Error, Exit, settings};
use crate::server;

/// Flags of `dak serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: settings::Flags,
}

pub(super) fn run(args: &Args) -> Result<Exit, Error> {
    let config = args.settings.load()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    runtime
        .block_on(server::run(config))
        .map_err(Error::Server)?;
    Ok(Exit::Clean)
}
