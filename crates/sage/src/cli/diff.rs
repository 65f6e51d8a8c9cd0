//! `sage diff`: the file changes of a run's steps.
//!
//! Two runs are named by their ids or as `feature@n`; comparing them is not supported yet.

use std::io::IsTerminal;
use std::process::ExitCode;

use sage_agents::changes::{self, Change};
use sage_core::run::{Output, Run, StepId};
use sage_core::template::{Isolation, Kind};
use sage_engine::open::Snapshot;
use sage_engine::project::Project;
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{drive, feature, print_json};
use crate::command_line::sage;
use crate::display::Style;
use crate::display::text::{Line, Tone, first_line};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// A step's path; without one, all steps with changes
    step: Option<String>,
    /// Only the names of the files and how many lines changed
    #[arg(long)]
    stat: bool,
    /// Print JSON, one object for each step
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    for name in std::iter::once(&args.feature).chain(&args.step) {
        refuse_run(name)?;
    }
    let snapshot = context.engine().read(&feature(&args.feature)?)?;
    let run = &snapshot.run;
    let wanted = match &args.step {
        Some(step) => vec![super::step(run, step)?],
        None => run.step_ids().filter(|&id| run.step(id).attempts > 0).collect(),
    };
    let mut shown = 0;
    for id in wanted {
        let change = match change(context, &snapshot, id) {
            Ok(Some(change)) => change,
            Ok(None) if args.step.is_none() => continue,
            Ok(None) => outputs(context, run, id)?,
            Err(why) if args.step.is_some() => return Err(failed(run, id, &why)),
            Err(why) => {
                eprintln!("note: no diff of {}: {}", run.step(id).path, first_line(&why));
                continue;
            }
        };
        shown += usize::from(show(run, id, &change, &args)?);
    }
    if shown == 0 && !args.json {
        match &args.step {
            Some(step) => eprintln!("{step} changed no file"),
            None => eprintln!("no step of {} changed a file that was recorded", run.feature),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Ids of runs and `feature@n` are kept for comparing two runs.
fn refuse_run(name: &str) -> Result<(), Failure> {
    let numbered =
        name.rsplit_once('@').is_some_and(|(_, n)| n.parse::<u32>().is_ok() && !name.contains('/'));
    if name.starts_with("run_") || numbered {
        let message = format!("`{name}` names a run; `sage diff` takes a feature, and compares no runs yet");
        return Err(Failure::usage(message).hint("sage diff <feature> [step]"));
    }
    Ok(())
}

fn change(context: &Context, snapshot: &Snapshot, id: StepId) -> Result<Option<Change>, String> {
    let (run, root) = (&snapshot.run, &context.project.root);
    let path = &run.step(id).path;
    if run.operation(id).isolation == Isolation::Worktree {
        let worktrees = context.project.dir.join("worktrees");
        return changes::of_lease(root, &worktrees, &run.id, path, context.key.as_ref());
    }
    let attempt = Project::scratch(&snapshot.dir, path, 1);
    attempt.parent().and_then(|step| changes::of_step(root, step)).transpose()
}

/// True if there was anything to show.
fn show(run: &Run, id: StepId, change: &Change, args: &Args) -> Result<bool, Failure> {
    let step = &run.step(id).path;
    let files = change.files().map_err(|why| failed(run, id, &why))?;
    if args.json {
        let patch = if args.stat { None } else { Some(patch(run, id, change)?) };
        print_json(&json!({
            "type": "diff", "step": step, "from": change.from, "to": change.to, "branch": change.branch,
            "live": change.live, "files": files, "alsoRunning": beside(run, id),
            "patch": patch.map(|patch| String::from_utf8_lossy(&patch).into_owned()),
        }))?;
        return Ok(true);
    }
    if files.is_empty() {
        return Ok(false);
    }
    eprintln!("{}", heading(run, id, change));
    let text = match args.stat {
        true => change.stat(drive::style().width).map_err(|why| failed(run, id, &why))?,
        false => patch(run, id, change)?,
    };
    match std::io::stdout().is_terminal() {
        true => crate::say::lines(painted(&text))?,
        false => crate::say::bytes(true, &text)?,
    }
    Ok(true)
}

fn patch(run: &Run, id: StepId, change: &Change) -> Result<Vec<u8>, Failure> {
    change.patch().map_err(|why| failed(run, id, &why))
}

/// As git colours it; what is in the files moves no cursor.
fn painted(patch: &[u8]) -> Vec<String> {
    let style = Style { width: usize::MAX, ..drive::style() };
    let tone = |line: &str| match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => Tone::Bold,
        [b'd', b'i', b'f', b'f', b' ', ..] | [b'i', b'n', b'd', b'e', b'x', b' ', ..] => Tone::Bold,
        [b'+', ..] => Tone::Good,
        [b'-', ..] => Tone::Bad,
        [b'@', b'@', ..] => Tone::Busy,
        _ => Tone::Plain,
    };
    let text = String::from_utf8_lossy(patch);
    text.lines().map(|line| Line::of(tone(line), &line.replace('\t', "    ")).render(style)).collect()
}

/// `work/write (branch sage/x/work.write-a1b2c3d4)`
fn heading(run: &Run, id: StepId, change: &Change) -> String {
    let mut facts: Vec<String> = change.branch.iter().map(|branch| format!("branch {branch}")).collect();
    if change.live {
        facts.push("as its files are now".into());
    }
    let others = beside(run, id);
    if change.branch.is_none() && !others.is_empty() {
        facts.push(format!("may include changes of {}, which ran at the same time", others.join(", ")));
    }
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
    format!("{}{facts}", run.step(id).path)
}

/// Steps that worked in the same checkout while this one did.
fn beside(run: &Run, id: StepId) -> Vec<String> {
    let span = |id: StepId| {
        let step = run.step(id);
        let ended = if step.state.settled() { step.ended_ms } else { u64::MAX };
        (step.attempts > 0).then_some((step.started_ms, ended))
    };
    let works = |&other: &StepId| {
        other != id
            && matches!(run.kind(other), Kind::Agent | Kind::Shell)
            && run.operation(other).isolation != Isolation::Worktree
    };
    let Some((began, ended)) = span(id) else { return Vec::new() };
    let overlaps = |other: &StepId| span(*other).is_some_and(|(start, end)| start < ended && began < end);
    let others = run.step_ids().filter(works).filter(overlaps);
    others.map(|other| run.step(other).path.to_string()).collect()
}

fn failed(run: &Run, id: StepId, why: &str) -> Failure {
    Failure::failed(format!("no diff of `{}`: {why}", run.step(id).path))
        .hint(sage("logs").arg(&run.feature).arg(run.step(id).path.to_string()))
}

/// Of a step whose changes nobody noted: the files that it declares, or why there is nothing.
fn outputs(context: &Context, run: &Run, id: StepId) -> Result<Change, Failure> {
    let step = run.step(id);
    let why = match (run.operation(id).isolation, run.kind(id)) {
        _ if step.attempts == 0 => "it has not run".to_string(),
        (Isolation::Worktree, _) => "it changed nothing, or its worktree was removed".to_string(),
        (_, Kind::Agent) => {
            "its agent changes no files, or the project is not in a git repository".to_string()
        }
        (_, kind) => format!("it is a {} step without a worktree, and only agents are recorded", kind.name()),
    };
    let message = format!("no diff of `{}`: {why}", step.path);
    let artifacts = match step.output.as_deref() {
        Some(Output::Leaf { artifacts, .. }) if !artifacts.is_empty() => artifacts,
        _ => {
            return Err(
                Failure::usage(message).hint(sage("logs").arg(&run.feature).arg(step.path.to_string()))
            );
        }
    };
    let change = changes::of_outputs(&context.project.root, artifacts).map_err(|why| {
        failed(run, id, &why).hint(sage("result").arg(&run.feature).arg(step.path.to_string()))
    })?;
    eprintln!("note: {message}; its output against the last commit:");
    Ok(change)
}
