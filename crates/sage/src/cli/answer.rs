//! `sage approve` and `sage reject`: what a person decided.

use std::process::ExitCode;

use sage_core::run::{Run, State, Status};
use sage_engine::control::Signal;
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::signal::deliver;
use super::{background, feature, print, print_json};

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
    /// Why not
    #[arg(short, long)]
    message: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn approve(context: &Context, args: ApproveArgs) -> Result<ExitCode, Failure> {
    answer(context, &args.feature, args.step, args.choice, args.message, args.json)
}

pub fn reject(context: &Context, args: RejectArgs) -> Result<ExitCode, Failure> {
    answer(context, &args.feature, args.step, Some("reject".into()), args.message, args.json)
}

fn answer(
    context: &Context,
    name: &str,
    step: Option<String>,
    choice: Option<String>,
    message: Option<String>,
    json: bool,
) -> Result<ExitCode, Failure> {
    let feature = feature(name)?;
    let run = context.engine().read(&feature)?.run;
    let step = match step {
        Some(step) => step,
        None => only_question(&run, &feature)?,
    };
    let choice = choice.map_or_else(|| default_choice(&run, &feature, &step), Ok)?;
    let by = std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "person".into());
    let signal = Signal::Answer { step: step.clone(), choice: choice.clone(), by, message };
    let run = deliver(context, &feature, signal)?;
    if json {
        print_json(
            &json!({"type": "answered", "success": true, "feature": feature, "step": step, "choice": choice}),
        )?;
    } else {
        print(format_args!("{step}: {choice}\n"));
        if background::goes_on_by_itself(context, &feature) {
            eprintln!("note: it goes on by itself in the background");
        } else if run.status != Status::Running {
            eprintln!("hint: sage resume {feature}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn waits(state: &State) -> bool {
    match state {
        State::Running(running) => running.ask.is_some(),
        State::Unknown => true,
        _ => false,
    }
}

fn only_question(run: &Run, feature: &str) -> Result<String, Failure> {
    let questions: Vec<&str> =
        run.live_steps().filter(|step| waits(&step.state)).map(|step| step.path.as_ref()).collect();
    match questions.as_slice() {
        [one] => Ok((*one).to_string()),
        [] => Err(Failure::usage(format!("no step of `{feature}` waits for an answer"))),
        many => Err(Failure::usage(format!("{} steps wait for an answer: {}", many.len(), many.join(", ")))
            .hint(format!("sage approve {feature} {}", many[0]))),
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
                .hint(format!("sage approve {feature} {step} -c {first}")))
        }
        _ => Ok("approve".into()),
    }
}
