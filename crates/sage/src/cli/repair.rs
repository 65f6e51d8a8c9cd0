//! `sage repair`: put a damaged run together from what is left of it.

use std::process::ExitCode;

use sage_engine::open::Repair;
use sage_engine::repair::Repaired;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::{feature, print, print_json};
use crate::command_line::{sage, tell};
use crate::display::text::plural;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// Show what would be kept and lost; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        self.dry_run
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let repair = context.engine().repair(&feature, args.dry_run)?;
    if args.json {
        print_json(&as_json(&feature, &repair, args.dry_run))?;
        return Ok(ExitCode::SUCCESS);
    }
    if repair.is_nothing() {
        print(format_args!("{feature}: nothing to repair\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let would = |done: &'static str, planned: &'static str| if args.dry_run { planned } else { done };
    if let Some(repaired) = &repair.journal {
        print(format_args!("{feature}: {}\n", repaired.why));
        lines(repaired).iter().for_each(|line| print(format_args!("  {line}\n")));
    }
    if let Some(why) = &repair.checkpoint {
        let what = would("written anew", "would be written anew");
        print(format_args!("{feature}: checkpoint {what} ({why})\n"));
    }
    for step in &repair.lost {
        print(format_args!(
            "{feature}: the result of `{step}` is missing or damaged; resuming runs it again\n"
        ));
    }
    match args.dry_run {
        true if repair.journal.is_some() || repair.checkpoint.is_some() => {
            tell(sage("repair").arg(feature));
        }
        _ => tell(sage("resume").arg(feature)),
    }
    Ok(ExitCode::SUCCESS)
}

/// What of a damaged journal is kept and what is not, a line each.
pub fn lines(repaired: &Repaired) -> Vec<String> {
    let mut lines = Vec::new();
    let calls = match repaired.calls {
        0 => String::new(),
        calls => format!(", {}", plural(calls as u64, "finished call")),
    };
    lines.push(format!("kept: {}{calls}", plural(repaired.steps as u64, "finished step")));
    if !repaired.phases.is_empty() {
        lines.push(format!("kept from the checkpoint: finished phases: {}", repaired.phases.join(", ")));
    }
    if !repaired.again.is_empty() {
        lines.push(format!("without a readable end: {}", few(&repaired.again)));
    }
    if repaired.lost > 0 {
        lines.push(format!("lost: {}; they run again", plural(repaired.lost, "finished step")));
    }
    if let Some(aside) = &repaired.aside {
        lines.push(format!("the damaged journal is kept in `{}`", aside.display()));
    }
    lines
}

fn few(steps: &[String]) -> String {
    const SHOWN: usize = 10;
    let (few, more) = steps.split_at(steps.len().min(SHOWN));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{}{more}", few.join(", "))
}

fn as_json(feature: &str, repair: &Repair, dry_run: bool) -> Value {
    let journal = repair.journal.as_ref().map(|repaired| {
        json!({
            "why": repaired.why, "steps": repaired.steps, "phases": repaired.phases, "calls": repaired.calls,
            "again": repaired.again, "lost": repaired.lost, "keptIn": repaired.aside,
        })
    });
    json!({
        "type": "repair", "success": true, "feature": feature, "workflowId": repair.run, "dryRun": dry_run,
        "journal": journal, "checkpoint": repair.checkpoint, "lostResults": repair.lost,
    })
}
