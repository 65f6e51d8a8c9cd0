//! Speaking to running agents: the message reaches the model, is in the journal, and survives a kill.

use sage_agents::fake_llm::FakeLlm;
use sage_core::event::Event;
use serde_json::{Value, json};

use super::{HOLD, team, tool, until_doing, used};
use crate::dsl::{DEADLINE, Sage, wait_until};

const ONE: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { type: agent, id: one, agent: AGENT, params: { prompt: "the-task: work", tools: ["Bash"] } }
"#;
const MESSAGE: &str = "use the other branch";

fn held(agent: &str) -> Option<(FakeLlm, Sage)> {
    let llm = FakeLlm::start(json!([
        {"tool": tool(agent, HOLD), "usage": used()},
        {"match": MESSAGE, "text": "as you like", "usage": used()},
        {"text": "first answer", "usage": used()},
    ]))
    .unwrap();
    let sage = team(&llm, &ONE.replace("AGENT", agent))?;
    Some((llm, sage))
}

/// The numbers of the requests that have the message, and how many there were.
fn told(llm: &FakeLlm) -> (Vec<usize>, usize) {
    let prompts: Vec<String> = llm.prompts().iter().map(Value::to_string).collect();
    let with = (0..prompts.len()).filter(|&at| prompts[at].contains(MESSAGE)).collect();
    (with, prompts.len())
}

fn journaled(sage: &Sage) -> Vec<(String, String)> {
    let journal = sage.journal("x");
    let message = |event: &Event| match event {
        Event::StepMessaged(it) => Some((it.text.clone(), it.by.clone())),
        _ => None,
    };
    journal.records.iter().filter_map(|entry| message(&entry.event)).collect()
}

/// Tokens are what the endpoint sent, however many turns there were.
fn is_paid(sage: &Sage, llm: &FakeLlm) {
    let (counted, sent) = (sage.status("x")["metrics"]["tokensByClass"].clone(), llm.sent_usage());
    assert_eq!(counted["input"], json!(sent.input.unwrap_or(0)), "{counted}");
    assert_eq!((&counted["output"], &counted["unattributed"]), (&json!(sent.output.unwrap_or(0)), &json!(0)));
}

// covers: S4, P3
#[test]
fn a_message_reaches_claude_in_the_same_turn() {
    let Some((llm, sage)) = held("claude") else { return };
    let run = sage.spawn("run x -t t --quiet");
    until_doing(&sage, "work/one", "test -e go");
    let sent = sage.args(["attach", "x", "work/one", "-m", MESSAGE]).run().exit(0);
    sent.stderr_has("sent: claude gets it with its next request");
    assert_eq!(told(&llm).0, [0usize; 0], "it works on its tool");
    sage.write("go", "");
    run.end().exit(0);
    assert_eq!(told(&llm), (vec![1], 2), "with the result of the tool");
    is_paid(&sage, &llm);
    let [(text, by)] = journaled(&sage).try_into().unwrap();
    assert!(text == MESSAGE && by.ends_with(" via command line"), "{text} {by}");
    sage.sage("logs x").exit(0).stdout_has(&format!("work/one received a message from {by}: {MESSAGE}"));
    sage.sage("logs x work/one").exit(0).stdout_has(&format!("\n@ {MESSAGE}\n"));
    sage.sage("explain x work/one")
        .exit(0)
        .stdout_has(&format!("attempt 1 received a message from {by}: {MESSAGE}"));
    let explained = sage.sage("explain x work/one --json").exit(0).json();
    assert_eq!(explained["messages"][0]["text"], MESSAGE);
    // Nothing else knows of it: the step is what it was.
    let step = &sage.status("x")["steps"][0];
    assert_eq!((&step["attempts"], &step["state"]), (&1.into(), &"succeeded".into()));
    sage.assert_nothing_alive();
}

// covers: S4
#[test]
fn a_message_to_claude_during_its_last_answer_begins_another_turn() {
    let llm = FakeLlm::start(json!([
        {"match": MESSAGE, "text": "as you like", "usage": used()},
        // Long enough for the message to come while it is on its way.
        {"text": "first answer", "delayMs": 4_000, "usage": used()},
    ]))
    .unwrap();
    let Some(sage) = team(&llm, &ONE.replace("AGENT", "claude")) else { return };
    let run = sage.spawn("run x -t t --quiet");
    wait_until(|| llm.requests().len() == 1, DEADLINE, "the request");
    sage.args(["attach", "x", "work/one", "-m", MESSAGE]).run().exit(0);
    run.end().exit(0);
    assert_eq!(told(&llm), (vec![1], 2));
    assert_eq!(sage.results("x")[0]["results"]["one"], "as you like");
    is_paid(&sage, &llm);
}

// covers: S4, R18
#[test]
fn a_message_to_codex_begins_its_next_turn() {
    let Some((llm, sage)) = held("codex") else { return };
    let run = sage.spawn("run x -t t --quiet");
    until_doing(&sage, "work/one", "test -e go");
    let sent = sage.args(["attach", "x", "work/one", "-m", MESSAGE, "--json"]).run().exit(0).json();
    assert_eq!((&sent["delivered"], &sent["agent"]), (&"afterTurn".into(), &"codex".into()));
    sage.write("go", "");
    run.end().exit(0);
    assert_eq!(told(&llm), (vec![2], 3), "after its own answer");
    let last = llm.prompts().pop().unwrap().to_string();
    assert!(last.contains("the-task: work") && last.contains("first answer"), "in the same conversation");
    assert_eq!(sage.results("x")[0]["results"]["one"], "as you like");
    is_paid(&sage, &llm);
    let logs = sage.sage("logs x work/one").exit(0).stdout;
    let (before, after) = logs.split_once(&format!("\n@ {MESSAGE}\n")).unwrap_or_else(|| panic!("{logs}"));
    assert!(before.contains("first answer\n= 2.2k tokens"), "{logs}");
    assert!(after.contains("as you like\n= 3.3k tokens"), "{logs}");
    sage.assert_nothing_alive();
}

