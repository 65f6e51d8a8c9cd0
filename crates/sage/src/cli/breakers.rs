//! `sage breakers`: which targets are healthy, parked or switched off; and resetting and isolating them.

use std::process::ExitCode;

use clap::Subcommand;
use sage_core::diagnostic::did_you_mean;
use sage_core::target::{BreakerState, Hold, HoldReason, QuotaPolicy, Target};
use sage_core::wire::rfc3339;
use sage_engine::limits::Limits;
use serde_json::{Value, json};

use super::config::check_name;
use super::context::Context;
use super::failure::Failure;
use super::{print, print_json, target_names};
use crate::command_line::{sage, tell};
use crate::display::text::{clean, clock_text};
use crate::trust::person::refuse_steps;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Only this one, with its last changes: <kind>:<name>
    target: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say that a target is well: close its breaker, forget waits and learned limits
    Reset {
        /// <kind>:<name>, e.g. provider:anthropic
        #[arg(conflicts_with = "all")]
        target: Option<String>,
        /// All targets
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let nothing call a target until it is reset
    Isolate {
        /// <kind>:<name>, e.g. host:api.example.com
        target: String,
        /// Why, for others to read
        #[arg(short, long, value_name = "WHY")]
        message: Option<String>,
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
    match args.action {
        None => show(context, &limits, args.target.as_deref(), args.json),
        Some(Action::Reset { target: None, all: false, .. }) => {
            Err(Failure::usage("`reset` needs the name of a target, or `--all`")
                .hint("sage breakers reset --all")
                .hint("sage breakers    # shows their names"))
        }
        Some(Action::Reset { target, json, .. }) => {
            refuse_steps("reset a breaker", "sage breakers reset")?;
            reset(context, &limits, target.as_deref(), json)
        }
        Some(Action::Isolate { target, message, json }) => {
            refuse_steps("isolate a target", "sage breakers isolate")?;
            isolate(context, &limits, &target, message.as_deref(), json)
        }
    }
}

fn now_ms() -> u64 {
    sage_engine::clock::Clock::System.now_ms()
}

/// A target as people see it.
struct View<'a> {
    name: &'a str,
    target: &'a Target,
    state: BreakerState,
    hold: Option<Hold>,
    /// In a row, of a closed breaker.
    failures: u64,
    learned_width: Option<u32>,
}

