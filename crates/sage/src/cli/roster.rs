//! `sage status` without a feature: every open run of the project, who has it and what is at work (S7).

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use sage_agents::activity;
use sage_core::roster::{RosterRow, Seen};
use sage_core::run::{Status, StepId};
use sage_engine::background::Over;
use sage_engine::open::{Engine, Snapshot};
use sage_engine::project::Project;
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{background, drive, print_json};
use crate::command_line::{self, sage};
use crate::display::text::clean;
use crate::display::{RosterScreen, roster_text};
use crate::trust::open::STATE;

const TICK: Duration = Duration::from_millis(500);

/// The roster, with runs that have not changed since the last time read only once.
pub struct Roster {
    engine: Engine,
    known: HashMap<String, (u64, Snapshot)>,
    /// Features whose run cannot be read.
    damaged: Vec<String>,
}

impl Roster {
    pub fn new(context: &Context) -> Roster {
        Roster { engine: context.engine(), known: HashMap::new(), damaged: Vec::new() }
    }

    /// All open runs now.
    pub fn rows(&mut self) -> Vec<RosterRow> {
        let mut index = self.engine.index();
        index.retain(|_, newest| newest.may_be_open());
        self.damaged.clear();
        self.known.retain(|feature, _| index.contains_key(feature));
        index.iter().filter_map(|(feature, newest)| self.row(feature, newest.run.as_ref()?)).collect()
    }

    fn row(&mut self, feature: &str, run: &str) -> Option<RosterRow> {
        let bytes = self.engine.journal_bytes(run);
        if !self.known.get(feature).is_some_and(|(known, snapshot)| *known == bytes && snapshot.run.id == run)
        {
            match self.engine.snapshot_of(feature, run) {
                Ok(snapshot) => drop(self.known.insert(feature.into(), (bytes, snapshot))),
                Err(_) => {
                    self.damaged.push(feature.into());
                    return None;
                }
            }
        }
        let (_, snapshot) = self.known.get_mut(feature)?;
        snapshot.owner = sage_engine::lock::peek(&self.engine.project.lock(feature));
        snapshot.detached = self.engine.records().get(feature).filter(|record| record.run == run);
        snapshot.run.status.open().then(|| row(snapshot))
    }

    /// Whether anything goes on without anybody's doing.
    fn goes_on(&self) -> bool {
        let alive = |snapshot: &Snapshot| snapshot.run.status.open() && snapshot.is_alive();
        self.known.values().any(|(_, snapshot)| alive(snapshot))
    }
}

fn row(snapshot: &Snapshot) -> RosterRow {
    let now = sage_engine::clock::Clock::System.now_ms();
    let run = &snapshot.run;
    let see = |id: StepId| {
        let step = run.step(id);
        let scratch = Project::scratch(&snapshot.dir, &step.path, step.attempts.max(1));
        Seen { at_ms: last_change_ms(&scratch), activity: activity::now(&scratch).map(|text| clean(&text)) }
    };
    let row = RosterRow::of(run, snapshot.clock_ms(now), &see);
    RosterRow {
        abandoned: is_abandoned(snapshot),
        owner_kind: owner_kind(snapshot).map(str::to_string),
        owner: owner(snapshot),
        ..row
    }
}

/// It runs or waits for a known time, by its journal, and no process drives it or will without being told to.
pub fn is_abandoned(snapshot: &Snapshot) -> bool {
    let goes_on = matches!(snapshot.run.status, Status::Running | Status::Paused { until: Some(_), .. });
    goes_on && !snapshot.is_foreign && !snapshot.is_alive()
}

/// Whose run it is: a terminal's, the background's, nobody's. A process that is about to exit owns no closed run.
pub fn owner_kind(snapshot: &Snapshot) -> Option<&'static str> {
    if snapshot.is_foreign {
        return Some("foreign");
    }
    if !snapshot.run.status.open() {
        return None;
    }
    match (&snapshot.detached, &snapshot.owner) {
        (Some(_), _) => Some("background"),
        (None, Some(_)) => Some("foreground"),
        (None, None) => None,
    }
}

