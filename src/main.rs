//! The `dak` program: read the command line, run the command, answer with its exit code.

use std::process::ExitCode;

use clap::Parser as _;

/// Many small, short-lived buffers on several threads: mimalloc serves them faster than the
/// system's allocator and gives memory back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    dak::cli::run(dak::cli::Cli::parse())
}
