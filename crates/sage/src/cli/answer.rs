//! `sage approve` and `sage reject`: what a person decided.

use std::process::ExitCode;

use sage_core::run::{OpenAsk, Run, State, Status};
use sage_engine::control::Signal;
use sage_engine::open::OpenError;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::keep::{self, Scope};
use super::signal::deliver;
use super::{background, feature, print, print_json};
use crate::command_line::{sage, tell};
use crate::trust::Door;
use crate::trust::person::refuse_steps;

#[derive(Debug, clap::Args)]
pub struct ApproveArgs {
    /// The feature's title or slug
    feature: String,
    /// The step that asks; may be left out if only one does
    step: Option<String>,
    /// The choice; must be given if the step has its own choices
    #[arg(short, long)]
    choice: Option<String>,
    /// A word to those who come later
    #[arg(short, long)]
    message: Option<String>,
    /// Which question of an agent, if it has several: the id that `sage inbox` shows
    #[arg(long, value_name = "ID")]
    ask: Option<String>,
    /// Allow the tool with this input instead: JSON
    #[arg(long, value_name = "JSON")]
    edit: Option<String>,
    /// Allow this command, file or tool from now on in this project
    #[arg(long, conflicts_with_all = ["edit", "choice"])]
    always: bool,
    /// Allow commands that begin with these words from now on in this project
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["edit", "choice", "always"])]
    prefix: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub struct RejectArgs {
    /// The feature's title or slug
    feature: String,
    /// The step that asks; may be left out if only one does
    step: Option<String>,
    /// Why not; an agent that asked is told
    #[arg(short, long)]
    message: Option<String>,
    /// Which question of an agent, if it has several: the id that `sage inbox` shows
    #[arg(long, value_name = "ID")]
    ask: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn approve(context: &Context, args: ApproveArgs) -> Result<ExitCode, Failure> {
    refuse_steps("answer a question", &command("approve", &args.feature, args.step.as_deref()))?;
    let input = args.edit.as_deref().map(serde_json::from_str::<Value>).transpose();
    let input = input.map_err(|error| {
        Failure::usage(format!("--edit is not JSON: {error}")).hint(r#"--edit '{"command": "ls"}'"#)
    })?;
    if input.as_ref().is_some_and(|input| !input.is_object()) {
        return Err(Failure::usage("--edit must be a JSON object: the whole input of the tool")
            .hint(r#"--edit '{"command": "ls"}'"#));
    }
    let said = Said { choice: args.choice, message: args.message, ask: args.ask, input };
    let scope = match args.prefix {
        Some(words) => Scope::Prefix(words),
        None if args.always => Scope::Same,
        None => return answer(context, &args.feature, args.step, said, args.json),
    };
    let run = context.engine().read(&feature(&args.feature)?)?.run;
    let kept = keep::keep(context, &run, args.step.as_deref(), said.ask.as_deref(), &scope)?;
    let answered = answer(context, &args.feature, args.step, said, args.json);
    match answered.is_ok() {
        true if !args.json => kept.tell(),
        true => {}
        false => kept.undo(),
    }
    answered
}

pub fn reject(context: &Context, args: RejectArgs) -> Result<ExitCode, Failure> {
    refuse_steps("answer a question", &command("reject", &args.feature, args.step.as_deref()))?;
    let said = Said { choice: Some("reject".into()), message: args.message, ask: args.ask, input: None };
    answer(context, &args.feature, args.step, said, args.json)
}

/// `sage approve checkout release/ask`
pub fn command(verb: &str, feature: &str, step: Option<&str>) -> String {
    step.iter().fold(sage(verb).arg(feature), |command, step| command.arg(*step)).to_string()
}

/// What was decided about a question.
#[derive(Debug, Default)]
pub struct Said {
    pub choice: Option<String>,
    pub message: Option<String>,
    pub ask: Option<String>,
    pub input: Option<Value>,
}

/// The question that it was about, and the run after it.
#[derive(Debug)]
pub struct Answered {
    pub step: String,
    pub choice: String,
    pub run: Run,
}

fn answer(
    context: &Context,
    name: &str,
    step: Option<String>,
    said: Said,
    json: bool,
) -> Result<ExitCode, Failure> {
    let feature = feature(name)?;
    let Answered { step, choice, run } = say(context, &feature, step, said, Door::of_command().by())?;
    if json {
        print_json(
            &json!({"type": "answered", "success": true, "feature": feature, "step": step, "choice": choice}),
        )?;
    } else {
        print(format_args!("{step}: {choice}\n"));
        if background::goes_on_by_itself(context, &feature) {
            eprintln!("note: it goes on by itself in the background");
        } else if run.status != Status::Running {
            tell(sage("resume").arg(&feature));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the question that is meant and answers it. What could mean another one is refused.
pub fn say(
    context: &Context,
    feature: &str,
    step: Option<String>,
    said: Said,
    by: String,
) -> Result<Answered, Failure> {
    let run = context.engine().read(feature)?.run;
    if matches!(run.status, Status::Cancelled { .. }) {
        let message = format!("the run of `{feature}` was cancelled: nothing of it waits for an answer");
        return Err(Failure::usage(message).hint(sage("resume").arg(feature)));
    }
    let step = step.map_or_else(|| only_question(&run, feature), Ok)?;
    check_ask(&run, feature, &step, &said)?;
    let Said { choice, message, ask, input } = said;
    let ask = ask.map_or_else(|| only_ask(&run, feature, &step), |ask| Ok(Some(ask)))?;
    let choice = choice.map_or_else(|| default_choice(&run, feature, &step), Ok)?;
    let signal = Signal::Answer { step: step.clone(), choice: choice.clone(), by, message, ask, input };
    let run = deliver(context, feature, signal)?;
    Ok(Answered { step, choice, run })
}

/// What only an agent's question can be answered with, and that the question is there.
fn check_ask(run: &Run, feature: &str, step: &str, said: &Said) -> Result<(), Failure> {
    if said.ask.is_none() && said.input.is_none() {
        return Ok(());
    }
    let open: Vec<&str> =
        run.find(step).map_or(Vec::new(), |id| run.asks_of(id).map(|open| open.ask.id.as_str()).collect());
    if open.is_empty() {
        return Err(Failure::usage(format!("no agent asks for anything in `{step}`"))
            .hint(sage("status").arg(feature)));
    }
    match &said.ask {
        Some(ask) if !open.contains(&ask.as_str()) => {
            Err(Failure::usage(format!("`{step}` has no open question `{ask}`; open: {}", open.join(", "))))
        }
        _ => Ok(()),
    }
}

/// The question that is meant, by its id: until the answer arrives it may be another one's turn.
pub(super) fn only_ask(run: &Run, feature: &str, step: &str) -> Result<Option<String>, Failure> {
    let open: Vec<&OpenAsk> = run.find(step).map_or(Vec::new(), |id| run.asks_of(id).collect());
    match open.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.ask.id.clone())),
        many => {
            let list: Vec<String> =
                many.iter().map(|open| format!("{} ({})", open.ask.id, open.ask.title())).collect();
            Err(Failure::usage(format!("`{step}` asks for {} things: {}", many.len(), list.join("; ")))
                .hint(sage("approve").arg(feature).arg(step).option("--ask", &many[0].ask.id)))
        }
    }
}

pub(super) fn only_question(run: &Run, feature: &str) -> Result<String, Failure> {
    let questions: Vec<&str> =
        run.step_ids().filter(|&id| run.waits_for_person(id)).map(|id| run.step(id).path.as_ref()).collect();
    match questions.as_slice() {
        [one] => Ok((*one).to_string()),
        [] => Err(no_question(run, feature)),
        many => Err(Failure::usage(format!("{} steps wait for an answer: {}", many.len(), many.join(", ")))
            .hint(sage("approve").arg(feature).arg(many[0].to_string()))),
    }
}

/// A question that was just answered is a conflict; without any it is a mistake.
fn no_question(run: &Run, feature: &str) -> Failure {
    match run.last_answered() {
        Some(id) => {
            let step = run.step(id).path.to_string();
            OpenError::Answered { feature: feature.into(), step, answer: run.answer_of(id) }.into()
        }
        None => Failure::usage(format!("no step of `{feature}` waits for an answer")),
    }
}

/// `approve` where that is a choice, and for unknown outcomes. Other choices are never taken for granted.
fn default_choice(run: &Run, feature: &str, step: &str) -> Result<String, Failure> {
    let ask = run.find(step).and_then(|id| match &run.step(id).state {
        State::Running(running) => running.ask.clone(),
        _ => None,
    });
    match ask {
        Some(ask) if !ask.choices.iter().any(|choice| choice == "approve") => {
            let first = ask.choices.first().map_or("", String::as_str);
            Err(Failure::usage(format!("`{step}` has the choices {}", ask.choices.join(", ")))
                .hint(sage("approve").arg(feature).arg(step).option("-c", first)))
        }
        _ => Ok("approve".into()),
    }
}
