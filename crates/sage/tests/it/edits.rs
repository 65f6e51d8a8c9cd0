//! Edited templates: only what changed, and what depends on the change, runs again; `explain` says why.

use serde_json::Value;

use crate::dsl::Sage;

/// `base -> middle -> top`, and `aside`, which has nothing to do with them.
const CHAIN: &str = r#"
name: t
phases:
  - id: a
    operations:
      - { id: base, type: shell, params: { run: "echo base" } }
      - { id: aside, type: shell, params: { run: "echo aside" } }
      - { id: middle, type: shell, needs: [a/base], params: { run: "echo middle" } }
      - { id: top, type: shell, needs: [a/middle], params: { run: "echo top" } }
"#;

fn explained(sage: &Sage, step: &str) -> Value {
    sage.args(["explain", "x", step, "--json"]).run().exit(0).json()
}

/// Runs `before`, then goes on with `after`; gives the steps that ran and the steps that were kept.
fn edit(before: &str, after: &str, first_exit: i32) -> (Sage, Vec<String>, Vec<String>) {
    let sage = Sage::new().template("t", before);
    sage.sage("run x -t t").exit(first_exit);
    let seq = sage.journal("x").last_seq();
    let sage = sage.template("t", after);
    sage.sage("resume x -t t").exit(0).stderr_has("edited: ");
    let journal = sage.journal("x");
    let mut ran = journal.started_after(seq);
    ran.sort();
    let status = sage.status("x");
    let steps = status["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["state"] == "succeeded"), "{status}");
    let kept = steps.iter().map(|step| step["path"].as_str().unwrap().to_owned());
    let kept = kept.filter(|path| !ran.contains(path)).collect();
    sage.sage("verify").exit(0);
    (sage, ran, kept)
}

// covers: R5, LESSONS "Resume"
#[test]
fn an_edited_command_of_a_finished_run_runs_with_its_dependants_only() {
    let (sage, ran, kept) = edit(CHAIN, &CHAIN.replace("echo middle", "echo other"), 0);
    assert_eq!(ran, ["a/middle", "a/top"]);
    assert_eq!(kept, ["a/base", "a/aside"]);
    let middle = explained(&sage, "a/middle");
    assert_eq!(middle["changed"], serde_json::json!(["params"]), "{middle}");
    let top = explained(&sage, "a/top");
    assert_eq!(top["changed"], serde_json::json!(["result of a/middle"]), "{top}");
    sage.sage("explain x a/middle").exit(0).stdout_has("params");
    let base = explained(&sage, "a/base");
    assert_eq!(base["changed"], serde_json::json!([]), "{base}");
}

// covers: R5
#[test]
fn an_equal_result_changes_nothing_after_it() {
    let (_, ran, kept) = edit(CHAIN, &CHAIN.replace("echo middle", "printf 'middle\\n'"), 0);
    assert_eq!(ran, ["a/middle"]);
    assert_eq!(kept.len(), 3);
}

// covers: R5, LESSONS "Resume"
#[test]
fn a_mended_command_of_a_failed_run_runs_with_its_dependants_only() {
    let broken = CHAIN.replace("echo middle", "echo broken >&2; exit 3");
    let (sage, ran, kept) = edit(&broken, CHAIN, 1);
    assert_eq!(ran, ["a/middle", "a/top"]);
    assert_eq!(kept, ["a/base", "a/aside"]);
    assert_eq!(explained(&sage, "a/middle")["changed"], serde_json::json!(["params"]));
}

const AGENTS: &str = r#"
name: t
phases:
  - id: a
    operations:
      - { id: one, type: agent, agent: fake, prompt: "say one", params: { script: [{ result: 1 }] } }
      - { id: two, type: agent, agent: fake, prompt: "say two", params: { script: [{ result: 2 }] } }
  - id: b
    dependencies: [a]
    operations: { id: sum, type: shell, params: { run: "echo sum" } }
"#;

// covers: R5, LESSONS "Resume"
#[test]
fn an_edited_prompt_is_named_by_explain() {
    let (sage, ran, kept) = edit(AGENTS, &AGENTS.replace("say two", "say two, please"), 0);
    // The scripted answer is the same, so nothing after it changes.
    assert_eq!(ran, ["a/two"]);
    assert_eq!(kept, ["a/one", "b/sum"]);
    let two = explained(&sage, "a/two");
    assert_eq!(two["changed"], serde_json::json!(["prompt"]), "{two}");
    assert!(two["why"].as_str().unwrap().contains("prompt"), "{two}");
    sage.sage("explain x a/two").exit(0).stdout_has("because this changed: prompt");
}

// covers: R5
#[test]
fn an_edited_prompt_after_a_failed_run() {
    let failing = AGENTS.replace("echo sum", "exit 1");
    let (_, ran, kept) = edit(&failing, &AGENTS.replace("say one", "say one!"), 1);
    assert_eq!(ran, ["a/one", "b/sum"]);
    assert_eq!(kept, ["a/two"]);
}

// covers: R5, LESSONS "Resume"
#[test]
fn added_moved_and_removed_steps_leave_the_others_alone() {
    let after = r#"
name: t
phases:
  - id: a
    operations:
      - { id: aside, type: shell, params: { run: "echo aside" } }
      - { id: fresh, type: shell, needs: [a/base], params: { run: "echo fresh" } }
      - { id: middle, type: shell, needs: [a/base], params: { run: "echo middle" } }
      - { id: base, type: shell, params: { run: "echo base" } }
"#;
    let sage = Sage::new().template("t", CHAIN);
    sage.sage("run x -t t").exit(0);
    let seq = sage.journal("x").last_seq();
    let sage = sage.template("t", after);
    sage.sage("resume x -t t").exit(0).stderr_has("a/top").stderr_has("1 new");
    assert_eq!(sage.journal("x").started_after(seq), ["a/fresh"]);
}

/// Identity is the item, not its place: 102 agents that run again because of an order are the horror story.
// covers: R5, LESSONS "Resume"
#[test]
fn a_shuffled_fan_out_reuses_by_item() {
    let fan = |list: &str| {
        format!(
            r#"
name: t
phases:
  - id: a
    operations:
      id: each
      type: shell
      foreach: "{list}"
      params: {{ run: 'echo "$N" >> ran; echo "$N"', env: {{ N: "{{{{ item }}}}" }} }}
"#
        )
    };
    let sage = Sage::new().template("t", &fan("[1,2,3,4]"));
    sage.sage("run x -t t").exit(0);
    let sage = sage.template("t", &fan("[4,5,2,1]"));
    sage.sage("resume x -t t").exit(0);
    let mut ran = sage.lines("ran");
    ran.sort();
    assert_eq!(ran, ["1", "2", "3", "4", "5"], "only the new item ran");
    let result = sage.sage("result x a/each").exit(0).json();
    let said: Vec<&str> =
        result.as_array().unwrap().iter().map(|r| r["stdout"].as_str().unwrap().trim()).collect();
    assert_eq!(said, ["4", "5", "2", "1"]);
    let reused = sage.journal("x").reused_after(0);
    assert!(!reused.is_empty());
    let why = explained(&sage, &reused[0]);
    assert_eq!(why["reused"], true, "{why}");
    assert!(why["why"].as_str().unwrap().contains("reused"), "{why}");
}

// covers: R5
#[test]
fn explain_says_why_a_step_waits_is_blocked_or_skipped() {
    let text = r#"
name: t
phases:
  - id: a
    operations:
      - { id: ask, type: approval, params: { message: "go?" } }
      - { id: off, type: shell, when: "false", params: { run: "true" } }
      - { id: bad, type: shell, params: { run: "exit 7" } }
      - { id: after-bad, type: shell, needs: [a/bad], params: { run: "true" } }
      - { id: after-ask, type: shell, needs: [a/ask], params: { run: "true" } }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(4);
    let told = |step: &str, word: &str, state: &str| {
        let told = explained(&sage, step);
        assert_eq!(told["state"], state, "{told}");
        assert!(told["why"].as_str().unwrap().contains(word), "{told}");
    };
    told("a/off", "when", "skipped");
    told("a/after-bad", "a/bad", "blocked");
    told("a/after-ask", "a/ask", "pending");
    told("a/bad", "exit code 7", "failed");
    sage.sage("explain x a/nobody").exit(2).stderr_has("no step");
    let all = sage.args(["explain", "x", "--json"]).run().exit(0).json_lines();
    assert_eq!(all.len(), 5);
}

// covers: R5
#[test]
fn resume_from_a_step_runs_it_and_its_dependants_again() {
    let sage = Sage::new().template("t", CHAIN);
    sage.sage("run x -t t").exit(0);
    let seq = sage.journal("x").last_seq();
    sage.sage("resume x --from a/middle").exit(0);
    let ran = sage.journal("x").started_after(seq);
    assert!(ran.contains(&"a/middle".to_owned()), "{ran:?}");
    assert!(!ran.contains(&"a/base".to_owned()) && !ran.contains(&"a/aside".to_owned()), "{ran:?}");
    sage.sage("resume x --from a/nobody").exit(2).stderr_has("no step");
    sage.sage("resume x --from a").exit(0);
}

// covers: R5
#[test]
fn resume_of_a_finished_unchanged_run_does_nothing() {
    let sage = Sage::new().template("t", CHAIN);
    sage.sage("run x -t t").exit(0);
    let seq = sage.journal("x").last_seq();
    sage.sage("resume x").exit(0).stdout_has("succeeded");
    assert_eq!(sage.journal("x").last_seq(), seq);
    // The template is frozen; that the file is another one now is said.
    let sage = sage.template("t", &CHAIN.replace("echo top", "echo roof"));
    sage.sage("resume x").exit(0).stderr_has("has changed").stderr_has("sage resume x -t");
    assert_eq!(sage.journal("x").last_seq(), seq);
    // A new start runs everything: reuse is inside one run.
    sage.sage("run x -t t").exit(0);
    assert_eq!(sage.journal("x").started().len(), 4);
}

// covers: R5
#[test]
fn an_edit_that_is_not_valid_leaves_the_run_as_it_was() {
    let sage = Sage::new().template("t", CHAIN);
    sage.sage("run x -t t").exit(0);
    let seq = sage.journal("x").last_seq();
    let sage = sage.template("t", &CHAIN.replace("needs: [a/base]", "needs: [a/bass]"));
    sage.sage("resume x -t t").exit(2).stderr_has("did you mean `a/base`");
    assert_eq!(sage.journal("x").last_seq(), seq);
    assert_eq!(sage.status("x")["status"], "completed");
}

// covers: R5; resume from another directory
#[test]
fn a_run_is_resumed_from_any_directory() {
    let sage = Sage::new().template("t", &CHAIN.replace("echo middle", "[ -e mended ]"));
    sage.sage("run x -t t").exit(1);
    sage.write("mended", "");
    sage.write("deep/er/file", "");
    let deep = sage.path("deep/er");
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_sage"))
        .args(["resume", "x", "--quiet"])
        .current_dir(&deep)
        .env("XDG_STATE_HOME", sage.user_state())
        .stdout(std::process::Stdio::null())
        .status();
    assert_eq!(status.unwrap().code(), Some(0));
    assert!(!deep.join(".sage").exists());
    sage.journal("x").assert_nothing_repeated();
}
