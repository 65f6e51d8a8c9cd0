//! What running agents ask for: rules, people and deadlines answer, from another process.

use serde_json::Value;

use crate::dsl::{DEADLINE, Sage, wait_until};

const ASKS: &str = r#"
name: asks
phases:
  - id: work
    operations:
      - { type: agent, id: one, agent: fake, params: { prompt: go, script: [ { ask: { tool: Bash, input: { command: "deploy made" } }, run: "touch made", say: done } ] } }
      - { type: agent, id: two, agent: fake, params: { prompt: go, script: [ { say: independent } ] } }
"#;

fn asking(sage: &Sage, step: &str) -> bool {
    let Some(run) = sage.engine().latest("x").map(|_| sage.status("x")) else { return false };
    let steps = run["steps"].as_array().unwrap();
    steps.iter().any(|it| it["path"] == step && it["waitReason"] == "approval")
}

/// The id of the open question of `work/one`.
fn question(sage: &Sage) -> Value {
    let status = sage.status("x");
    let step = status["steps"].as_array().unwrap().iter().find(|it| it["path"] == "work/one");
    step.unwrap()["asks"][0]["id"].clone()
}

// covers: S4, P3
#[test]
fn an_agents_question_is_answered_from_another_process_and_others_go_on() {
    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    wait_until(|| sage.state_of("x", "work/two") == "succeeded", DEADLINE, "the other step");
    assert!(!sage.path("made").exists());
    let shown = sage.sage("status x").exit(0);
    shown.stdout_has("may it use Bash: deploy made?").stdout_has("sage approve x work/one");
    let roster = sage.sage("status --json").exit(0).json();
    assert_eq!(roster["runs"][0]["asking"], serde_json::json!(["work/one"]), "{roster:#}");
    assert_eq!(roster["runs"][0]["working"], serde_json::json!([]), "it waits for a person");
    sage.sage("status").exit(0).stdout_has("sage approve x work/one");
    sage.sage("approve x work/one --ask nonsense").exit(2).stderr_has("no open question");
    sage.sage("approve x work/two").exit(2);
    sage.sage("approve x").exit(0);
    run.end().exit(0);
    assert!(sage.path("made").exists());
    let said = sage.sage("logs x").exit(0);
    said.stdout_has("work/one asks: may it use Bash: deploy made?").stdout_has("work/one allowed by");
    sage.assert_nothing_alive();
}

