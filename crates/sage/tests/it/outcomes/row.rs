//! A row: `row("429").turns(json!([..])).retry_after(3).succeeds("done").requests(2)`.

use std::ops::RangeInclusive;

use rustix::process::Signal;
use sage_agents::fake_llm::FakeLlm;
use serde_json::{Map, Value, json};

use super::agent::Agent;
use crate::dsl::{DEADLINE, Sage, wait_until};

/// What the agents say at the end of rows that end well.
pub const DONE: &str = "all done";

/// Another try comes soon.
pub const SOON: &str = "retry: { attempts: 3, delay: 200ms }";
/// A stream whose first event breaks off.
pub const NO_EVENT: &str = "event: message_start\ndata: {\"type\": \"mess";
pub const PAGE: &str = "<html><body>502 Bad Gateway</body></html>";
pub const DAYS_S: u64 = 3 * 86_400;
pub const SCHEMA: &str = "schema: { type: object, properties: { n: { type: integer } }, required: [n] }";
/// Where nobody answers a question.
pub const NOBODY: &str = "[approvals]\ndeadline = \"1s\"\n";

pub fn row(name: &'static str) -> Row {
    Row {
        name,
        turns: json!([{"text": DONE}]),
        turns_at: None,
        fields: String::new(),
        params: json!({"prompt": "the-task: do it"}).as_object().unwrap().clone(),
        flags: "",
        env: Vec::new(),
        settings: String::new(),
        command: None,
        meanwhile: None,
        signal: None,
        afterwards: None,
        long: false,
        wants: Wants::default(),
    }
}

/// `call` writes a file, and may.
pub fn uses_tool(call: Value) -> Row {
    row("tool")
        .turns(json!([call, {"text": DONE}]))
        .requests(2)
        .afterwards(|it| assert_eq!(it.sage.lines("ran"), ["ran"]))
}

/// `call` would write a file, and nobody allows it.
pub fn is_denied(call: Value) -> Row {
    row("asks, denied")
        .turns(json!([call, {"text": DONE}]))
        .settings(NOBODY)
        .afterwards(|it| assert!(!it.sage.path("ran").exists()))
}

/// The endpoint asks for two seconds.
pub fn is_limited() -> Row {
    row("429 with retry-after 2").once(json!({"status": 429, "headers": {"retry-after": "2"}}))
}

/// An agent that is sent a signal while its tool runs. It goes on in its conversation, and its tool does not run again.
pub fn killed(agent: &Agent, name: &'static str, signal: Signal) -> Row {
    let turns = json!([(agent.shell)("echo once >> begun; sleep 300"), {"text": DONE}]);
    let row = Row { signal: Some(signal), ..row(name).turns(turns).fields(SOON).attempts(2).requests(2) };
    row.param("tools", json!(["Bash"])).afterwards(|it| {
        assert_eq!(it.sage.lines("begun"), ["once"], "the tool did not run again");
        let last = it.endpoint.prompts().last().unwrap().to_string();
        assert_eq!(last.matches("the-task").count(), 1, "the prompt was told once");
    })
}

#[derive(Clone)]
pub struct Row {
    pub name: &'static str,
    pub turns: Value,
    /// The same, of the time when the row begins, in seconds since the epoch.
    pub turns_at: Option<fn(u64) -> Value>,
    /// Of the step.
    pub fields: String,
    pub params: Map<String, Value>,
    /// Of `sage run`.
    pub flags: &'static str,
    /// Of the agent.
    pub env: Vec<(&'static str, String)>,
    /// Further lines of `sage.toml`.
    pub settings: String,
    /// In place of the agent's own.
    pub command: Option<Vec<String>>,
    pub meanwhile: Option<Act>,
    /// What the agent is sent while its tool runs.
    pub signal: Option<Signal>,
    pub afterwards: Option<Act>,
    /// Only with `SAGE_LONG`.
    pub long: bool,
    pub wants: Wants,
}

pub type Act = fn(&Scene<'_>);

/// What a row is played with.
pub struct Scene<'a> {
    pub sage: &'a Sage,
    pub endpoint: &'a FakeLlm,
    pub agent: &'a Agent,
}

impl Scene<'_> {
    /// A tool of the agent runs: it wrote a line into `begun`.
    pub fn wait_for_tool(&self) {
        wait_until(|| !self.sage.lines("begun").is_empty(), DEADLINE, "the agent's tool to run");
    }

    /// Sends a signal to the agent itself: the oldest process that it is.
    pub fn signal(&self, signal: Signal) {
        let is = |pid: &u32| {
            let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (self.agent.is)(&program, &String::from_utf8_lossy(&line).replace('\0', " "))
        };
        let found = self.sage.alive().into_iter().filter(is);
        let oldest = found.filter_map(|pid| Some((sage_agents::start_time(pid)?, pid))).min();
        let (_, pid) = oldest.unwrap_or_else(|| panic!("{} does not run", self.agent.name));
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// The step waits for an answer.
    pub fn wait_for_question(&self) {
        let asks = || {
            let Some(run) = self.sage.engine().latest("x") else { return false };
            let journal = std::fs::read_to_string(self.sage.run_dir(&run).join("journal.jsonl"));
            journal.unwrap_or_default().contains("\"step.asked\"")
        };
        wait_until(asks, DEADLINE, "the agent's question");
    }

    /// All that the model was told, as text.
    pub fn told(&self) -> String {
        self.endpoint.prompts().iter().map(Value::to_string).collect()
    }
}

/// How a row shall end.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Succeeded(Value),
    /// With this class.
    Failed(String),
    /// The run is paused for this reason, and its step keeps its tries.
    Paused(String),
    /// The run did not start.
    Refused,
}

