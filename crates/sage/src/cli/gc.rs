//! `sage gc`: removes what is over and old, and says how much that was.

mod belongings;
mod view;

use std::process::ExitCode;

use sage_engine::gc::{self, Gc, GcError, Policy, Report};

use super::config::{self, GcConfig};
use super::context::Context;
use super::failure::{Failure, Kind};
use super::warnings;
use crate::display::text::plural;
use crate::trust::person::refuse_steps;

/// How often the automatic clean-up looks.
const EVERY_MS: u64 = 24 * 3_600_000;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is over for longer than this, e.g. 30d; without --keep, none of the newest runs is spared
    #[arg(long, value_name = "TIME")]
    older_than: Option<String>,
    /// So many of the newest runs stay, however old they are
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Remove the oldest runs until all together are not larger, e.g. 500MB; 0 does not look
    #[arg(long, value_name = "SIZE")]
    max_size: Option<String>,
    /// Show what would go, remove nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Also worktrees with uncommitted or unmerged work, and runs that cannot be read
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        self.dry_run
    }

    fn policy(&self, config: &GcConfig) -> Result<Policy, Failure> {
        let older_than_ms = self.older_than.as_deref().map(age).transpose()?;
        let max_bytes = match &self.max_size {
            Some(text) => Some(config::bytes(text).map_err(Failure::usage)?).filter(|bytes| *bytes > 0),
            None => config.max_bytes,
        };
        // Who says how old means it.
        let keep = if older_than_ms.is_some() { 0 } else { config.keep };
        Ok(Policy {
            older_than_ms: older_than_ms.unwrap_or(config.older_than_ms),
            keep: self.keep.unwrap_or(keep),
            max_bytes,
            force: self.force,
            dry_run: self.dry_run,
            thorough: true,
        })
    }
}

/// A number without a unit would be milliseconds, and everything would go.
fn age(text: &str) -> Result<u64, Failure> {
    if text.trim().parse::<f64>().is_ok() {
        let number = text.trim();
        return Err(Failure::usage(format!("`{text}` has no unit")).hint(format!("--older-than {number}d")));
    }
    config::duration(text).map_err(|failure| failure.hint("--older-than 30d"))
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let policy = args.policy(&context.config.gc)?;
    if !args.dry_run {
        refuse_steps("clean up", "sage gc")?;
    }
    warnings::tell(warnings::of_ignored(&context.config).iter().filter(|_| !args.json));
    let report = collect(context, policy).map_err(|error| match error {
        GcError::Busy => Failure::new(Kind::Conflict, error.to_string()).hint("try again when it is done"),
        error => Failure::failed(error.to_string()),
    })?;
    view::show(&report, &policy, args.json)?;
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn collect(context: &Context, policy: Policy) -> Result<Report, GcError> {
    let engine = context.engine();
    if !policy.dry_run {
        // A ticket is told how its run ended before nobody can say it any more.
        let _ = engine.tickets().settle(&engine);
    }
    let mut gc = Gc::begin(&engine, policy)?;
    gc.sweep();
    belongings::worktrees(context, &mut gc);
    belongings::sessions(context, &mut gc);
    Ok(gc.report)
}

/// After a run that succeeded, at most once a day: what is older than the project wants to keep goes.
pub fn after_run(context: &Context, code: ExitCode) {
    let config = &context.config.gc;
    if !config.auto || code != ExitCode::SUCCESS || !gc::is_due(&context.engine(), EVERY_MS) {
        return;
    }
    let policy = Policy {
        older_than_ms: config.older_than_ms,
        keep: config.keep,
        max_bytes: None,
        force: false,
        dry_run: false,
        thorough: false,
    };
    // Whoever cleans up now does it for us; what fails is told by `sage gc`.
    let Ok(report) = collect(context, policy) else { return };
    if !report.removed.is_empty() {
        let what = plural(report.removed.len() as u64, "item");
        let size = view::size_text(report.bytes());
        eprintln!(
            "note: cleaned up {what} from long ago, {size} ([gc] auto = false in sage.toml keeps them)"
        );
    }
}
