//! `sage run`: start a workflow for a feature.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use sage_agents::AgentConfig;
use sage_core::event::Settings;
use sage_core::plan::Plan;
use sage_core::run::Status;
use sage_core::slug::Feature;
use sage_core::template::{Kind, Operation};
use sage_core::verdict::Verdict;
use sage_engine::lock;
use sage_engine::open::{Engine, OpenError, StartRequest};
use serde_json::{Map, Value, json};

use super::catalog::{Catalog, Ready};
use super::config::Config;
use super::context::Context;
use super::drive::{self, Show};
use super::failure::Failure;
use super::{diagnostics, resume};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What you work on: a title, e.g. "payment processing"
    pub feature: String,
    /// Template: a name from .sage/templates, or a file
    #[arg(short, long)]
    pub template: Option<String>,
    #[command(flatten)]
    pub limits: Limits,
    /// Give up an open run of the same feature and start anew
    #[arg(long, conflicts_with = "wait")]
    pub new: bool,
    /// Wait until an open run of the same feature has ended
    #[arg(long)]
    pub wait: bool,
    /// Show the plan and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Answer no questions: take the default
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub show: Show,
}

/// Flags that `run` and `resume` share.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Limits {
    /// An input of the template; JSON if it reads as such, else text
    #[arg(short, long = "input", value_name = "KEY=VALUE")]
    pub inputs: Vec<String>,
    /// The agent of steps that name none
    #[arg(long)]
    pub agent: Option<String>,
    /// How many steps may run at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub parallel: Option<u32>,
    /// One step at a time, for comparison
    #[arg(long, conflicts_with = "parallel")]
    pub sequential: bool,
    /// Active time after which the run pauses, e.g. 30m
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// Exit 4 instead of waiting for a known time
    #[arg(long)]
    pub no_wait: bool,
}

impl Limits {
    pub fn given(&self) -> bool {
        self.agent.is_some() || self.parallel.is_some() || self.sequential || self.timeout.is_some()
    }

    pub fn settings(&self, config: &Config, template_timeout_ms: Option<u64>) -> Result<Settings, Failure> {
        let sequential = self.sequential || (!config.parallel_enabled && self.parallel.is_none());
        let flag = self.timeout.as_deref().map(time_with_unit).transpose()?;
        Ok(Settings {
            parallel: if sequential { 1 } else { self.parallel.unwrap_or(config.parallel) },
            sequential,
            pools: config.file.pools.clone(),
            timeout_ms: flag.or(template_timeout_ms).or(config.timeout_ms),
            agent: self.agent.clone().or_else(|| config.file.agent.clone()),
            ..Settings::default()
        })
    }

    /// The settings that a run has, changed by the flags that are given and by nothing else.
    pub fn change(&self, settings: &Settings) -> Result<Settings, Failure> {
        let mut changed = settings.clone();
        if let Some(parallel) = self.parallel {
            (changed.parallel, changed.sequential) = (parallel, false);
        }
        if self.sequential {
            (changed.parallel, changed.sequential) = (1, true);
        }
        if let Some(timeout) = &self.timeout {
            changed.timeout_ms = Some(time_with_unit(timeout)?);
        }
        changed.agent = self.agent.clone().or(changed.agent);
        Ok(changed)
    }

    /// The inputs that are given. Where the template's own value is text, what is given is text too.
    pub fn inputs(&self, defaults: &Map<String, Value>) -> Result<Map<String, Value>, Failure> {
        let mut inputs = Map::new();
        for input in &self.inputs {
            let Some((key, value)) = input.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                return Err(Failure::usage(format!("`{input}` is not KEY=VALUE")).hint("-i name=value"));
            };
            let text = defaults.get(key).is_some_and(Value::is_string);
            let parsed = if text { None } else { serde_json::from_str(value).ok() };
            let value = parsed.unwrap_or_else(|| Value::String(value.into()));
            inputs.insert(key.into(), value);
        }
        Ok(inputs)
    }
}

