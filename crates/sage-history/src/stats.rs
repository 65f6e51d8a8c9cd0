//! Statistics over runs, and rates over the last of them. Runs that came from elsewhere are left out.

use rusqlite::{Row, params};

use crate::{History, HistoryError};

/// What a line of the statistics is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Template,
    Agent,
    Phase,
}

/// One template, agent or phase in all runs.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stat {
    pub name: String,
    /// Runs of a template, attempts of an agent, steps of a phase.
    pub count: i64,
    /// Of those that ended, the share that failed.
    pub failure_rate: Option<f64>,
    pub mean_ms: Option<f64>,
    pub max_ms: Option<i64>,
    pub tokens: Option<i64>,
    pub cost_usd: Option<f64>,
    pub cache_hit_rate: Option<f64>,
    pub resumes: Option<i64>,
    pub resume_success: Option<f64>,
}

/// Rates over the last runs.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rates {
    pub runs: i64,
    pub run_failure_rate: Option<f64>,
    /// Failed attempts by all attempts.
    pub error_rate: Option<f64>,
    pub cache_hit_rate: Option<f64>,
    pub resumes: i64,
    pub resume_success: Option<f64>,
    pub cost_usd: Option<f64>,
}

const BY_TEMPLATE: &str = "
SELECT template, count(*),
  avg(CASE verdict WHEN 'failed' THEN 1.0 WHEN 'succeeded' THEN 0 WHEN 'degraded' THEN 0 END),
  avg(active_ms) FILTER (WHERE verdict IS NOT NULL), max(active_ms), sum(tokens), sum(cost_usd),
  1.0 * sum(cache_hits) / nullif(sum(cache_lookups), 0), sum(resumes), avg(resume_success)
FROM runs WHERE NOT is_foreign AND template IS NOT NULL AND started_ms >= ?1 GROUP BY template ORDER BY 2 DESC, 1";

const BY_AGENT: &str = "
SELECT agent, count(*), avg(CASE outcome WHEN 'failed' THEN 1.0 WHEN 'succeeded' THEN 0 WHEN 'skipped' THEN 0 END),
  avg(a.active_ms), max(a.active_ms),
  sum(u.input + ifnull(u.cache_read, 0) + ifnull(u.cache_write, 0) + ifnull(u.output, 0) + ifnull(u.reasoning, 0)),
  sum(u.cost_usd), NULL, NULL, NULL
FROM attempts a LEFT JOIN usage u ON (u.run, u.step, u.attempt) = (a.run, a.step, a.attempt)
WHERE agent IS NOT NULL AND a.run IN (SELECT id FROM runs WHERE NOT is_foreign) AND a.started_ms >= ?1
GROUP BY agent ORDER BY 2 DESC, 1";

const BY_PHASE: &str = "
SELECT r.template || '/' || s.phase, count(*),
  avg(CASE state WHEN 'failed' THEN 1.0 WHEN 'succeeded' THEN 0 WHEN 'skipped' THEN 0 END),
  avg(CASE WHEN s.reused THEN NULL ELSE s.active_ms END), max(s.active_ms), sum(s.tokens), sum(s.cost_usd),
  CASE WHEN sum(r.cache_lookups) > 0 THEN avg(s.cached) END, NULL, NULL
FROM steps s JOIN runs r ON r.id = s.run
WHERE NOT r.is_foreign AND r.started_ms >= ?1 GROUP BY 1 ORDER BY min(r.started_ms), min(s.started_ms)";

const RATES: &str = "
SELECT count(*), avg(CASE verdict WHEN 'failed' THEN 1.0 WHEN 'succeeded' THEN 0 WHEN 'degraded' THEN 0 END),
  1.0 * sum(attempts_failed) / nullif(sum(attempts), 0), 1.0 * sum(cache_hits) / nullif(sum(cache_lookups), 0),
  ifnull(sum(resumes), 0), avg(resume_success), sum(cost_usd)
FROM (SELECT * FROM runs WHERE NOT is_foreign AND verdict IS NOT NULL ORDER BY id DESC LIMIT ?1)";

impl History {
    /// Of runs that began at `since_ms` or later.
    pub fn stats(&self, by: By, since_ms: i64) -> Result<Vec<Stat>, HistoryError> {
        let text = match by {
            By::Template => BY_TEMPLATE,
            By::Agent => BY_AGENT,
            By::Phase => BY_PHASE,
        };
        let mut statement = self.db.prepare(text)?;
        let rows = statement.query_map([since_ms], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Over the last so many runs that ended.
    pub fn rates(&self, runs: u32) -> Result<Rates, HistoryError> {
        let rates = self.db.query_row(RATES, params![runs], |row| {
            Ok(Rates {
                runs: row.get(0)?,
                run_failure_rate: row.get(1)?,
                error_rate: row.get(2)?,
                cache_hit_rate: row.get(3)?,
                resumes: row.get(4)?,
                resume_success: row.get(5)?,
                cost_usd: row.get(6)?,
            })
        })?;
        Ok(rates)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Stat> {
    Ok(Stat {
        name: row.get(0)?,
        count: row.get(1)?,
        failure_rate: row.get(2)?,
        mean_ms: row.get(3)?,
        max_ms: row.get(4)?,
        tokens: row.get(5)?,
        cost_usd: row.get(6)?,
        cache_hit_rate: row.get(7)?,
        resumes: row.get(8)?,
        resume_success: row.get(9)?,
    })
}
