//! `sage budget`: what a run may spend, has spent and has left; and letting it spend more.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Subcommand;
use sage_core::budget::{Amount, Cap, Node, RUN};
use sage_core::diagnostic::did_you_mean;
use sage_core::event::PauseReason;
use sage_core::port::Usage;
use sage_core::run::{Beside, PhaseId, Run, Status, StepId};
use sage_core::wire::{shown_cost, unpriced};
use sage_engine::control::Signal;
use sage_engine::open::OpenError;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::{feature, print, print_json, signal};
use crate::command_line::{CommandLine, sage, tell};
use crate::display::raise_command;
use crate::display::text::plural;
use crate::trust::person::refuse_steps;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set what may be spent: 10usd is the new budget, +5usd is added to it
    Raise {
        /// 10usd, 500k (tokens), 10usd+500k; with a `+` before it: more than now
        amount: String,
        /// Of what: run, phase:<id>, step:<path>, agent:<name>
        #[arg(long, value_name = "NODE", default_value = RUN)]
        of: String,
    },
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        self.action.is_none()
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let snapshot = context.engine().read(&feature)?;
    if snapshot.is_foreign && !context.accepts_foreign && args.action.is_some() {
        return Err(OpenError::Foreign(feature).into());
    }
    let run = snapshot.run;
    match args.action {
        None => show(&run, args.json),
        Some(Action::Raise { amount, of }) => {
            let command = sage("budget").arg(&args.feature).arg("raise").arg(&amount).to_string();
            refuse_steps("raise a budget", &command)?;
            raise(context, &run, &amount, &of, args.json)
        }
    }
}

/// A line of the tree.
struct Row {
    name: String,
    depth: usize,
    node: Node,
    /// What was spent, or a part of it, comes from the price table.
    estimated: bool,
}

/// The run, its phases and what is below each, in the order of the plan; then the agents.
fn rows(run: &Run) -> Vec<Row> {
    let usages = usages(run);
    let row = |name: &str, depth: usize| Row {
        name: name.into(),
        depth,
        node: run.node_so_far(name).unwrap_or_default(),
        estimated: usages.get(name).is_some_and(|usage| usage.cost_estimated),
    };
    let mut phases: BTreeMap<PhaseId, Vec<Row>> = BTreeMap::new();
    for id in run.step_ids() {
        phases.entry(run.step(id).phase).or_default().extend(step_row(run, id));
    }
    let mut rows = vec![row(RUN, 0)];
    for (phase, steps) in phases {
        let name = format!("phase:{}", run.phase_path(phase));
        if run.ledger.node(&name).is_some() || !steps.is_empty() {
            rows.push(row(&name, 1));
        }
        rows.extend(steps);
    }
    let agents = run.ledger.nodes().filter(|(name, _)| name.starts_with("agent:"));
    rows.extend(agents.map(|(name, _)| row(name, 1)));
    rows
}

/// What counts in each node that is no step.
fn usages(run: &Run) -> BTreeMap<String, Usage> {
    let mut usages: BTreeMap<String, Usage> = BTreeMap::from([(RUN.to_string(), run.usage())]);
    for id in run.step_ids() {
        let used = run.usage_of(id);
        for node in run.way(id).into_iter().filter(|node| *node != RUN) {
            usages.entry(node.to_string()).or_default().add(&used);
        }
    }
    usages
}

/// A step with a budget, as the ledger has it; another one that spent, as all views show it.
fn step_row(run: &Run, id: StepId) -> Option<Row> {
    let step = run.step(id);
    let name = format!("step:{}", step.path);
    let usage = run.usage_of(id);
    let node = run.node_so_far(&name).or_else(|| {
        let reserved = step.beside.iter().map(|beside| beside.reserved);
        let reserved = reserved.fold(Amount::default(), Amount::saturating_add);
        let settled = step.usage.as_deref().map(|usage| Amount::of(usage, usage.cost_micro_usd()));
        let node = Node { cap: None, settled: settled.unwrap_or_default(), reserved };
        let spends = settled.is_some() || !reserved.is_zero() || !usage.is_empty();
        spends.then(|| step.beside.iter().fold(node, Beside::so_far))
    });
    node.map(|node| Row { name, depth: 2, node, estimated: usage.cost_estimated })
}

