//! Plays the rows of a table, several at once, and compares what was seen with what they want.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sage_agents::fake_llm::FakeLlm;
use sage_core::port::Usage;
use sage_core::price::PriceTable;
use serde_json::{Value, json};

use super::agent::{Agent, Home};
use super::row::{End, Row, Scene, Tokens};
use crate::dsl::{Outcome, Sage, long};

const CLASSES: [&str; 5] = ["input", "cacheRead", "cacheWrite", "output", "reasoning"];

/// Plays all rows and shows the table; fails with every row that is not as it wants to be.
pub fn play(agent: &Agent, rows: Vec<Row>) {
    play_at_once(agent.at_once, agent, rows);
}

/// The same, of rows that mostly wait.
pub fn play_at_once(at_once: usize, agent: &Agent, rows: Vec<Row>) {
    let home = tempfile::tempdir().unwrap();
    if (agent.install)(&Home { path: home.path(), url: "http://127.0.0.1:9" }).is_none() {
        return;
    }
    let rows: Vec<Row> = rows.into_iter().filter(|row| !row.long || long()).collect();
    let next = AtomicUsize::new(0);
    let seen: Vec<Mutex<Option<Result<Seen, String>>>> = rows.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(rows.len()) {
            scope.spawn(|| {
                while let Some((at, row)) =
                    Some(next.fetch_add(1, Ordering::SeqCst)).and_then(|at| Some((at, rows.get(at)?)))
                {
                    let played =
                        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Seen::of(agent, row)));
                    let played = played.map_err(|panic| text_of(panic.as_ref()));
                    *seen[at].lock().unwrap() = Some(played);
                }
            });
        }
    });
    let mut wrong = Vec::new();
    for (row, seen) in rows.iter().zip(seen) {
        match seen.into_inner().unwrap().expect("every row is played") {
            Ok(seen) => {
                println!("| {} | {} | {} |", agent.name, row.name, seen.line());
                wrong.extend(seen.wrong.iter().map(|what| format!("{}, {}: {what}", agent.name, row.name)));
            }
            Err(panic) => wrong.push(format!("{}, {}: {panic}", agent.name, row.name)),
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_string()
}

/// What came of a row.
pub struct Seen {
    end: End,
    /// What the step or the run said of its failure.
    said: String,
    attempts: u64,
    /// When each request came, in ms after the first.
    requests_ms: Vec<u64>,
    /// When the last one came, in seconds after the row's beginning.
    last_s: u64,
    tokens: [u64; 5],
    unattributed: u64,
    sent: Usage,
    cost_usd: Option<f64>,
    blamed: u64,
    until_s: Option<u64>,
    took: Duration,
    wrong: Vec<String>,
}

impl Seen {
    fn of(agent: &Agent, row: &Row) -> Seen {
        let begun = SystemTime::now();
        let turns = row.turns_at.map_or_else(|| row.turns.clone(), |turns| turns(seconds(begun)));
        let sage = Sage::new();
        let endpoint = FakeLlm::start(script(&turns, agent, sage.root())).unwrap();
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        set_up(&sage, agent, row, &endpoint, home.path());
        let scene = Scene { sage: &sage, endpoint: &endpoint, agent };
        let run = sage.spawn(&format!("run x -t t --quiet {}", row.flags));
        if let Some(act) = row.meanwhile {
            act(&scene);
        }
        if let Some(signal) = row.signal {
            scene.wait_for_tool();
            scene.signal(signal);
        }
        let outcome = run.end();
        let mut seen = Seen::look(&scene, &outcome, begun);
        sage.assert_nothing_alive();
        seen.compare(agent, row);
        if let Some(act) = row.afterwards {
            act(&scene);
        }
        if !seen.wrong.is_empty() {
            seen.wrong.push(format!(
                "{}\nrequests at {:?}\n{}",
                seen.line(),
                seen.requests_ms,
                outcome.stderr
            ));
        }
        seen
    }

    fn look(scene: &Scene<'_>, outcome: &Outcome, begun: SystemTime) -> Seen {
        let Scene { sage, endpoint, agent } = scene;
        let requests = endpoint.requests().into_iter().filter(|request| {
            let body = request["body"].to_string();
            request["method"] == "POST" && !agent.beside.iter().any(|it| body.contains(it))
        });
        let times: Vec<u64> = requests.map(|request| request["t"].as_u64().unwrap()).collect();
        let first = times.first().copied().unwrap_or(0);
        let mut seen = Seen {
            end: End::Refused,
            said: outcome.stderr.clone(),
            attempts: 0,
            requests_ms: times.iter().map(|time| time - first).collect(),
            last_s: times.last().map_or(0, |time| time / 1_000).saturating_sub(seconds(begun)),
            tokens: [0; 5],
            unattributed: 0,
            sent: endpoint.sent_usage(),
            cost_usd: None,
            blamed: 0,
            until_s: None,
            took: begun.elapsed().unwrap(),
            wrong: Vec::new(),
        };
        if outcome.code != 2 {
            seen.read(sage, begun);
        }
        seen
    }

    /// What the binary says of the run.
    fn read(&mut self, sage: &Sage, begun: SystemTime) {
        let status = sage.status("x");
        let step = &status["steps"][0];
        self.said = step["error"].as_str().unwrap_or_default().to_string();
        self.end = match (status["status"].as_str(), step["state"].as_str()) {
            (Some("completed"), Some("succeeded")) => {
                End::Succeeded(sage.results("x")[0]["results"]["one"].clone())
            }
            (Some("paused"), _) => {
                End::Paused(status["pauseReason"].as_str().unwrap_or_default().to_string())
            }
            _ => End::Failed(self.said.split(':').next().unwrap_or_default().to_string()),
        };
        self.attempts = step["attempts"].as_u64().unwrap_or(0);
        let classes = &status["metrics"]["tokensByClass"];
        self.tokens = CLASSES.map(|class| classes[class].as_u64().unwrap());
        self.unattributed = classes["unattributed"].as_u64().unwrap();
        self.cost_usd = status["metrics"]["costUsd"].as_f64();
        let breakers = sage.args(["breakers", "--json"]).run().exit(0).json();
        let providers = breakers["targets"].as_array().unwrap().iter();
        let providers =
            providers.filter(|it| it["name"].as_str().is_some_and(|name| name.starts_with("provider:")));
        self.blamed = providers.filter_map(|it| it["failures"].as_u64()).max().unwrap_or(0);
        let until = status["until"].as_str().map(|until| humantime::parse_rfc3339(until).unwrap());
        self.until_s = until.map(|until| seconds(until).saturating_sub(seconds(begun)));
    }

    fn compare(&mut self, agent: &Agent, row: &Row) {
        let wants = &row.wants;
        let mut wrong = Vec::new();
        let mut must = |holds: bool, what: String| {
            if !holds {
                wrong.push(what);
            }
        };
        must(self.end == wants.end, format!("ends as {:?}, not {:?}: {}", self.end, wants.end, self.said));
        for text in &wants.says {
            must(self.said.contains(text), format!("does not say `{text}`: {}", self.said));
        }
        let requests = self.requests_ms.len();
        must(
            wants.attempts.contains(&self.attempts),
            format!("{} attempts, not {:?}", self.attempts, wants.attempts),
        );
        must(wants.requests.contains(&requests), format!("{requests} requests, not {:?}", wants.requests));
        let early = wants.not_before_ms.iter().zip(&self.requests_ms).any(|(least, time)| time < least);
        must(!early, format!("requests at {:?} ms, not {:?}", self.requests_ms, wants.not_before_ms));
        must(
            self.last_s >= wants.last_after_s,
            format!("last request after {} s, not {}", self.last_s, wants.last_after_s),
        );
        let expected = self.expected(agent, &wants.tokens);
        must(
            self.counts(&expected, &wants.tokens),
            format!("{:?} tokens are counted, not {expected:?}", self.tokens),
        );
        must(
            wants.unattributed.contains(&self.unattributed),
            format!("{} attempts unattributed, not {:?}", self.unattributed, wants.unattributed),
        );
        must(
            self.blamed == wants.blamed,
            format!("{} failures blamed on the provider, not {}", self.blamed, wants.blamed),
        );
        if let Some(range) = &wants.until_s {
            must(
                self.until_s.is_some_and(|until| range.contains(&until)),
                format!("goes on after {:?} s, not {range:?}", self.until_s),
            );
        }
        if wants.priced {
            let price = agent.model.map(|model| price(model, &self.tokens)).filter(|_| self.tokens != [0; 5]);
            // Millionths of a dollar, rounded for each response.
            let near = |usd: f64| (usd - price.unwrap_or(0.0)).abs() <= 1e-6 * (requests + 1) as f64;
            must(
                self.cost_usd.map_or(price.is_none(), near),
                format!("costs {:?}, not {price:?}", self.cost_usd),
            );
        }
        self.wrong = wrong;
    }

    /// The tokens by class that are to be counted.
    fn expected(&self, agent: &Agent, tokens: &Tokens) -> [u64; 5] {
        let Usage { input, cache_read, cache_write, output, reasoning, .. } = match tokens {
            Tokens::Sent | Tokens::SentButOutput(_) => self.sent.clone(),
            Tokens::Responses(count) => {
                let once = one_response(agent);
                let times = |class: Option<u64>| class.map(|tokens| tokens * count);
                Usage {
                    input: times(once.input),
                    cache_read: times(once.cache_read),
                    cache_write: times(once.cache_write),
                    output: times(once.output),
                    reasoning: times(once.reasoning),
                    ..Usage::default()
                }
            }
        };
        [input, cache_read, cache_write, output, reasoning].map(|class| class.unwrap_or(0))
    }

    fn counts(&self, expected: &[u64; 5], tokens: &Tokens) -> bool {
        match tokens {
            Tokens::SentButOutput(missing) => {
                let least = expected[3].saturating_sub(*missing);
                self.tokens[..3] == expected[..3] && (least..=expected[3]).contains(&self.tokens[3])
            }
            _ => self.tokens == *expected,
        }
    }

    /// As a row of a table for people.
    fn line(&self) -> String {
        let end = match &self.end {
            End::Succeeded(_) => "succeeded".to_string(),
            End::Failed(class) => format!("failed `{class}`"),
            End::Paused(reason) => match self.until_s {
                Some(until) => format!("paused `{reason}` for {until} s"),
                None => format!("paused `{reason}`"),
            },
            End::Refused => "did not start".to_string(),
        };
        let (counted, sent) = (self.tokens.iter().sum::<u64>(), self.sent.total());
        let cost = self.cost_usd.map_or("-".to_string(), |usd| format!("${usd:.6}"));
        let said: String = self.said.lines().next().unwrap_or_default().chars().take(90).collect();
        format!(
            "{end} | {} | {} | {counted}/{sent} | {} | {cost} | {} | {:.1} s | {said}",
            self.attempts,
            self.requests_ms.len(),
            self.unattributed,
            self.blamed,
            self.took.as_secs_f64(),
        )
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// What these tokens cost, in dollars, as one response.
fn price(model: &str, tokens: &[u64; 5]) -> f64 {
    let [input, cache_read, cache_write, output, reasoning] = tokens.map(Some);
    let usage = Usage { input, cache_read, cache_write, output, reasoning, ..Usage::default() };
    PriceTable::built_in().cost_micro_usd(model, &usage).unwrap() as f64 / 1e6
}

/// The classes of one response of the agent's own `usage`, as its protocol sends it.
fn one_response(agent: &Agent) -> Usage {
    let usage = (agent.usage)();
    let of = |name: &str| usage[name].as_u64();
    let (read, reasoning) = (of("cache_read_input_tokens"), of("reasoning"));
    let openai = reasoning.is_some();
    let input = of("input_tokens").map(|input| if openai { input - read.unwrap_or(0) } else { input });
    let output = of("output_tokens").map(|output| output - reasoning.unwrap_or(0));
    Usage {
        input,
        cache_read: read,
        cache_write: of("cache_creation_input_tokens"),
        output,
        reasoning,
        ..Usage::default()
    }
}

/// What the endpoint answers: every answer has the agent's usage, unless it has one of its own.
/// `@root` is the project.
fn script(turns: &Value, agent: &Agent, root: &Path) -> Value {
    let beside = agent.beside.iter().map(
        |needle| json!({"match": needle, "text": "beside", "usage": {"input_tokens": 0, "output_tokens": 0}}),
    );
    let mut script: Vec<Value> = beside.collect();
    for turn in turns.as_array().unwrap() {
        let mut turn = turn.as_object().unwrap().clone();
        if !turn.contains_key("status") && !turn.contains_key("usage") {
            turn.insert("usage".into(), (agent.usage)());
        }
        script.push(turn.into());
    }
    let text = Value::from(script).to_string().replace("@root", &root.display().to_string());
    serde_json::from_str(&text).unwrap()
}

fn set_up(sage: &Sage, agent: &Agent, row: &Row, endpoint: &FakeLlm, home: &Path) {
    let mut setup = (agent.install)(&Home { path: home, url: &endpoint.url() }).expect("it is installed");
    setup.command = row.command.clone().unwrap_or(setup.command);
    // JSON is YAML.
    let (name, params) = (agent.name, Value::Object(row.params.clone()));
    let more = if row.fields.is_empty() { String::new() } else { format!(", {}", row.fields) };
    let step = format!("{{ id: one, type: agent, agent: {name}, params: {params}{more} }}");
    let template = format!("name: t\nphases:\n  - id: p\n    operations:\n      - {step}\n");
    sage.write(".sage/templates/t.yaml", template);
    sage.write("sage.toml", format!("{}\n{}", row.settings, setup.tables(agent.name, &row.env)));
}