/// The process that owns an open run.
pub fn owner(snapshot: &Snapshot) -> Option<u32> {
    snapshot.owner.as_ref().filter(|_| snapshot.run.status.open()).map(|owner| owner.pid)
}

/// When an attempt last wrote something: all that can be seen of it from outside.
fn last_change_ms(scratch: &Path) -> Option<u64> {
    let files = std::fs::read_dir(scratch).ok()?.flatten();
    let changed = files.filter_map(|file| file.metadata().ok()?.modified().ok()).max()?;
    Some(changed.duration_since(UNIX_EPOCH).ok()?.as_millis() as u64)
}

pub fn show(context: &Context, watch: bool, json: bool) -> Result<ExitCode, Failure> {
    let mut roster = Roster::new(context);
    let rows = roster.rows();
    if watch && roster.goes_on() {
        return follow(context, roster, json);
    }
    tell(&rows, json)?;
    if !json {
        for feature in &roster.damaged {
            eprintln!("warning: the state of {} cannot be read", clean(feature));
            command_line::tell(sage("status").arg(feature));
        }
        roster.known.values().for_each(|(_, snapshot)| tell_over(snapshot));
        roster.known.values().for_each(|(_, snapshot)| tell_foreign(snapshot));
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(rows: &[RosterRow], json: bool) -> Result<(), Failure> {
    if json {
        return print_json(&json!({"type": "roster", "runs": rows}));
    }
    if rows.is_empty() {
        eprintln!("no open runs");
        command_line::tell("sage list");
    }
    crate::say::painted(roster_text(rows, drive::style()));
    Ok(())
}

/// Why a run is only shown.
pub fn tell_foreign(snapshot: &Snapshot) {
    if snapshot.is_foreign {
        let feature = clean(&snapshot.run.feature);
        eprintln!(
            "note: the run of {feature} was not written by this user on this machine; it is only shown"
        );
        command_line::tell(sage("trust").arg(format!("{STATE}{feature}")));
    }
}

/// Shows what changes, until nothing goes on any more.
fn follow(context: &Context, mut roster: Roster, json: bool) -> Result<ExitCode, Failure> {
    let mut screen = if json { None } else { RosterScreen::new(drive::color()) };
    let mut told = String::new();
    loop {
        let rows = roster.rows();
        let more = roster.goes_on();
        match &mut screen {
            Some(screen) => screen.paint(&rows)?,
            // Without a terminal only what has happened is worth a line: time passes by itself.
            None => {
                let news = happened(&rows);
                if news != told {
                    tell(&rows, json)?;
                    told = news;
                }
            }
        }
        if !more {
            return Ok(ExitCode::SUCCESS);
        }
        background::ensure(context);
        std::thread::sleep(TICK);
    }
}

fn happened(rows: &[RosterRow]) -> String {
    let steps = |row: &RosterRow| {
        row.working
            .iter()
            .map(|step| format!("{} {}", step.path, step.attempt))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let line = |row: &RosterRow| {
        let done = row.progress.completed;
        format!("{} {} {:?} {done} {}\n", row.workflow_id, row.word(), row.owner, steps(row))
    };
    rows.iter().map(line).collect()
}

/// Why a run in the background is left alone, and what to type.
pub fn tell_over(snapshot: &Snapshot) {
    let feature = &snapshot.run.feature;
    match snapshot.detached.as_ref().and_then(|record| record.over.as_ref()) {
        Some(Over::Stopped) => eprintln!("note: `{feature}` was stopped in the background by a person"),
        Some(Over::GaveUp { restarts, why }) => {
            eprintln!("note: `{feature}` was given up in the background after {restarts} restarts: {why}");
            eprintln!("note: .sage/logs/{feature}.log says more");
        }
        None => return,
    }
    command_line::tell(command_line::sage("resume").arg(feature).arg("--detach"));
}
