//! `sage approve` and `sage reject`: what a person decided.

use std::process::ExitCode;

use sage_core::inquiry::{AgentQuestion, Inquiry, PersonAnswer, PersonAnswers, Unfit};
use sage_core::run::{OpenAsk, Run, State, Status};
use sage_engine::control::Signal;
use sage_engine::open::OpenError;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::inquire::{self, Reply};
use super::keep::{self, Scope};
use super::signal::deliver;
use super::{background, feature, print, print_json};
use crate::command_line::{CommandLine, sage, tell};
use crate::trust::Door;
use crate::trust::person::refuse_steps;

#[derive(Debug, clap::Args)]
pub struct ApproveArgs {
    /// The feature's title or slug
    feature: String,
    /// The step that asks; may be left out if only one does
    step: Option<String>,
    /// The choice: of a step that has choices, or an option of an agent's question (by its label or number; also
    /// `QUESTION=OPTION`; repeat it for several)
    #[arg(short, long, value_name = "CHOICE")]
    choice: Vec<String>,
    /// Comment to record with the decision; for an agent's question, the answer in your own words
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
    let said = Said { choices: args.choice, message: args.message, ask: args.ask, input, refuses: false };
    let asks = !has_answer(&said) && !args.always && args.prefix.is_none() && !args.json;
    let said = match asks && Door::of_command() == Door::Terminal {
        true => ask_terminal(context, &args.feature, args.step.as_deref(), said)?,
        false => said,
    };
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
    let said = Said { message: args.message, ask: args.ask, refuses: true, ..Said::default() };
    answer(context, &args.feature, args.step, said, args.json)
}

/// `sage approve checkout release/ask`
pub fn command(verb: &str, feature: &str, step: Option<&str>) -> String {
    step.iter().fold(sage(verb).arg(feature), |command, step| command.arg(*step)).to_string()
}

/// What was decided about a question.
#[derive(Debug, Default)]
pub struct Said {
    /// Of a step's own choices one; of an agent's questions as many as they have.
    pub choices: Vec<String>,
    pub message: Option<String>,
    pub ask: Option<String>,
    pub input: Option<Value>,
    /// A no, whatever the choices are called.
    pub refuses: bool,
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
    let ask = said.ask.clone().map_or_else(|| only_ask(&run, feature, &step), |ask| Ok(Some(ask)))?;
    let said = match open_ask(&run, &step, ask.as_deref()) {
        Some(open) => to_agent(feature, &step, open, said)?,
        None => said,
    };
    let Said { choices, message, input, refuses, .. } = said;
    let choice = match <[String; 1]>::try_from(choices) {
        _ if refuses => REJECT.into(),
        Ok([choice]) => choice,
        Err(choices) if choices.is_empty() => default_choice(&run, feature, &step)?,
        Err(choices) => {
            return Err(Failure::usage(format!("`{step}` takes one choice, not {}", choices.len())));
        }
    };
    let signal = Signal::Answer { step: step.clone(), choice: choice.clone(), by, message, ask, input };
    let run = deliver(context, feature, signal)?;
    Ok(Answered { step, choice, run })
}

const APPROVE: &str = "approve";
const REJECT: &str = "reject";

fn has_answer(said: &Said) -> bool {
    !said.choices.is_empty() || said.message.is_some() || said.input.is_some()
}

fn open_ask<'r>(run: &'r Run, step: &str, ask: Option<&str>) -> Option<&'r OpenAsk> {
    run.asks_of(run.find(step)?).find(|open| Some(open.ask.id.as_str()) == ask)
}

/// An answer in the form that the agent's question wants it.
fn to_agent(feature: &str, step: &str, open: &OpenAsk, said: Said) -> Result<Said, Failure> {
    if said.refuses || said.input.is_some() {
        return Ok(Said { choices: vec![APPROVE.into()], ..said });
    }
    let is_no = said.choices == [REJECT];
    let is_yes = said.choices.is_empty() || said.choices == [APPROVE];
    let yes = |message: Option<&str>, input| Said {
        choices: vec![APPROVE.into()],
        message: message.map(str::to_string),
        input,
        ..Said::default()
    };
    let comment = said.message.as_deref();
    match &open.ask.inquiry {
        None | Some(Inquiry::Plan(_)) if is_no => Ok(Said { refuses: true, ..said }),
        None | Some(Inquiry::Plan(_)) if !is_yes => Err(Failure::usage(format!(
            "`{step}` asks for a yes or a no, not for a choice"
        ))
        .hint(command("approve", feature, Some(step)))),
        None => Ok(yes(comment, None)),
        Some(Inquiry::Plan(plan)) => {
            Ok(yes(comment, comment.map(|comment| inquire::with_comment(plan, comment))))
        }
        Some(Inquiry::Questions(questions)) => {
            let given = PersonAnswers::to(questions, &said.choices, comment);
            let given = given.map_err(|unfit| unanswered(feature, step, questions, unfit))?;
            let told: Vec<String> = given.answers.values().map(PersonAnswer::told).collect();
            Ok(yes(Some(&told.join("; ")), Some(given.into_input())))
        }
    }
}

fn unanswered(feature: &str, step: &str, questions: &[AgentQuestion], unfit: Unfit) -> Failure {
    let failure = Failure::usage(unfit.why);
    let failure = unfit.hint.into_iter().fold(failure, Failure::hint);
    failure.hint(answer_command(feature, step, None, questions))
}

/// `sage approve f p/s --choice Blue --choice 'Sizes=S'`, with the first option of each question.
pub fn answer_command(
    feature: &str,
    step: &str,
    ask: Option<&str>,
    questions: &[AgentQuestion],
) -> CommandLine {
    let command = sage("approve").arg(feature).arg(step).option_if("--ask", ask);
    let single = questions.len() == 1;
    questions.iter().fold(command, |command, question| match (question.options.first(), single) {
        (Some(option), true) => command.option("--choice", &option.label),
        (Some(option), false) => command.option("--choice", format!("{}={}", question.name(), option.label)),
        (None, true) => command.option("-m", "your answer"),
        (None, false) => command.option("--choice", format!("{}=your answer", question.name())),
    })
}

/// On a terminal, an agent's question is shown and answered there.
fn ask_terminal(context: &Context, name: &str, step: Option<&str>, said: Said) -> Result<Said, Failure> {
    let feature = feature(name)?;
    let run = context.engine().read(&feature)?.run;
    let step = step.map_or_else(|| only_question(&run, &feature), |step| Ok(step.to_string()))?;
    let ask = said.ask.clone().map_or_else(|| only_ask(&run, &feature, &step), |ask| Ok(Some(ask)))?;
    let inquiry = open_ask(&run, &step, ask.as_deref()).and_then(|open| open.ask.inquiry.clone());
    let Some(inquiry) = inquiry else { return Ok(said) };
    let mut read = |prompt: &str| {
        eprint!("{prompt}");
        let mut line = String::new();
        let bytes = std::io::stdin().read_line(&mut line).ok()?;
        (bytes > 0).then_some(line)
    };
    match inquire::ask(&inquiry, &mut read) {
        Some(Reply::Answers(given)) => Ok(Said { ask, input: Some(given.into_input()), ..said }),
        Some(Reply::Approve) => Ok(Said { ask, choices: vec![APPROVE.into()], ..said }),
        Some(Reply::Refuse(message)) => Ok(Said { ask, refuses: true, message, ..said }),
        None => Err(Failure::usage("no answer was given; the question stays open")),
    }
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
