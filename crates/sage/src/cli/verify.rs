//! `sage verify`: every journal, blob and checkpoint, checked without changing anything.

use std::process::ExitCode;

use sage_core::event::{End, Event, Payload};
use sage_engine::checkpoint;
use sage_engine::digest::Digest;
use sage_engine::journal::{self, Head, JournalError};
use sage_engine::open::{Engine, Fold, OpenError};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::{feature, print, print_json};
use crate::command_line;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the last run of this feature
    feature: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Default)]
struct Findings {
    records: u64,
    tail_bytes: u64,
    problems: Vec<String>,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    let runs = match &args.feature {
        Some(name) => {
            let feature = feature(name)?;
            vec![engine.latest(&feature).ok_or(OpenError::Unknown(feature))?]
        }
        None => engine.vfs.list(&engine.project.runs()).unwrap_or_default(),
    };
    let mut damaged = 0;
    for run in &runs {
        let findings = check(&engine, run);
        damaged += usize::from(!findings.problems.is_empty());
        if args.json {
            print_json(
                &json!({"type": "run", "workflowId": run, "records": findings.records, "problems": findings.problems}),
            )?;
        } else if findings.problems.is_empty() {
            let tail = if findings.tail_bytes > 0 {
                " (an unfinished write at its end; resume trims it)"
            } else {
                ""
            };
            print(format_args!("{run}  ok, {} records{tail}\n", findings.records));
        } else {
            findings.problems.iter().for_each(|problem| print(format_args!("{run}  {problem}\n")));
        }
    }
    if args.json {
        print_json(&json!({"type": "summary", "runs": runs.len(), "damaged": damaged}))?;
    } else {
        print(format_args!(
            "{} run{}, {damaged} damaged\n",
            runs.len(),
            if runs.len() == 1 { "" } else { "s" }
        ));
        if damaged > 0 {
            command_line::tell(
                "sage resume FEATURE    # goes on from the last checkpoint, keeps the damaged run",
            );
        }
    }
    Ok(if damaged == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn check(engine: &Engine, id: &str) -> Findings {
    let mut findings = Findings::default();
    let mut fold = Fold::default();
    let mut blobs: Vec<Digest> = Vec::new();
    let dir = engine.project.run_dir(id);
    let checked = journal::check(engine.vfs.as_ref(), &dir, None, |record| {
        let event = Event::parse(record.kind, record.data).map_err(OpenError::from)?;
        blobs.extend(pointers(&event));
        fold.apply(&event, record.ts_ms).map_err(OpenError::from)
    });
    match checked {
        Ok(checked) => {
            findings.records = checked.head.seq;
            findings.tail_bytes = checked.tail_bytes;
        }
        Err(OpenError::Journal(JournalError::Missing { .. })) if never_started(engine, id) => {}
        Err(error) => findings.problems.push(error.to_string()),
    }
    let store = engine.blobs(id);
    let broken = blobs.iter().filter_map(|digest| store.get(digest).err());
    findings.problems.extend(broken.map(|error| error.to_string()));
    if let Ok(run) = fold.finish() {
        findings.problems.extend(check_image(engine, &run, findings.records));
    }
    findings
}

/// Killed between making the directory and the journal in it: nothing was acknowledged, so nothing is lost.
fn never_started(engine: &Engine, id: &str) -> bool {
    engine.vfs.list(&engine.project.run_dir(id)).is_ok_and(|names| names.is_empty())
}

fn pointers(event: &Event) -> Vec<Digest> {
    let outside = |payload: &Payload| payload.is_blob().then_some(payload.sha);
    let of_end = |end: &End| match end {
        End::Succeeded { result, full, .. } => {
            outside(result).into_iter().chain(full.as_ref().and_then(outside)).collect()
        }
        End::Skipped { result } => outside(result).into_iter().collect(),
        End::Failed { partial, .. } => partial.as_ref().and_then(outside).into_iter().collect(),
        End::Stopped => Vec::new(),
    };
    match event {
        Event::StepFinished(finished) => of_end(&finished.end),
        Event::StepCached(cached) => {
            outside(&cached.result).into_iter().chain(cached.full.as_ref().and_then(outside)).collect()
        }
        Event::StepExpanded(expanded) => match &expanded.into {
            sage_core::event::Expansion::Items { items, .. } => outside(items).into_iter().collect(),
            sage_core::event::Expansion::Scope { inputs, .. } => outside(inputs).into_iter().collect(),
            sage_core::event::Expansion::Code { input, .. } => outside(input).into_iter().collect(),
        },
        Event::StepCalled(called) => outside(&called.params).into_iter().collect(),
        Event::StepReturned(returned) => of_end(&returned.end),
        Event::RunImported(imported) => {
            let calls = imported.results.iter().flat_map(|kept| [Some(&kept.result), kept.full.as_ref()]);
            let phases = imported.phases.values().flat_map(|results| results.values());
            calls.flatten().chain(phases).filter_map(outside).collect()
        }
        _ => Vec::new(),
    }
}

/// The checkpoint must be the fold: same run, not ahead of the journal, and equal where they meet.
fn check_image(engine: &Engine, run: &sage_core::run::Run, records: u64) -> Option<String> {
    let path = engine.project.checkpoint(&run.feature);
    let loaded = match checkpoint::load(engine.vfs.as_ref(), &path) {
        Ok(loaded) => loaded,
        Err(error) => return Some(format!("checkpoint: {error}")),
    };
    if loaded.doc.get("runId").and_then(Value::as_str) != Some(&run.id) {
        return None;
    }
    let head: Head = serde_json::from_value(loaded.doc.get("journal")?.clone()).ok()?;
    if head.seq > records {
        return Some(format!("the journal has {records} records, but record {} was acknowledged", head.seq));
    }
    if head.seq == records && loaded.doc.get("status").and_then(Value::as_str) != Some(run.status.name()) {
        return Some("the checkpoint says another status than the journal".into());
    }
    loaded.problem.map(|problem| format!("checkpoint: {problem} (its backup is good)"))
}
