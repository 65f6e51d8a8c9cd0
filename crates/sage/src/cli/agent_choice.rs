//! Who does the steps that name nobody: `--agent`, else `sage.toml`, else the one that is chosen when it is asked
//! once on a terminal, else `offline`. Nothing is spent before somebody has chosen an agent that costs money.

use std::io::{IsTerminal, Write};
use std::path::Path;

use sage_agents::text_file;
use sage_core::event::Settings;
use sage_core::template::{Kind, Template};

use super::agents::{self, Row};
use super::catalog::Ready;
use super::context::Context;
use super::failure::Failure;
use super::init::clients;
use super::install;
use super::notes::Note;

/// No model, no network, no money.
pub const OFFLINE: &str = "offline";

/// Completes the settings of a new run and says who does it. `asks` is false where nobody could answer.
pub fn choose(context: &Context, ready: &Ready, settings: &mut Settings, asks: bool) -> Result<(), Failure> {
    if !needs_agent(ready) {
        return Ok(());
    }
    if settings.agent.is_none() {
        let asks = asks && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let chosen = if asks { ask(context)? } else { None };
        settings.agent = Some(chosen.unwrap_or_else(|| OFFLINE.into()));
    }
    Ok(())
}

/// The first line of a run.
pub fn tell(ready: &Ready, settings: &Settings) {
    let wanted = needs_agent(ready);
    match settings.agent.as_deref().filter(|_| wanted) {
        Some(OFFLINE) => {
            eprintln!("agent: offline (no model: analyses and drafts for free; --agent takes another)");
        }
        Some(agent) => eprintln!("agent: {agent}"),
        None => {}
    }
}

/// For a client that sees no first line: nothing is implemented without a model.
pub fn offline_note(ready: &Ready, settings: &Settings) -> Option<Note> {
    let is_offline = settings.agent.as_deref() == Some(OFFLINE) && needs_agent(ready);
    let note = Note::new("agent `offline` analyses and drafts; it writes no code");
    is_offline.then(|| note.hint("pass another one as `options.agent`; `sage agents` lists them"))
}

/// Also where code calls agents: whether it names them is seen when it does.
fn needs_agent(ready: &Ready) -> bool {
    let programs = ready.others.iter().chain([&ready.frozen]).flat_map(|frozen| frozen.programs.values());
    let calls = |text: &str| text.contains("agent(") || text.contains(".run(");
    ready.inner.iter().chain([&ready.template]).any(names_nobody)
        || programs.into_iter().any(|p| calls(&p.text))
}

fn names_nobody(template: &Template) -> bool {
    let operations = template.phases.iter().flat_map(|phase| &phase.operations);
    operations.into_iter().any(|operation| operation.kind == Kind::Agent && operation.agent.is_none())
}

/// Asks once: the answer is kept in `sage.toml`. Nobody is asked where there is nothing to choose.
fn ask(context: &Context) -> Result<Option<String>, Failure> {
    if install::found(&context.project.root).is_empty() && context.config.agents().is_empty() {
        return Ok(None);
    }
    let rows: Vec<Row> = agents::probe_all(context)?.into_iter().filter(Row::is_usable).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    eprintln!("Which agent shall do the steps that name none? (asked once; kept in sage.toml)");
    for (number, row) in rows.iter().enumerate() {
        eprintln!("  {}  {:10} {}", number + 1, row.name, row.told());
    }
    eprintln!("  0  {OFFLINE:10} no model: analyses the project's own files, drafts, spends nothing");
    eprint!("Number [0]: ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let name = match line.trim() {
        "" | "0" => OFFLINE.to_string(),
        text => picked(text, &rows)?,
    };
    keep(&context.project.root.join("sage.toml"), &name)?;
    Ok(Some(name))
}

fn picked(text: &str, rows: &[Row]) -> Result<String, Failure> {
    let by_number = text.parse::<usize>().ok().and_then(|number| rows.get(number.checked_sub(1)?));
    let found = by_number.or_else(|| rows.iter().find(|row| row.name == text));
    let wrong = || Failure::usage(format!("there is no agent `{text}` in this list")).hint("sage agents");
    found.map(|row| row.name.clone()).ok_or_else(wrong)
}

/// Top-level keys come before the first table, so the first line of the file is always a good place.
fn keep(path: &Path, name: &str) -> Result<(), Failure> {
    let before = match text_file::read(path, super::config::MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::failed(format!("cannot read `{}`: {error}", path.display()))),
    };
    let text = format!("agent = \"{name}\" # of steps that name none\n{before}");
    let unwritable = |error| Failure::failed(format!("cannot write `{}`: {error}", path.display()));
    clients::replace(path, &text).map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_kept_without_touching_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sage.toml");
        keep(&path, "claude").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "agent = \"claude\" # of steps that name none\n");
        std::fs::write(&path, "# mine\n[pools]\ncpu = 2\n").unwrap();
        keep(&path, "codex").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!((table["agent"].as_str(), table["pools"]["cpu"].as_integer()), (Some("codex"), Some(2)));
        assert!(text.ends_with("# mine\n[pools]\ncpu = 2\n"));
    }
}
