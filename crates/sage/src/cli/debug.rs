//! `sage debug`: tools for tests and bug reports.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Play a scripted agent: a JSON list of turns
    FakeAgent {
        /// The script's file
        script: PathBuf,
        /// Which attempt to play; attempt n starts at turn n
        #[arg(long, default_value_t = 1)]
        attempt: u32,
    },
}

pub fn execute(args: Args) -> Result<ExitCode, Failure> {
    match args.what {
        What::FakeAgent { script, attempt } => Ok(sage_agents::fake_agent_main(&script, attempt)),
    }
}
