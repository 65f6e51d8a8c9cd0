//! An answer for all time: the rule that a question becomes, kept outside of the project.

use sage_core::approval::Listed;
use sage_core::approval::command::{self, Part, Site};
use sage_core::port::AskKind;
use sage_core::run::{OpenAsk, Run};
use sage_engine::clock::Clock;

use super::answer::{only_ask, only_question};
use super::context::Context;
use super::failure::Failure;
use crate::command_line::{here, sage};
use crate::display::text::clean;
use crate::trust::kept::Given;
use crate::trust::{Door, Kept};

/// What else is allowed with the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The same command, file or tool.
    Same,
    /// Commands that begin with these words.
    Prefix(String),
}

/// Rules that were kept just now.
#[derive(Debug)]
pub struct Keeping {
    store: Kept,
    rules: Vec<Listed>,
    new: Vec<String>,
}

impl Keeping {
    pub fn tell(&self) {
        self.lines().iter().for_each(|line| eprintln!("{line}"));
    }

    /// What is allowed from now on, and how to take it back.
    pub fn lines(&self) -> Vec<String> {
        let lines = |rule: String| {
            let back = sage("approvals").arg("remove").arg(&rule).comment("takes it back");
            [
                format!("allowed from now on in this project: {}", clean(&rule)),
                format!("hint: {}", here(back)),
            ]
        };
        self.rules.iter().map(ToString::to_string).flat_map(lines).collect()
    }

    /// The question could not be answered, so nothing else shall be either.
    pub fn undo(&self) {
        let _ = self.store.remove(Some(&self.new));
    }
}

/// Keeps what the question becomes as a rule.
pub fn keep(
    context: &Context,
    run: &Run,
    step: Option<&str>,
    ask: Option<&str>,
    scope: &Scope,
) -> Result<Keeping, Failure> {
    let step = step.map_or_else(|| only_question(run, &run.feature), |step| Ok(step.to_string()))?;
    let ask = ask.map_or_else(|| only_ask(run, &run.feature, &step), |ask| Ok(Some(ask.to_string())))?;
    let open = run.find(&step).and_then(|id| run.asks_of(id).find(|open| Some(&open.ask.id) == ask.as_ref()));
    let open = open.ok_or_else(|| {
        Failure::usage(format!("no agent asks for permission in `{step}`"))
            .hint(sage("status").arg(&run.feature))
    })?;
    let rules = rules(open, scope)?;
    let store = Kept::of(&context.project.root);
    let given = Given { by: Door::of_command().by(), at: sage_core::wire::rfc3339(Clock::System.now_ms()) };
    let new = store.add(&rules, &given).map_err(Failure::failed)?;
    Ok(Keeping { store, rules, new })
}

fn rules(open: &OpenAsk, scope: &Scope) -> Result<Vec<Listed>, Failure> {
    let ask = &open.ask;
    match (ask.kind, &ask.command, scope) {
        (AskKind::Run, Some(text), Scope::Same) => Ok(vec![Listed::command(text)]),
        (AskKind::Run, Some(text), Scope::Prefix(words)) => prefix(text, words).map(|rule| vec![rule]),
        (_, _, Scope::Prefix(_)) => {
            Err(Failure::usage("--prefix is for commands; this is a question about a tool")
                .hint("--always    (allows the tool or the file from now on)"))
        }
        (AskKind::Write, ..)
            if ask.paths.iter().all(|path| path.starts_with('/')) && !ask.paths.is_empty() =>
        {
            Ok(ask.paths.iter().map(|path| Listed::file(path)).collect())
        }
        (AskKind::Other | AskKind::Network | AskKind::Read, None, Scope::Same) => {
            Ok(vec![Listed::tool(&ask.tool)])
        }
        _ => Err(Failure::usage(format!("`{}` cannot be allowed for all time", ask.title()))
            .hint("leave out --always    (allows it this once)")),
    }
}

/// The words have to begin a program of the line that was asked about.
fn prefix(text: &str, words: &str) -> Result<Listed, Failure> {
    let rule = Listed::prefix(words);
    let parts = programs(text).map_err(|why| {
        Failure::usage(format!("`{text}` cannot be taken apart: {why}"))
            .hint("--always    (allows the command to the letter)")
    })?;
    let begins = !words.trim().is_empty() && parts.iter().any(|part| rule.fits(&part.text));
    if begins {
        return Ok(rule);
    }
    let names: Vec<String> = parts.iter().map(|part| format!("`{}`", part.text)).collect();
    Err(Failure::usage(format!("no command begins with `{words}`; there are {}", names.join(", "))))
}

/// The programs of a command line, wherever it runs.
fn programs(text: &str) -> Result<Vec<Part>, sage_core::shell::Unclear> {
    let checks = Default::default();
    command::read(text, Site { cwd: "/", real: &|path| path.to_string(), checks: &checks })
}
