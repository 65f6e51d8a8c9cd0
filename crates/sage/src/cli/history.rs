//! `sage history`: all runs of the project, statistics over them, and SQL for everything else.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use sage_core::alert::Thresholds;
use sage_engine::clock::Clock;
use sage_engine::open::{Engine, SHORT_ID_CHARS};
use sage_history::{By, History, HistoryError, Rates, RunRow, Stat};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::table::{print_rows, print_table};
use super::{print, print_json};
use crate::command_line::{self, sage};
use crate::display::text::{cost_text, count_text, plural, time_text};

/// Rates are told over so many runs.
const RATED_RUNS: u32 = 20;
/// From so many new runs on, a terminal is told that it takes a while.
const MANY_RUNS: usize = 200;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Time, cost, failures, cache and resumes by template, agent or phase
    Stats {
        /// One line for each of these
        #[arg(long, value_name = "WHAT", value_parser = ["template", "agent", "phase"], default_value = "template")]
        by: String,
        /// Only what began in this time: 7d, 12h
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        since: Option<Duration>,
    },
    /// Answer a query: tables runs, steps, attempts, usage, handoffs, wakes
    Sql {
        /// `SELECT ...`
        query: String,
    },
    /// Make the history anew from the journals
    Rebuild,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    match args.what {
        None => list(&engine, args.json),
        Some(What::Stats { by, since }) => stats(&engine, &by, since, args.json),
        Some(What::Sql { query }) => sql(&engine, &query, args.json),
        Some(What::Rebuild) => rebuild(&engine, args.json),
    }
}

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Failure {
        let message = error.to_string();
        match error {
            HistoryError::Runs(error) => error.into(),
            HistoryError::Query(_) => {
                Failure::usage(message).hint("sage history sql \"SELECT name, sql FROM sqlite_schema\"")
            }
            HistoryError::Io { .. } => Failure::failed(message).hint("sage doctor"),
            HistoryError::Database(_) => Failure::failed(message).hint(sage("history").arg("rebuild")),
        }
    }
}

/// The history, up to date. Where it cannot be kept, it is made for this command alone.
pub fn open(engine: &Engine) -> Result<History, Failure> {
    let mut history = place(engine)?;
    history.sync(engine, &mut |done, total| {
        if done == 1 && total >= MANY_RUNS && std::io::stderr().is_terminal() {
            eprintln!("reading {total} runs");
        }
    })?;
    Ok(history)
}

fn place(engine: &Engine) -> Result<History, HistoryError> {
    let is_ours = engine.project.refuse_strange().is_ok() && engine.project.state().is_dir();
    match engine.key.as_ref().filter(|_| is_ours) {
        Some(key) => match History::open(&engine.project.dir, key) {
            Err(error) if error.is_unwritable() => History::in_memory(),
            opened => opened,
        },
        None => History::in_memory(),
    }
}

/// Adds what a run did when its process lets go of it. The journal has it in any case: a failure here is none.
pub fn record(engine: &Engine) {
    let kept = engine.key.as_ref().and_then(|key| History::open(&engine.project.dir, key).ok());
    if let Some(mut history) = kept {
        let _ = history.sync(engine, &mut |_, _| {});
    }
}

