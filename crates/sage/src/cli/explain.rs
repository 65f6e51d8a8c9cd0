//! `sage explain`: why a step ran, was reused or waits, and which part of its key changed.

mod leaves;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use sage_core::digest::Digest;
use sage_core::event::{Event, StepCalled, StepMessaged};
use sage_core::run::{Output, Run, State, Step, StepId, Wait};
use sage_core::wire;
use sage_engine::journal::{self, JournalError, Record};
use sage_engine::open::Snapshot;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::{feature, print, print_json, step};
use crate::display::text::{ago_text, plural};
use crate::display::why::{unknown_question, wait_text};
use leaves::Change;

/// More than this is for `--json`.
const TOLD_CHANGES: usize = 5;
/// The part of a key that tells a call, or an item, from all others.
const CALL: &str = "item";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// Only this step
    step: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the journal says about one step, newest last.
#[derive(Debug, Default)]
struct Past {
    starts: Vec<Start>,
    /// How a script called it; after an edit the same path may be another call.
    calls: Vec<StepCalled>,
    retries: u32,
    skipped: bool,
    /// What people said to its agent.
    messages: Vec<StepMessaged>,
}

#[derive(Debug, Clone)]
struct Start {
    seq: u64,
    key: String,
    parts: BTreeMap<String, String>,
    reused: bool,
    attempt: u32,
    /// The calls of the path up to then.
    calls: usize,
    /// In the run that this one was forked from.
    elsewhere: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    let snapshot = engine.read_named(&feature(&args.feature)?, &args.feature)?;
    let run = &snapshot.run;
    let wanted: Vec<StepId> = match &args.step {
        Some(path) => vec![step(run, path)?],
        None => run.step_ids().collect(),
    };
    let past = read_past(&snapshot, context)?;
    let now = sage_engine::clock::Clock::System.now_ms();
    let wait = |wait: &Wait| match args.json {
        true => format!("waits: {}", wire::wait_text(wait)),
        false => wait_text(run, wait, now),
    };
    let files = Files { own: snapshot.dir.clone(), source: source_dir(context, run) };
    for id in wanted {
        let step = run.step(id);
        let told = why(run, id, past.get(step.path.as_ref()), &wait, &files);
        if args.json {
            let start = past.get(step.path.as_ref()).and_then(|p| p.starts.last());
            print_json(&json!({
                "type": "explanation", "step": step.path.as_ref(), "state": run.state_name(id),
                "reused": run.is_reused(id),
                "why": told.why, "changed": told.changed, "changes": told.changes, "key": start.map(|s| s.key.as_str()),
                "parts": start.map(|s| json!(s.parts)).unwrap_or(Value::Null),
                "at": step.call.as_ref().and_then(|call| call.at.as_deref()),
                "messages": past.get(step.path.as_ref()).map_or(Vec::new(), messages),
            }))?;
        } else {
            let word = wire::step_word(run, id, snapshot.is_driven());
            print(format_args!("{word:9}  {}: {}\n", step.path, told.why));
            if args.step.is_some() {
                if let Some(at) = step.call.as_ref().and_then(|call| call.at.as_deref()) {
                    print(format_args!("  called at {at}\n"));
                }
                detail(past.get(step.path.as_ref()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn messages(past: &Past) -> Vec<Value> {
    let one = |it: &StepMessaged| json!({"attempt": it.attempt, "by": it.by, "text": it.text});
    past.messages.iter().map(one).collect()
}

fn read_past(snapshot: &Snapshot, context: &Context) -> Result<BTreeMap<String, Past>, Failure> {
    let mut past: BTreeMap<String, Past> = BTreeMap::new();
    let checked = journal::check(
        context.disk.as_ref(),
        &snapshot.dir,
        None,
        |record: Record<'_>| -> Result<(), JournalError> {
            // What this version cannot read was refused by the fold already.
            let Ok(event) = Event::parse(record.kind, record.data) else { return Ok(()) };
            match event {
                Event::RunForked(_) => {
                    past.values_mut().flat_map(|past| &mut past.starts).for_each(|it| it.elsewhere = true);
                }
                Event::StepStarted(e) => {
                    start(&mut past, record.seq, &e.step, e.key, e.parts.read(), e.attempt)
                }
                Event::StepReused(e) => {
                    start(&mut past, record.seq, &e.step, e.key, e.parts.read(), 0);
                    let newest = past.get_mut(&*e.step).and_then(|past| past.starts.last_mut());
                    newest.into_iter().for_each(|start| start.reused = true);
                }
                Event::StepCached(e) => start(&mut past, record.seq, &e.step, e.key, e.parts, 0),
                Event::StepCalled(e) => past.entry(e.path.to_string()).or_default().calls.push(e),
                Event::StepMessaged(e) => past.entry(e.step.to_string()).or_default().messages.push(e),
                Event::StepRetried(e) => past.entry(e.step.to_string()).or_default().retries += 1,
                Event::StepSkipped(e) => past.entry(e.step.to_string()).or_default().skipped = true,
                _ => {}
            }
            Ok(())
        },
    );
    checked.map_err(|error| Failure::failed(error.to_string()))?;
    Ok(past)
}

fn start(
    past: &mut BTreeMap<String, Past>,
    seq: u64,
    step: &str,
    key: Digest,
    parts: BTreeMap<String, String>,
    attempt: u32,
) {
    let past = past.entry(step.to_string()).or_default();
    let (key, calls) = (key.to_string(), past.calls.len());
    past.starts.push(Start { seq, key, parts, reused: false, attempt, calls, elsewhere: false });
}

/// Where attempts have left what they were given.
struct Files {
    own: PathBuf,
    /// Of the run that this one was forked from.
    source: Option<PathBuf>,
}

fn source_dir(context: &Context, run: &Run) -> Option<PathBuf> {
    run.forked_from().map(|from| context.project.run_dir(&from.run))
}

impl Files {
    /// What two starts were given, if both are known.
    fn of(&self, step: &str, before: &Start, now: &Start) -> Option<(Value, Value)> {
        let dir = |start: &Start| if start.elsewhere { self.source.as_deref() } else { Some(&*self.own) };
        let again = before.attempt == now.attempt && before.elsewhere == now.elsewhere;
        let old = leaves::given(dir(before)?, step, before.attempt, again, &before.parts)?;
        Some((old, leaves::given(dir(now)?, step, now.attempt, false, &now.parts)?))
    }
}

/// One sentence, the parts of the key that changed since the step last ran, and the values in them.
#[derive(Default)]
struct Told {
    why: String,
    changed: Vec<String>,
    changes: Vec<Change>,
}

impl From<String> for Told {
    fn from(why: String) -> Told {
        Told { why, ..Told::default() }
    }
}

fn why(run: &Run, id: StepId, past: Option<&Past>, wait: &dyn Fn(&Wait) -> String, files: &Files) -> Told {
    let step = run.step(id);
    let last = past.and_then(|past| past.starts.last());
    match run.shown_state(id) {
        State::Cancelled if !step.state.settled() => {
            "cancelled: the run ended before it did".to_string().into()
        }
        State::Pending => format!("waits for {}", waits_for(run, id)).into(),
        State::Blocked => format!("blocked: {} did not succeed", waits_for(run, id)).into(),
        State::Skipped => skipped(step).into(),
        State::Unknown if run.is_unchecked(id) => unknown_question(run, id).into(),
        State::Ready | State::Backoff { .. } | State::Unknown => {
            run.wait_reason(id).map_or_else(|| "about to start".into(), |reason| wait(&reason)).into()
        }
        _ if step.children.is_some() => match run.wait_reason(id) {
            Some(reason) => format!("{}; {}", holds(run, id), wait(&reason)).into(),
            None => holds(run, id).into(),
        },
        _ if last.is_some_and(|last| last.elsewhere) => taken_over(run).into(),
        _ if step.taken().is_some() => taken(step).into(),
        _ => match (last, past) {
            (Some(last), Some(past)) if last.reused && is_elsewhere(past, last) => {
                format!("{}: the key {} is the same", taken_over(run), short(&last.key)).into()
            }
            (Some(last), _) if last.reused => {
                format!("reused: a finished step of this run has the same key {}", short(&last.key)).into()
            }
            (Some(last), Some(past)) => ran(run, id, past, last, files),
            _ if step.reused => "taken over from the checkpoint".to_string().into(),
            _ => "failed before it could start".to_string().into(),
        },
    }
}

/// By its `when`, or by itself: then its result says why.
fn skipped(step: &Step) -> String {
    let said = match step.output.as_deref() {
        Some(Output::Leaf { result, .. }) => result.json.as_ref().map(|json| json.get()),
        _ => None,
    };
    let result: Value = said.and_then(|said| serde_json::from_str(said).ok()).unwrap_or_default();
    match result["summary"].as_str() {
        Some(why) => format!("skipped: {why}"),
        None => "skipped: its `when` is false".into(),
    }
}

fn taken_over(run: &Run) -> String {
    run.forked_from().map_or_else(
        || "taken over from another run".into(),
        |from| format!("taken over from `{}` ({})", from.feature, from.run),
    )
}

/// Whether what it was reused from was made in the run that this one was forked from.
fn is_elsewhere(past: &Past, last: &Start) -> bool {
    past.starts.iter().rev().find(|it| !it.reused && it.key == last.key).is_some_and(|it| it.elsewhere)
}

fn holds(run: &Run, id: StepId) -> String {
    let steps = plural(run.children(id).len() as u64, "step");
    let holds = if run.calls(id).is_some() { "made" } else { "holds" };
    match &run.step(id).failure {
        Some(failure) => format!("{holds} {steps}; {}: {}", failure.class.name(), one_line(&failure.message)),
        None => format!("{holds} {steps}"),
    }
}

fn one_line(message: &str) -> String {
    sage_core::text::cut(message.lines().next().unwrap_or_default().trim(), 240)
}

/// Where a result came from that no attempt of this run has made.
fn taken(step: &Step) -> String {
    let Some(taken) = step.taken() else { return String::new() };
    let (age, from) = (ago_text(taken.age_ms), &taken.from);
    match (step.degraded, taken.expires_in_ms) {
        (false, Some(left)) => {
            format!("taken from the cache: made by {from} {age} ago, too old in {}", ago_text(left))
        }
        _ => format!("fell back to what {from} made {age} ago"),
    }
}

fn ran(run: &Run, id: StepId, past: &Past, last: &Start, files: &Files) -> Told {
    let before = past.starts.iter().rev().nth(1).filter(|start| start.key != last.key);
    let changed = before.map(|before| differences(past, before, last)).unwrap_or_default();
    // What was reused was made by an earlier attempt.
    let made = |key: &str| past.starts.iter().rev().find(|it| it.key == key && it.attempt > 0 && !it.reused);
    let source = before.and_then(|before| made(&before.key));
    let given = source.and_then(|source| files.of(&run.step(id).path, source, last));
    let changes = |part: &String| {
        given.as_ref().map(|(before, now)| leaves::of_part(part, before, now)).unwrap_or_default()
    };
    let changes: Vec<(&String, Vec<Change>)> = changed.iter().map(|part| (part, changes(part))).collect();
    let same = |start: &&Start| start.key == last.key && !start.reused && !start.elsewhere;
    let again = past.starts.iter().filter(same).count();
    let mut why = if !changed.is_empty() {
        format!("ran again, because this changed: {}", changes_text(&changes))
    } else if again > 1 {
        format!(
            "ran {again} times: {}",
            if run.step(id).unknown {
                "an attempt was lost with its owner"
            } else {
                "earlier attempts failed, were stopped or were asked for again"
            }
        )
    } else if past.starts.iter().any(|start| start.elsewhere) {
        format!("ran again in this fork, {}", fork_text(run))
    } else {
        "ran for the first time".into()
    };
    if past.retries > 0 {
        let noun = if past.retries == 1 { "retry" } else { "retries" };
        why.push_str(&format!(" ({} {noun})", past.retries));
    }
    if let Some(failure) = &run.step(id).failure {
        why.push_str(&format!(
            "; {}: {}",
            failure.class.name(),
            failure.message.lines().next().unwrap_or_default()
        ));
    }
    if run.is_handled(id) {
        why.push_str("; its script went on without it");
    }
    if run.is_reused(id) {
        why.push_str("; reused: it had finished before the run was resumed");
    }
    let changes = changes.into_iter().flat_map(|(_, changes)| changes).collect();
    Told { why, changed, changes }
}

/// Each value that changed; a part of which the values are not known by its name.
fn changes_text(parts: &[(&String, Vec<Change>)]) -> String {
    let of_part = |(part, changes): &(&String, Vec<Change>)| match changes.as_slice() {
        [] => vec![(*part).clone()],
        changes => changes.iter().map(ToString::to_string).collect(),
    };
    let all: Vec<String> = parts.iter().flat_map(of_part).collect();
    let (shown, more) = all.split_at(all.len().min(TOLD_CHANGES));
    let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
    format!("{}{more}", shown.join("; "))
}

fn fork_text(run: &Run) -> String {
    run.forked_from().map_or_else(String::new, |from| format!("which goes on from `{}`", from.step))
}

fn differences(past: &Past, before: &Start, now: &Start) -> Vec<String> {
    let names = before.parts.keys().chain(now.parts.keys()).collect::<std::collections::BTreeSet<_>>();
    let differs = |name: &&String| before.parts.get(*name) != now.parts.get(*name);
    let mut changed: Vec<String> = names.into_iter().filter(differs).cloned().collect();
    let call = |start: &Start| past.calls.get(start.calls.checked_sub(1)?);
    if let (Some(was), Some(is)) = (call(before), call(now)) {
        changed.retain(|name| name != CALL);
        changed.extend(call_differences(was, is, &changed));
    }
    changed
}

/// What of a call changed that is no part of a key by itself. `others`: what is known to have changed.
fn call_differences(was: &StepCalled, is: &StepCalled, others: &[String]) -> Vec<String> {
    let field = |call: &StepCalled, name: &str| {
        serde_json::from_str::<Value>(call.shape.get()).ok().and_then(|shape| shape.get(name).cloned())
    };
    let told = |name: &str| others.iter().any(|other| other == name);
    let mut found = Vec::new();
    if field(was, "session") != field(is, "session") {
        found.push("session".to_string());
    }
    if was.params.sha != is.params.sha && !told("params") && !told("prompt") {
        found.push("steps".into());
    }
    if was.ordinal != is.ordinal {
        found.push("number among equal calls".into());
    }
    // All else that a call is known by is a part of its own.
    if found.is_empty() && others.is_empty() && was.identity != is.identity {
        found.push("key".into());
    }
    found
}

fn waits_for(run: &Run, id: StepId) -> String {
    let step = run.step(id);
    if step.call.is_some() {
        return "its script to ask for it again".into();
    }
    let scope = run.scope(step.scope);
    let spec = &scope.plan.steps[step.plan_step as usize];
    let needs =
        spec.needs.iter().map(|&need| scope.steps[need as usize]).filter(|&need| !run.step(need).state.ok());
    let mut names: Vec<String> = needs.map(|need| format!("`{}`", run.step(need).path)).collect();
    let phases =
        scope.plan.phases[spec.phase as usize].dependencies.iter().map(|&phase| scope.phases[phase as usize]);
    let open = phases.filter(|&phase| !run.phase(phase).judged.is_some_and(|judged| judged.reached()));
    names.extend(open.map(|phase| format!("phase `{}`", run.phase_path(phase))));
    if names.is_empty() { "its phase".into() } else { names.join(", ") }
}

fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
}

fn detail(past: Option<&Past>) {
    for message in past.map(|past| past.messages.as_slice()).unwrap_or_default() {
        let StepMessaged { attempt, by, text, .. } = message;
        print(format_args!(
            "  attempt {attempt} received a message from {by}: {}\n",
            text.trim().replace('\n', "\n    ")
        ));
    }
    for start in past.map(|past| past.starts.as_slice()).unwrap_or_default() {
        let what = match (start.reused, start.attempt) {
            (true, _) => "reused".to_string(),
            (false, attempt) if start.elsewhere => format!("attempt {attempt} of the run it was forked from"),
            (false, 0) => "from an earlier run".to_string(),
            (false, attempt) => format!("attempt {attempt}"),
        };
        print(format_args!("  record {}: {what}, key {}\n", start.seq, short(&start.key)));
        for (name, digest) in &start.parts {
            print(format_args!("    {name:24} {digest}\n"));
        }
    }
}
