//! Done once more: from a call on, after a failure, and stopped when it takes too long.

use serde_json::json;

use super::{flow, ran, value, whole};
use crate::calls::count;
use crate::dsl::{DEADLINE, Sage, wait_until};

/// What has run, in the order in which it did; forgotten afterwards.
fn taken(sage: &Sage) -> Vec<String> {
    let lines = sage.lines("ran");
    std::fs::remove_file(sage.path("ran")).unwrap();
    lines
}

// covers: R21, R5
#[test]
fn from_a_call_on_all_that_came_later_runs_again() {
    let sage = flow(
        r#"
  for (const name of ["a", "b", "c", "d"]) {
    await sage.shell(`echo ${name} >> ran`, { label: name });
    sage.log(`after ${name}`);
  }
  return 1;"#,
    );
    sage.sage("run x -t t").exit(0);
    assert_eq!(taken(&sage), ["a", "b", "c", "d"]);
    sage.sage("resume x --from main/b").exit(0).stdout_has("after b").stdout_has("after d");
    assert_eq!(taken(&sage), ["b", "c", "d"]);
    sage.sage("resume x --from main/d").exit(0);
    assert_eq!(taken(&sage), ["d"]);
    sage.sage("resume x --from main").exit(0);
    assert_eq!(taken(&sage), ["a", "b", "c", "d"]);
    sage.sage("verify").exit(0);
}

/// Two rows beside each other: what the other one did before the call had ended is its own.
// covers: R21, R5
#[test]
fn a_branch_that_was_not_told_of_it_keeps_what_it_did() {
    let sage = flow(
        r#"
  const row = async (name: string, waits: string) => {
    await sage.shell(`echo ${name}1 >> ran; ${waits}`, { label: `${name}-one` });
    await sage.shell(`echo ${name}2 >> ran`, { label: `${name}-two` });
    await sage.shell(`echo ${name}3 >> ran`, { label: `${name}-three` });
  };
  await Promise.all([row("slow", "while [ ! -e go ]; do sleep 0.01; done"), row("fast", "true")]);
  await sage.shell("echo last >> ran", { label: "last" });
  return 1;"#,
    );
    let running = sage.spawn("run x -t t --parallel 4");
    wait_until(|| sage.lines("ran").contains(&"fast3".to_owned()), DEADLINE, "the fast row");
    wait_until(|| sage.journal("x").succeeded().len() == 3, DEADLINE, "the end of the fast row");
    sage.write("go", "");
    running.end().exit(0);
    taken(&sage);
    sage.sage("resume x --from main/slow-one").exit(0);
    assert_eq!(taken(&sage), ["slow1", "slow2", "slow3", "last"]);
    sage.sage("resume x --from main/fast-three").exit(0);
    let mut again = taken(&sage);
    again.sort();
    assert_eq!(again, ["fast3", "last", "slow2", "slow3"], "all that was made after it was told");
    sage.sage("resume x --from main/slow-two").exit(0);
    assert_eq!(taken(&sage), ["slow2", "slow3", "last"]);
}

// covers: R21, R5
#[test]
fn from_a_step_of_a_called_workflow_on() {
    let inner = "await sage.shell('echo in-a >> ran', { label: 'a' });\nawait sage.shell('echo in-b >> ran', { label: 'b' });\nreturn 1;";
    let sage = flow(
        "await sage.shell('echo before >> ran'); await sage.workflow('inner'); await sage.shell('echo after >> ran'); return 1;",
    )
    .code("inner", &whole(inner));
    sage.sage("run x -t t").exit(0);
    assert_eq!(taken(&sage), ["before", "in-a", "in-b", "after"]);
    sage.sage("resume x --from main/inner/main/b").exit(0);
    assert_eq!(taken(&sage), ["in-b", "after"]);
}

fn script(fields: &str, code: &str) -> Sage {
    let code: String = code.lines().map(|line| format!("            {line}\n")).collect();
    let template = format!(
        "name: t\nphases:\n  - id: p\n    operations:\n      - id: s\n        type: script\n        {fields}\n        params:\n          code: |\n            export default async (sage) => {{\n{code}            }};\n"
    );
    Sage::new().template("t", &template)
}

