//! What the program has said so far, as far as it decides how the turn ended.

use sage_core::port::Usage;
use serde_json::Value;

use super::event::{Event, Fault, Server};
use super::spent::{spent, total_cost};

#[derive(Debug, Default)]
pub struct Transcript {
    /// It has said something that was understood.
    pub spoke: bool,
    pub garbage_lines: u64,
    /// The last request that failed, in the program's own words.
    pub fault: Option<Fault>,
    /// It wanted to try again after so many ms, and was interrupted for that.
    pub retry: Option<(Fault, u64)>,
    /// What the account may use is used up, and when that changes, in ms since the epoch.
    pub limit: Option<Option<u64>>,
    /// MCP servers without which the turn makes no sense.
    pub lost_servers: Vec<Server>,
    pub context_tokens: Option<u64>,
    /// Of all requests that were answered so far, without those of subagents.
    pub live: Usage,
    /// Of the one under way.
    request: Usage,
    endings: Vec<Ending>,
    /// The conversation's cost so far.
    counted: Option<f64>,
    usage: Usage,
}

/// A `result` event.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub ok: bool,
    pub subtype: String,
    /// Why the turn ended: `completed`, `aborted_tools`, `api_error`, ...
    pub reason: String,
    pub stop_reason: String,
    pub status: Option<u64>,
    pub text: String,
    pub structured: Option<Value>,
    pub errors: Vec<String>,
    pub turns: Option<u64>,
}

impl Transcript {
    pub fn new(counted: Option<f64>) -> Transcript {
        Transcript { counted, ..Transcript::default() }
    }

    pub fn take(&mut self, event: &Event) {
        self.spoke = true;
        match event {
            Event::Said { context_tokens, .. } => {
                self.context_tokens = context_tokens.or(self.context_tokens);
                // It got through after all.
                self.fault = None;
            }
            Event::Request(usage) => self.request = Usage { output: None, ..usage.clone() },
            Event::Response(usage) => {
                self.live.add(&std::mem::take(&mut self.request));
                self.live.add(&Usage { output: usage.output, ..Usage::default() });
            }
            Event::Fault(fault) => self.fault = Some(fault.clone()),
            Event::Limit { reset_at_ms } => self.limit = Some(*reset_at_ms),
            Event::Result(result) => self.end(result),
            _ => {}
        }
    }

    fn end(&mut self, result: &Value) {
        self.usage.add(&spent(result, self.counted));
        self.counted = total_cost(result).or(self.counted);
        self.endings.push(Ending::read(result));
    }

    /// What counts of several: the last answer, else the last word.
    pub fn ending(&self) -> Option<&Ending> {
        self.endings.iter().rfind(|ending| ending.ok).or(self.endings.last())
    }

    /// Nothing is known of a turn without a terminal event.
    pub fn usage(&self) -> Usage {
        self.usage.clone()
    }

    pub fn counters(&self) -> Option<Usage> {
        self.counted
            .filter(|_| !self.endings.is_empty())
            .map(|cost| Usage { cost_usd: Some(cost), ..Usage::default() })
    }

    /// The conversation that it was to go on with is not there; nothing was asked.
    pub fn is_unknown(&self) -> bool {
        self.ending().is_some_and(|ending| {
            let not_found = |error: &String| error.starts_with("No conversation found");
            !ending.ok && ending.turns == Some(0) && ending.errors.iter().any(not_found)
        })
    }
}

impl Ending {
    fn read(result: &Value) -> Ending {
        let text = |name: &str| result[name].as_str().unwrap_or_default().to_string();
        let errors = result["errors"].as_array().into_iter().flatten();
        Ending {
            ok: result["is_error"] == false,
            subtype: text("subtype"),
            reason: text("terminal_reason"),
            stop_reason: text("stop_reason"),
            status: result["api_error_status"].as_u64(),
            text: text("result"),
            structured: result.get("structured_output").filter(|value| !value.is_null()).cloned(),
            errors: errors.filter_map(|error| error.as_str().map(str::to_string)).collect(),
            turns: result["num_turns"].as_u64(),
        }
    }

    /// Somebody broke the turn off, after it had begun.
    pub fn is_aborted(&self) -> bool {
        let broken_off = self.reason.is_empty() || self.reason.starts_with("aborted");
        self.subtype == "error_during_execution" && broken_off && self.turns != Some(0)
    }
}
