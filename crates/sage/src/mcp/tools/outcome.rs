//! What `execute` and `resume` answer with: the summary of the run, as far as it is.
//!
//! `success` is absent while the run goes on. A run that failed because of its own steps is an answer with
//! `success: false`. It is an error with a code only where the cause lies outside of it: time, a provider, the disk.

use sage_core::event::PauseReason;
use sage_core::policy::FailureClass;
use sage_core::run::{Run, Status};
use sage_core::template::Kind;
use sage_core::verdict::Verdict;
use sage_core::wire::{self, Progress, Summary, failed_steps, outputs};
use sage_engine::clock::Clock;
use sage_engine::open::Snapshot;
use sage_engine::tokens;
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::error::{Code, ToolError, call_text, cut};
use super::fit::fit;
use crate::cli::context::Context;
use crate::cli::notes::Note;
use crate::cli::{drive, questions};

/// Of the text, and of a text that has more tokens than usual.
const TEXT_CHARS: usize = 1_200;
const DENSE_CHARS: usize = 300;
const TEXT_TOKENS: u64 = 500;
/// Of an error's code and hint, and of a feature's name in it.
const ERROR_TOKENS: u64 = 300;
/// Errors and notices that the text tells; the structured content has all of them.
const TOLD: usize = 5;

pub fn answer(
    context: &Context,
    snapshot: &Snapshot,
    notes: Vec<Note>,
    resumed_from: Option<Value>,
) -> Result<Answer, ToolError> {
    let run = &snapshot.run;
    let blobs = context.engine().blobs(&run.id);
    let clock_ms = snapshot.clock_ms(Clock::System.now_ms());
    let summary = Summary::of(run, snapshot.is_alive(), clock_ms, &|output| drive::value(output, &blobs));
    let mut value = serde_json::to_value(summary).map_err(crate::cli::failure::Failure::from)?;
    let open = questions::of_run(run);
    if run.status.open() && !open.is_empty() {
        value["questions"] = json!(open);
    }
    let of_run = wire::notices(run).into_iter().map(|it| format!("note: {it}"));
    let notices: Vec<String> = notes.iter().map(Note::line).chain(of_run).collect();
    if !notices.is_empty() {
        value["notices"] = json!(notices);
    }
    if let Some(from) = resumed_from {
        value["resumedFrom"] = from;
    }
    match outside(run) {
        Some(error) => {
            // The structured content has the message, too.
            let told = tokens::count(error.message()) * 2 + ERROR_TOKENS;
            fit(&mut value, &run.feature, told);
            Err(error.with(value))
        }
        None => {
            let text = dense(text(snapshot, &notices));
            fit(&mut value, &run.feature, tokens::count(&text));
            Ok(Answer::new(value, text))
        }
    }
}

fn dense(text: String) -> String {
    if tokens::count(&text) > TEXT_TOKENS { cut(&text, DENSE_CHARS) } else { text }
}

/// What a client that shows only text needs to know.
fn text(snapshot: &Snapshot, notices: &[String]) -> String {
    let (run, driven) = (&snapshot.run, snapshot.is_driven());
    let feature = &run.feature;
    let head = format!("{feature}: {}, {}", wire::word(run, driven), Progress::of(run).text());
    let next = match run.status {
        Status::Running if !driven => {
            format!("no process owns this run: {}", call_text("sage_workflow_resume", feature))
        }
        Status::Running => {
            format!("it goes on; {} tells when it ends", call_text("sage_workflow_status", feature))
        }
        Status::Paused { until: Some(_), .. } => "it goes on by itself".into(),
        Status::Paused { .. } if questions::of_run(run).is_empty() => {
            call_text("sage_workflow_resume", feature)
        }
        Status::Paused { .. } => "it asks something: sage_inbox {\"action\":\"list\"}".into(),
        Status::Finished(Verdict::Failed) | Status::Cancelled { resumable: true } => {
            format!("{} goes on with it", call_text("sage_workflow_resume", feature))
        }
        _ => format!("{} has the results", call_text("sage_result", feature)),
    };
    let below = |lines: &[String]| lines.iter().take(TOLD).map(|it| format!("\n{it}")).collect::<String>();
    let wrong: Vec<String> = wire::errors(run).into_iter().chain(wire::reasons(run)).collect();
    let files = outputs(run);
    let wrote = match files.as_slice() {
        [] => String::new(),
        files if files.len() <= TOLD => format!("\nwrote {}", files.join(", ")),
        files => format!("\nwrote {} and {} more", files[..TOLD].join(", "), files.len() - TOLD),
    };
    cut(&format!("{head}; {next}{wrote}{}{}", below(notices), below(&wrong)), TEXT_CHARS)
}

/// A cause that lies outside of the workflow.
fn outside(run: &Run) -> Option<ToolError> {
    let resume = || call_text("sage_workflow_resume", &run.feature);
    match run.status {
        Status::Paused { reason: PauseReason::Timeout, .. } => {
            let message = format!("`{}` has used up its active time and is paused", run.feature);
            Some(ToolError::new(Code::Timeout, message).hint(format!("{} gives it as much again", resume())))
        }
        Status::Paused { reason: PauseReason::Quota | PauseReason::Breaker, until: None } => {
            let message = format!("`{}` is paused: what its steps need refuses them", run.feature);
            Some(ToolError::new(Code::External, message).hint("type: sage breakers; then resume it"))
        }
        Status::Paused { reason: PauseReason::Storage | PauseReason::System, .. } => {
            let why = run.needs.as_deref().unwrap_or("its state could not be written");
            let message = format!("`{}` is paused: {why}", run.feature);
            Some(ToolError::new(Code::Filesystem, message).hint(format!("make room, then {}", resume())))
        }
        Status::Finished(Verdict::Failed) => {
            let (code, what) = failed_by(run)?;
            let message = dense(cut(&format!("`{}` failed: {what}", run.feature), TEXT_CHARS));
            Some(ToolError::new(code, message).hint(format!("{} tries again what failed", resume())))
        }
        _ => None,
    }
}

/// The first step that failed because of something outside of the workflow: a provider, an MCP server, time.
fn failed_by(run: &Run) -> Option<(Code, String)> {
    use FailureClass::{Auth, Failed, Lost, Quota, RateLimit, Timeout, Transient};
    failed_steps(run).into_iter().find_map(|id| {
        let (step, failure) = (run.step(id), run.step(id).failure.as_ref()?);
        let code = match (run.kind(id), failure.class) {
            (_, Transient | RateLimit | Quota | Auth) => Code::External,
            // The server died, did not start, or says that it cannot; wrong arguments are the workflow's fault.
            (Kind::Tool, Failed | Lost) => Code::External,
            (_, Timeout) => Code::Timeout,
            _ => return None,
        };
        Some((code, format!("{}: {} ({})", step.path, failure.message, failure.class.name())))
    })
}