// covers: R21, R7
#[test]
fn a_script_that_takes_too_long_ends_and_so_does_what_it_called() {
    let sage = script("timeout: 1s", "await sage.shell('echo a >> ran; sleep 300'); return 1;");
    sage.sage("run x -t t").exit(1).stdout_has("timeout").stdout_has("1000 ms");
    sage.assert_nothing_alive();
    let status = sage.status("x");
    let step = |path: &str| {
        let steps = status["steps"].as_array().unwrap();
        steps.iter().find(|step| step["path"] == path).unwrap()["state"].clone()
    };
    assert_eq!((step("p/s"), step("p/shell")), ("failed".into(), "cancelled".into()), "{status:#}");
    sage.sage("verify").exit(0);
}

/// Waiting for a person is not its time.
// covers: R21, R7
#[test]
fn a_question_is_not_the_scripts_time() {
    let sage = script("timeout: 2s", "await sage.approve('go?'); return 1;");
    sage.sage("run x -t t").exit(4);
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0);
}

// covers: R21, R7
#[test]
fn a_script_tries_again_with_what_it_has() {
    let code = r#"
await sage.shell("echo good >> ran");
await sage.shell("echo bad >> ran; [ $(grep -c bad ran) -ge 3 ]");
return "done";"#;
    let sage = script("retry: { attempts: 3, delay: 10ms }", code);
    sage.sage("run x -t t").exit(0).stdout_has("retr");
    assert_eq!(ran(&sage), ["bad", "bad", "bad", "good"]);
    assert_eq!(sage.sage("result x p/s").exit(0).json(), "done");
    assert_eq!(count(&sage.journal("x"), "step.retried"), 2);
    sage.sage("verify").exit(0);
}

// covers: R21, R7
#[test]
fn tries_come_to_an_end_and_a_resume_has_them_all_again() {
    let sage =
        script("retry: { attempts: 2, delay: 1ms }", "await sage.shell('echo bad >> ran; [ -e go ]');");
    sage.sage("run x -t t").exit(1);
    assert_eq!(ran(&sage).len(), 2);
    sage.sage("resume x").exit(1);
    assert_eq!(ran(&sage).len(), 4);
    sage.write("go", "");
    sage.sage("resume x").exit(0);
    assert_eq!(ran(&sage).len(), 5);
}

// covers: R21, R7
#[test]
fn what_took_too_long_is_tried_again() {
    let code = r#"
await sage.shell("echo a >> ran");
await sage.shell("echo b >> ran; [ $(grep -c b ran) -ge 2 ] || sleep 300");
return 1;"#;
    let sage = script("timeout: 2s\n        retry: { attempts: 2, delay: 1ms }", code);
    sage.sage("run x -t t").exit(0);
    assert_eq!(ran(&sage), ["a", "b", "b"]);
    sage.assert_nothing_alive();
}

/// A kill between two tries takes neither the tries nor what is done.
// covers: R21, R5, R7
#[test]
fn a_kill_between_two_tries_loses_nothing() {
    let code =
        "await sage.shell('echo good >> ran');\nawait sage.shell('echo bad >> ran; [ -e go ]');\nreturn 1;";
    let sage = script("retry: { attempts: 2, delay: 10m }", code);
    let running = sage.spawn("run x -t t");
    let failed = || sage.engine().latest("x").is_some() && count(&sage.journal("x"), "step.returned") == 1;
    wait_until(failed, DEADLINE, "the first try to fail");
    running.kill();
    sage.write("go", "");
    let running = sage.spawn("resume x");
    running.end().exit(0);
    assert_eq!(ran(&sage), ["bad", "bad", "good"]);
}

const INNER: &str = r#"
name: inner
phases:
  - id: one
    operations: { id: good, type: shell, params: { run: "echo good >> ran" } }
  - id: two
    dependencies: [one]
    operations: { id: bad, type: shell, params: { run: "echo bad >> ran; [ $(grep -c bad ran) -ge 3 ]" } }
  - id: three
    dependencies: [two]
    operations: { id: end, type: shell, params: { run: "echo end >> ran" } }
"#;

// covers: R21, R7, P2
#[test]
fn a_called_workflow_tries_again_with_what_it_has() {
    let sage = flow(
        "await sage.workflow('inner', {}, { retry: { attempts: 3, delay: '5ms' } }); return await sage.shell('echo after >> ran').then(() => 'ok');",
    )
    .template("inner", INNER);
    sage.sage("run x -t t").exit(0);
    assert_eq!(
        (value(&sage), ran(&sage)),
        (json!("ok"), ["after", "bad", "bad", "bad", "end", "good"].map(str::to_owned).to_vec())
    );
    sage.sage("verify").exit(0);
}

