//! Three of the ten scripts with the real Claude Code behind `agent()`, and a scripted model behind that.

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use super::{SCRIPTS, value};
use crate::dsl::{DEADLINE, Sage, wait_until};
use crate::real_agents::project;

fn said(asked: &str, text: &str) -> Value {
    json!({"match": asked, "text": text, "usage": {"input_tokens": 20, "output_tokens": 2}})
}

/// Claude Code answers in a schema by calling a tool.
fn gives(asked: &str, value: Value) -> Value {
    json!({"match": asked, "tool": {"name": "StructuredOutput", "input": value}, "usage": {"input_tokens": 30, "output_tokens": 3}})
}

fn with_script(model: &FakeLlm, name: &str) -> Option<Sage> {
    let sage = project(model, "name: t\nphases: []\n")?;
    let text = SCRIPTS.iter().find(|(known, _)| *known == name).unwrap().1;
    sage.write(&format!(".claude/workflows/{name}.js"), text);
    Some(sage)
}

fn tokens(sage: &Sage) -> Value {
    sage.status("x")["metrics"]["tokensByClass"].clone()
}

// covers: R21, S1, R9
#[test]
fn fan_out_with_the_real_claude_code() {
    let finding = |title: &str, severity: &str| json!({"findings": [{"title": title, "severity": severity}]});
    let model = FakeLlm::start(json!([
        gives("for security problems", finding("open door", "high")),
        gives("for performance problems", finding("slow loop", "low")),
        gives("Review the tests", finding("no test", "medium")),
        said("Write one paragraph about", "All told."),
    ]))
    .unwrap();
    let Some(sage) = with_script(&model, "fan-out") else { return };
    sage.sage("run x -t fan-out --agent claude").exit(0);
    let value = value(&sage);
    let titles: Vec<&Value> = value["findings"].as_array().unwrap().iter().map(|it| &it["title"]).collect();
    assert_eq!(titles, ["open door", "no test", "slow loop"]);
    assert_eq!(value["report"], "All told.");
    let (counted, sent) = (tokens(&sage), model.sent_usage());
    assert_eq!(counted["input"], json!(sent.input.unwrap_or(0)), "{counted}");
    sage.assert_nothing_alive();
}

// covers: R21, S1
#[test]
fn pipeline_with_the_real_claude_code() {
    let model = FakeLlm::start(json!([
        said("Summarize ", "short and clear"),
        gives("Is b.py fine?", json!({"ok": false, "why": "a typo"})),
        gives(" fine?", json!({"ok": true})),
        said("Mend b.py", "mended"),
    ]))
    .unwrap();
    let Some(sage) = with_script(&model, "pipeline") else { return };
    sage.args(["run", "x", "-t", "pipeline", "--agent", "claude", "-i", r#"args=["a.py","b.py"]"#])
        .run()
        .exit(0);
    let value = value(&sage);
    assert_eq!(value[0]["mended"], false, "{value}");
    assert_eq!(value[1]["mended"], "mended", "{value}");
    assert_eq!(value[1]["summary"], "short and clear");
}

/// The score of a judge that was interrupted.
const INTERRUPTED: u64 = 7;

/// Killed while the second half runs: what Claude Code has answered is not asked again.
// covers: R21, S1, R5
#[test]
fn judges_with_the_real_claude_code_survive_a_kill() {
    let model = FakeLlm::start(json!([
        said("Finish this design", "done"),
        said("first of all the safest", "SAFE-DOOR"),
        said("first of all the smallest", "SMALL-DOOR"),
        said("first of all what users", "PRETTY-DOOR"),
        gives("SAFE-DOOR", json!({"score": 9, "good": "locks"})),
        gives("SMALL-DOOR", json!({"score": 5, "good": "few lines"})),
        gives("PRETTY-DOOR", json!({"score": 3, "good": "colors"})),
        // A judge that had heard of its task when it was killed is asked to go on, without the task.
        gives("You were interrupted", json!({"score": INTERRUPTED, "good": "again"})),
    ]))
    .unwrap();
    let Some(sage) = with_script(&model, "judges") else { return };
    let running = sage.spawn("run x -t judges --agent claude --parallel 2");
    let some = || sage.engine().latest("x").is_some() && sage.journal("x").succeeded().len() >= 4;
    wait_until(some, DEADLINE, "four answers");
    running.kill();
    sage.assert_nothing_alive();
    sage.sage("resume x").exit(0);
    let value = value(&sage);
    assert_eq!((&value["winner"], &value["final"]), (&"the safest".into(), &"done".into()), "{value}");
    // The means of two judges each, some of which may have been interrupted.
    let known = [9.0, 8.0, 7.0, 6.0, 5.0, 3.0];
    let scores = value["scores"].as_array().unwrap();
    assert!(scores.len() == 3 && scores.iter().all(|it| known.contains(&it.as_f64().unwrap())), "{value}");
    sage.journal("x").assert_nothing_repeated();
}

/// As Claude Code itself does: a terminal error of the API is null, and the script goes on.
// covers: R21, R7
#[test]
fn requests_that_the_endpoint_rejects_are_null_with_the_real_claude_code() {
    let model = FakeLlm::start(json!([
        {"match": "task 400", "status": 400},
        {"match": "task 404", "status": 404},
        {"match": "task 413", "status": 413},
        said("task 200", "fine"),
    ]))
    .unwrap();
    let Some(sage) = project(&model, "name: t\nphases: []\n") else { return };
    let body = "return await Promise.all(['400', '404', '413', '200'].map((n) => agent('task ' + n)))";
    sage.write(".claude/workflows/edges.js", super::whole(body));
    sage.sage("run x -t edges --agent claude").exit(3);
    assert_eq!(value(&sage), json!([null, null, null, "fine"]));
    // 6, 2, 1 and 1: Claude Code's own, in one attempt each.
    assert_eq!(model.prompts().len(), 10);
}
