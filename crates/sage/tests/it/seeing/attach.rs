//! `sage attach` on a terminal: a person watches, answers and speaks, and the run does not notice when they leave.

use sage_agents::fake_llm::FakeLlm;
use sage_core::event::Event;
use serde_json::{Value, json};

use super::terminal::Terminal;
use super::{HOLD, team, tool, until_doing, used};
use crate::dsl::{DEADLINE, Sage, wait_until};

const ONE: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { type: agent, id: one, agent: AGENT, params: { prompt: "the-task: work" } }
"#;

fn permitted(sage: &Sage) -> Vec<(bool, String, Option<String>)> {
    let journal = sage.journal("x");
    let permitted = |event: &Event| match event {
        Event::StepPermitted(it) => Some((it.allow, it.by.clone(), it.message.clone())),
        _ => None,
    };
    journal.records.iter().filter_map(|entry| permitted(&entry.event)).collect()
}

// covers: S4, P3
#[test]
fn a_person_answers_claude_and_speaks_to_it_in_place() {
    let llm = FakeLlm::start(json!([
        {"text": "I deploy it.", "tool": tool("claude", &format!("echo deployed > out.txt; ./deploy; {HOLD}")), "usage": used()},
        {"text": "done\u{1b}[2J\u{7}", "usage": used()},
    ]))
    .unwrap();
    let Some(sage) = team(&llm, &ONE.replace("AGENT", "claude")) else { return };
    let run = sage.spawn("run x -t t --quiet");
    let asks = || sage.engine().latest("x").is_some() && !sage.status("x")["steps"][0]["asks"].is_null();
    wait_until(asks, DEADLINE, "the question");
    let mut terminal = Terminal::start(sage.args(["attach", "x", "work/one"]), 80);
    terminal.until("I deploy it.");
    terminal.until("? may it use Bash?");
    terminal.until("    echo deployed > out.txt; ./deploy; until");
    terminal.until("allow? [y/n/always] ");
    assert!(!terminal.is_calm(), "keys come one by one");
    terminal.type_in("be qick\u{7f}\u{7f}\u{7f}\u{7f}quick about it\r");
    terminal.until("sent: claude gets it with its next request");
    terminal.type_in("y\r");
    terminal.until("work/one allowed by ");
    wait_until(|| sage.lines("out.txt") == ["deployed"], DEADLINE, "the command that was allowed");
    sage.write("go", "");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    run.end().exit(0);
    assert!(seen.contains("@ be quick about it") && seen.contains("work/one finished ("), "{seen}");
    assert!(seen.ends_with("work/one: succeeded\r\n"), "{seen:?}");
    assert!(!seen.contains("\u{1b}[2J") && !seen.contains('\u{7}'), "{seen:?}");
    let [(allow, by, message)] = permitted(&sage).try_into().unwrap();
    assert!(allow && by.ends_with(" via terminal") && message.is_none(), "{by}");
    let sent = llm.prompts().pop().unwrap().to_string();
    assert!(sent.contains("be quick about it"), "{sent}");
    sage.assert_nothing_alive();
}