/// Sage dies with a message that its agent has not heard: whoever resumes tells it.
fn killed(agent: &str) {
    let Some((llm, sage)) = held(agent) else { return };
    let run = sage.spawn("run x -t t --quiet");
    until_doing(&sage, "work/one", "test -e go");
    sage.args(["attach", "x", "work/one", "-m", MESSAGE]).run().exit(0);
    run.kill();
    sage.assert_nothing_alive();
    assert_eq!(told(&llm).0, [0usize; 0]);
    sage.args(["attach", "x", "work/one", "-m", "late"]).run().exit(2).stderr_has("no process owns the run");
    sage.sage("resume x --quiet").exit(0);
    let (with, all) = told(&llm);
    assert_eq!((with.first(), all), (Some(&1), 2), "once, with the first request of the resume");
    let last = llm.prompts().pop().unwrap().to_string();
    assert_eq!(last.matches(MESSAGE).count(), 1, "{last}");
    assert_eq!(sage.results("x")[0]["results"]["one"], "as you like");
    assert_eq!(journaled(&sage).len(), 1);
}

// covers: S4, R5
#[test]
fn a_message_survives_a_kill_with_claude() {
    killed("claude");
}

// covers: S4, R5
#[test]
fn a_message_survives_a_kill_with_codex() {
    killed("codex");
}

const HEARS: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { type: agent, id: fake, agent: fake, params: { prompt: p, script: [ { hear: 2, say: done } ] } }
      - { type: agent, id: deaf, agent: any, prompt: p }
      - { type: shell, id: shell, params: { run: "until test -e go; do sleep 0.05; done" } }
"#;

// covers: S4, R17
#[test]
fn whoever_cannot_hear_says_so() {
    let sage = Sage::new().template("t", HEARS);
    sage.write("sage.toml", "[agents.any]\nadapter = \"command\"\ncommand = [\"sh\", \"-c\", \"until test -e go; do sleep 0.05; done; echo ok\"]\n");
    let say = |step: &str, text: &str| sage.args(["attach", "x", step, "-m", text]).run();
    let run = sage.spawn("run x -t t --quiet");
    let running = |step: &str| sage.engine().latest("x").is_some() && sage.state_of("x", step) == "running";
    for step in ["work/fake", "work/deaf", "work/shell"] {
        wait_until(|| running(step), DEADLINE, step);
    }
    say("work/shell", "hi")
        .exit(2)
        .stderr_has("it is a shell step, not an agent")
        .stderr_has("hint: sage status x");
    say("work/deaf", "hi").exit(2).stderr_has("agent `any` cannot be spoken to while it works");
    say("work/fake", "  ").exit(2).stderr_has("the message is empty");
    say("work/fake", &"x".repeat(40_000)).exit(2).stderr_has("at most 32768");
    say("work/none", "hi").exit(2).stderr_has("no step `work/none`");
    sage.args(["attach", "x", "-m", "hi"]).run().exit(2).stderr_has("2 agents run: work/fake, work/deaf");
    sage.args(["attach", "none", "-m", "hi"]).run().exit(2);
    say("work/fake", "one").exit(0);
    say("work/fake", "two").exit(0);
    wait_until(|| sage.state_of("x", "work/fake") == "succeeded", DEADLINE, "the agent that listens");
    say("work/fake", "late").exit(2).stderr_has("it is succeeded");
    sage.write("go", "");
    run.end().exit(0);
    say("work/fake", "later").exit(2).stderr_has("it is succeeded");
    sage.sage("logs x work/fake").exit(0).stdout_has("@ one\nheard: one\n@ two\nheard: two\ndone\n");
    assert_eq!(journaled(&sage).len(), 2);
}

// covers: R17
#[test]
fn a_step_speaks_to_no_agent() {
    let binary = env!("CARGO_BIN_EXE_sage");
    let template = HEARS.replace(
        "until test -e go; do sleep 0.05; done",
        &format!("{binary} attach x work/fake -m evil; {binary} attach x work/fake </dev/null >/dev/null & touch go"),
    );
    let sage = Sage::new().template("t", &template.replace("hear: 2", "hear: 1"));
    sage.write("sage.toml", "[agents.any]\nadapter = \"command\"\ncommand = [\"echo\", \"ok\"]\n");
    let run = sage.spawn("run x -t t --quiet");
    wait_until(|| sage.path("go").exists(), DEADLINE, "the step");
    wait_until(|| sage.state_of("x", "work/shell") == "succeeded", DEADLINE, "the step's end");
    sage.sage("logs x work/shell").exit(0).stderr_has("only a person can send a message to an agent");
    assert_eq!(journaled(&sage).len(), 0);
    sage.args(["attach", "x", "work/fake", "-m", "good"]).run().exit(0);
    run.end().exit(0);
}
