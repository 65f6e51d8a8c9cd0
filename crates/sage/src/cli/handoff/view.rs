//! Handoffs for people and as JSON: who has what since when, how long each state lasted, what is stuck.

use std::process::ExitCode;

use sage_core::handoff::{Entry, Handoff, Status, party};
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::table::print_table;
use super::super::{print, print_json};
use crate::command_line;
use crate::display::text::{clean, time_text};

#[derive(Debug, clap::Args)]
pub struct Filter {
    /// Only open ones to which nothing has happened for 24 hours
    #[arg(long)]
    stuck: bool,
    /// Also those of chains that have come to their end
    #[arg(long)]
    all: bool,
    /// Only those with this status
    #[arg(long, value_parser = ["pending", "accepted", "rejected", "completed"])]
    status: Option<String>,
    /// Only those of this taskId
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
}

pub fn way(handoff: &Handoff) -> String {
    format!("{} -> {}", party(handoff.handoff.from), party(handoff.handoff.to))
}

pub fn list(entries: Vec<Entry>, filter: &Filter, now_ms: u64, json: bool) -> Result<ExitCode, Failure> {
    let all = entries.len();
    let stuck = entries.iter().filter(|entry| entry.is_stuck(now_ms)).count();
    let fits = |entry: &Entry| {
        (filter.all || filter.stuck || filter.task_id.is_some() || !entry.archived)
            && (!filter.stuck || entry.is_stuck(now_ms))
            && filter.status.as_ref().is_none_or(|status| entry.status.name() == status)
            && filter.task_id.as_ref().is_none_or(|id| entry.task_id == *id)
    };
    let shown: Vec<&Entry> = entries.iter().filter(|entry| fits(entry)).collect();
    if json {
        let rows: Vec<Value> = shown.iter().map(|entry| row_json(entry, now_ms)).collect();
        print_json(&json!({"type": "handoffs", "handoffs": rows, "total": all, "stuck": stuck}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if shown.is_empty() {
        let more = all - shown.len();
        match more {
            0 => {
                eprintln!("no handoffs");
                command_line::tell("sage handoff create --help");
            }
            _ => {
                eprintln!("no such handoffs, {more} others");
                command_line::tell("sage handoff list --all");
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    table(&shown, now_ms);
    if stuck > 0 && !filter.stuck {
        eprintln!("note: {stuck} stuck for 24 hours or more");
        command_line::tell("sage handoff list --stuck");
    }
    Ok(ExitCode::SUCCESS)
}

fn table(entries: &[&Entry], now_ms: u64) {
    let heading = ["HANDOFF", "WAY", "STATUS", "AGE", "taskId", "TIMES"].map(String::from);
    let rows: Vec<[String; 6]> = std::iter::once(heading)
        .chain(entries.iter().map(|entry| {
            let stuck = if entry.is_stuck(now_ms) { " (stuck)" } else { "" };
            [
                clean(&entry.handoff_id),
                format!("{} -> {}", entry.from, entry.to),
                format!("{}{stuck}", entry.status.name()),
                time_text(entry.age_ms(now_ms)),
                clean(&entry.task_id),
                times(entry),
            ]
        }))
        .collect();
    print_table(&rows);
}

/// `accepted after 2m, completed after 1h`
fn times(entry: &Entry) -> String {
    let steps = durations(entry)
        .into_iter()
        .filter_map(|(status, after)| after.map(|ms| format!("{} after {}", status.name(), time_text(ms))));
    steps.collect::<Vec<_>>().join(", ")
}

/// Each state and how long it took to get there from the one before.
fn durations(entry: &Entry) -> Vec<(Status, Option<u64>)> {
    let times = entry.times_ms();
    let before = std::iter::once(None).chain(times.iter().map(|(_, at)| Some(*at)));
    times
        .iter()
        .zip(before)
        .map(|((status, at), before)| (*status, before.map(|it| at.saturating_sub(it))))
        .collect()
}

/// As programs see it.
pub fn row_json(entry: &Entry, now_ms: u64) -> Value {
    let mut row = json!(entry);
    row["ageMs"] = entry.age_ms(now_ms).into();
    row["stuck"] = entry.is_stuck(now_ms).into();
    for (transition, (_, after)) in
        row["transitions"].as_array_mut().into_iter().flatten().zip(durations(entry))
    {
        transition["afterMs"] = after.into();
    }
    row
}

pub fn show(handoff: &Handoff, now_ms: u64, json: bool) -> Result<ExitCode, Failure> {
    let entry = Entry::of(handoff);
    if json {
        let mut value = json!({"type": "handoff", "handoff": handoff});
        value["ageMs"] = entry.age_ms(now_ms).into();
        value["stuck"] = entry.is_stuck(now_ms).into();
        print_json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    let header = &handoff.handoff;
    let stuck = if entry.is_stuck(now_ms) { ", stuck" } else { "" };
    let mut lines = vec![
        format!("{}  {}", header.handoff_id, way(handoff)),
        format!("  status        {}{stuck} ({} old)", header.status.name(), time_text(entry.age_ms(now_ms))),
    ];
    for transition in &handoff.transitions {
        let reason =
            transition.reason.as_ref().map(|reason| format!(": {}", clean(reason))).unwrap_or_default();
        lines.push(format!("                {} {}{reason}", transition.at, transition.status.name()));
    }
    let mut say = |name: &str, values: &[String]| {
        for (n, value) in values.iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            lines.push(format!("  {name:12}  {}", clean(value)));
        }
    };
    let (context, deliverable, next) = (&handoff.context, &handoff.deliverable, &handoff.next_steps);
    say("type", std::slice::from_ref(&header.kind));
    say("taskId", std::slice::from_ref(&context.task_id));
    say("phase", std::slice::from_ref(&context.phase));
    say("scope", std::slice::from_ref(&context.scope));
    say("depends on", &context.dependencies);
    say(
        "deliverable",
        &[format!("{} at {}", deliverable.kind, deliverable.location), deliverable.summary.clone()],
    );
    say("artifacts", &deliverable.artifacts);
    say("instructions", &next.instructions);
    say("constraints", &next.constraints);
    say("done when", &next.acceptance_criteria);
    let issue = |issue: &sage_core::handoff::Issue| {
        format!("{}: {} ({})", issue.severity.name(), issue.description, issue.recommendation)
    };
    say("issues", &handoff.issues.iter().map(issue).collect::<Vec<_>>());
    say("memory new", &handoff.memory.created);
    say("memory used", &handoff.memory.referenced);
    say("session", handoff.session.as_slice());
    print(format_args!("{}\n", lines.join("\n")));
    Ok(ExitCode::SUCCESS)
}