// covers: R21, R7, P2
#[test]
fn a_called_workflow_that_takes_too_long_is_an_error_that_can_be_caught() {
    let slow = "name: inner\nphases:\n  - id: one\n    operations:\n      - { id: slow, type: shell, params: { run: 'echo slow >> ran; sleep 300' } }\n      - { id: code, type: script, params: { code: \"export default (sage) => sage.sleep('10m')\" } }\n";
    let sage = flow(
        "const code = await sage.workflow('inner', {}, { timeout: '1s' }).catch((error) => error.code); await sage.shell('echo after >> ran'); return code;",
    )
    .template("inner", slow);
    sage.sage("run x -t t").exit(0);
    assert_eq!((value(&sage), ran(&sage)), (json!("timeout"), vec!["after".to_owned(), "slow".to_owned()]));
    sage.assert_nothing_alive();
}

/// The same for a template's own `workflow` steps.
// covers: R7, P2
#[test]
fn a_workflow_step_has_a_timeout_and_tries() {
    let outer = |fields: &str| {
        format!(
            "name: t\nphases:\n  - id: p\n    operations:\n      - {{ id: w, type: workflow, params: {{ template: inner }}, {fields} }}\n"
        )
    };
    let sage =
        Sage::new().template("inner", INNER).template("t", &outer("retry: { attempts: 3, delay: 1ms }"));
    sage.sage("run x -t t").exit(0);
    assert_eq!(ran(&sage), ["bad", "bad", "bad", "end", "good"]);
    let slow = INNER.replace("echo good >> ran", "sleep 300");
    let sage = Sage::new().template("inner", &slow).template("t", &outer("timeout: 1s"));
    sage.sage("run x -t t").exit(1).stdout_has("1000 ms");
    sage.assert_nothing_alive();
    assert!(sage.lines("ran").is_empty(), "nothing after it has begun");
}

/// What took too long is over, also for the owner after the one that was killed while it ended.
// covers: R21, R8
#[test]
fn a_workflow_that_took_too_long_is_over_after_a_kill() {
    let slow = "trap '' TERM; echo slow >> ran; while [ ! -e go ]; do sleep 0.05; done; echo end >> ran";
    let sage = Sage::new()
        .template("inner", &format!("name: inner\nphases: [{{ id: i, operations: [{{ id: slow, type: shell, params: {{ run: \"{slow}\" }} }}] }}]"))
        .template("t", "name: t\nphases: [{ id: p, operations: [{ id: w, type: workflow, timeout: 300ms, params: { template: inner } }] }]");
    let mut running = sage.spawn("run x -t t");
    let dir = sage.path(".sage/state");
    let journal = || sage.latest_dir("x").join("journal.jsonl");
    let over = || std::fs::read_to_string(journal()).is_ok_and(|text| text.contains("\"step.returned\""));
    running.until(|| dir.exists() && sage.engine().latest("x").is_some() && over(), "the end of its time");
    running.kill();
    // Its keeper ends it; until then it would see the file.
    wait_until(|| sage.alive().is_empty(), DEADLINE, "its processes are gone");
    sage.write("go", "");
    sage.sage("resume x").exit(1).stdout_has("timeout");
    assert!(!sage.lines("ran").contains(&"end".to_owned()), "{:?}", sage.lines("ran"));
}

/// A script that is put aside and whose phase begins again is another one.
// covers: R21, P8
#[test]
fn a_script_that_was_put_aside_begins_again_with_its_phase() {
    let text = r#"
name: t
phases:
  - id: z
    operations:
      - { id: h, type: shell, pool: x, params: { run: "while [ ! -e go ]; do sleep 0.01; done" } }
  - id: p
    operations:
      - id: s1
        type: script
        params:
          code: |
            export default async (sage) => { await sage.shell("echo s1 >> ran", { pool: "x" }); return 1; };
      - id: s2
        type: script
        params:
          code: |
            export default async (sage) => { await sage.shell("touch two", { label: "two" }); return 2; };
      - { id: f, type: shell, retry: { attempts: 3, delay: 10ms, progressive: true }, params: { run: "while [ ! -e two ]; do sleep 0.01; done; test -e second || { test -e first && touch second; touch first; exit 1; }; touch go" } }
"#;
    let sage = Sage::new().template("t", text);
    sage.write("sage.toml", "[pools]\nx = 1\n[scripts]\nmaxLiving = 1\n");
    sage.sage("run x -t t").exit(0);
    assert!(ran(&sage).contains(&"s1".to_owned()));
}
