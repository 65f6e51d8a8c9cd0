//! What the project has: a place for its state, room, settings, templates, agents; and what was left behind.

use sage_core::diagnostic::printable;
use sage_core::target::Target;
use sage_engine::background;
use sage_engine::open::Engine;

use super::check::Check;
use super::machine::writable;
use super::servers;
use crate::cli::agents::{self, Row, State};
use crate::cli::catalog::Catalog;
use crate::cli::config;
use crate::cli::context::Context;
use crate::cli::failure::{Failure, real_directory};
use crate::cli::list;
use crate::command_line::sage;
use crate::trust::open::{STATE, foreign};

/// Less than this and journals cannot be written for long.
const NEEDED_BYTES: u64 = 64 << 20;
const ENOUGH_BYTES: u64 = 1 << 30;
/// Names that a line shows.
const SHOWN: usize = 5;

pub fn checks(context: &Context) -> Result<Vec<Check>, Failure> {
    let engine = context.engine();
    let mut checks = vec![state(context), disk(context)];
    checks.push(Check::good("settings", settings(context)));
    checks.extend(context.config.encryption.map(|variable| {
        let refusal = config::no_encryption(variable);
        refusal.hints.into_iter().fold(Check::bad("encryption", refusal.message), Check::hint)
    }));
    checks.push(templates(context));
    checks.push(agents_of(&agents::probe_all(context)?, context.config.file.agent.as_deref()));
    checks.extend(servers::checks(context)?);
    checks.push(targets(context));
    checks.extend([limits(context), supervisor(&engine), abandoned(&engine)]);
    Ok(checks)
}

/// Those that start no program and read no run: for whoever looks every few seconds.
pub fn quick(context: &Context) -> Vec<Check> {
    let supervisor = supervisor(&context.engine());
    vec![
        state(context),
        disk(context),
        servers::quick(context),
        targets(context),
        limits(context),
        supervisor,
    ]
}

/// The project cannot even be looked at.
pub fn unreadable(failure: &Failure) -> Check {
    let check = Check::bad("settings", failure.message.clone());
    failure.hints.iter().fold(check, |check, hint| check.hint(hint.clone()))
}

fn state(context: &Context) -> Check {
    let dir = &context.project.dir;
    let shown = dir.display();
    let found = dir.symlink_metadata();
    if found.as_ref().is_ok_and(|found| !found.is_dir()) {
        return Check::bad(
            "state",
            format!("`{shown}` is a symlink or not a directory: state is only kept in a real one"),
        )
        .hint(real_directory(dir));
    }
    if let Err(why) = writable(&context.project.runs()) {
        return Check::bad("state", format!("cannot write in `{shown}`: {why}"))
            .hint(format!("chmod u+rwx {shown}, or SAGE_DIR=<another directory>"));
    }
    match found {
        Ok(_) => Check::good("state", format!("{shown} can be written")),
        Err(_) => Check::warn("state", format!("`{shown}` is not there yet")).hint("sage init"),
    }
}

pub fn disk(context: &Context) -> Check {
    let place = context.project.dir.ancestors().find(|path| path.exists()).unwrap_or(&context.project.root);
    let Ok(found) = rustix::fs::statvfs(place) else {
        return Check::warn("disk", "how much room is left cannot be told");
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let says = format!("{} free", size(free));
    let hint = "make room; finished runs are in .sage/state/runs";
    match free {
        0..NEEDED_BYTES => Check::bad("disk", says).hint(hint),
        NEEDED_BYTES..ENOUGH_BYTES => Check::warn("disk", says).hint(hint),
        _ => Check::good("disk", says),
    }
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        mib @ 0..10_240 => format!("{mib} MiB"),
        mib => format!("{} GiB", mib >> 10),
    }
}

fn settings(context: &Context) -> String {
    let path = context.project.root.join("sage.toml");
    if path.is_file() {
        format!("{} is good", path.display())
    } else {
        "there is no sage.toml; all is default".into()
    }
}

