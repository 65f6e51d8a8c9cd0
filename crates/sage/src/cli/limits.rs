//! `sage limits`: what may run at once and who uses it; and changing that while runs are under way.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use clap::Subcommand;
use sage_core::diagnostic::did_you_mean;
use sage_engine::limits::{Entry, Limits};
use serde_json::json;

use super::config::check_name;
use super::context::Context;
use super::failure::Failure;
use super::limits_view::{self, GLOBAL};
use super::target_names::TARGET_POOL;
use super::{print, print_json};
use crate::command_line::{sage, tell};
use crate::trust::person::refuse_steps;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Change a limit now, also for runs that are under way; it stays until it is unset
    Set {
        /// `global` (all steps), a pool, or a target such as provider:anthropic
        name: String,
        /// How many at once, from 1 on
        #[arg(value_name = "N", allow_negative_numbers = true)]
        limit: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Go back to the configured limit
    Unset {
        /// A name that was set
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        self.action.is_none()
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let limits = context.limits();
    if !args.looks() {
        refuse_steps("change a limit", "sage limits")?;
    }
    match args.action {
        None => limits_view::show(context, &limits, args.json),
        Some(Action::Set { name, limit, json }) => set(context, &limits, &name, &limit, json),
        Some(Action::Unset { name, json }) => unset(&limits, &name, json),
    }
}

fn set(context: &Context, limits: &Limits, name: &str, limit: &str, json: bool) -> Result<ExitCode, Failure> {
    let limit: u32 = limit.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
        Failure::usage(format!("`{limit}` is not a limit: it is a whole number from 1 on"))
            .hint(sage("limits set").arg(name).arg("2"))
            .hint("sage pause FEATURE    # lets nothing start")
    })?;
    let pool = pool_of(context, limits, name)?;
    limits.set(&pool, Some(limit)).map_err(|error| cannot_save(name, &error))?;
    if json {
        print_json(&json!({"type": "limitSet", "name": shown(&pool), "limit": limit}))?;
    } else {
        print(format_args!("{} is {limit} now, also for runs under way\n", shown(&pool)));
        tell(sage("limits unset").arg(shown(&pool)).comment("goes back to what is configured"));
    }
    Ok(ExitCode::SUCCESS)
}

fn unset(limits: &Limits, name: &str, json: bool) -> Result<ExitCode, Failure> {
    let overrides = limits.overrides();
    let pool = [pool_name(name), format!("{TARGET_POOL}{name}")];
    let Some(pool) = pool.into_iter().find(|pool| overrides.contains_key(pool)) else {
        let set: Vec<&str> = overrides.keys().map(|pool| shown(pool)).collect();
        let none = if set.is_empty() { "nothing is set".into() } else { format!("set: {}", set.join(", ")) };
        return Err(Failure::usage(format!("`{}` is not set by `sage limits set`", name.escape_debug()))
            .hint(did_you_mean(name, set.iter().copied()).unwrap_or(none)));
    };
    limits.set(&pool, None).map_err(|error| cannot_save(name, &error))?;
    if json {
        print_json(&json!({"type": "limitUnset", "name": shown(&pool), "limit": null}))?;
    } else {
        print(format_args!("{} is what is configured again\n", shown(&pool)));
    }
    Ok(ExitCode::SUCCESS)
}

fn cannot_save(name: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot save the limit of `{name}`: {error}"))
}

/// People say `parallel` in flags and settings, and mean the same.
fn pool_name(name: &str) -> String {
    if name == "parallel" { GLOBAL.into() } else { name.into() }
}

/// As a person names it.
fn shown(pool: &str) -> &str {
    pool.strip_prefix(TARGET_POOL).unwrap_or(pool)
}

/// The pool that a name means; a name that means nothing would be set and never looked at.
fn pool_of(context: &Context, limits: &Limits, name: &str) -> Result<String, Failure> {
    if name.starts_with("affinity:") {
        return Err(Failure::usage(format!("`{name}` is a rule of sage.toml and cannot be set"))
            .hint("[[affinity]] maxConcurrent = 2 in sage.toml"));
    }
    let pools = pools(&context.config.pools, &limits.overrides(), &limits.board());
    let pool = pool_name(name);
    if pools.contains(&pool) {
        return Ok(pool);
    }
    if name.contains(':') {
        check_name(name).map_err(|(message, hint)| Failure::usage(message).hint(hint))?;
        return Ok(format!("{TARGET_POOL}{name}"));
    }
    let targets = context.config.targets.named.keys();
    let near = did_you_mean(name, pools.iter().chain(targets).map(String::as_str));
    let known = || format!("pools: {}; targets are written <kind>:<name>", known_text(&pools));
    Err(Failure::usage(format!("no pool `{}`", name.escape_debug())).hint(near.unwrap_or_else(known)))
}

fn known_text(pools: &BTreeSet<String>) -> String {
    pools.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Configured, limited by hand, or in use.
fn pools(
    configured: &BTreeMap<String, u32>,
    overrides: &BTreeMap<String, u32>,
    board: &[Entry],
) -> BTreeSet<String> {
    let used = board.iter().map(|entry| &entry.pool);
    let all = configured.keys().chain(overrides.keys()).chain(used);
    let pools = all.filter(|pool| !pool.contains(':')).cloned();
    pools.chain([GLOBAL.to_string()]).collect()
}
