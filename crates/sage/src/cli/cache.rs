//! `sage cache`: what is kept for later runs, how often it helped, and giving it up.

use std::process::ExitCode;

use clap::Subcommand;
use sage_engine::cache::{Cache, EXPIRES_SOON_MS, Entry};
use sage_engine::clock::Clock;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::table::print_table;
use super::{config, print, print_json};
use crate::command_line;
use crate::display::text::{ago_text, clean, clock_text, count_text, plural, size_text};
use crate::trust::person::refuse_steps;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// How much is kept and how often it was used
    Stats,
    /// Every result, the last used first
    List {
        /// Only of this operation, step or feature
        name: Option<String>,
    },
    /// Give results up: all, or those that are named
    Clear {
        /// Only of this operation, step or feature
        name: Option<String>,
        /// Only what was made longer ago, e.g. 7d
        #[arg(long, value_name = "TIME")]
        older_than: Option<String>,
    },
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        !matches!(self.action, Some(Action::Clear { .. }))
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let cache = context.cache();
    let now = Clock::System.now_ms();
    match args.action {
        None | Some(Action::Stats) => stats(context, &cache, now, args.json)?,
        Some(Action::List { name }) => list(&cache, name.as_deref(), now, args.json)?,
        Some(Action::Clear { name, older_than }) => {
            refuse_steps("clear the cache", "sage cache clear")?;
            clear(&cache, name.as_deref(), older_than.as_deref(), now, args.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_named(entry: &Entry, name: Option<&str>) -> bool {
    name.is_none_or(|name| [&entry.operation, &entry.step, &entry.feature].iter().any(|own| *own == name))
}

fn soon(entry: &Entry, now: u64) -> bool {
    entry.left_ms(now).is_some_and(|left| left <= EXPIRES_SOON_MS)
}

fn stats(context: &Context, cache: &Cache, now: u64, json: bool) -> Result<(), Failure> {
    let (entries, counts) = (cache.entries(), cache.counts());
    let bytes: u64 = entries.iter().map(|(_, bytes)| bytes).sum();
    let oldest = entries.iter().map(|(entry, _)| entry.age_ms(now)).max();
    let count = |wanted: &dyn Fn(&Entry) -> bool| entries.iter().filter(|(entry, _)| wanted(entry)).count();
    let (soon, stale) = (count(&|entry| soon(entry, now)), count(&|entry| entry.left_ms(now).is_none()));
    let (most, enabled) = (cache.config.max_bytes, context.config.cache.is_some());
    if json {
        return print_json(&json!({
            "type": "cacheStats", "enabled": enabled, "dir": cache.dir(), "entries": entries.len(),
            "bytes": bytes, "maxBytes": most, "ttlMs": cache.config.ttl_ms, "oldestMs": oldest,
            "expiringSoon": soon, "stale": stale, "hits": counts.hits, "misses": counts.misses,
            "hitRate": counts.hit_rate(), "savedTokens": counts.saved_tokens, "savedMs": counts.saved_ms,
        }));
    }
    if !enabled {
        eprintln!("note: the cache is switched off ([cache] enabled in sage.toml)");
    }
    let kept = plural(entries.len() as u64, "result");
    print(format_args!("{kept}, {} of {}\n", size_text(bytes), size_text(most)));
    match counts.hit_rate() {
        Some(rate) => print(format_args!(
            "{:.0}% hits over all runs ({} of {}), {} tokens and {} saved\n",
            rate * 100.0,
            counts.hits,
            counts.hits + counts.misses,
            count_text(counts.saved_tokens),
            clock_text(counts.saved_ms)
        )),
        None => print("no run has looked for a result yet\n"),
    }
    if let Some(oldest) = oldest {
        let stale = if stale > 0 { format!("; {stale} too old, kept for fallbacks") } else { String::new() };
        print(format_args!("the oldest is {} old; {soon} expire within 7 days{stale}\n", ago_text(oldest)));
    }
    Ok(())
}

fn view(entry: &Entry, bytes: u64, now: u64) -> Value {
    json!({
        "key": entry.key, "operation": entry.operation, "step": entry.step, "feature": entry.feature,
        "run": entry.run, "agent": entry.agent, "model": entry.model, "ageMs": entry.age_ms(now),
        "expiresInMs": entry.left_ms(now), "stale": entry.left_ms(now).is_none(), "bytes": bytes,
        "uses": entry.uses, "lastUsedMs": entry.last_used_ms, "paid": entry.paid,
    })
}

fn list(cache: &Cache, name: Option<&str>, now: u64, json: bool) -> Result<(), Failure> {
    let mut entries = cache.entries();
    entries.retain(|(entry, _)| is_named(entry, name));
    if json {
        let all: Vec<Value> = entries.iter().map(|(entry, bytes)| view(entry, *bytes, now)).collect();
        return print_json(&json!({"type": "cacheList", "entries": all}));
    }
    if entries.is_empty() {
        match name {
            Some(name) if !cache.entries().is_empty() => {
                eprintln!("nothing is kept of `{}`", clean(name));
                command_line::tell("sage cache list");
            }
            _ => eprintln!("nothing is kept; steps with `cache` keep their results here"),
        }
        return Ok(());
    }
    let row = |(entry, bytes): &(Entry, u64)| {
        let left = entry.left_ms(now).map_or("too old".into(), |left| format!("{} left", ago_text(left)));
        let used = plural(entry.uses.into(), "time");
        let texts = [&entry.operation, &entry.step, &entry.feature].map(|text| clean(text));
        let [operation, step, feature] = texts;
        let age = format!("{} old", ago_text(entry.age_ms(now)));
        [operation, step, feature, age, left, size_text(*bytes), format!("used {used}")]
    };
    let rows: Vec<[String; 7]> = entries.iter().map(row).collect();
    print_table(&rows);
    Ok(())
}

fn clear(
    cache: &Cache,
    name: Option<&str>,
    older_than: Option<&str>,
    now: u64,
    json: bool,
) -> Result<(), Failure> {
    let limit = older_than.map(age).transpose()?.unwrap_or(0);
    let removed = cache.clear(|entry| is_named(entry, name) && entry.age_ms(now) >= limit);
    if json {
        return print_json(
            &json!({"type": "cacheCleared", "removed": removed.count, "bytes": removed.bytes}),
        );
    }
    print(format_args!("{} removed, {} freed\n", plural(removed.count, "result"), size_text(removed.bytes)));
    if let (0, Some(name)) = (removed.count, name) {
        eprintln!("note: nothing is kept of `{}`", clean(name));
        command_line::tell("sage cache list");
    }
    Ok(())
}

/// On a command line nobody means milliseconds.
fn age(text: &str) -> Result<u64, Failure> {
    if text.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Failure::usage(format!("`{text}` has no unit")).hint(format!("--older-than {text}d")));
    }
    config::duration(text)
}
