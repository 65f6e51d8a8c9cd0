//! `sage verify`: every journal, blob and checkpoint, checked without changing anything.

use std::collections::BTreeSet;
use std::process::ExitCode;

use sage_engine::project::Project;
use sage_engine::verify::{Problem, Verified};
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{feature, print, print_json};
use crate::command_line::{sage, tell};
use crate::display::text::{argument, plural};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the last run of this feature
    feature: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    let feature = args.feature.as_deref().map(feature).transpose()?;
    let all = engine.verify(feature.as_deref())?;
    let damaged: Vec<&Verified> = all.iter().filter(|verified| !verified.problems.is_empty()).collect();
    if args.json {
        for verified in &all {
            let problems: Vec<String> = verified.problems.iter().map(ToString::to_string).collect();
            print_json(&json!({
                "type": "run", "workflowId": verified.name, "feature": verified.feature,
                "records": verified.records, "problems": problems,
            }))?;
        }
        print_json(&json!({"type": "summary", "runs": all.len(), "damaged": damaged.len()}))?;
    } else {
        all.iter().for_each(show);
        print(format_args!("{}, {} damaged\n", plural(all.len() as u64, "run"), damaged.len()));
        hints(&engine.project, &damaged).into_iter().for_each(tell);
    }
    Ok(if damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn show(verified: &Verified) {
    let name = &verified.name;
    if verified.problems.is_empty() {
        let tail =
            if verified.tail_bytes > 0 { " (an unfinished write at its end; resume trims it)" } else { "" };
        print(format_args!("{name}  ok, {}{tail}\n", plural(verified.records, "record")));
    }
    verified.problems.iter().for_each(|problem| print(format_args!("{name}  {problem}\n")));
}

/// What to type, each command once.
fn hints(project: &Project, damaged: &[&Verified]) -> BTreeSet<String> {
    let mut hints = BTreeSet::new();
    for verified in damaged {
        let dir = || argument(&project.run_dir(&verified.name).display().to_string());
        if verified.is_worthless || (verified.feature.is_some() && !verified.latest) {
            hints.insert(format!("rm -r {}    # deletes this old run", dir()));
            continue;
        }
        let Some(feature) = verified.feature.as_deref() else {
            // It may hold the only copy of somebody's work.
            hints.insert(format!("ls -l {}    # the feature of this run is unknown", dir()));
            continue;
        };
        for problem in &verified.problems {
            hints.insert(match problem {
                Problem::Journal(_) | Problem::RunGone(_) => {
                    sage("repair").arg(feature).arg("--dry-run").comment("shows what can be kept").to_string()
                }
                Problem::Result { .. } => {
                    sage("resume").arg(feature).comment("runs the step again").to_string()
                }
                Problem::Checkpoint(_) if verified.records == 0 => {
                    sage("run").arg(feature).arg("--new").comment("keeps the damaged files").to_string()
                }
                Problem::Checkpoint(_) => {
                    sage("repair").arg(feature).comment("writes the checkpoint anew").to_string()
                }
                Problem::Unreadable(_) => sage("doctor").to_string(),
                Problem::Newer(_) => {
                    sage("--version").comment("a newer sage may have written it").to_string()
                }
            });
        }
    }
    hints
}
