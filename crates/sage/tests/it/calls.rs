//! What the scripted server of the fake agents saw, and the times of a journal: helpers of tests on limits.

use std::time::{SystemTime, UNIX_EPOCH};

use sage_core::event::Event;
use serde::Deserialize;

use crate::dsl::{DEADLINE, Entry, Journal, Sage, wait_until};

/// A line of the server's log.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub t: u64,
    pub step: String,
    pub attempt: u32,
    pub refused: bool,
    pub early: bool,
    pub opens_at: Option<u64>,
}

/// All calls so far, in the order of their arrival.
pub fn calls(sage: &Sage) -> Vec<Call> {
    sage.lines("calls.jsonl").iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// One fan-out of fake agents; `server` is inside of the braces of the scripted endpoint.
pub fn agents(count: u32, server: &str, turn: &str) -> String {
    format!(
        r#"
name: t
phases:
  - id: p
    operations:
      - id: each
        type: agent
        agent: fake
        prompt: go
        foreach: "[range({count})]"
        params: {{ script: [{{ server: {{ log: calls.jsonl, {server} }}, {turn} result: 1 }}] }}
"#
    )
}

pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

pub fn wait_for_time(at_ms: u64) {
    wait_until(|| now_ms() >= at_ms, DEADLINE, "a known time");
}

/// The first record that `wanted` takes.
pub fn first(journal: &Journal, wanted: impl Fn(&Event) -> bool) -> Option<&Entry> {
    journal.records.iter().find(|entry| wanted(&entry.event))
}

pub fn is_pause(event: &Event) -> bool {
    matches!(event, Event::RunPaused(_))
}

/// Times of all starts and hedges after a record.
pub fn starts_after(journal: &Journal, seq: u64) -> Vec<u64> {
    let begins = |entry: &&Entry| matches!(entry.event, Event::StepStarted(_) | Event::StepHedged(_));
    journal.records.iter().filter(|e| e.head.seq > seq).filter(begins).map(|e| e.at_ms).collect()
}

/// How many records of a kind there are.
pub fn count(journal: &Journal, kind: &str) -> usize {
    journal.records.iter().filter(|entry| entry.event.kind() == kind).count()
}
