//! Commands to type next, the most useful first.

use sage_core::budget::{Cap, Node, RUN};
use sage_core::event::{Frozen, PauseReason};
use sage_core::policy::FailureClass;
use sage_core::run::{Run, State, Status, StepId};
use sage_core::verdict::Verdict;
use sage_core::wire::{failed_steps, outputs};

use super::summary::asking_steps;
use super::text::{Line, Tone};
use super::walk;
use crate::command_line::{CommandLine, sage};

pub(super) fn lines(run: &Run) -> Vec<Line> {
    let commands = commands(run);
    let width = commands.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let line = |(at, (command, why)): (usize, &(String, &str))| {
        let mut line = Line::of(Tone::Dim, if at == 0 { "  next: " } else { "        " });
        line.push(Tone::Bold, command);
        line.pad_to(8 + width);
        line.with(Tone::Dim, &format!("  {why}"))
    };
    commands.iter().enumerate().map(line).collect()
}

fn commands(run: &Run) -> Vec<(String, &'static str)> {
    let feature = run.feature.as_str();
    let mut commands: Vec<(String, &str)> = Vec::new();
    let asking = asking_steps(run).first().copied().filter(|_| run.status.open());
    match asking {
        Some(id) if run.is_unchecked(id) => {
            let again = sage("resume").arg(feature).to_string();
            commands.push((again, "makes the check again, once it can be made"));
            commands.push((walk::approve_command(run, id), "goes on without it; sage reject fails it"));
            return commands;
        }
        Some(id) => commands.push((walk::approve_command(run, id), "or reject it")),
        None => {}
    }
    let resume = |why| (sage("resume").arg(feature).to_string(), why);
    let raise = || raise_command(run).map(|command| (command, "gives it more"));
    match run.status {
        Status::Running => {}
        Status::Finished(Verdict::Succeeded) => commands.extend(after_success(run)),
        Status::Finished(Verdict::Degraded) => {
            commands.extend(after_success(run));
            if let Some(&id) = failed_steps(run).first() {
                let command = sage("resume").arg(feature).option("--from", run.step(id).path.as_ref());
                commands.push((command.into(), "runs it and what follows again"));
            }
        }
        Status::Finished(_) => {
            commands.extend(raise().filter(|_| for_budget(run).is_some()));
            commands.extend(
                mended(run).map(|command| (command, "goes on with the code once you have mended it")),
            );
            commands.push(resume("tries again; finished steps are kept"));
        }
        Status::Cancelled { resumable: false } => commands.push((anew(run).into(), "starts anew")),
        Status::Cancelled { resumable: true } => commands.push(resume("goes on where it was cancelled")),
        Status::Paused { .. } if run.pause_reason().is_none() => {
            commands.push(resume("goes on with the answers"));
        }
        Status::Paused { reason: PauseReason::Approval | PauseReason::Unknown, .. } => {
            commands.push(resume("goes on once it is answered"));
        }
        Status::Paused { reason: PauseReason::Timeout, .. } => {
            let command = sage("resume").arg(feature).option("--timeout", "1h");
            commands.push((command.into(), "goes on with more time"));
        }
        Status::Paused { reason: PauseReason::Budget, .. } => {
            commands.push((sage("budget").arg(feature).into(), "shows what was spent on what"));
            commands.extend(raise());
            commands.push(resume("goes on then"));
        }
        Status::Paused { reason: PauseReason::Breaker, until: None } => {
            commands.push((sage("breakers").into(), "shows which target is switched off"));
            commands.push(resume("goes on once it is reset"));
        }
        Status::Paused { until: Some(_), .. } => {
            commands.push(resume("waits for the time, or goes on after it"))
        }
        Status::Paused { .. } => commands.push(resume("goes on where it stopped")),
    }
    // What was stopped for its budget has nothing more to say.
    let says = |id: StepId| run.step(id).children.is_none() && !is_budget(run, id);
    let telling = failed_steps(run).into_iter().find(|&id| says(id));
    if let Some(id) = telling {
        let command = sage("logs").arg(feature).arg(run.step(id).path.as_ref());
        commands.push((command.into(), "shows what it said"));
    }
    commands
}

