//! `sage trust`: say that what a project defines may run, and that foreign state may be continued.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde_json::json;

use super::context::Context;
use super::failure::{Failure, Word};
use super::table::print_table;
use super::{print, print_json};
use crate::command_line::{sage, tell};
use crate::display::text::clean;
use crate::trust::open::{Open, STATE};
use crate::trust::person::{Door, refuse_steps};
use crate::trust::store::Trusted;
use crate::trust::{MANY, foreign, shown, workflow};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these, as they are named here: mcp.github, agents.mine, operations.plan, state.<feature>
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Do not ask: for scripts. State has to be named
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    yes: bool,
    /// Show what is trusted in this project
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Withdraw trust from these, or from everything
    #[arg(long)]
    revoke: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        self.list
    }
}

pub fn execute(context: &mut Context, args: Args) -> Result<ExitCode, Failure> {
    if args.list {
        return list(context, args.json);
    }
    refuse_steps("trust what a project defines", "sage trust")?;
    if args.revoke {
        return revoke(context, &args.names, args.json);
    }
    let mut open = Open::of(context, &args.names)?;
    // Foreign runs are adopted one by one, each by its name.
    let left = if args.names.is_empty() { std::mem::take(&mut open.state) } else { Vec::new() };
    if args.json {
        print_json(
            &json!({"type": "trust", "trusted": args.yes, "definitions": open.definitions, "state": open.state}),
        )?;
    } else {
        show(context, &open, if args.names.is_empty() { MANY } else { usize::MAX });
    }
    for feature in &left {
        let name = format!("{STATE}{}", clean(feature));
        eprintln!("note: foreign state is not adopted without its name");
        let adopt = sage("trust").arg(name);
        tell(if args.yes { adopt.arg("--yes") } else { adopt });
    }
    if open.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !ask(args.json)? {
        return Err(Failure::failed("nothing was trusted"));
    }
    open.accept(context, &Door::of_command())?;
    if !args.json {
        print(format_args!("trusted: {}\n", clean(&names(&open).join(", "))));
    }
    Ok(ExitCode::SUCCESS)
}

fn names(open: &Open) -> Vec<String> {
    let state = open.state.iter().map(|feature| format!("{STATE}{feature}"));
    open.definitions.iter().map(|it| it.name.clone()).chain(state).collect()
}

/// All of it; of each at most `most` lines.
fn show(context: &Context, open: &Open, most: usize) {
    let root = context.project.root.display();
    if open.is_empty() {
        print(format_args!("nothing in {root} waits to be trusted\n"));
        return;
    }
    print(format_args!("not trusted in {root}:\n"));
    for line in lines(context, open, most) {
        print(format_args!("  {line}\n"));
    }
}

fn lines(context: &Context, open: &Open, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for it in &open.definitions {
        let changed = if context.trust.has_changed(it) { " (changed since it was trusted)" } else { "" };
        lines.extend(it.lines(changed, most));
    }
    for feature in &open.state {
        lines.extend(of_state(context, feature, most));
    }
    lines
}

fn of_state(context: &Context, feature: &str, most: usize) -> Vec<String> {
    let head = "a run that was not written by this user on this machine".to_string();
    let does = foreign::phrases(&context.engine(), feature);
    let does = does.unwrap_or_else(|| vec!["cannot be read".into()]);
    shown::lines(&format!("{STATE}{feature}"), ".sage", [head].into_iter().chain(does), "", most)
}

fn ask(json: bool) -> Result<bool, Failure> {
    if json || !is_terminal() {
        return Err(Failure::usage("cannot ask for confirmation: not a terminal; pass --yes")
            .hint("sage trust --yes"));
    }
    confirmed("Trust all of these?")
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn confirmed(question: &str) -> Result<bool, Failure> {
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn list(context: &Context, json: bool) -> Result<ExitCode, Failure> {
    let trusted = context.trust.all();
    if json {
        let open = Open::of(context, &[])?;
        print_json(&json!({
            "type": "trust", "trusted": trusted, "definitions": open.definitions, "state": open.state,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if trusted.is_empty() {
        print("nothing is trusted in this project\n");
    }
    let of_runs = if trusted.is_empty() { Vec::new() } else { workflow::all(context) };
    let row = |(name, it): (&String, &Trusted)| {
        let mut defined = context.config.defined.iter().chain(&of_runs);
        let current = defined.find(|defined| defined.name == *name);
        let is_stale = current.is_some_and(|defined| !context.trust.holds(defined));
        let note = if is_stale { "changed since: sage trust" } else { "" };
        [clean(name), it.at.clone(), clean(&it.by), note.to_string()]
    };
    print_table(&trusted.iter().map(row).collect::<Vec<_>>());
    Ok(ExitCode::SUCCESS)
}

fn revoke(context: &mut Context, names: &[String], json: bool) -> Result<ExitCode, Failure> {
    let gone = context.trust.revoke(names).map_err(Failure::failed)?;
    if json {
        print_json(&json!({"type": "trust", "revoked": gone}))?;
    } else if gone.is_empty() {
        print("nothing was trusted\n");
    } else {
        print(format_args!("no longer trusted: {}\n", clean(&gone.join(", "))));
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the person at the terminal for the word that a command lacks. False without a terminal, or if the answer is no.
pub fn obtain(context: &mut Context, word: &Word) -> Result<bool, Failure> {
    let silent = std::env::args_os()
        .any(|arg| ["--json", "--yes", "--quiet", "--dry-run"].iter().any(|it| arg == *it));
    if silent || !is_terminal() || refuse_steps("trust what a project defines", "sage trust").is_err() {
        return Ok(false);
    }
    let (open, question) = match word {
        Word::Trust(definitions) => {
            let open = Open { definitions: definitions.clone(), ..Open::default() };
            for it in &open.definitions {
                eprintln!("{} is not trusted: it {}", clean(&it.place()), shown::whole(&it.does));
            }
            (open, "Trust it and go on?")
        }
        Word::Adopt(feature) => {
            let does = foreign::phrases(&context.engine(), feature).unwrap_or_default();
            eprintln!("the state of {} was not written by this user on this machine", clean(feature));
            if !does.is_empty() {
                eprintln!("it {}", shown::whole(&does));
            }
            let state = vec![feature.clone()];
            (Open { state, ..Open::default() }, "Continue it?")
        }
    };
    if !confirmed(question)? {
        return Ok(false);
    }
    if context.key.is_none() && !open.state.is_empty() {
        // It cannot be sealed: the word holds for this command alone.
        context.accepts_foreign = true;
        return Ok(true);
    }
    open.accept(context, &Door::of_command())?;
    Ok(true)
}