fn show(run: &Run, json: bool) -> Result<ExitCode, Failure> {
    let rows = rows(run);
    if json {
        let usage = run.usage();
        print_json(&json!({
            "type": "budget", "feature": run.feature, "status": run.status.name(),
            "capped": run.ledger.has_caps(), "unattributed": run.tally.unattributed,
            "costUsd": shown_cost(&usage), "costEstimated": usage.cost_estimated,
            "notices": unpriced(run),
            "nodes": rows.iter().map(row_json).collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let texts: Vec<[String; 5]> = rows.iter().map(texts).collect();
    let headings = ["", "BUDGET", "SPENT", "RESERVED", "LEFT"];
    let widths: Vec<usize> = (0..5)
        .map(|column| {
            texts.iter().map(|row| row[column].len()).max().unwrap_or(0).max(headings[column].len())
        })
        .collect();
    line(&headings.map(str::to_string), &widths);
    texts.iter().for_each(|row| line(row, &widths));
    if !run.ledger.has_caps() {
        print("nothing is capped: no budget is set\n");
        if run.ledger.node(RUN).is_some() && run.status.open() {
            tell(raised(run, "5usd", RUN));
        }
    }
    if run.tally.unattributed > 0 {
        let attempts = plural(u64::from(run.tally.unattributed), "attempt");
        eprintln!(
            "note: {attempts} did not report all usage; those that reported none count as what they had reserved"
        );
    }
    unpriced(run).into_iter().for_each(|notice| eprintln!("note: {notice}"));
    if matches!(run.status, Status::Paused { reason: PauseReason::Budget, .. }) {
        raise_command(run).into_iter().for_each(tell);
    }
    hint_resume(run);
    Ok(ExitCode::SUCCESS)
}

fn texts(row: &Row) -> [String; 5] {
    let amount = |amount: Amount| if amount.is_zero() { "-".into() } else { amount.to_string() };
    let node = &row.node;
    let spent = if row.estimated { node.settled.about() } else { amount(node.settled) };
    let over = node.overshoot();
    let left = match node.cap {
        Some(_) if !over.is_zero() => format!("over by {over}"),
        Some(cap) => cap.left(node.settled, node.reserved).to_string(),
        None => "-".into(),
    };
    let cap = node.cap.map_or("-".into(), |cap| cap.to_string());
    let name = format!("{}{}", "  ".repeat(row.depth), row.name);
    [name, cap, spent, amount(node.reserved), left]
}

fn line(columns: &[String; 5], widths: &[usize]) {
    let padded = columns.iter().zip(widths).map(|(text, width)| format!("{text:width$}"));
    print(format_args!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end()));
}

fn row_json(row: &Row) -> Value {
    let usd = |micro_usd: u64| micro_usd as f64 / 1e6;
    let amount = |amount: Amount| json!({"tokens": amount.tokens, "usd": usd(amount.micro_usd)});
    let cap = |cap: Cap| json!({"tokens": cap.tokens, "usd": cap.micro_usd.map(usd)});
    let node = &row.node;
    json!({
        "node": row.name, "cap": node.cap.map(cap), "spent": amount(node.settled),
        "estimated": row.estimated, "reserved": amount(node.reserved), "left": node.cap.map(|c| cap(c.left(node.settled, node.reserved))),
        "over": amount(node.overshoot()),
    })
}

fn raise(context: &Context, run: &Run, text: &str, node: &str, json: bool) -> Result<ExitCode, Failure> {
    let Some(now) = run.ledger.node(node) else { return Err(no_node(run, node, text)) };
    let (given, cap) = new_cap(now.cap, text)?;
    let spent = now.settled;
    let used_up = |cap: Option<u64>, spent: u64| cap.is_some_and(|cap| cap <= spent);
    if used_up(cap.tokens, spent.tokens) || used_up(cap.micro_usd, spent.micro_usd) {
        // As much as they meant to allow, on top of what is gone.
        let enough = |cap: Option<u64>, given: Option<u64>, spent: u64| {
            cap.map(|cap| if cap > spent { cap } else { spent.saturating_add(given.unwrap_or(cap)) })
        };
        let enough = Cap {
            tokens: enough(cap.tokens, given.tokens, spent.tokens),
            micro_usd: enough(cap.micro_usd, given.micro_usd, spent.micro_usd),
        };
        let enough = || raised(run, enough.to_string(), node);
        return Err(Failure::usage(format!("{cap} would be used up at once; spent already: {spent}"))
            .hint(few_tokens(run, given, node).unwrap_or_else(enough)));
    }
    let before = now.cap;
    let raised = signal::deliver(context, &run.feature, Signal::Raise { node: node.into(), cap })?;
    if json {
        print_json(&json!({
            "type": "budgetRaised", "feature": run.feature, "node": node, "cap": cap.to_string(),
            "status": raised.status.name(),
        }))?;
    } else {
        let lowered = before.filter(|before| is_lower(cap, *before));
        let lowered = lowered.map(|before| format!(", lowered from {before}")).unwrap_or_default();
        print(format_args!("the budget of {node} in {} is {cap} now{lowered}\n", run.feature));
        few_tokens(run, given, node).into_iter().for_each(tell);
        if super::background::goes_on_by_itself(context, &run.feature) {
            eprintln!("note: it goes on by itself in the background");
        } else {
            hint_resume(&raised);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_lower(now: Cap, before: Cap) -> bool {
    let lower = |now: Option<u64>, before: Option<u64>| matches!((now, before), (Some(n), Some(b)) if n < b);
    lower(now.tokens, before.tokens) || lower(now.micro_usd, before.micro_usd)
}

/// So few tokens are none: they meant money.
fn few_tokens(run: &Run, given: Cap, node: &str) -> Option<CommandLine> {
    const FEW: u64 = 100;
    let tokens = given.tokens.filter(|tokens| *tokens < FEW && given.micro_usd.is_none())?;
    let told = plural(tokens, "token");
    Some(raised(run, format!("{tokens}usd"), node).comment(format!("for money; {tokens} means {told}")))
}

/// The command that gives a budget this much.
fn raised(run: &Run, amount: impl Into<String>, node: &str) -> CommandLine {
    let of = (node != RUN).then_some(node);
    sage("budget").arg(&run.feature).arg("raise").arg(amount).option_if("--of", of)
}

/// What is given, and the new budget: a plain amount is all of it. Of a unit that it does not name, what there was stays.
fn new_cap(now: Option<Cap>, text: &str) -> Result<(Cap, Cap), Failure> {
    let now = now.unwrap_or_default();
    let (more, amount) = match text.trim().strip_prefix('+') {
        Some(amount) => (true, amount),
        None => (false, text),
    };
    let given = Cap::parse(amount).map_err(|error| {
        Failure::usage(error.to_string()).hint("sage budget FEATURE raise 10usd    # or +5usd")
    })?;
    let unit = |now: Option<u64>, given: Option<u64>, what: &str| match (now, given, more) {
        (now, None, _) => Ok(now),
        (_, Some(given), false) => Ok(Some(given)),
        (Some(now), Some(given), true) => Ok(Some(now.saturating_add(given))),
        (None, Some(_), true) => {
            let message = format!("`+` adds to a budget, and there is none in {what}");
            Err(Failure::usage(message).hint(format!("raise {}    # as the new budget", amount.trim())))
        }
    };
    let tokens = unit(now.tokens, given.tokens, "tokens")?;
    Ok((given, Cap { tokens, micro_usd: unit(now.micro_usd, given.micro_usd, "money")? }))
}

fn no_node(run: &Run, node: &str, amount: &str) -> Failure {
    if node == RUN {
        return Failure::usage(format!("nothing of `{}` is capped or spent yet", run.feature))
            .hint(sage("resume").arg(&run.feature).option("--budget", "5usd").comment("once it is paused"));
    }
    if let Some(id) = node.strip_prefix("step:").and_then(|path| run.find(path)) {
        let around = budget_around(run, id);
        return Failure::usage(format!("`{node}` has no budget of its own; raise `{around}`"))
            .hint(raised(run, amount, &around));
    }
    let names = || run.ledger.nodes().map(|(name, _)| name);
    let known = || names().collect::<Vec<_>>().join(", ");
    Failure::usage(format!("no budget is called `{}`", node.escape_debug()))
        .hint(did_you_mean(node, names()).unwrap_or_else(known))
}

/// The innermost node with a cap that a step counts in, else its phase.
fn budget_around(run: &Run, id: StepId) -> String {
    let phase = format!("phase:{}", run.phase_path(run.step(id).phase));
    let way = run.demand(id).way.iter().chain([&phase]);
    let capped = |name: &&String| run.ledger.cap(name).is_some();
    let found = way.into_iter().find(capped).cloned();
    let run_node = || run.ledger.cap(RUN).map(|_| RUN.to_string());
    found.or_else(run_node).unwrap_or(phase)
}

fn hint_resume(run: &Run) {
    if matches!(run.status, Status::Paused { reason: PauseReason::Budget, .. }) {
        tell(sage("resume").arg(&run.feature).comment("it is paused because of its budget"));
    }
}