// covers: S4
#[test]
fn a_person_speaks_to_codex_and_leaves() {
    let llm = FakeLlm::start(json!([
        {"tool": tool("codex", HOLD), "usage": used()},
        {"match": "one more thing", "text": "as you like", "usage": used()},
        {"text": "first answer", "usage": used()},
    ]))
    .unwrap();
    let Some(sage) = team(&llm, &ONE.replace("AGENT", "codex")) else { return };
    let run = sage.spawn("run x -t t --quiet");
    until_doing(&sage, "work/one", "test -e go");
    // Without a step: the one that runs.
    let mut terminal = Terminal::start(sage.args(["attach", "x"]), 80);
    terminal.until("> shell until test -e go");
    terminal.type_in("one more thing\r");
    terminal.until("queued: codex reads messages between turns");
    terminal.type_in("q\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.ends_with("detached from work/one; the run is not affected\r\n"), "{seen:?}");
    assert_eq!(sage.state_of("x", "work/one"), "running");
    // Ctrl-C does the same.
    let mut again = Terminal::start(sage.args(["attach", "x", "work/one"]), 40);
    again.until("> shell until");
    again.type_in("half a line\u{3}");
    assert_eq!(again.end().0, Some(0));
    assert_eq!(sage.state_of("x", "work/one"), "running");
    // A signal does, too: `end` looks at the terminal's modes.
    let killed = Terminal::start(sage.args(["attach", "x", "work/one"]), 40);
    killed.until("> shell until");
    assert!(!killed.is_calm());
    killed.terminate();
    assert_eq!(killed.end().0, Some(0));
    sage.write("go", "");
    run.end().exit(0);
    let prompts: Vec<String> = llm.prompts().iter().map(Value::to_string).collect();
    assert_eq!(prompts.iter().filter(|prompt| prompt.contains("one more thing")).count(), 1);
    assert!(!prompts.concat().contains("half a line"));
    assert_eq!(sage.results("x")[0]["results"]["one"], "as you like");
}

const ASKS: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { type: agent, id: one, agent: fake, params: { prompt: go, script: [ { ask: { tool: Bash, input: { command: "deploy made" } }, run: "touch made", say: done } ] } }
"#;

// covers: P3, R17
#[test]
fn a_no_has_a_reason_and_always_is_kept() {
    let sage = Sage::new().template("t", ASKS);
    let attached = |sage: &Sage| {
        let run = sage.spawn("run x -t t --quiet --new");
        let asks = || sage.engine().latest("x").is_some() && !sage.status("x")["steps"][0]["asks"].is_null();
        wait_until(asks, DEADLINE, "the question");
        let terminal = Terminal::start(sage.args(["attach", "x"]), 80);
        terminal.until("  asked because `deploy` is not known to be harmless");
        terminal.until("allow? [y/n/always] ");
        (run, terminal)
    };
    let (run, mut terminal) = attached(&sage);
    terminal.type_in("n not before lunch\r");
    let (code, seen) = terminal.end();
    run.end().exit(0);
    assert!(code == Some(0) && seen.contains("denied: not before lunch"), "{seen}");
    assert_eq!(permitted(&sage)[0].2.as_deref(), Some("not before lunch"));
    assert!(!sage.path("made").exists());
    let (run, mut terminal) = attached(&sage);
    terminal.type_in("always\r");
    let (_, seen) = terminal.end();
    run.end().exit(0);
    assert!(seen.contains("allowed from now on in this project: Bash(deploy made)"), "{seen}");
    assert!(sage.path("made").exists());
    sage.sage("approvals").exit(0).stdout_has("Bash(deploy made)").stdout_has("via terminal");
}

const GATES: &str = r#"
name: t
phases:
  - id: gates
    operations:
      - { type: approval, id: plain, params: { message: "ship it?" } }
      - { type: approval, id: ways, params: { message: "which way?", choices: [left, right] } }
      - { type: approval, id: no, params: { message: "drop it?" } }
      - { type: agent, id: person, agent: foreign, session: pat, params: { prompt: "Set it up" } }
      - { type: shell, id: hold, params: { run: "until test -e go; do sleep 0.05; done" } }
"#;

/// Attaches to a step, waits for the question, answers it, and gives what was shown to the end.
fn answered(sage: &Sage, step: &str, question: &str, prompt: &str, typed: &[&str]) -> String {
    let mut terminal = Terminal::start(sage.args(["attach", "x", step]), 80);
    terminal.until(question);
    terminal.until(prompt);
    for line in typed {
        terminal.type_in(&format!("{line}\r"));
    }
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    seen
}

// covers: S4, P3
#[test]
fn approvals_and_questions_in_words_are_answered_in_place() {
    let sage = Sage::new().template("t", GATES);
    let run = sage.spawn("run x -t t --quiet");
    let asks = || sage.args(["inbox", "--json"]).run().exit(0).stdout.contains("gates/no");
    wait_until(asks, DEADLINE, "the questions");
    let seen = answered(&sage, "gates/plain", "? approval\r\n    ship it?", "approve? [y/n] ", &["y"]);
    assert!(seen.ends_with("gates/plain: succeeded\r\n"), "{seen:?}");
    let seen = answered(
        &sage,
        "gates/ways",
        "    which way?\r\n  choices: left, right\r\n",
        "choose: ",
        &["up", "y", "right"],
    );
    assert!(seen.contains("error: `up` is not a choice of step `gates/ways`"), "{seen}");
    assert!(seen.contains("has the choices left, right"), "{seen}");
    // What blocks an agent that knows nothing of Sage is answered in words, whatever they look like.
    wait_until(|| sage.path(".sage/inbox/orders/pat.md").exists(), DEADLINE, "the order");
    sage.args(["wake", "blocked", "--session", "pat", "--summary", "on port 80?"]).run().exit(0);
    let mut terminal = Terminal::start(sage.args(["attach", "x", "gates/person"]), 80);
    terminal.until("? the agent needs an answer\r\n    on port 80?");
    terminal.until("answer: ");
    terminal.type_in("n, on 8080\r");
    let order = || std::fs::read_to_string(sage.path(".sage/inbox/orders/pat.md")).unwrap_or_default();
    wait_until(|| order().contains("> on port 80?\n\nn, on 8080"), DEADLINE, &order());
    sage.args(["wake", "complete", "--session", "pat", "--summary", "done"]).run().exit(0);
    assert!(terminal.end().1.ends_with("gates/person: succeeded\r\n"));
    let seen = answered(&sage, "gates/no", "    drop it?", "approve? [y/n] ", &["n too early"]);
    assert!(seen.contains("too early"), "{seen}");
    sage.write("go", "");
    run.end();
    let journal = sage.journal("x");
    let answer = |event: &Event| match event {
        Event::StepAnswered(it) => Some((it.choice.clone(), it.by.clone(), it.message.clone())),
        _ => None,
    };
    let answers: Vec<_> = journal.records.iter().filter_map(|entry| answer(&entry.event)).collect();
    let choices: Vec<&str> = answers.iter().map(|answer| answer.0.as_str()).collect();
    assert_eq!(choices, ["approve", "right", "reject"]);
    assert!(answers.iter().all(|answer| answer.1.ends_with(" via terminal")), "{answers:?}");
    assert_eq!(answers[2].2.as_deref(), Some("too early"));
}

// covers: P3, R17
#[test]
fn no_other_agent_turns_a_permission_into_a_question_in_words() {
    let template = ASKS.replace("tool: Bash", "tool: your answer").replace("run: ", "hear: 1, run: ");
    let sage = Sage::new().template("t", &template);
    let run = sage.spawn("run x -t t --quiet");
    let asks = || sage.engine().latest("x").is_some() && !sage.status("x")["steps"][0]["asks"].is_null();
    wait_until(asks, DEADLINE, "the question");
    let mut terminal = Terminal::start(sage.args(["attach", "x", "work/one"]), 80);
    // All that is known of it: its input.
    terminal.until("? may it use your answer?\r\n    {\r\n      \"command\": \"deploy made\"\r\n    }");
    terminal.until("allow? [y/n/always] ");
    terminal.type_in("whatever\r");
    terminal.until("sent: fake gets it");
    assert_eq!(permitted(&sage), []);
    terminal.type_in("n\r");
    let (_, seen) = terminal.end();
    run.end().exit(0);
    let [(allow, ..)] = permitted(&sage).try_into().unwrap();
    assert!(!allow && !sage.path("made").exists());
    // The message came before the answer and is no answer.
    assert!(seen.contains("@ whatever") && seen.contains("heard: whatever"), "{seen}");
}

// covers: S4, P3
#[test]
fn the_question_of_a_paused_run_is_answered_in_place() {
    let sage = Sage::new().template("t", GATES.split("      - { type: approval, id: ways").next().unwrap());
    sage.sage("run x -t t --quiet").exit(4);
    sage.sage("attach x")
        .exit(0)
        .stdout_has("→ sage approve x gates/plain\n")
        .stderr_has("gates/plain: waiting");
    let mut terminal = Terminal::start(sage.args(["attach", "x"]), 80);
    terminal.until("approve? [y/n] ");
    terminal.type_in("y\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("gates/plain: succeeded\r\n") && seen.contains("sage resume x"), "{seen:?}");
    sage.sage("resume x --quiet").exit(0);
}

// covers: S4
#[test]
fn without_a_terminal_it_only_streams() {
    let sage = Sage::new().template("t", ASKS);
    let run = sage.spawn("run x -t t --quiet");
    let asks = || sage.engine().latest("x").is_some() && !sage.status("x")["steps"][0]["asks"].is_null();
    wait_until(asks, DEADLINE, "the question");
    let mut attached = sage.spawn("attach x work/one");
    let text = |attached: &crate::dsl::Running| attached.stdout();
    wait_until(|| text(&attached).contains("→ sage approve x work/one --ask "), DEADLINE, "the question");
    assert!(!attached.ended());
    sage.sage("approve x").exit(0);
    run.end().exit(0);
    let seen = attached.end().exit(0).stderr_has("work/one: succeeded");
    seen.stdout_has("? may it use Bash?\n    deploy made\n")
        .stdout_has("> Run touch made\n< Run: done\ndone\n");
    sage.sage("attach x work/one").exit(0).stdout_has("done\n");
    let lines = sage.sage("attach x work/one --json").exit(0).json_lines();
    assert!(lines.iter().any(|line| line["type"] == "activity" && line["kind"] == "tool"), "{lines:?}");
    sage.sage("attach x").exit(2).stderr_has("no agent of `x` runs");
}
