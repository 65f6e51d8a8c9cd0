//! `sage run --dry-run`: the plan and what it will probably cost. Nothing is started, nothing is spent.

use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use sage_core::budget::{Amount, Cap};
use sage_core::plan::Plan;
use sage_core::template::{Kind, Template};
use sage_engine::open::{Kept, StartRequest, history};
use serde_json::{Value, json};

use super::catalog::Ready;
use super::context::Context;
use super::failure::Failure;
use super::projection::{Basis, Knowledge, OUTPUT_PERCENT, Projection, StepEstimate};
use super::{inputs, print};
use crate::display::text::{ago_text, clean, plural};

pub fn show(
    context: &Context,
    ready: Ready,
    request: &StartRequest,
    json: bool,
) -> Result<ExitCode, Failure> {
    let settings = &request.settings;
    let cached = context.engine().would_take(request)?;
    let prices = context.config.prices();
    let others: HashMap<String, Template> = ready
        .others
        .iter()
        .filter_map(|frozen| Some((frozen.name.clone(), sage_core::load::reload(frozen).ok()?)))
        .collect();
    let history = history::load(&context.project.state());
    let knowledge = Knowledge { settings, history: &history, prices: &prices, others: &others };
    let mut projection = Projection::of(&ready.template, &knowledge);
    let kept: HashSet<&str> = cached.iter().map(|kept| kept.path.as_str()).collect();
    projection.steps.retain(|step| !kept.contains(step.path.as_str()));
    let budget = settings.budget.or(ready.template.budget);
    let agents =
        ready.template.phases.iter().flat_map(|p| &p.operations).filter(|op| op.kind == Kind::Agent).count();
    let code = ready.template.phases.iter().flat_map(|p| &p.operations).any(|op| op.kind == Kind::Script);
    let rows = inputs::rows(&ready.template, &request.inputs);
    let plan = Plan::new(ready.template).map_err(|error| Failure::usage(error.to_string()))?;
    let width = plan.batches().iter().map(Vec::len).max().unwrap_or(0);
    if json {
        let path = |n: &u32| plan.steps[*n as usize].path.to_string();
        let batches: Vec<Vec<String>> = plan.batches().iter().map(|b| b.iter().map(path).collect()).collect();
        super::print_json(&json!({
            "type": "plan", "template": plan.template.name, "steps": plan.steps.len(), "depth": plan.depth,
            "width": width, "parallel": settings.parallel, "agents": agents, "batches": batches, "inputs": request.inputs,
            "cached": cached.iter().map(cached_json).collect::<Vec<_>>(),
            "estimate": estimate_json(&projection, budget, prices.as_of()),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(crate::graph::text(&plan));
    let counted = format!(
        "{}, {} deep, at most {} at once (limit {})",
        plural(plan.steps.len() as u64, "step"),
        plan.depth,
        width,
        settings.parallel
    );
    print(format_args!("{counted}; {}. Nothing was started.\n", plural(agents as u64, "agent step")));
    if code {
        print("What code calls is known when it runs: it is in none of these numbers.\n");
    }
    tell_inputs(&rows);
    tell_cached(&cached);
    if !projection.steps.is_empty() {
        table(&projection, prices.as_of());
    }
    if let Some(cap) = budget {
        tell_fit(&projection, cap);
    }
    Ok(ExitCode::SUCCESS)
}

fn cached_json(kept: &Kept) -> Value {
    json!({
        "path": kept.path, "ageMs": kept.age_ms, "expiresInMs": kept.expires_in_ms,
        "savedTokens": kept.saved_tokens, "savedMs": kept.saved_ms,
    })
}

fn tell_inputs(rows: &[[String; 3]]) {
    if rows.is_empty() {
        return;
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, values) = (width(0), width(1));
    print("inputs:\n");
    for [name, value, source] in rows {
        print(format_args!("  {:names$}  {value:values$}  {}\n", clean(name), clean(source)));
    }
}

/// As far as it can be told: what depends on a step that has to run is not known yet.
fn tell_cached(cached: &[Kept]) {
    if cached.is_empty() {
        return;
    }
    let tokens: u64 = cached.iter().map(|kept| kept.saved_tokens).sum();
    let tokens = if tokens > 0 { format!(", saves ~{}", tokens_text(tokens)) } else { String::new() };
    print(format_args!("{} from the cache{tokens}:\n", plural(cached.len() as u64, "step")));
    let width = cached.iter().map(|kept| kept.path.len()).max().unwrap_or(0);
    for kept in cached {
        print(format_args!("  {:width$}  {} old\n", clean(&kept.path), ago_text(kept.age_ms)));
    }
}

fn tokens_text(tokens: u64) -> String {
    Amount { tokens, micro_usd: 0 }.to_string()
}

/// Nothing is free here: 0 means too little to show.
fn usd_text(micro_usd: u64) -> String {
    Amount { tokens: 0, micro_usd: micro_usd.max(1) }.to_string()
}

fn table(projection: &Projection, as_of: &str) {
    let name = |text: &Option<String>| clean(text.as_deref().unwrap_or("-"));
    let width =
        |column: &dyn Fn(&StepEstimate) -> usize| projection.steps.iter().map(column).max().unwrap_or(0);
    let (paths, agents) = (width(&|s| s.path.len()), width(&|s| name(&s.agent).len()));
    let models = width(&|s| name(&s.model).len());
    print("\n");
    for step in &projection.steps {
        let (agent, model) = (name(&step.agent), name(&step.model));
        print(format_args!("  {:paths$}  {agent:agents$}  {model:models$}  {}\n", step.path, expected(step)));
    }
    let total = projection.total();
    let mut parts = vec![plural(projection.steps.len() as u64, "agent step")];
    if total.tokens > 0 {
        parts.push(format!("~{}", tokens_text(total.tokens)));
    }
    if total.micro_usd > 0 {
        parts.push(format!("~{}", usd_text(total.micro_usd)));
    }
    let gaps = [
        (projection.free(), "of them free (no model)"),
        (projection.unknown(), "of them unknown"),
        (projection.unpriced(), "without a known price"),
        (projection.fan_outs(), "per item, counted once"),
    ];
    let gaps = gaps.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("; {count} {what}"));
    print(format_args!("{}{}\n", parts.join(", "), gaps.collect::<String>()));
    if total.micro_usd > 0 {
        print(format_args!(
            "prices of {as_of}; tokens that nobody has told apart count as {OUTPUT_PERCENT}% output\n"
        ));
    }
}

fn expected(step: &StepEstimate) -> String {
    let from = match step.from {
        Basis::Unknown => return if step.per_item { "unknown, per item".into() } else { "unknown".into() },
        Basis::Free => return "free".into(),
        Basis::Budget => "its budget",
        Basis::History => "earlier runs",
    };
    let amounts = [step.tokens.map(tokens_text), step.micro_usd.map(usd_text)];
    let amounts: Vec<String> = amounts.into_iter().flatten().map(|text| format!("~{text}")).collect();
    format!("{} ({from}){}", amounts.join(", "), if step.per_item { ", per item" } else { "" })
}

fn tell_fit(projection: &Projection, cap: Cap) {
    match projection.fits(cap) {
        Some(true) => print(format_args!("fits the budget of {cap}\n")),
        Some(false) => {
            let total = projection.total();
            eprintln!(
                "warning: ~{total} is more than the budget of {cap}: the run would stop before its end"
            );
        }
        None => print(format_args!("what is known fits the budget of {cap}; the rest is not known\n")),
    }
}

fn usd(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

fn estimate_json(projection: &Projection, budget: Option<Cap>, as_of: &str) -> Value {
    let step = |step: &StepEstimate| {
        json!({
            "path": step.path, "agent": step.agent, "model": step.model, "tokens": step.tokens,
            "costUsd": step.micro_usd.map(usd), "from": step.from.name(), "perItem": step.per_item,
        })
    };
    let total = projection.total();
    json!({
        "steps": projection.steps.iter().map(step).collect::<Vec<_>>(),
        "tokens": total.tokens, "costUsd": usd(total.micro_usd), "unknown": projection.unknown(),
        "unpriced": projection.unpriced(), "perItem": projection.fan_outs(), "pricesAsOf": as_of,
        "budget": budget.map(|cap| cap.to_string()), "fits": budget.map(|cap| projection.fits(cap)),
    })
}
