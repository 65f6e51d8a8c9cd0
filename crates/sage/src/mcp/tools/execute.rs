//! `sage_workflow_execute`: start a workflow in the background and wait for it for a while.

use std::path::Path;

use sage_core::check::{CYCLE, Loaded};
use sage_core::diagnostic::Severity;
use sage_core::slug::Feature;
use sage_fence::{Fence, Refused};
use serde_json::{Map, Value};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::{Call, MAX_WAIT_MS};
use super::super::error::{Code, ToolError, given};
use super::outcome;
use super::take::after_owner;
use crate::cli::agent_choice;
use crate::cli::background;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::flags::Limits;
use crate::cli::notes::{self, Note};
use crate::cli::prepare::{self, Wanted};

/// Problems of a template that an error tells.
const TOLD: usize = 10;

struct Wish {
    feature: Feature,
    template: Option<String>,
    inputs: Map<String, Value>,
    limits: Limits,
}

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let wish = Wish {
        feature: args.feature()?,
        template: args.text("template")?,
        inputs: args.object("inputs")?.unwrap_or_default(),
        limits: limits(args.inner("options", "options.")?)?,
    };
    let wait_ms = args.wait_ms(MAX_WAIT_MS, MAX_WAIT_MS)?;
    args.finish()?;
    let feature = wish.feature.slug().to_string();
    let notes = call.blocking(move |context| start(context, wish)).await?;
    let snapshot = call.settled(&feature, wait_ms).await?;
    call.blocking(move |context| outcome::answer(context, &snapshot, notes, None)).await
}

fn limits(mut options: Args) -> Result<Limits, ToolError> {
    let timeout = match options.take("timeout") {
        None => None,
        Some(Value::String(text)) => Some(text),
        Some(value) => match value.as_u64() {
            Some(ms) => match sage_core::duration::without_unit(ms) {
                Some((message, hint)) => {
                    let message = format!("`options.timeout`: {message}");
                    return Err(ToolError::new(Code::Validation, message).hint(hint));
                }
                None => Some(format!("{ms}ms")),
            },
            None => {
                let message =
                    format!("`options.timeout` must be milliseconds or \"30m\", not {}", given(&value));
                return Err(ToolError::new(Code::Validation, message));
            }
        },
    };
    let priority = options.one_of("priority", &["P0", "P1", "P2", "P3"])?;
    let limits = Limits {
        sequential: !options.flag("parallel", true)?,
        no_cache: !options.flag("caching", true)?,
        timeout,
        priority: priority.and_then(|name| name[1..].parse().ok()),
        budget: options.text("budget")?,
        agent: options.text("agent")?,
        ..Limits::default()
    };
    options.finish()?;
    Ok(limits)
}

/// The run is durable and has an owner when this returns; notes tell what is odd about it.
fn start(context: &Context, wish: Wish) -> Result<Vec<Note>, ToolError> {
    let template = wish.template.map(|name| named(&context.project.root, name)).transpose()?;
    let wanted = Wanted {
        feature: &wish.feature,
        template: template.as_deref(),
        limits: &wish.limits,
        inputs: wish.inputs,
        replace: false,
        by_person: false,
        asks: false,
    };
    let mut problems = Problems::default();
    let prepared =
        prepare::plan(context, wanted, &mut |file, loaded, text| problems.take(file, loaded, text))
            .map_err(|failure| problems.explain(failure))?;
    let mut notes = problems.warnings;
    notes.extend(prepare::check(context, &prepared)?);
    notes.extend(prepared.notes);
    notes.extend(agent_choice::offline_note(&prepared.ready, &prepared.request.settings));
    let (engine, request) = (context.engine(), prepared.request);
    let (record, notices) =
        after_owner(&engine, wish.feature.slug(), || engine.start_detached(request.clone()))?;
    notes.extend(notes::of_notices(&notices));
    notes.extend(hand_over(context, &record));
    Ok(notes)
}

/// The run is saved: if no owner could be started for it, the next command that looks tries again.
pub fn hand_over(context: &Context, record: &sage_engine::background::Record) -> Vec<Note> {
    let failed = background::hand_over(context, record).err();
    let limits = context.engine().limits.warning();
    let failed = failed.map(|failure| Note::warning(failure.message));
    failed.into_iter().chain(limits.map(|warning| Note::new(warning.to_string()))).collect()
}

/// A template's name as it is; a file only if it is one of the project: its mistakes are told with its text.
fn named(root: &Path, name: String) -> Result<String, ToolError> {
    let ends = ["yaml", "yml", "json", "ts", "js"];
    let is_file = name.contains(['/', '\\', '\0'])
        || Path::new(&name).extension().is_some_and(|end| ends.iter().any(|known| end == *known));
    if !is_file {
        return Ok(name);
    }
    let shown = given(&Value::String(name.clone()));
    let refused = |why: &str| {
        ToolError::new(Code::Validation, format!("`template` {shown} {why}"))
            .hint("the name of a template, or the path of a file in the project")
    };
    let fence = Fence::new(root);
    let inside = fence.readable(Path::new(&name)).map_err(|why| match why {
        Refused::Outside(_) => refused("is outside the project"),
        _ => refused("is not a file of the project"),
    })?;
    let path = fence.root().join(inside);
    if !path.is_file() {
        return Err(refused("is not a file of the project"));
    }
    path.into_os_string().into_string().map_err(|_| refused("has a name that is not text"))
}

/// What is wrong with a template, collected instead of printed.
#[derive(Default)]
pub struct Problems {
    lines: Vec<String>,
    warnings: Vec<Note>,
    cycle: bool,
}

impl Problems {
    pub fn take(&mut self, file: &str, loaded: &Loaded, text: &str) {
        for shown in loaded.show(file, text) {
            let place = format!("{}:{}:{}", shown.file, shown.line, shown.column);
            if shown.severity != Severity::Error {
                let warning = Note::warning(format!("{place}: {}", shown.message));
                self.warnings.push(shown.hint.into_iter().fold(warning, Note::hint));
                continue;
            }
            self.cycle |= shown.message.starts_with(CYCLE);
            let hint = shown.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
            self.lines.push(format!("\n{place}: {}: {}{hint}", shown.field, shown.message));
        }
    }

    fn explain(&self, failure: Failure) -> ToolError {
        let more = self.lines.len().saturating_sub(TOLD);
        let rest = if more > 0 { format!("\nand {more} more") } else { String::new() };
        let told: String = self.lines.iter().take(TOLD).map(String::as_str).collect();
        let error =
            ToolError::from(Failure { message: format!("{}{told}{rest}", failure.message), ..failure });
        match (self.cycle, self.lines.is_empty()) {
            (true, _) => error.code(Code::Cycle),
            (false, false) => error.hint("sage_workflow_validate tells everything that is wrong"),
            (false, true) => error,
        }
    }
}