/// In a file a plain number is milliseconds; on a command line nobody means that.
fn time_with_unit(text: &str) -> Result<u64, Failure> {
    match super::config::duration(text)? {
        0 => Err(Failure::usage("a time limit must be longer than 0")),
        _ if text.bytes().all(|c| c.is_ascii_digit()) => {
            Err(Failure::usage(format!("`{text}` has no unit"))
                .hint(format!("--timeout {text}s, or {text}m")))
        }
        ms => Ok(ms),
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = Feature::from_title(&args.feature)?;
    let catalog = Catalog::new(&context.project.root, context.project.templates());
    let name = match &args.template {
        Some(name) => name.clone(),
        None => context.config.file.template.clone().unwrap_or_else(|| "feature".into()),
    };
    let ready = catalog.load(&name, &mut diagnostics::reporter(args.show.json))?;
    let settings = args.limits.settings(&context.config, ready.template.timeout_ms)?;
    check_agents(context, &ready, settings.agent.as_deref())?;
    let mut inputs = ready.template.inputs.clone();
    inputs.extend(args.limits.inputs(&ready.template.inputs)?);
    if args.dry_run {
        return dry_run(ready, &settings, args.show.json);
    }
    let request = StartRequest {
        feature: feature.slug().into(),
        title: feature.title().into(),
        template: ready.frozen,
        templates: ready.others,
        inputs,
        settings,
        replace: args.new,
        no_wait: args.limits.no_wait,
    };
    start(context, request, &args)
}

fn start(context: &Context, mut request: StartRequest, args: &Args) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    tell_earlier(&engine, &request.feature);
    loop {
        match engine.start(request.clone()) {
            Ok(owned) => return drive::drive(&engine, owned, &args.show),
            Err(OpenError::Owned { .. }) if args.wait => {
                wait_for_owner(&context.project.lock(&request.feature))
            }
            Err(error @ OpenError::Open { .. }) if asks(args) => match ask(&error) {
                Some('r') => return resume::execute(context, resume::Args::of(&request.feature, args)),
                Some('n') => request.replace = true,
                _ => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
}

/// A run that ended badly could be resumed instead; after this it is no longer the newest.
fn tell_earlier(engine: &Engine, feature: &str) {
    let Ok(before) = engine.read(feature) else { return };
    let run = &before.run;
    if matches!(run.status, Status::Finished(Verdict::Failed) | Status::Cancelled { resumable: true }) {
        let progress = sage_core::wire::Progress::of(run);
        let done = run.live_steps().filter(|step| step.children.is_none() && step.state.ok()).count();
        eprintln!(
            "note: this starts anew; the run before is {} with {done} of {} steps done (sage resume goes on with it)",
            run.status.name(),
            progress.total
        );
    }
}

/// The lock is freed by the owner's end or death; nothing tells us when, so we look.
fn wait_for_owner(lock: &std::path::Path) {
    eprintln!("waiting for the run's owner to end");
    while lock::peek(lock).is_some() {
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn asks(args: &Args) -> bool {
    !args.yes && !args.show.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn ask(error: &OpenError) -> Option<char> {
    eprint!("{error}. [r]esume it, start a [n]ew one, or [a]bort? ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    line.trim().chars().next().map(|c| c.to_ascii_lowercase())
}

/// Missing agents are found before anything is spent, those of sub-workflows too.
pub fn check_agents(context: &Context, ready: &Ready, default: Option<&str>) -> Result<(), Failure> {
    let known = context.config.agents();
    for template in ready.inner.iter().chain([&ready.template]) {
        for phase in &template.phases {
            for operation in phase.operations.iter().filter(|operation| operation.kind == Kind::Agent) {
                check_agent(&format!("{}/{}", phase.id, operation.id), operation, default, &known)?;
            }
        }
    }
    Ok(())
}

fn check_agent(
    path: &str,
    operation: &Operation,
    default: Option<&str>,
    known: &BTreeMap<String, AgentConfig>,
) -> Result<(), Failure> {
    let has_command = operation.params.contains_key("command");
    match operation.agent.as_deref().or(default) {
        None if operation.params.contains_key("script") || has_command => Ok(()),
        None => Err(Failure::usage(format!("step `{path}` names no agent and there is no default"))
            .hint("--agent fake, or `agent = \"...\"` in sage.toml")),
        Some("fake" | "command") => Ok(()),
        Some(name) if known.contains_key(name) || has_command => Ok(()),
        Some(name) => {
            let names: Vec<&str> = known.keys().map(String::as_str).chain(["fake"]).collect();
            Err(Failure::usage(format!("step `{path}`: agent `{name}` is not configured")).hint(format!(
                "known agents: {}; add [agents.{name}] command = [...] to sage.toml",
                names.join(", ")
            )))
        }
    }
}

fn dry_run(ready: Ready, settings: &Settings, json: bool) -> Result<ExitCode, Failure> {
    let agents =
        ready.template.phases.iter().flat_map(|p| &p.operations).filter(|op| op.kind == Kind::Agent).count();
    let plan = Plan::new(ready.template).map_err(|error| Failure::usage(error.to_string()))?;
    let width = plan.batches().iter().map(Vec::len).max().unwrap_or(0);
    if json {
        super::print_json(&json!({
            "type": "plan", "template": plan.template.name, "steps": plan.steps.len(), "depth": plan.depth,
            "width": width, "parallel": settings.parallel, "agents": agents,
            "batches": plan.batches().iter().map(|b| b.iter().map(|&n| plan.steps[n as usize].path.to_string()).collect::<Vec<_>>()).collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    super::print(crate::graph::text(&plan));
    let counted = format!(
        "{} steps, {} deep, at most {} at once (limit {})",
        plan.steps.len(),
        plan.depth,
        width,
        settings.parallel
    );
    super::print(format_args!("{counted}; {agents} agent steps. Nothing was started.\n"));
    Ok(ExitCode::SUCCESS)
}
