//! Handoffs and wakes as rows. They have files of their own, which are read again when one of them has changed.

use std::path::PathBuf;

use rusqlite::{Connection, Transaction, params};
use sage_engine::handoff::Store;
use sage_engine::inbox::{Inbox, Wake};
use sage_engine::open::Engine;

use crate::HistoryError;
use crate::rows::Seen;

pub fn sync(db: &mut Connection, engine: &Engine) -> Result<(), HistoryError> {
    let dir = engine.project.dir.join("handoffs");
    when_changed(db, "handoffs", &[dir.join("index.json")], |db| write_handoffs(db, engine))?;
    let inbox = Inbox::open(engine.project.inbox());
    let parts = ["ledger.jsonl", "new", "taken", "dead"].map(|part| inbox.dir().join(part));
    when_changed(db, "wakes", &parts, |db| write_wakes(db, &inbox))
}

/// Calls `write` if one of the files or directories is not what it was, in one transaction.
fn when_changed(
    db: &mut Connection,
    name: &str,
    paths: &[PathBuf],
    write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> Result<(), HistoryError> {
    let found: Vec<Seen> = paths.iter().filter_map(|path| Seen::of(path)).collect();
    if found.is_empty() {
        return Ok(());
    }
    // Together they tell of any change: sizes and times only grow, but for a file that is written anew.
    let now = found.iter().fold((0i64, 0i64), |(bytes, changed), seen| {
        (bytes.wrapping_add(seen.bytes), changed.wrapping_mul(31).wrapping_add(seen.changed))
    });
    let known = db.query_row("SELECT bytes, changed FROM sources WHERE name = ?1", [name], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    });
    if known.is_ok_and(|known| known == now) {
        return Ok(());
    }
    let transaction = crate::sync::begin(db)?;
    write(&transaction)?;
    transaction.execute("INSERT OR REPLACE INTO sources VALUES (?1, ?2, ?3)", params![name, now.0, now.1])?;
    transaction.commit()?;
    Ok(())
}

fn write_handoffs(db: &Transaction<'_>, engine: &Engine) -> rusqlite::Result<()> {
    let store = Store::new(&engine.project, engine.vfs.clone(), engine.clock.clone());
    // One that cannot be read is told by `sage handoff list`.
    let Ok(entries) = store.list() else { return Ok(()) };
    for entry in entries.value {
        db.prepare_cached("INSERT OR REPLACE INTO handoffs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(
            params![
                entry.handoff_id,
                entry.task_id,
                entry.from,
                entry.to,
                entry.kind,
                entry.status.name(),
                entry.timestamp
            ],
        )?;
    }
    Ok(())
}

fn write_wakes(db: &Transaction<'_>, inbox: &Inbox) -> rusqlite::Result<()> {
    for letter in inbox.unhandled().unwrap_or_default() {
        if let Ok(wake) = &letter.wake {
            write_wake(db, wake, None)?;
        }
    }
    for handled in inbox.handled().unwrap_or_default() {
        match &handled.wake {
            Some(wake) => write_wake(db, wake, Some(&handled.at))?,
            None => {
                let text = "INSERT INTO wakes (id, handled) VALUES (?1, ?2) \
                            ON CONFLICT (id) DO UPDATE SET handled = excluded.handled";
                db.prepare_cached(text)?.execute([&handled.wake_id, &handled.at])?;
            }
        }
    }
    Ok(())
}

fn write_wake(db: &Transaction<'_>, wake: &Wake, handled: Option<&str>) -> rusqlite::Result<()> {
    let text = "INSERT OR REPLACE INTO wakes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    db.prepare_cached(text)?.execute(params![
        wake.wake_id,
        wake.kind.name(),
        wake.status.name(),
        wake.session_id,
        wake.agent_role,
        wake.priority,
        wake.summary,
        wake.timestamp,
        handled
    ])?;
    Ok(())
}