pub fn list(engine: &Engine, json: bool) -> Result<ExitCode, Failure> {
    let history = open(engine)?;
    let (runs, rates) = (history.runs()?, history.rates(RATED_RUNS)?);
    if json {
        print_json(&json!({"type": "history", "runs": runs, "rates": rates}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        eprintln!("no runs");
        command_line::tell(sage("run").arg("my first feature"));
        return Ok(ExitCode::SUCCESS);
    }
    print_runs(&runs);
    tell_rates(&rates);
    Ok(ExitCode::SUCCESS)
}

/// One line for each run, newest first.
fn print_runs(runs: &[RunRow]) {
    let heading = ["RUN", "ID", "STATUS", "STEPS", "TIME", "TOKENS", "COST", "STARTED (UTC)", "TEMPLATE"]
        .map(String::from);
    let rows = runs.iter().map(|run| {
        let number = run.number.map_or_else(String::new, |number| format!("@{number}"));
        let id = run.id.get(run.id.len().saturating_sub(SHORT_ID_CHARS)..).unwrap_or(&run.id);
        let started = run.started_ms.map(|ms| sage_core::wire::rfc3339(ms.unsigned_abs()));
        let started = started.map(|text| text.replace('T', " ").chars().take(19).collect());
        let gone = match run {
            RunRow { is_removed: true, .. } => " (removed)",
            RunRow { is_foreign: true, .. } => " (foreign)",
            _ => "",
        };
        [
            format!("{}{number}", run.feature),
            id.to_string(),
            format!("{}{gone}", run.verdict.as_ref().unwrap_or(&run.status)),
            run.steps.map_or_else(none, |steps| steps.to_string()),
            run.active_ms.map_or_else(none, |ms| time_text(ms.unsigned_abs())),
            run.tokens.map_or_else(none, |tokens| count_text(tokens.unsigned_abs())),
            run.cost_usd.map_or_else(none, |cost| cost_text(cost, run.cost_estimated)),
            started.unwrap_or_else(none),
            run.template.clone().unwrap_or_else(none),
        ]
    });
    print_table(&std::iter::once(heading).chain(rows).collect::<Vec<_>>());
}

fn none() -> String {
    "-".into()
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(none, |share| format!("{:.0}%", share * 100.0))
}

/// Over the last runs; what is beyond the usual limits is marked.
fn tell_rates(rates: &Rates) {
    if rates.runs < 2 {
        return;
    }
    let limits = Thresholds::default();
    let mark = |beyond: bool| if beyond { " (!)" } else { "" };
    let errors = rates.error_rate.zip(limits.errors).is_some_and(|(rate, limit)| rate > limit);
    let kept = rates.resume_success.zip(limits.resume).is_some_and(|(rate, limit)| rate < limit);
    let mut parts = vec![
        format!("{} of runs failed", percent(rates.run_failure_rate)),
        format!("{} of attempts failed{}", percent(rates.error_rate), mark(errors)),
    ];
    if rates.cache_hit_rate.is_some() {
        parts.push(format!("{} cache hits", percent(rates.cache_hit_rate)));
    }
    if rates.resumes > 0 {
        let resumes = plural(rates.resumes.unsigned_abs(), "resume");
        parts.push(format!(
            "{resumes} kept {} of finished steps{}",
            percent(rates.resume_success),
            mark(kept)
        ));
    }
    print(format_args!("\nlast {}: {}\n", plural(rates.runs.unsigned_abs(), "run"), parts.join(", ")));
}

fn stats(engine: &Engine, by: &str, since: Option<Duration>, json: bool) -> Result<ExitCode, Failure> {
    let since_ms = since.map_or(0, |since| {
        let now = Clock::System.now_ms();
        i64::try_from(now.saturating_sub(since.as_millis() as u64)).unwrap_or(i64::MAX)
    });
    let (what, count) = match by {
        "agent" => (By::Agent, "ATTEMPTS"),
        "phase" => (By::Phase, "STEPS"),
        _ => (By::Template, "RUNS"),
    };
    let stats = open(engine)?.stats(what, since_ms)?;
    if json {
        print_json(&json!({"type": "historyStats", "by": by, "stats": stats}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if stats.is_empty() {
        eprintln!("no runs{}", if since.is_some() { " in this time" } else { "" });
        command_line::tell("sage history");
        return Ok(ExitCode::SUCCESS);
    }
    let name = by.to_uppercase();
    let heading = [&name, count, "FAILED", "MEAN", "LONGEST", "TOKENS", "COST", "CACHE", "RESUMES KEPT"]
        .map(String::from);
    print_table(&std::iter::once(heading).chain(stats.iter().map(stat_row)).collect::<Vec<_>>());
    Ok(ExitCode::SUCCESS)
}

fn stat_row(stat: &Stat) -> [String; 9] {
    [
        stat.name.clone(),
        stat.count.to_string(),
        percent(stat.failure_rate),
        stat.mean_ms.map_or_else(none, |ms| time_text(ms as u64)),
        stat.max_ms.map_or_else(none, |ms| time_text(ms.unsigned_abs())),
        stat.tokens.map_or_else(none, |tokens| count_text(tokens.unsigned_abs())),
        stat.cost_usd.map_or_else(none, |cost| cost_text(cost, false)),
        percent(stat.cache_hit_rate),
        percent(stat.resume_success),
    ]
}

fn sql(engine: &Engine, query: &str, json: bool) -> Result<ExitCode, Failure> {
    let (columns, rows) = open(engine)?.sql(query)?;
    if json {
        print_json(&json!({"type": "historySql", "columns": columns, "rows": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let cell = |value: Value| match value {
        Value::Null => none(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    let rows = rows.into_iter().map(|row| row.into_iter().map(cell).collect());
    print_rows(&std::iter::once(columns).chain(rows).collect::<Vec<Vec<String>>>());
    Ok(ExitCode::SUCCESS)
}

fn rebuild(engine: &Engine, json: bool) -> Result<ExitCode, Failure> {
    let synced = place(engine)?.rebuild(engine, &mut |_, _| {})?;
    if json {
        print_json(&json!({"type": "historyRebuilt", "runs": synced.runs, "damaged": synced.damaged}))?;
    } else {
        print(format_args!("{} read\n", plural(synced.runs as u64, "run")));
        if synced.damaged > 0 {
            eprintln!("{} cannot be read", plural(synced.damaged as u64, "journal"));
            command_line::tell("sage verify");
        }
    }
    Ok(ExitCode::SUCCESS)
}
