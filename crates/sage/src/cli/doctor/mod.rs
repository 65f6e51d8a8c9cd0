//! `sage doctor`: is everything there that work needs? What is missing is told with what to type.
//!
//! Nothing is changed and nothing is created by looking. A warning says what will be missed; only what work
//! cannot do without makes the exit code 1.

mod check;
mod machine;
mod project;
mod servers;

pub use check::{Check, State};
pub use machine::writable;
pub use project::{disk, quick};

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Works where other commands give up: without a project that can be read.
pub fn execute(directory: Option<&Path>, args: Args) -> Result<ExitCode, Failure> {
    let mut checks = match Context::find(directory) {
        Ok(context) => project::checks(&context)?,
        Err(failure) => vec![project::unreadable(&failure)],
    };
    checks.extend(machine::checks(directory)?);
    let is_well = checks.iter().all(|check| check.state != State::Bad);
    if args.json {
        print_json(&json!({"type": "doctor", "ok": is_well, "checks": checks}))?;
    } else {
        show(&checks, is_well);
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(checks: &[Check], is_well: bool) {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in checks {
        print(format_args!("{:4}  {:width$}  {}\n", check.state.word(), check.name, check.says));
        for hint in &check.hints {
            print(format_args!("{:4}  {:width$}  > {hint}\n", "", ""));
        }
    }
    let warnings = checks.iter().filter(|check| check.state == State::Warn).count();
    match (is_well, warnings) {
        (false, _) => print("\nsomething that work needs is missing\n"),
        (true, 0) => print("\nall is well\n"),
        (true, _) => print("\nall that work needs is there\n"),
    }
}
