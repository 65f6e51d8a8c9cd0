//! What is asked: the reference chain, in which one result tells what to ask for next, and two small questions for
//! the limits of code mode. Each with its calls, its code, and how its answer is read from plain results.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::frozen::{Frozen, wire_name};
use crate::cli::failure::Failure;

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../../../bench-data/tokens/", $name))
    };
}

/// A call of a tool and what came back.
#[derive(Clone, Debug)]
pub struct Call {
    pub written: String,
    pub result: String,
}

pub struct Chain {
    pub question: &'static str,
    /// What is searched for, where tools have to be found.
    pub searches: &'static [&'static str],
    /// Tools that a search has to find, as (server, name).
    pub needs: Vec<(String, String)>,
    pub calls: Vec<Call>,
    /// Before which call one is made with a wrong argument.
    pub wrong_call: Option<(usize, Call)>,
    pub code: Vec<&'static str>,
    /// The last code with a name that does not exist.
    pub wrong_code: Option<String>,
    /// The answer, from what a model without code reads.
    pub read: fn(&[String]) -> Option<Value>,
}

pub fn reference(frozen: &Frozen) -> Result<Chain, Failure> {
    let log = json!({"path": "/srv/ledger/logs/import-2026-03-14.log"});
    let entries = json!({"path": "/srv/ledger/data/entries-2026-03-14.csv"});
    let history = json!({"repo_path": "/srv/ledger", "max_count": 140});
    let revision = "aa200e8de6a36e368377f81c11f0be6e7a54b835";
    let show = json!({"repo_path": "/srv/ledger", "revision": revision});
    let mut chain = Chain::new(
        frozen,
        text!("question.txt"),
        &["read a text file", "git commit log and show", "sql select query"],
        &[
            ("filesystem", "read_text_file", log),
            ("git", "git_log", history),
            ("git", "git_show", show),
            ("filesystem", "read_text_file", entries),
            ("sqlite", "read_query", owner_query()),
        ],
        read_reference,
    )?;
    let wrong = json!({"repo_path": "/srv/ledger", "commit": revision});
    chain.wrong_call = Some((2, call(frozen, "git", "git_show", &wrong)?));
    chain.code = vec![text!("peek.ts"), text!("chain.ts")];
    chain.wrong_code = Some(text!("chain.ts").replace("gitShow", "show"));
    Ok(chain)
}

/// One call with a short answer: there is nothing to save.
pub fn tiny(frozen: &Frozen) -> Result<Chain, Failure> {
    let question =
        "Which team and channel own the stage tariff_rounding (table owners: stage, team, channel)?";
    let calls = [("sqlite", "read_query", owner_query())];
    let mut chain = Chain::new(frozen, question, &["sql select query"], &calls, |seen| {
        Some(seen.last()?.as_str().into())
    })?;
    chain.code = vec![text!("one_call.ts")];
    Ok(chain)
}

/// One call with an answer of any size: the first lines of the log, of which some are counted.
pub fn counting(frozen: &Frozen) -> Result<Chain, Failure> {
    let question = "How often does the error E4127 occur in /srv/ledger/logs/import-2026-03-14.log?";
    let log = json!({"path": "/srv/ledger/logs/import-2026-03-14.log"});
    let calls = [("filesystem", "read_text_file", log)];
    let mut chain = Chain::new(frozen, question, &["read a text file"], &calls, |seen| {
        Some(seen.last()?.matches("code=E4127").count().into())
    })?;
    chain.code = vec![text!("count.ts")];
    Ok(chain)
}

impl Chain {
    fn new(
        frozen: &Frozen,
        question: &'static str,
        searches: &'static [&'static str],
        calls: &[(&str, &str, Value)],
        read: fn(&[String]) -> Option<Value>,
    ) -> Result<Chain, Failure> {
        let needs = calls.iter().map(|(server, tool, _)| (server.to_string(), tool.to_string())).collect();
        let calls = calls.iter().map(|(server, tool, input)| call(frozen, server, tool, input));
        let calls = calls.collect::<Result<_, _>>()?;
        let (wrong_call, wrong_code, code) = (None, None, Vec::new());
        Ok(Chain { question, searches, needs, calls, wrong_call, code, wrong_code, read })
    }
}

fn call(frozen: &Frozen, server: &str, tool: &str, input: &Value) -> Result<Call, Failure> {
    let recorded = frozen.result(server, tool, input)?;
    let written = written(&wire_name(server, tool), input);
    Ok(Call { written, result: recorded.text.clone() })
}

/// A call as a model writes it.
pub fn written(name: &str, input: &Value) -> String {
    json!({"name": name, "input": input}).to_string()
}

fn owner_query() -> Value {
    json!({"query": "SELECT team, channel FROM owners WHERE stage = 'tariff_rounding'"})
}

/// A second way to the answer, in Rust and from the plain texts: the code is not its own judge.
fn read_reference(seen: &[String]) -> Option<Value> {
    let [log, history, diff, entries, owner] = seen.last_chunk()?;
    let mut errors: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(" ERROR ")) {
        *errors.entry((field(line, "code=")?, field(line, "stage=")?)).or_default() += 1;
    }
    let ((code, stage), failures) = errors.into_iter().max_by_key(|(_, times)| *times)?;
    let changed = history.split("Commit: ").find(|it| it.contains(&format!("Message: {stage}:")))?;
    let rules = diff.lines().find_map(|line| line.strip_prefix("+RULES = \"")?.strip_suffix('"'))?;
    let (mut rejected, mut regions) = (0, BTreeMap::<&str, u64>::new());
    for line in entries.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        if let [_, _, region, under, cents, "rejected"] = cells[..]
            && under == rules
        {
            rejected += 1;
            *regions.entry(region).or_default() += cents.parse::<u64>().ok()?;
        }
    }
    let cents: u64 = regions.values().sum();
    let (region, _) = regions.into_iter().max_by_key(|(_, cents)| *cents)?;
    let owner: Vec<&str> = owner.split('\'').collect();
    Some(json!({
        "code": code, "failures": failures, "stage": stage, "commit": changed.lines().next()?,
        "author": changed.lines().find_map(|line| line.strip_prefix("Author: "))?,
        "ticket": changed.lines().find_map(|line| line.strip_prefix("Refs "))?, "rules": rules,
        "rejected": rejected, "cents": cents, "region": region, "team": owner.get(3)?, "channel": owner.get(7)?,
    }))
}

/// The word behind `name` in a line of the log.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name))
}