/// A run keeps its code: who has mended it must say so.
fn mended(run: &Run) -> Option<String> {
    let code = |&&id: &&StepId| run.kind(id) == sage_core::template::Kind::Script;
    failed_steps(run).iter().find(code)?;
    let file = run.template.file.as_ref().filter(|file| run.template.programs.contains_key(*file))?;
    Some(sage("resume").arg(&run.feature).option("-t", file).into())
}

/// Starts a run as this one was started: its template and what was given to it.
pub fn anew(run: &Run) -> CommandLine {
    let usual = &run.plan().template.inputs;
    let given = run.inputs.iter().filter(|(name, value)| {
        let default = usual.get(name).and_then(|input| input.default.as_ref());
        !value.is_null() && default != Some(*value) && *name != "ticket"
    });
    let command = sage("run").arg(&run.title).option("-t", template_name(&run.template));
    given.fold(command, |command, (name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        command.option("-i", format!("{name}={text}"))
    })
}

/// What to give to `-t`: the name where the template has one, else its file.
pub fn template_name(frozen: &Frozen) -> String {
    let file = frozen.file.as_deref().unwrap_or_default();
    let named = file.is_empty()
        || std::path::Path::new(file).parent().is_some_and(|dir| dir.ends_with(".sage/templates"));
    if named { frozen.name.clone() } else { file.to_string() }
}

/// What there is to look at and to do where the run has written or left something.
fn after_success(run: &Run) -> Vec<(String, &'static str)> {
    let mut commands: Vec<(String, &str)> = Vec::new();
    let left = run.work().iter().any(|work| work.open > 0);
    let has = |wanted: &dyn Fn(&str) -> bool| run.step_ids().any(|id| wanted(&run.operation(id).type_name));
    if left && has(&|name| name.starts_with("tickets.")) {
        commands.push((sage("tickets ready").into(), "shows what can be done now"));
    } else if left && run.settings.agent.as_deref() == Some("offline") {
        commands.push((sage("agents").into(), "shows who could do the rest"));
    }
    // Named operations give reports; where no file has them, here they are.
    if outputs(run).is_empty() && has(&|name| name.contains('.')) {
        commands.push((sage("result").arg(&run.feature).into(), "prints what the steps found"));
    }
    commands
}

fn is_budget(run: &Run, id: StepId) -> bool {
    run.step(id).failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Budget)
}

/// The first step that failed for want of budget, with what it said.
fn for_budget(run: &Run) -> Option<&str> {
    let failed = |id: &StepId| matches!(run.step(*id).state, State::Failed) && is_budget(run, *id);
    let id = failed_steps(run).into_iter().find(failed)?;
    run.step(id).failure.as_ref().map(|failure| failure.message.as_str())
}

/// Gives the budget that is short twice of what it was; more, if more is gone already.
pub fn raise_command(run: &Run) -> Option<String> {
    let (name, node) = short_node(run)?;
    let cap = node.cap?;
    let more = |cap: Option<u64>, spent: u64| cap.map(|cap| cap.saturating_add(cap.max(spent)));
    let cap = Cap {
        tokens: more(cap.tokens, node.settled.tokens),
        micro_usd: more(cap.micro_usd, node.settled.micro_usd),
    };
    let of = (name != RUN).then_some(name);
    Some(sage("budget").arg(&run.feature).arg("raise").arg(cap.to_string()).option_if("--of", of).into())
}

/// The node that the run says is short, else the one of which the least is left.
fn short_node(run: &Run) -> Option<(&str, &Node)> {
    let capped = || run.ledger.nodes().filter(|(_, node)| node.cap.is_some());
    let said = run.needs.as_deref().or_else(|| for_budget(run)).unwrap_or_default();
    let named = capped().find(|(name, _)| match name.split_once(':') {
        Some((kind, name)) => said.contains(&format!("the budget of {kind} `{name}`")),
        None => said.contains(&format!("the budget of the {name} ")),
    });
    named.or_else(|| capped().min_by(|(_, a), (_, b)| share_left(a).total_cmp(&share_left(b))))
}

/// Of the unit that is scarcer.
fn share_left(node: &Node) -> f64 {
    let Some(cap) = node.cap else { return f64::MAX };
    let left = cap.left(node.settled, node.reserved);
    let share = |left: Option<u64>, cap: Option<u64>| Some(left? as f64 / cap?.max(1) as f64);
    let shares = [share(left.tokens, cap.tokens), share(left.micro_usd, cap.micro_usd)];
    shares.into_iter().flatten().fold(f64::MAX, f64::min)
}