/// How much of what the endpoint sent is counted.
#[derive(Clone, Debug, PartialEq)]
pub enum Tokens {
    /// All of it, class by class.
    Sent,
    /// So many whole responses of the agent's `usage`; what else was sent is not told by the agent.
    Responses(u64),
    /// All of it but for up to so many tokens of output: the agent gives up while its last answer is on its way.
    SentButOutput(u64),
}

#[derive(Clone)]
pub struct Wants {
    pub end: End,
    /// In what the step's error, or the output of a run that did not start, says.
    pub says: Vec<&'static str>,
    pub attempts: RangeInclusive<u64>,
    pub requests: RangeInclusive<usize>,
    /// When each request is made at the earliest, in ms after the first.
    pub not_before_ms: Vec<u64>,
    /// When the last request is made at the earliest, in seconds after the row's beginning.
    pub last_after_s: u64,
    pub tokens: Tokens,
    /// Attempts that did not tell all that they used.
    pub unattributed: RangeInclusive<u64>,
    /// Failures that count against the provider.
    pub blamed: u64,
    /// When a paused run goes on, in seconds after its start.
    pub until_s: Option<RangeInclusive<u64>>,
    /// Whether the cost is what the price table says of what was counted; else it is not looked at.
    pub priced: bool,
}

impl Default for Wants {
    fn default() -> Wants {
        Wants {
            end: End::Succeeded(DONE.into()),
            says: Vec::new(),
            attempts: 1..=1,
            requests: 1..=1,
            not_before_ms: Vec::new(),
            last_after_s: 0,
            tokens: Tokens::Sent,
            unattributed: 0..=0,
            blamed: 0,
            until_s: None,
            priced: true,
        }
    }
}

impl Row {
    pub fn turns(mut self, turns: Value) -> Row {
        self.turns = turns;
        self
    }

    pub fn turns_at(mut self, turns: fn(u64) -> Value) -> Row {
        self.turns_at = Some(turns);
        self
    }

    /// Every request is answered in this way.
    pub fn always(self, turn: Value) -> Row {
        self.turns(json!([turn]))
    }

    /// The first request is answered in this way, the next one well.
    pub fn once(self, turn: Value) -> Row {
        self.turns(json!([turn, {"text": DONE}])).requests(2)
    }

    pub fn fields(mut self, fields: &str) -> Row {
        self.fields = fields.into();
        self
    }

    pub fn param(mut self, name: &str, value: Value) -> Row {
        self.params.insert(name.into(), value);
        self
    }

    pub fn flags(mut self, flags: &'static str) -> Row {
        self.flags = flags;
        self
    }

    pub fn env(mut self, name: &'static str, value: &str) -> Row {
        self.env.push((name, value.into()));
        self
    }

    pub fn settings(mut self, lines: &str) -> Row {
        self.settings.push_str(lines);
        self
    }

    pub fn command(mut self, words: &[&str]) -> Row {
        self.command = Some(words.iter().map(|word| word.to_string()).collect());
        self
    }

    /// What happens while it runs.
    pub fn meanwhile(mut self, act: Act) -> Row {
        self.meanwhile = Some(act);
        self
    }

    /// What is looked at afterwards.
    pub fn afterwards(mut self, act: Act) -> Row {
        self.afterwards = Some(act);
        self
    }

    pub fn long(mut self) -> Row {
        self.long = true;
        self
    }

    pub fn succeeds(mut self, result: impl Into<Value>) -> Row {
        self.wants.end = End::Succeeded(result.into());
        self
    }

    pub fn fails(mut self, class: &str) -> Row {
        self.wants.end = End::Failed(class.into());
        self
    }

    /// Without waiting for the end of the pause.
    pub fn pauses(mut self, reason: &str) -> Row {
        self.wants.end = End::Paused(reason.into());
        if reason != "budget" {
            self.flags = "--no-wait";
        }
        self
    }

    pub fn refused(mut self) -> Row {
        self.wants.end = End::Refused;
        self.requests(0).attempts(0)
    }

    pub fn says(mut self, text: &'static str) -> Row {
        self.wants.says.push(text);
        self
    }

    pub fn attempts(self, attempts: u64) -> Row {
        self.attempts_in(attempts..=attempts)
    }

    pub fn attempts_in(mut self, attempts: RangeInclusive<u64>) -> Row {
        self.wants.attempts = attempts;
        self
    }

    pub fn requests(self, requests: usize) -> Row {
        self.requests_in(requests..=requests)
    }

    pub fn requests_in(mut self, requests: RangeInclusive<usize>) -> Row {
        self.wants.requests = requests;
        self
    }

    pub fn not_before_ms(mut self, times: &[u64]) -> Row {
        self.wants.not_before_ms = times.to_vec();
        self
    }

    pub fn last_after_s(mut self, seconds: u64) -> Row {
        self.wants.last_after_s = seconds;
        self
    }

    pub fn tokens(mut self, tokens: Tokens) -> Row {
        self.wants.tokens = tokens;
        self
    }

    pub fn unattributed(self, attempts: u64) -> Row {
        self.unattributed_in(attempts..=attempts)
    }

    pub fn unattributed_in(mut self, attempts: RangeInclusive<u64>) -> Row {
        self.wants.unattributed = attempts;
        self
    }

    pub fn blamed(mut self, failures: u64) -> Row {
        self.wants.blamed = failures;
        self
    }

    pub fn until_s(mut self, seconds: RangeInclusive<u64>) -> Row {
        self.wants.until_s = Some(seconds);
        self
    }

    /// The agent's own figure, or none, is not what the price table says.
    pub fn not_priced(mut self) -> Row {
        self.wants.priced = false;
        self
    }
}
