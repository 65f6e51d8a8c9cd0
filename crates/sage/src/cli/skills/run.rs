//! `sage skills run`: the program of an approved skill, as it was approved.

use std::process::{ExitCode, Stdio};
use std::time::Instant;

use sage_agents::{Report, Spec, accompany};
use sage_engine::skills::{Listed, Store};
use serde_json::{Value, json};

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::print_json;
use super::{failure, is_file, tell_problems};
use crate::code::CodeRun;
use crate::command_line::sage;
use crate::display::text::argument;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The skill's name
    name: String,
    /// What its program is given; flags of sage stand before the name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARG")]
    args: Vec<String>,
}

pub fn execute(context: &Context, store: &Store, args: Args, json: bool) -> Result<ExitCode, Failure> {
    let index = store.index();
    let listed = index.find(&args.name).map_err(|error| {
        tell_problems(&index);
        failure(error)
    })?;
    // Only an approved skill has its content read; its digest was compared a moment ago.
    let Some(content) = &listed.content else { return Err(not_approved(listed)) };
    if let Some(code) = content.script() {
        return run_code(context, store, &args, code, json);
    }
    let Some(program) = content.program() else { return Err(nothing_to_run(listed)) };
    let begun = Instant::now();
    let spec = Spec::new(&program, &args.args, &context.project.root).with([("SAGE_SKILL", &listed.dir)]);
    // With JSON, stdout is ours; what the program prints goes where people look.
    let stdout = if json { Stdio::from(std::io::stderr()) } else { Stdio::inherit() };
    let end = accompany(&spec, stdout).map_err(|error| {
        Failure::failed(format!("cannot run `{}`: {error}", index.shown(&program)))
            .hint("its first line must name what runs it, e.g. #!/bin/sh")
    })?;
    let (succeeded, code) = match end {
        Report::Exited(code) => (code == 0, Some(code)),
        _ => (false, None),
    };
    if let Err(error) = store.record_by_hand(&args.name, succeeded) {
        eprintln!("note: this use was not counted: {error}");
    }
    if json {
        let duration_ms = begun.elapsed().as_millis() as u64;
        print_json(&json!({"type": "skillRun", "skill": args.name, "success": succeeded,
            "exitCode": code, "durationMs": duration_ms}))?;
    } else if !succeeded {
        let how = code.map_or_else(|| end.to_string(), |code| format!("exit status: {code}"));
        eprintln!("error: the skill `{}` ended with {how}", args.name);
    }
    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A code skill runs in the sandbox; what it is given is `key=value`.
fn run_code(
    context: &Context,
    store: &Store,
    args: &Args,
    code: &str,
    json: bool,
) -> Result<ExitCode, Failure> {
    let input = Value::Object(super::super::code::inputs(&args.args)?);
    let name = Some(format!("skills/{}", args.name));
    let run = CodeRun { code: code.to_string(), input, name, ..CodeRun::default() };
    let (_, outcome) = super::super::code::perform(context, run, super::super::code::whole_value())?;
    if let Err(error) = store.record_by_hand(&args.name, outcome.is_ok()) {
        eprintln!("note: this use was not counted: {error}");
    }
    let answer = match outcome {
        Ok(answer) => answer,
        Err(failure) => return super::super::code::failed(&failure, json),
    };
    if json {
        print_json(
            &json!({"type": "skillRun", "skill": args.name, "success": true, "value": answer.ran.value,
            "console": answer.ran.console, "durationMs": answer.ran.duration_ms}),
        )?;
    } else {
        answer.notes.iter().for_each(|note| eprintln!("note: {note}"));
        super::super::code::printed(&answer.ran.console.told());
        super::super::code::show(&answer.ran.value, answer.ran.nothing);
    }
    Ok(ExitCode::SUCCESS)
}

fn not_approved(listed: &Listed) -> Failure {
    let name = &listed.skill.name;
    let why = if listed.outdated { "has changed since it was approved" } else { "is not approved" };
    Failure::usage(format!("the skill `{name}` {why}; nothing was run"))
        .hint(sage("skills approve").arg(name))
}

fn nothing_to_run(listed: &Listed) -> Failure {
    let name = &listed.skill.name;
    if ["run.sh", "run"].iter().any(|file| is_file(&listed.dir, file)) {
        return Failure::usage(format!("the program of `{name}` is not executable; nothing was run"))
            .hint(format!("chmod +x, then sage skills approve {}", argument(name)));
    }
    Failure::usage(format!("`{name}` has nothing to run: it is instructions for agents"))
        .hint(sage("skills show").arg(name))
}