impl<'a> View<'a> {
    fn of(context: &Context, (name, target): &'a (String, Target), now_ms: u64) -> View<'a> {
        // The count is the breaker's own affair; its stored form tells it.
        let stored = serde_json::to_value(&target.breaker).unwrap_or(Value::Null);
        View {
            name,
            target,
            state: target.breaker.state(now_ms),
            hold: target.hold(context.config.targets.policy(name), now_ms),
            failures: stored["circuit"]["failures"].as_u64().unwrap_or(0),
            learned_width: target.quota.width(&QuotaPolicy::default()),
        }
    }

    fn is_unwell(&self) -> bool {
        let closed = self.state == BreakerState::Closed && self.failures == 0;
        !closed || self.hold.is_some() || self.learned_width.is_some()
    }

    fn json(&self) -> Value {
        let last = self.target.breaker.changes.last();
        json!({
            "name": self.name, "state": self.state.name(), "failures": self.failures,
            "openings": self.target.breaker.opened, "learnedWidth": self.learned_width,
            "hold": self.hold.as_ref().map(|hold| json!({
                "reason": hold.reason, "until": hold.until.map(rfc3339), "message": hold.message,
            })),
            "changedAt": last.map(|change| rfc3339(change.at_ms)),
        })
    }

    fn state_text(&self, now_ms: u64) -> String {
        let until = self.hold.as_ref().filter(|hold| hold.reason == HoldReason::Breaker);
        match (self.state, until.and_then(|hold| hold.until)) {
            (BreakerState::Open, Some(until)) => format!("open for {}", time_left(until, now_ms)),
            (state, _) => state.name().into(),
        }
    }

    /// Why nothing may call it now, and for how long.
    fn hold_text(&self, now_ms: u64) -> String {
        let Some(hold) = &self.hold else { return String::new() };
        let parked = matches!(hold.reason, HoldReason::RateLimit | HoldReason::Quota);
        match hold.until.filter(|_| parked) {
            Some(until) => format!("parked for {}: {}", time_left(until, now_ms), clean(&hold.message)),
            None => clean(&hold.message),
        }
    }
}

/// With the time of day where it is far away.
fn time_left(until: u64, now_ms: u64) -> String {
    const SOON_MS: u64 = 60 * 60_000;
    let left = until.saturating_sub(now_ms);
    let clock = clock_text(left.max(1_000));
    if left < SOON_MS { clock } else { format!("{clock} (until {})", rfc3339(until)) }
}

fn show(context: &Context, limits: &Limits, name: Option<&str>, json: bool) -> Result<ExitCode, Failure> {
    let mut known = target_names::known(context, limits);
    if let Some(name) = name {
        if !known.iter().any(|(known, _)| known == name) {
            return Err(target_names::unknown(name, &known));
        }
        known.retain(|(known, _)| known == name);
    }
    let now = now_ms();
    let views: Vec<View<'_>> = known.iter().map(|target| View::of(context, target, now)).collect();
    if json {
        let mut targets: Vec<Value> = views.iter().map(View::json).collect();
        if let (Some(_), [target], [view]) = (name, targets.as_mut_slice(), views.as_slice()) {
            target["changes"] = changes_json(view.target);
        }
        print_json(&json!({"type": "breakers", "targets": targets}))?;
        return Ok(ExitCode::SUCCESS);
    }
    table(&views, now);
    if name.is_some() {
        views.iter().for_each(|view| changes(view.target, now));
    }
    let held = views.iter().find(|view| view.hold.is_some());
    if let Some(view) = held {
        tell(sage("breakers reset").arg(view.name).comment("if it is well again"));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(views: &[View<'_>], now_ms: u64) {
    let width = views.iter().map(|view| view.name.len()).max().unwrap_or(0).max("TARGET".len());
    print(format_args!(
        "{:width$}  {:14}  {:>8}  {:>8}  {:>7}  {:12}  NOW\n",
        "TARGET", "BREAKER", "FAILURES", "OPENINGS", "LEARNED", "LAST CHANGE"
    ));
    for view in views {
        let last = view.target.breaker.changes.last();
        let changed = last.map_or("-".into(), |change| ago(change.at_ms, now_ms));
        let learned = view.learned_width.map_or("-".into(), |width| width.to_string());
        let line = format!(
            "{:width$}  {:14}  {:>8}  {:>8}  {learned:>7}  {changed:12}  {}",
            view.name,
            view.state_text(now_ms),
            view.failures,
            view.target.breaker.opened,
            view.hold_text(now_ms)
        );
        print(format_args!("{}\n", line.trim_end()));
    }
}

fn ago(at_ms: u64, now_ms: u64) -> String {
    format!("{} ago", clock_text(now_ms.saturating_sub(at_ms)))
}

fn changes(target: &Target, now_ms: u64) {
    if target.breaker.changes.is_empty() {
        print("no changes so far\n");
    }
    for change in &target.breaker.changes {
        print(format_args!(
            "{}  {:12}  {} -> {}: {}\n",
            rfc3339(change.at_ms),
            ago(change.at_ms, now_ms),
            change.from.name(),
            change.to.name(),
            clean(&change.why)
        ));
    }
}

fn changes_json(target: &Target) -> Value {
    let change = |change: &sage_core::target::Transition| json!({"at": rfc3339(change.at_ms), "from": change.from.name(), "to": change.to.name(), "why": change.why});
    target.breaker.changes.iter().map(change).collect()
}

fn reset(context: &Context, limits: &Limits, name: Option<&str>, json: bool) -> Result<ExitCode, Failure> {
    let known = target_names::known(context, limits);
    let names: Vec<&str> = match name {
        None => {
            known.iter().filter(|(_, state)| !state.is_default()).map(|(name, _)| name.as_str()).collect()
        }
        Some(name) if known.iter().any(|(known, _)| known == name) => vec![name],
        Some(name) => return Err(target_names::unknown(name, &known)),
    };
    for name in &names {
        change(limits, name, |target| target.clear(now_ms(), "reset by a person"))?;
    }
    // Of all, only those are told that were not well: the others had nothing but counts.
    let now = now_ms();
    let unwell = known.iter().filter(|target| View::of(context, target, now).is_unwell());
    let names: Vec<&str> = match name {
        None => unwell.map(|(name, _)| name.as_str()).collect(),
        Some(_) => names,
    };
    if json {
        print_json(&json!({"type": "breakersReset", "targets": names}))?;
    } else if names.is_empty() {
        print("nothing to reset: all targets are well\n");
    } else {
        print(format_args!("reset {}\n", names.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

fn isolate(
    context: &Context,
    limits: &Limits,
    name: &str,
    why: Option<&str>,
    json: bool,
) -> Result<ExitCode, Failure> {
    check_name(name).map_err(|(message, hint)| Failure::usage(message).hint(hint))?;
    let known = target_names::known(context, limits);
    if !known.iter().any(|(known, _)| known == name) {
        let near = did_you_mean(name, known.iter().map(|(name, _)| name.as_str()));
        eprintln!(
            "note: nothing has called `{name}` yet{}",
            near.map_or(String::new(), |near| format!("; {near}"))
        );
    }
    let why = why.unwrap_or("isolated by a person");
    change(limits, name, |target| target.breaker.isolate(now_ms(), why))?;
    if json {
        print_json(&json!({"type": "breakerIsolated", "target": name, "why": why}))?;
    } else {
        print(format_args!("isolated {name}: nothing calls it any more; what is under way finishes\n"));
        tell(sage("breakers reset").arg(name));
    }
    Ok(ExitCode::SUCCESS)
}

fn change(limits: &Limits, name: &str, change: impl FnOnce(&mut Target)) -> Result<(), Failure> {
    let changed = limits.change(name, change);
    changed
        .map(drop)
        .map_err(|error| Failure::failed(format!("cannot change the state of `{name}`: {error}")))
}