// covers: P3
#[test]
fn a_person_can_say_no_and_why_or_allow_something_else() {
    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    sage.args(["reject", "x", "work/one", "-m", "not before lunch"]).run().exit(0);
    run.end().exit(0);
    assert!(!sage.path("made").exists());
    sage.sage("logs x work/one").exit(0).stdout_has("denied: not before lunch");

    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    sage.args(["approve", "x", "work/one", "--edit", "{broken"])
        .run()
        .exit(2)
        .stderr_has("--edit is not JSON");
    sage.args(["approve", "x", "work/one", "--edit", r#"{"command":"ls"}"#]).run().exit(0);
    run.end().exit(0);
    sage.sage("logs x work/one").exit(0).stdout_has(r#"allowed with {"command":"ls"}"#);
}

// covers: P3
#[test]
fn rules_answer_without_a_person() {
    let allowed = Sage::new().template("asks", ASKS);
    allowed.write("sage.toml", "[approvals]\ncommands = [\"deploy *\"]\n");
    allowed.sage("run x -t asks --quiet").exit(0);
    assert!(allowed.path("made").exists());
    allowed.sage("logs x").exit(0).stdout_has("work/one Bash: deploy made allowed by rule");

    let denied = Sage::new().template("asks", ASKS);
    denied.write("sage.toml", "[approvals]\ndeny = [\"deploy *\"]\n");
    denied.sage("run x -t asks --quiet").exit(0);
    assert!(!denied.path("made").exists());
    denied.sage("logs x work/one").exit(0).stdout_has("denied: `deploy *` is not allowed in this project");

    let auditor = Sage::new().template("asks", &ASKS.replace("id: one,", "id: one, role: observer,"));
    auditor.write("sage.toml", "[approvals]\ntools = [\"*\"]\n");
    auditor.sage("run x -t asks --quiet").exit(0);
    assert!(!auditor.path("made").exists());
    auditor.sage("logs x work/one").exit(0).stdout_has("your role may not run commands");
}

// covers: P3
#[test]
fn nobody_answers_and_the_default_does() {
    let sage = Sage::new().template("asks", ASKS);
    sage.write("sage.toml", "[approvals]\ndeadline = \"300ms\"\n");
    sage.sage("run x -t asks --quiet").exit(0);
    assert!(!sage.path("made").exists());
    sage.sage("logs x").exit(0).stdout_has("work/one denied by deadline: no answer before the deadline");

    let sage = Sage::new().template("asks", ASKS);
    sage.write("sage.toml", "[approvals]\ndeadline = \"300ms\"\ndefault = \"allow\"\n");
    sage.sage("run x -t asks --quiet").exit(0);
    assert!(sage.path("made").exists());
}

/// The clocks of an attempt stand still while a person thinks; a killed owner's agent asks again.
// covers: R5, R14
#[test]
fn thinking_costs_no_time_and_a_kill_asks_again() {
    let slow = ASKS.replace("id: one,", "id: one, timeout: 2s, idleTimeout: 1s,");
    let sage = Sage::new().template("asks", &slow);
    let run = sage.spawn("run x -t asks --quiet --timeout 2s");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    let asked = std::time::Instant::now();
    wait_until(|| asked.elapsed().as_millis() > 2_600, DEADLINE, "longer than every limit");
    assert!(asking(&sage, "work/one"));
    run.kill();
    sage.sage("approve x work/one").exit(2);
    let first = question(&sage);
    let again = sage.spawn("resume x --quiet");
    wait_until(|| question(&sage) != first && asking(&sage, "work/one"), DEADLINE, "asked again");
    sage.sage("approve x work/one").exit(0);
    again.end().exit(0);
    assert!(sage.path("made").exists());
    sage.assert_nothing_alive();
}

fn asks_for(command: &str) -> String {
    ASKS.replace("command: \"deploy made\"", &format!("command: {command:?}"))
}

/// How many questions were put to people.
fn questions(sage: &Sage) -> usize {
    sage.sage("logs x").exit(0).stdout.lines().filter(|line| line.contains(" asks: ")).count()
}

// covers: P3, S4
#[test]
fn what_is_harmless_needs_no_person() {
    for command in
        ["ls -la | head -5", "git status 2>&1", "echo x > notes.txt", "cd sub && cat a.txt || true"]
    {
        let sage = Sage::new().template("asks", &asks_for(command));
        sage.sage("run x -t asks --quiet").exit(0);
        assert!(sage.path("made").exists(), "{command}");
        assert_eq!(questions(&sage), 0, "{command}");
    }
    // The project's own checks.
    let sage = Sage::new().template("asks", &asks_for("make test 2>&1 | tail -5"));
    sage.write("Makefile", "test:\n\ttrue\n");
    sage.sage("run x -t asks --quiet").exit(0);
    assert!(sage.path("made").exists() && questions(&sage) == 0);
}

// covers: P3
#[test]
fn a_mode_allows_more_and_is_kept_when_the_run_goes_on() {
    for (flag, allowed) in [("--allow edits", false), ("--allow commands", true), ("--allow all", true)] {
        let sage = Sage::new().template("asks", ASKS);
        sage.write("sage.toml", "[approvals]\ndeadline = \"300ms\"\n");
        sage.sage(&format!("run x -t asks --quiet {flag}")).exit(0);
        assert_eq!(sage.path("made").exists(), allowed, "{flag}");
    }
    let sage = Sage::new().template("asks", &asks_for("rm -r build"));
    sage.sage("run x -t asks --quiet --allow edits").exit(0);
    assert!(sage.path("made").exists() && questions(&sage) == 0);
    sage.sage("run x -t asks --allow everything").exit(2).stderr_has("edits, commands, all");

    // A run that was started with it keeps it, also in another process.
    let sage = Sage::new().template("asks", ASKS);
    sage.sage("run x -t asks --quiet --allow commands --detach").exit(0);
    wait_until(|| sage.status("x")["status"] == "completed", DEADLINE, "the run in the background");
    assert!(sage.path("made").exists() && questions(&sage) == 0);
    // A file of the project says it only for those who trust it.
    let sage = Sage::untrusted().template("asks", ASKS);
    sage.write("sage.toml", "[approvals]\nmode = \"commands\"\n");
    sage.sage("run x -t asks --quiet --yes").exit(0);
    assert!(!sage.path("made").exists());
    sage.sage("trust --yes").exit(0);
    sage.sage("run x -t asks --quiet --yes").exit(0);
    assert!(sage.path("made").exists());
}

// covers: P3, R17
#[test]
fn an_answer_can_be_kept_shown_and_taken_back() {
    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    let shown = sage.sage("inbox").exit(0).stdout_has("asked because `deploy` is not known to be harmless");
    shown
        .stdout_has("[approvals] commands = [\"deploy *\"]")
        .stdout_has("--always")
        .stdout_has("then: denied");
    sage.args(["approve", "x", "work/one", "--prefix", "undeploy"]).run().exit(2).stderr_has("`deploy made`");
    sage.args(["approve", "x", "work/one", "--always", "--edit", "{}"]).run().exit(2);
    sage.sage("approve x work/one --always").exit(0).stderr_has("Bash(deploy made)");
    run.end().exit(0);
    sage.sage("approvals").exit(0).stdout_has("Bash(deploy made)").stdout_has("via command line");
    assert!(!sage.path("allowed.json").exists(), "not in the project");
    // The same question is not asked again.
    sage.sage("run x -t asks --quiet --new").exit(0);
    assert_eq!(questions(&sage), 0);
    sage.sage("logs x").exit(0).stdout_has("allowed by rule: the rule `Bash(deploy made)` allows it");
    sage.args(["approvals", "remove", "Bash(other)"]).run().exit(2).stderr_has("no answer `Bash(other)`");
    sage.args(["approvals", "remove", "Bash(deploy made)"]).run().exit(0).stdout_has("removed");
    let run = sage.spawn("run x -t asks --quiet --new");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question again");
    sage.args(["approve", "x", "work/one", "--prefix", "deploy"]).run().exit(0).stderr_has("Bash(deploy:*)");
    run.end().exit(0);
    let listed = sage.sage("approvals --json").exit(0).json();
    assert!(listed["kept"]["Bash(deploy:*)"]["by"].is_string(), "{listed:#}");
    sage.sage("approvals remove --all").exit(0);
    assert_eq!(sage.sage("approvals --json").exit(0).json()["kept"], serde_json::json!({}));
}

// covers: P3
#[test]
fn where_nobody_answers_the_agent_is_told_why_and_what_it_may_do() {
    let sage = Sage::new().template("asks", ASKS);
    sage.write("Makefile", "test:\n\ttrue\n");
    sage.sage("run x -t asks --quiet --yes").exit(0);
    assert!(!sage.path("made").exists() && questions(&sage) == 0, "nobody was asked");
    let why = "denied: nobody is there to answer; asked because `deploy` is not known to be harmless";
    let said = sage.sage("logs x work/one").exit(0).stdout_has(why);
    said.stdout_has("run the project's own checks (`make test`)").stdout_has("`git commit`");

    let sage = Sage::new().template("asks", ASKS);
    sage.args(["run", "x", "-t", "asks", "--quiet"]).env("CI", "true").run().exit(0);
    assert!(!sage.path("made").exists());
}

// covers: R17
#[test]
fn the_users_permissions_of_claude_code_can_be_taken_over() {
    let sage = Sage::untrusted().template("asks", ASKS);
    // The home of these tests is the project, so its settings are the user's and the project's at once.
    let home = sage.outside().join("home");
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    let settings = r#"{"permissions": {"allow": ["Bash(deploy:*)"], "deny": ["Bash(curl:*)"]}}"#;
    std::fs::write(home.join(".claude/settings.json"), settings).unwrap();
    sage.write("sage.toml", "[approvals]\ninherit = \"claude\"\ndeadline = \"300ms\"\n");
    let run = |args: &[&str]| sage.args(args).env("CLAUDE_CONFIG_DIR", home.join(".claude")).run();
    run(&["run", "x", "-t", "asks", "--quiet"]).exit(0);
    assert!(!sage.path("made").exists(), "rules that allow something have to be trusted");
    run(&["trust", "--yes"]).exit(0).stdout_has("approvals");
    run(&["approvals", "check", "curl x"]).exit(0).stdout_has("denied: the rule `Bash(curl:*)`");
    run(&["run", "x", "-t", "asks", "--quiet", "--new"]).exit(0);
    assert!(sage.path("made").exists());
    // Those of the project are trusted on their own.
    sage.write(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(ship:*)"]}}"#);
    run(&["approvals", "check", "ship it"]).exit(0).stdout_has("asked");
    run(&["trust", "--yes"]).exit(0).stdout_has("approvals.claude");
    run(&["approvals", "check", "ship it"]).exit(0).stdout_has("allowed");
    sage.write(".claude/settings.json", r#"{"permissions": {"allow": ["Bash"]}}"#);
    run(&["approvals", "check", "ship it"]).exit(0).stdout_has("asked");
}

// covers: R17
#[test]
fn a_step_cannot_say_what_agents_may_do() {
    let binary = env!("CARGO_BIN_EXE_sage");
    let inner = format!(
        "name: t\nphases:\n  - id: p\n    operations: {{ type: shell, id: s, params: {{ run: \"{binary} run y -t asks --allow all; {binary} approvals remove --all; true\" }} }}\n"
    );
    let sage = Sage::new().template("t", &inner).template("asks", ASKS);
    sage.sage("run x -t t --quiet").exit(0);
    let told = sage.sage("logs x p/s").exit(0);
    let told = told.stderr_has("only a person can say what agents may do without asking");
    told.stderr_has("only a person can take back an answer");
    assert!(sage.engine().latest("y").is_none());
}

// covers: P3
#[test]
fn a_command_can_be_checked_without_running_it() {
    let sage = Sage::new();
    sage.args(["approvals", "check", "ls | head"]).run().exit(0).stdout_has("allowed");
    sage.args(["approvals", "check", "rm -rf .git"])
        .run()
        .exit(0)
        .stdout_has("denied")
        .stdout_has("protected");
    let asked = sage.args(["approvals", "check", "npm run deploy"]).run().exit(0);
    asked.stdout_has("asked: ").stderr_has("[approvals] commands = [\"npm run *\"]");
    let said = sage.args(["approvals", "check", "npm run deploy", "--allow", "commands", "--json"]).run();
    assert_eq!(said.exit(0).json()["verdict"], "allowed");
    sage.args(["approvals", "check", "ls", "--role", "observer"]).run().exit(0).stdout_has("denied");
    sage.sage("approvals").exit(0).stdout_has("mode  ask");
}
