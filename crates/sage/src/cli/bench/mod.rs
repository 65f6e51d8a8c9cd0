//! `sage bench`: figures of this machine. Times depend on the disk, so what counts are the ratios to what the
//! same disk can do at all, measured in the same run.

mod engine;
mod policies;
mod script;
mod tokens;
mod world;

use std::process::ExitCode;

use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{print, print_json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to measure: engine, script (workflows in code), tokens (tools in code against tools by definition), or
    /// policies (needs valgrind)
    #[arg(default_value = "engine", value_parser = ["engine", "script", "tokens", "policies", "no-ops"], hide_possible_values = true)]
    what: String,
    /// Of `no-ops`, which `policies` runs under callgrind
    #[arg(long, default_value = "plain", value_parser = ["plain", "all"], hide = true)]
    kind: String,
    #[arg(long, default_value_t = 100, hide = true)]
    steps: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One figure, and what it should be.
#[derive(Debug)]
pub struct Figure {
    pub name: &'static str,
    pub text: String,
    pub value: f64,
    /// Met at or above (`true`), or at or below (`false`) this.
    pub goal: Option<(bool, f64)>,
}

impl Figure {
    pub fn new(name: &'static str, value: f64, text: String) -> Figure {
        Figure { name, text, value, goal: None }
    }

    pub fn at_least(self, goal: f64) -> Figure {
        Figure { goal: Some((true, goal)), ..self }
    }

    pub fn at_most(self, goal: f64) -> Figure {
        Figure { goal: Some((false, goal)), ..self }
    }

    fn met(&self) -> Option<bool> {
        self.goal.map(|(least, goal)| if least { self.value >= goal } else { self.value <= goal })
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let mut missed = 0;
    let mut tell = |figure: Figure| -> Result<(), Failure> {
        let met = figure.met();
        missed += usize::from(met == Some(false));
        if args.json {
            return print_json(&json!({
                "type": "figure", "name": figure.name, "value": figure.value, "text": figure.text,
                "goal": figure.goal.map(|(_, goal)| goal), "met": met,
            }));
        }
        let sign = match met {
            Some(true) => "ok    ",
            Some(false) => "MISSED",
            None => "      ",
        };
        print(format_args!("{sign}  {:28}  {}\n", figure.name, figure.text));
        Ok(())
    };
    match args.what.as_str() {
        "no-ops" => policies::no_ops(context, &args.kind, args.steps)?,
        "tokens" => tokens::measure(args.json, &mut tell)?,
        "policies" => policies::measure(context, &mut tell)?,
        "script" => script::measure(context, &mut tell)?,
        _ => engine::measure(context, &mut tell)?,
    }
    if args.json {
        print_json(&json!({"type": "summary", "missed": missed}))?;
    }
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
