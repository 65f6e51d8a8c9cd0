//! `sage approvals`: what agents may do without a person here, answers that were kept, and what would be decided.

use std::process::ExitCode;

use sage_core::approval::{Mode, Rules, Verdict};
use sage_core::port::{AskKind, PermissionAsk};
use sage_core::role::Role;
use sage_engine::approvals::Scene;
use serde_json::{Value, json};

use super::config::Attendance;
use super::context::Context;
use super::failure::Failure;
use super::table::print_table;
use super::{print, print_json};
use crate::display::text::clean;
use crate::trust::Kept;
use crate::trust::person::refuse_steps;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the rules and the kept answers of this project (the default)
    List,
    /// Take back answers that were kept with `sage approve --always` or `--prefix`
    Remove {
        /// Rules as `sage approvals` shows them
        #[arg(value_name = "RULE", required_unless_present = "all")]
        rules: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "rules")]
        all: bool,
    },
    /// Say what would be decided about a command, and why; nothing runs
    Check {
        /// The command line, quoted as one argument
        command: String,
        /// The role of the agent
        #[arg(long, default_value = "implementer", value_parser = |text: &str| Role::parse(text).map_err(|error| error.hint))]
        role: Role,
        /// As with `sage run --allow`
        #[arg(long, value_name = "WHAT")]
        allow: Option<Mode>,
    },
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        !matches!(self.action, Some(Action::Remove { .. }))
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    match args.action.unwrap_or(Action::List) {
        Action::List => list(context, args.json),
        Action::Remove { rules, all } => remove(context, &rules, all, args.json),
        Action::Check { command, role, allow } => check(context, command, role, allow, args.json),
    }
}

fn list(context: &Context, json: bool) -> Result<ExitCode, Failure> {
    let (rules, lists) = (&context.config.approvals.rules, &context.config.approvals.lists);
    let kept = Kept::of(&context.project.root).all();
    let texts =
        |rules: &[sage_core::approval::Listed]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    if json {
        print_json(&json!({
            "type": "approvals", "mode": rules.mode, "commands": rules.commands, "tools": rules.tools,
            "deny": rules.deny, "kept": kept,
            "inherited": {"allow": texts(&lists.allow), "ask": texts(&lists.ask), "deny": texts(&lists.deny)},
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows =
        vec![["mode".to_string(), rules.mode.name().to_string(), described(rules.mode).to_string()]];
    let of_file = [("allow", &rules.commands), ("allow", &rules.tools), ("deny", &rules.deny)];
    for (what, patterns) in of_file {
        rows.extend(patterns.iter().map(|pattern| [what.into(), clean(pattern), "sage.toml".into()]));
    }
    for (what, list) in [("allow", &lists.allow), ("ask", &lists.ask), ("deny", &lists.deny)] {
        rows.extend(
            list.iter().map(|rule| [what.into(), clean(&rule.to_string()), "settings of Claude Code".into()]),
        );
    }
    let given = |given: &crate::trust::kept::Given| format!("kept {} by {}", given.at, clean(&given.by));
    rows.extend(kept.iter().map(|(rule, by)| ["allow".into(), clean(rule), given(by)]));
    print_table(&rows);
    if *rules != Rules::default() && context.config.untrusted.iter().any(|it| it.name == "approvals") {
        eprintln!("note: rules of sage.toml that allow something are not trusted");
    }
    Ok(ExitCode::SUCCESS)
}

fn described(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "reading, edits in the project, its own checks and local commits need no person",
        Mode::Edits => "also file changes by commands",
        Mode::Commands => "also all commands",
        Mode::All => "also the network, MCP tools and files outside of the project",
    }
}

fn remove(context: &Context, rules: &[String], all: bool, json: bool) -> Result<ExitCode, Failure> {
    refuse_steps("take back an answer", "sage approvals remove")?;
    let gone = Kept::of(&context.project.root).remove((!all).then_some(rules)).map_err(Failure::failed)?;
    if let Some(missing) = rules.iter().find(|rule| !gone.contains(rule)) {
        let failure =
            Failure::usage(format!("no answer `{}` was kept in this project", missing.escape_debug()));
        return Err(failure.hint("sage approvals"));
    }
    if json {
        print_json(&json!({"type": "approvals", "removed": gone}))?;
    } else {
        gone.iter().for_each(|rule| print(format_args!("removed: {}\n", clean(rule))));
    }
    Ok(ExitCode::SUCCESS)
}

fn check(
    context: &Context,
    command: String,
    role: Role,
    allow: Option<Mode>,
    json: bool,
) -> Result<ExitCode, Failure> {
    let approvals = context.approvals(Attendance::of(true));
    let root = &context.project.root;
    let facts = approvals.facts(root, true);
    let mode = allow.unwrap_or(approvals.rules.mode);
    let scene = Scene { root, cwd: root, facts: &facts, access: role.access(), mode, spent_usd: None };
    let (id, tool, kind, paths) = ("check".into(), "Bash".into(), AskKind::Run, Vec::new());
    let (input, command) = (Value::Null, Some(command));
    let ask = PermissionAsk { id, tool, input, kind, paths, command, inquiry: None, planning: false };
    let (verdict, why, rule) = match approvals.judge(&ask, &scene) {
        Verdict::Allow { why } => ("allowed", why, None),
        Verdict::Deny { why } => ("denied", why, None),
        Verdict::Ask { why, rule } => ("asked", why, rule),
    };
    if json {
        print_json(&json!({"type": "approval", "verdict": verdict, "why": why, "rule": rule}))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format_args!("{verdict}: {}\n", clean(&why)));
    if let Some(rule) = rule {
        eprintln!("hint: [approvals] commands = [\"{}\"] in sage.toml", clean(&rule));
    }
    Ok(ExitCode::SUCCESS)
}