fn templates(context: &Context) -> Check {
    let catalog = Catalog::of(context);
    let names: Vec<String> = catalog.all().keys().cloned().collect();
    let is_bad = |name: &&String| catalog.load(name, &mut |_, _, _| {}).is_err();
    let bad: Vec<&String> = names.iter().filter(is_bad).collect();
    match (names.len(), bad.first()) {
        (count, None) => Check::good("templates", format!("{count} valid")),
        (_, Some(first)) => Check::bad("templates", format!("not valid: {}", listed(&bad)))
            .hint(sage("validate").arg(first.as_str())),
    }
}

/// Steps that name no agent need the default one; `offline` is always there.
fn agents_of(rows: &[Row], default: Option<&str>) -> Check {
    let chosen = default.and_then(|name| rows.iter().find(|row| row.name == name));
    if let Some(row) = chosen.filter(|row| !row.can_start()) {
        let check = Check::bad("agents", format!("the default agent `{}` is {}", row.name, row.told()));
        return row.hint.iter().cloned().fold(check, Check::hint).hint("agent = \"offline\" in sage.toml");
    }
    let usable: Vec<&String> = rows.iter().filter(|row| row.is_usable()).map(|row| &row.name).collect();
    if !usable.is_empty() {
        let says = format!("{} (sage agents)", listed(&usable));
        let old: Vec<&Row> = rows.iter().filter(|row| row.state == State::TooOld).collect();
        if old.is_empty() {
            return Check::good("agents", says);
        }
        let names: Vec<String> = old.iter().map(|row| format!("`{}` is {}", row.name, row.told())).collect();
        let check = Check::warn("agents", format!("{says}; {}", names.join("; ")));
        let hints = old.iter().filter_map(|row| Some(format!("{}: {}", row.name, row.hint.as_ref()?)));
        return hints.fold(check, Check::hint);
    }
    let name = default.unwrap_or("offline");
    let check =
        Check::warn("agents", format!("only `{name}` is ready: no agent that writes code is installed"));
    let told = rows.iter().filter_map(|row| Some(format!("{}: {}", row.name, row.hint.as_ref()?)));
    told.fold(check, Check::hint)
        .hint("[agents.<name>] command = [...] in sage.toml: any program is an agent")
}

/// What steps depend on outside, as far as runs have found it out.
fn targets(context: &Context) -> Check {
    let now_ms = sage_engine::clock::Clock::System.now_ms();
    let targets = context.limits().targets();
    let is_held = |(name, target): &&(String, Target)| {
        target.hold(context.config.targets.policy(name), now_ms).is_some()
    };
    let held: Vec<&String> = targets.iter().filter(is_held).map(|(name, _)| name).collect();
    match (targets.len(), held.is_empty()) {
        (0, _) => Check::good("targets", "none was called yet"),
        (count, true) => Check::good("targets", format!("{count} healthy")),
        _ => Check::warn("targets", format!("not called for now: {}", listed(&held))).hint("sage breakers"),
    }
}

fn limits(context: &Context) -> Check {
    match writable(&context.project.limits()) {
        Ok(()) => Check::good("limits", "runs of this project share them"),
        Err(why) => Check::warn("limits", format!("{why}: each run has limits of its own"))
            .hint(format!("rm -r {}", context.project.limits().display())),
    }
}

fn supervisor(engine: &Engine) -> Check {
    if background::is_needed(engine) {
        return Check::warn("background", "runs in the background have nobody who looks after them")
            .hint("sage status");
    }
    match engine.records().list().len() {
        0 => Check::good("background", "no runs"),
        count => Check::good("background", format!("{count} looked after")),
    }
}

fn abandoned(engine: &Engine) -> Check {
    let foreign = foreign(engine);
    if let Some(first) = foreign.first() {
        let names: Vec<&String> = foreign.iter().collect();
        return Check::warn("runs", format!("not written by this user: {}", listed(&names)))
            .hint(sage("trust").arg(format!("{STATE}{first}")));
    }
    let features = list::abandoned(engine);
    match features.first() {
        None => Check::good("runs", "none is left without an owner"),
        Some(first) => {
            let names: Vec<&String> = features.iter().collect();
            Check::warn("runs", format!("their owner died: {}", listed(&names)))
                .hint(sage("resume").arg(first))
        }
    }
}

fn listed(names: &[&String]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| printable(name)).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
