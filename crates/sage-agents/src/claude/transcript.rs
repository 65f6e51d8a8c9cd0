//! What the program has said so far, as far as it decides how the turn ended.

use sage_core::port::Usage;
use sage_core::price::PriceTable;
use serde_json::Value;

use super::event::{Event, Fault, Server};
use super::spent::{Spent, spent, total_cost};
use super::tab::{Counted, Tab};

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
    /// Why it is not the agent that its step names.
    pub unknown_agent: Option<String>,
    pub context_tokens: Option<u64>,
    /// What was seen of its responses.
    pub tab: Tab,
    model: Option<String>,
    endings: Vec<Ending>,
    /// The conversation's cost so far.
    counted: Option<f64>,
    /// What it told when it ended.
    spent: Vec<Spent>,
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
            Event::Init { model, .. } => self.model = model.clone(),
            Event::Said { context_tokens, counted, .. } => {
                self.context_tokens = context_tokens.or(self.context_tokens);
                // It got through after all.
                self.fault = None;
                self.tab.take(counted);
            }
            Event::Request(counted) => self.tab.begin(counted),
            Event::Response { counted, .. } => self.tab.end(counted),
            Event::Fault(fault) => self.fault = Some(fault.clone()),
            Event::Limit { reset_at_ms } => self.limit = Some(*reset_at_ms),
            Event::Result(result) => self.end(result),
            _ => {}
        }
    }

    fn end(&mut self, result: &Value) {
        self.spent.push(spent(result, self.counted));
        self.counted = total_cost(result).or(self.counted);
        self.endings.push(Ending::read(result));
    }

    /// What counts of several: the last answer, else the last word.
    pub fn ending(&self) -> Option<&Ending> {
        self.endings.iter().rfind(|ending| ending.ok).or(self.endings.last())
    }

    /// How many turns have ended, if the last one did so with an answer.
    pub fn answered(&self) -> Option<usize> {
        self.endings.last().filter(|ending| ending.ok).map(|_| self.endings.len())
    }

    /// What was seen so far, with what it costs by the table.
    pub fn seen(&self, prices: &PriceTable) -> Usage {
        self.named(self.tab.usage(prices))
    }

    /// What the turn has used: what the program told when it ended, or what was seen of its responses and what its
    /// own file (`recorded`) has of them. Whoever knows more is right: a killed program tells nothing, and one that
    /// has ended forgets what broke off.
    pub fn usage(&self, prices: &PriceTable, recorded: impl FnOnce() -> Vec<Counted>) -> Usage {
        let mut told = Usage::default();
        self.spent.iter().for_each(|spent| told.add(&spent.usage(prices)));
        let told = self.named(told);
        if !self.spent.is_empty() && self.seen(prices).total() <= told.total() {
            let unknown = told.total() == 0 && self.broke_off();
            return if unknown { Usage::default() } else { told };
        }
        let mut tab = self.tab.clone();
        recorded().iter().for_each(|counted| tab.take(counted));
        let mut seen = self.named(tab.usage(prices));
        if seen.total() <= told.total() {
            return told;
        }
        let least = told.cost_usd.unwrap_or(0.0);
        seen.cost_usd = seen.cost_usd.map(|cost| cost.max(least));
        seen
    }

    /// A request was sent, and nobody knows what became of it.
    fn broke_off(&self) -> bool {
        let faults = self.fault.iter().chain(self.retry.iter().map(|(fault, _)| fault));
        faults
            .into_iter()
            .any(|fault| fault.status.is_none() && ["", "unknown"].contains(&fault.kind.as_str()))
    }

    fn named(&self, usage: Usage) -> Usage {
        let model = usage.model.clone().or_else(|| self.model.clone());
        Usage { model, ..usage }
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
