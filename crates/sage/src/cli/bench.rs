//! `sage bench`: figures of this machine, as ratios in one run.

use std::process::ExitCode;

use super::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to measure
    #[arg(default_value = "engine", value_parser = ["engine"])]
    what: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(args: Args) -> Result<ExitCode, Failure> {
    let _ = args;
    Err(Failure::usage("not measured yet"))
}
