//! What every reader says of a run at one moment.

use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, wait_until};
use crate::mcp_server::client::Client;

pub struct Views {
    pub feature: String,
    /// `status --json`, before and after all others looked: what lies in between is at one moment.
    pub status: Value,
    pub later: Value,
    pub over_mcp: Value,
    pub checkpoint: Value,
    /// The run's entry of the registry, of the roster, of lists; null where it has none.
    pub registered: Value,
    pub roster: Value,
    pub listed: Value,
    pub listed_over_mcp: Value,
    pub roster_over_mcp: Value,
    /// Steps that ask something, by the inbox and over MCP.
    pub asked: [Vec<Value>; 2],
    pub explained: Vec<Value>,
    pub status_text: String,
    pub list_text: String,
    pub roster_text: String,
    pub explain_text: String,
    pub graph_text: String,
    pub mcp_text: String,
}

impl Views {
    /// Looks again if something happened in between.
    pub fn take(sage: &Sage, client: &mut Client, feature: &str) -> Views {
        let mut found = None;
        wait_until(
            || {
                wait_for_checkpoint(sage, feature);
                let views = Views::look(sage, client, feature);
                let still = views.status["lastUpdatedAt"] == views.later["lastUpdatedAt"]
                    && views.status["owner"] == views.later["owner"];
                found = still.then_some(views);
                found.is_some()
            },
            DEADLINE,
            "a moment in which nothing happens",
        );
        found.unwrap()
    }

    fn look(sage: &Sage, client: &mut Client, feature: &str) -> Views {
        let status = sage.status(feature);
        let text = |args: &[&str]| sage.args(args).run().exit(0).stdout;
        let json = |args: &[&str]| sage.args(args).run().exit(0).json();
        let seen = client.call("sage_workflow_status", json!({"feature": feature}));
        let inbox = client.call("sage_inbox", json!({})).good();
        let list = client.call("sage_workflow_list", json!({})).good();
        let own = |rows: &Value| {
            let rows = rows.as_array().into_iter().flatten();
            rows.clone().find(|row| row["feature"] == feature).cloned().unwrap_or_default()
        };
        let asked = |questions: &Value| -> Vec<Value> {
            let questions = questions.as_array().into_iter().flatten();
            questions.filter(|it| it["feature"] == feature).map(|it| it["step"].clone()).collect()
        };
        Views {
            feature: feature.to_string(),
            registered: own(&file(sage, ".sage/state/ACTIVE_WORKFLOWS.json")["workflows"]),
            checkpoint: file(sage, &format!(".sage/state/workflow-{feature}.json")),
            roster: own(&json(&["status", "--json"])["runs"]),
            listed: own(&json(&["list", "--json"])["workflows"]),
            listed_over_mcp: own(&list["workflows"]),
            roster_over_mcp: own(&inbox["roster"]),
            asked: [asked(&json(&["inbox", "--json"])["questions"]), asked(&inbox["questions"])],
            explained: sage.args(["explain", feature, "--json"]).run().exit(0).json_lines(),
            status_text: text(&["status", feature]),
            list_text: text(&["list"]),
            roster_text: text(&["status"]),
            explain_text: text(&["explain", feature]),
            graph_text: text(&["graph", feature]),
            mcp_text: seen.text.clone(),
            over_mcp: seen.good(),
            later: sage.status(feature),
            status,
        }
    }

    /// The run's status for people, by what programs are told.
    pub fn word(&self) -> &str {
        match self.status["verdict"].as_str() {
            Some(verdict) => verdict,
            None if self.status["abandoned"] == true && self.status["status"] == "running" => "interrupted",
            None => self.status["status"].as_str().unwrap(),
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.status["status"].as_str(), Some("running" | "paused"))
    }

    /// Its clocks go on while it is looked at.
    pub fn moves(&self) -> bool {
        let waits = self.status["until"].is_string();
        // A person paused it: what is under way finishes.
        let works = !self.status["owner"].is_null() && self.steps().any(|step| step["state"] == "running");
        let goes_on = self.status["status"] == "running" || waits || works;
        self.is_open() && self.status["abandoned"] == false && goes_on
    }

    pub fn steps(&self) -> impl Iterator<Item = &Value> {
        self.status["steps"].as_array().unwrap().iter()
    }

    pub fn step(&self, path: &str) -> &Value {
        self.steps().find(|step| step["path"] == path).unwrap_or_else(|| panic!("no step {path}"))
    }

    /// Items of a fan-out. Calls of one name have indexes, too, but for the first of them.
    pub fn items(&self, fan: &str) -> Vec<&Value> {
        let index = |step: &&Value| {
            let rest =
                step["path"].as_str().unwrap().strip_prefix(fan).and_then(|rest| rest.strip_prefix('['));
            rest.is_some_and(|rest| !rest.contains('/'))
        };
        let items: Vec<&Value> = self.steps().filter(index).collect();
        let first = format!("{fan}[0]");
        if items.iter().any(|item| item["path"] == first) { items } else { Vec::new() }
    }

    /// Steps that hold no others, nor could.
    pub fn leaves(&self) -> Vec<&Value> {
        let holder = |step: &&Value| {
            let path = step["path"].as_str().unwrap();
            let below = format!("{path}/");
            let holds = self.steps().any(|other| other["path"].as_str().unwrap().starts_with(&below));
            // Calls have paths of their own, and of an empty fan-out there is nothing below it.
            holds || !self.items(path).is_empty() || path.ends_with("/script") || path.ends_with("/empty")
        };
        let (scripts, mut leaves): (Vec<&Value>, Vec<&Value>) = self.steps().partition(holder);
        // A script that failed by itself counts as itself.
        let failed = |step: &&Value| step["state"] == "failed";
        let alone = |step: &&Value| failed(step) && step["path"].as_str().unwrap().ends_with("/script");
        if !leaves.iter().any(failed) {
            leaves.extend(scripts.into_iter().filter(alone));
        }
        leaves
    }
}

fn file(sage: &Sage, path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(sage.path(path)).unwrap_or_default()).unwrap_or_default()
}

/// It is painted off the loop, at most once a second. Nobody paints it once its owner was killed.
fn wait_for_checkpoint(sage: &Sage, feature: &str) {
    let path = format!(".sage/state/workflow-{feature}.json");
    let settled = || {
        let status = sage.status(feature);
        status["owner"].is_null() || file(sage, &path)["lastUpdatedAt"] == status["lastUpdatedAt"]
    };
    wait_until(settled, DEADLINE, "the checkpoint");
}
