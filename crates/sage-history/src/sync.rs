//! From journals to rows: what has changed is read again, and nothing else.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sage_engine::journal;
use sage_engine::open::{Engine, OpenError};

use crate::attempts::Attempts;
use crate::letters;
use crate::rows::{self, Seen};
use crate::{History, HistoryError};

/// Runs in one transaction: enough to make it cheap, few enough that others do not wait.
const BATCH: usize = 100;

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// Runs whose rows were made.
    pub runs: usize,
    /// Of these, runs whose journals cannot be read.
    pub damaged: usize,
}

pub fn begin(db: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    db.transaction_with_behavior(TransactionBehavior::Immediate)
}

impl History {
    /// Makes the rows of all runs that changed since. `each` is told how many of how many are done.
    pub fn sync(
        &mut self,
        engine: &Engine,
        each: &mut dyn FnMut(usize, usize),
    ) -> Result<Synced, HistoryError> {
        let known = self.known()?;
        let mut there = Vec::new();
        for run in engine.run_ids()? {
            let journal = engine.project.run_dir(&run).join(journal::FILE_NAME);
            there.extend(Seen::of(&journal).map(|seen| (run, seen)));
        }
        self.mark_removed(&known, &there)?;
        there.retain(|(run, seen)| known.get(run) != Some(&Some(*seen)));
        let mut synced = Synced::default();
        let total = there.len();
        for batch in there.chunks(BATCH) {
            let transaction = begin(&mut self.db)?;
            for (run, seen) in batch {
                synced.damaged += usize::from(!write(&transaction, engine, run, *seen)?);
                synced.runs += 1;
                each(synced.runs, total);
            }
            transaction.commit()?;
        }
        letters::sync(&mut self.db, engine)?;
        Ok(synced)
    }

    /// Makes all rows anew. Those of runs that are gone stay: nothing else tells of them.
    pub fn rebuild(
        &mut self,
        engine: &Engine,
        each: &mut dyn FnMut(usize, usize),
    ) -> Result<Synced, HistoryError> {
        self.db.execute_batch("UPDATE runs SET journal_changed = -1; DELETE FROM sources;")?;
        self.sync(engine, each)
    }

    /// The journals that rows were made of; `None` for those that are gone.
    fn known(&self) -> Result<HashMap<String, Option<Seen>>, HistoryError> {
        let mut statement = self.db.prepare("SELECT id, journal_bytes, journal_changed FROM runs")?;
        let rows = statement.query_map([], |row| {
            let seen = row.get::<_, Option<i64>>(1)?.zip(row.get::<_, Option<i64>>(2)?);
            Ok((row.get(0)?, seen.map(|(bytes, changed)| Seen { bytes, changed })))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn mark_removed(
        &mut self,
        known: &HashMap<String, Option<Seen>>,
        there: &[(String, Seen)],
    ) -> Result<(), HistoryError> {
        let there: HashMap<&str, Seen> = there.iter().map(|(run, seen)| (run.as_str(), *seen)).collect();
        let gone = known.iter().filter(|(run, seen)| seen.is_some() && !there.contains_key(run.as_str()));
        for (run, _) in gone {
            self.db.execute(
                "UPDATE runs SET journal_bytes = NULL, journal_changed = NULL WHERE id = ?1",
                [run],
            )?;
        }
        Ok(())
    }
}

/// Replaces the rows of one run. False if its journal cannot be read.
fn write(db: &Transaction<'_>, engine: &Engine, run: &str, seen: Seen) -> Result<bool, HistoryError> {
    let mut attempts = Attempts::default();
    let walked = engine.walk(run, &mut |event, at_ms, run| attempts.take(event, at_ms, run));
    rows::forget(db, run)?;
    match walked {
        Ok(walked) => {
            rows::write(db, &walked.run, &attempts.finish(), walked.is_foreign, seen)?;
            Ok(true)
        }
        // Told by itself elsewhere; here it must not hide the others.
        Err(OpenError::Unreadable { .. }) => Ok(false),
        Err(_) => {
            let feature = engine.feature_of(run).unwrap_or_else(|| "?".into());
            rows::write_damaged(db, run, &feature, seen)?;
            Ok(false)
        }
    }
}
