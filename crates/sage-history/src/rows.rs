//! A run as rows: the run itself and its steps as all doors show them, its attempts as its events tell them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::{Row, Transaction, params};
use sage_core::run::{Run, StepId};
use sage_core::wire::{StepView, WorkflowMetrics, counts, verdict_of};

use crate::HistoryError;
use crate::attempts::Attempt;

/// What lists show of a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    #[serde(rename = "runId")]
    pub id: String,
    pub feature: String,
    pub number: Option<u32>,
    pub template: Option<String>,
    pub status: String,
    pub verdict: Option<String>,
    pub started_ms: Option<i64>,
    pub active_ms: Option<i64>,
    pub steps: Option<u32>,
    pub tokens: Option<i64>,
    pub cost_usd: Option<f64>,
    pub cost_estimated: bool,
    #[serde(rename = "foreign")]
    pub is_foreign: bool,
    /// Its journal is gone.
    #[serde(rename = "removed")]
    pub is_removed: bool,
}

impl RunRow {
    pub(crate) const COLUMNS: &str = "id, feature, number, template, status, verdict, started_ms, active_ms, steps, \
         tokens, cost_usd, cost_estimated, is_foreign, journal_bytes IS NULL";

    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
        Ok(RunRow {
            id: row.get(0)?,
            feature: row.get(1)?,
            number: row.get(2)?,
            template: row.get(3)?,
            status: row.get(4)?,
            verdict: row.get(5)?,
            started_ms: row.get(6)?,
            active_ms: row.get(7)?,
            steps: row.get(8)?,
            tokens: row.get(9)?,
            cost_usd: row.get(10)?,
            cost_estimated: row.get(11)?,
            is_foreign: row.get(12)?,
            is_removed: row.get(13)?,
        })
    }
}

/// A file or directory as it was before it was read: one that has changed since is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub bytes: i64,
    /// Nanoseconds since 1970.
    pub changed: i64,
}

impl Seen {
    pub fn of(path: &Path) -> Option<Seen> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        let changed = meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec());
        Some(Seen { bytes: int(meta.len()), changed })
    }
}

/// Takes a run's rows away.
pub fn forget(db: &Transaction<'_>, run: &str) -> rusqlite::Result<()> {
    for table in ["steps", "attempts", "usage"] {
        db.prepare_cached(&format!("DELETE FROM {table} WHERE run = ?1"))?.execute([run])?;
    }
    db.prepare_cached("DELETE FROM runs WHERE id = ?1")?.execute([run])?;
    Ok(())
}

/// A run whose journal cannot be read: that it exists, and whose it is.
pub fn write_damaged(db: &Transaction<'_>, run: &str, feature: &str, seen: Seen) -> rusqlite::Result<()> {
    let text = "INSERT INTO runs (id, feature, status, journal_bytes, journal_changed) VALUES (?1, ?2, 'damaged', ?3, ?4)";
    db.prepare_cached(text)?.execute(params![run, feature, seen.bytes, seen.changed])?;
    Ok(())
}

pub fn write(
    db: &Transaction<'_>,
    run: &Run,
    attempts: &[Attempt],
    is_foreign: bool,
    seen: Seen,
) -> Result<(), HistoryError> {
    write_run(db, run, is_foreign, seen)?;
    for id in run.step_ids().filter(|&id| counts(run, id)) {
        write_step(db, run, id)?;
    }
    for attempt in attempts {
        attempt.write(db, &run.id)?;
    }
    Ok(())
}

fn write_run(db: &Transaction<'_>, run: &Run, is_foreign: bool, seen: Seen) -> rusqlite::Result<()> {
    let metrics = WorkflowMetrics::of(run);
    let tally = &run.tally;
    let ended = (!run.status.open()).then_some(int(run.updated_ms));
    let text = "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
                ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34)";
    db.prepare_cached(text)?.execute(params![
        run.id,
        run.feature,
        run.number,
        run.title,
        run.plan().template.name,
        run.status.name(),
        verdict_of(run).map(|verdict| verdict.name()),
        int(run.started_ms),
        ended,
        int(metrics.total_time),
        int(metrics.parallel_time),
        int(metrics.sequential_time),
        metrics.operation_count,
        tally.failed,
        metrics.steps_reused,
        metrics.attempts,
        tally.errors,
        metrics.retries,
        metrics.timeouts,
        metrics.refused,
        metrics.fallbacks,
        metrics.stalls,
        metrics.context_reloads,
        tally.cache_hits,
        tally.cache_hits + tally.cache_misses,
        metrics.resumes,
        metrics.resume_success,
        int(metrics.total_tokens),
        metrics.cost_usd,
        metrics.cost_estimated,
        run.forked_from().map(|from| from.run.as_str()),
        is_foreign,
        seen.bytes,
        seen.changed,
    ])?;
    Ok(())
}

fn write_step(db: &Transaction<'_>, run: &Run, id: StepId) -> rusqlite::Result<()> {
    let (step, view) = (run.step(id), StepView::of(run, id, run.updated_ms));
    let usage = run.usage_of(id);
    let failure = step.failure.as_deref();
    let text = "INSERT OR REPLACE INTO steps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
    db.prepare_cached(text)?.execute(params![
        run.id,
        view.path,
        run.phase_path(step.phase),
        run.kind(id).name(),
        run.agent_of(id),
        view.model.as_deref().or(run.model_of(id)),
        view.state,
        failure.map(|failure| failure.class.name()),
        failure.map(|failure| failure.message.as_str()),
        view.attempts,
        view.reused,
        view.cached,
        moment(step.started_ms),
        moment(step.ended_ms),
        int(view.elapsed_ms),
        (!usage.is_empty()).then_some(int(view.tokens)),
        view.cost_usd,
    ])?;
    Ok(())
}

/// 0 stands for never.
fn moment(ms: u64) -> Option<i64> {
    (ms > 0).then_some(int(ms))
}

/// SQLite has no larger numbers.
pub fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
