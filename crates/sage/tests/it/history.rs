//! `sage history`: every run, step and attempt as rows, and runs by number.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use crate::dsl::{DEADLINE, Sage, wait_until};

const WORK: &str = "
name: work
inputs: { fail: '' }
phases:
  - id: first
    operations:
      - { id: a, type: shell, params: { run: 'echo one' } }
      - { id: again, type: shell, retry: { attempts: 2, delay: 1ms }, params: { run: 'echo x >> tried; test $(wc -l < tried) -gt 1' } }
  - id: second
    operations:
      - { id: agent, type: agent, agent: fake, retry: 1, params: { script: [ { result: { ok: true }, usage: { input: 100, cacheRead: 30, output: 20 } } ] } }
      - { id: b, type: shell, retry: 1, params: { env: { FAIL: '{{ inputs.fail }}' }, run: 'test -z \"$FAIL\"' } }
";
const WAITS: &str = "
name: waits
phases: [{ id: p, operations: { id: a, type: shell, params: { run: 'touch begun; while ! test -e go; do sleep 0.01; done' } } }]
";

fn sage() -> Sage {
    Sage::new().template("work", WORK).template("waits", WAITS)
}

fn sql(sage: &Sage, query: &str) -> Vec<Vec<Value>> {
    let answer = sage.args(["history", "sql", query, "--json"]).run().exit(0).json();
    serde_json::from_value(answer["rows"].clone()).unwrap()
}

fn one(sage: &Sage, query: &str) -> Value {
    sql(sage, query).remove(0).remove(0)
}

/// All rows, without what only says of which file they were made.
fn dump(sage: &Sage) -> Vec<Vec<Vec<Value>>> {
    let runs = "SELECT id, feature, number, title, template, status, verdict, started_ms, ended_ms, total_ms, active_ms, \
                sequential_ms, steps, steps_failed, steps_reused, attempts, attempts_failed, retries, tokens, cost_usd, \
                resumes, resume_success, forked_from, is_foreign, journal_bytes FROM runs ORDER BY id";
    let rest = ["steps", "attempts", "usage", "handoffs", "wakes"];
    let rest = rest.map(|table| sql(sage, &format!("SELECT * FROM {table} ORDER BY 1, 2, 3")));
    std::iter::once(sql(sage, runs)).chain(rest).collect()
}

// covers: P9
#[test]
fn every_run_step_attempt_and_usage_is_a_row() {
    let sage = sage();
    sage.args(["run", "cart", "-t", "work"]).run().exit(0);
    sage.args(["run", "till", "-t", "work", "-i", "fail=yes"]).run().exit(1);
    assert!(sage.path(".sage/history.db").exists(), "written when a run ends, not when somebody asks");
    assert_eq!(
        one(&sage, "SELECT group_concat(verdict) FROM (SELECT verdict FROM runs ORDER BY id)"),
        "succeeded,failed"
    );
    assert_eq!(one(&sage, "SELECT count(*) FROM steps WHERE run = (SELECT min(id) FROM runs)"), 4);
    let tries = sql(
        &sage,
        "SELECT attempt, outcome FROM attempts WHERE step = 'first/again' AND run = (SELECT min(id) FROM runs) ORDER BY attempt",
    );
    assert_eq!(tries, [[Value::from(1), "failed".into()], [2.into(), "succeeded".into()]]);
    let usage = sql(&sage, "SELECT input, cache_read, output FROM usage WHERE step = 'second/agent'");
    assert_eq!(usage, vec![vec![Value::from(100), 30.into(), 20.into()]; 2]);
    let status = sage.status("cart");
    let run = sql(&sage, "SELECT tokens, attempts, active_ms FROM runs WHERE feature = 'cart'").remove(0);
    let metrics = &status["metrics"];
    assert_eq!(
        run,
        [&metrics["totalTokens"], &metrics["attempts"], &metrics["parallelTime"]].map(Value::clone)
    );
    assert_eq!(one(&sage, "SELECT failure_class FROM steps WHERE state = 'failed'"), "failed");
    let wakes = one(&sage, "SELECT count(*) FROM wakes");
    assert!(wakes.as_i64().unwrap() >= 2, "the ends of two runs: {wakes}");
}

// covers: P9
#[test]
fn a_rebuilt_history_equals_the_one_that_was_written_as_runs_ended() {
    let sage = sage();
    sage.args(["run", "cart", "-t", "work"]).run().exit(0);
    sage.args(["run", "cart", "-t", "work", "-i", "fail=yes"]).run().exit(1);
    sage.args(["fork", "cart", "--from", "second/b", "--as", "other", "-i", "fail="]).run().exit(0);
    let written = dump(&sage);
    assert_eq!(written[0].len(), 3);
    sage.sage("history rebuild").exit(0).stdout_has("3 runs read");
    assert_eq!(dump(&sage), written);
    std::fs::remove_file(sage.path(".sage/history.db")).unwrap();
    assert_eq!(dump(&sage), written, "after it was deleted");
    std::fs::write(sage.path(".sage/history.db"), b"SQLite format 3\0 and nothing else that fits").unwrap();
    assert_eq!(dump(&sage), written, "after it was damaged");
}

// covers: P9, R5
#[test]
fn an_attempt_whose_owner_was_killed_is_a_lost_row() {
    let sage = sage();
    let mut running = sage.spawn("run long -t waits");
    running.until(|| sage.path("begun").exists(), "the step runs");
    assert_eq!(one(&sage, "SELECT status FROM runs"), "running");
    assert_eq!(sql(&sage, "SELECT step, outcome FROM attempts"), [["p/a".into(), Value::Null]]);
    running.kill();
    wait_until(|| sage.alive().is_empty(), DEADLINE, "its processes are gone");
    sage.write("go", "");
    sage.args(["resume", "long"]).run();
    let answered = sage.args(["approve", "long", "p/a"]).run();
    println!("{}", answered.stderr);
    sage.args(["resume", "long"]).run();
    let outcomes = sql(&sage, "SELECT outcome FROM attempts ORDER BY attempt");
    assert_eq!(outcomes.first().unwrap()[0], "lost", "{outcomes:?}");
}

// covers: P9
#[test]
fn a_run_is_named_by_number_by_id_and_by_the_end_of_its_id() {
    let sage = sage();
    for fail in ["", "yes", ""] {
        sage.args(["run", "cart", "-t", "work", "-i", &format!("fail={fail}")]).run();
    }
    let rows = sage.sage("list --all --json").exit(0).json()["runs"].clone();
    let ids: Vec<&str> =
        rows.as_array().unwrap().iter().rev().map(|row| row["runId"].as_str().unwrap()).collect();
    let names: Vec<Value> = rows.as_array().unwrap().iter().rev().map(|row| row["number"].clone()).collect();
    assert_eq!(names, [1, 2, 3]);
    let verdict = |name: &str| sage.args(["status", name, "--json"]).run().exit(0).json()["verdict"].clone();
    assert_eq!(verdict("cart"), "succeeded");
    assert_eq!(verdict("cart@2"), "failed");
    assert_eq!(verdict(ids[1]), "failed");
    let end = &ids[1][ids[1].len() - 6..];
    assert_eq!(verdict(end), "failed", "{end}");
    assert_eq!(verdict(&end.to_lowercase()), "failed");
    sage.args(["result", "cart@1", "first/a"]).run().exit(0).stdout_has("one");
    sage.args(["logs", "cart@2"]).run().exit(0).stdout_has("second/b");
    sage.args(["explain", "cart@2", "second/b"]).run().exit(0);
    sage.args(["graph", "cart@2"]).run().exit(0).stdout_has("failed");
    sage.args(["fork", "cart@2", "--from", "second/b", "--as", "mended", "-i", "fail="]).run().exit(0);
    assert_eq!(one(&sage, "SELECT forked_from FROM runs WHERE feature = 'mended'"), ids[1]);
    sage.args(["status", "cart@9"]).run().exit(2);
    sage.sage("list --all").exit(0).stdout_has("cart@2").stdout_has(end);
}

// covers: P9
#[test]
fn numbers_and_rows_of_removed_runs_stay() {
    let sage = sage();
    for _ in 0..3 {
        sage.args(["run", "cart", "-t", "work"]).run().exit(0);
    }
    let first = one(&sage, "SELECT min(id) FROM runs");
    std::fs::remove_dir_all(sage.run_dir(first.as_str().unwrap())).unwrap();
    let rows = sage.sage("history --json").exit(0).json()["runs"].clone();
    assert_eq!(rows[2]["removed"], true);
    assert_eq!(rows[0]["number"], 3);
    sage.args(["run", "cart", "-t", "work"]).run().exit(0);
    std::fs::remove_file(sage.path(".sage/history.db")).unwrap();
    let rows = sage.sage("history --json").exit(0).json()["runs"].clone();
    assert_eq!(rows[0]["number"], 4, "a run keeps its number when older ones are gone: {rows:#}");
}

// covers: P9
#[test]
fn statistics_are_by_template_agent_and_phase() {
    let sage = sage();
    sage.args(["run", "cart", "-t", "work"]).run().exit(0);
    sage.args(["run", "till", "-t", "work", "-i", "fail=yes"]).run().exit(1);
    let stats = |by: &str| {
        sage.args(["history", "stats", "--by", by, "--json"]).run().exit(0).json()["stats"].clone()
    };
    let template = stats("template");
    assert_eq!((&template[0]["name"], &template[0]["count"]), (&"work".into(), &2.into()));
    assert_eq!((&template[0]["failureRate"], &template[0]["tokens"]), (&0.5.into(), &300.into()));
    let agent = stats("agent");
    assert_eq!(
        (&agent[0]["name"], &agent[0]["count"], &agent[0]["tokens"]),
        (&"fake".into(), &2.into(), &300.into())
    );
    let phases = stats("phase");
    assert_eq!(phases[1]["name"], "work/second");
    assert_eq!((&phases[1]["count"], &phases[1]["failureRate"]), (&4.into(), &0.25.into()));
    sage.sage("history stats").exit(0).stdout_has("50%");
    sage.sage("history stats --since 1h --by phase").exit(0).stdout_has("work/first");
    sage.sage("history").exit(0).stdout_has("last 2 runs: 50% of runs failed");
}

// covers: P9, R17
#[test]
fn a_history_that_came_with_a_clone_is_not_opened_and_links_are_not_followed() {
    let sage = sage();
    sage.args(["run", "cart", "-t", "work"]).run().exit(0);
    let db = sage.path(".sage/history.db");
    let other = Sage::new().template("work", WORK);
    other.args(["run", "theirs", "-t", "work"]).run().exit(0);
    std::fs::copy(other.path(".sage/history.db"), &db).unwrap();
    assert_eq!(one(&sage, "SELECT group_concat(feature) FROM runs"), "cart");
    let treasure = sage.outside().join("treasure");
    std::fs::write(&treasure, "mine").unwrap();
    std::fs::remove_file(&db).unwrap();
    symlink(&treasure, &db).unwrap();
    assert_eq!(one(&sage, "SELECT group_concat(feature) FROM runs"), "cart");
    assert_eq!(std::fs::read_to_string(&treasure).unwrap(), "mine");
    let mode = std::fs::metadata(&db).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

// covers: P9
#[test]
fn queries_change_nothing_and_mistakes_are_told() {
    let sage = sage();
    sage.sage("history").exit(0).stderr_has("no runs");
    assert!(!sage.path(".sage/history.db").exists(), "looking at a project without runs leaves nothing");
    sage.args(["run", "cart", "-t", "work"]).run().exit(0);
    for query in ["DELETE FROM runs", "ATTACH 'x.db' AS x", "SELECT nothing FROM runs", "nonsense"] {
        sage.args(["history", "sql", query]).run().exit(2).stderr_has("the query failed");
    }
    assert_eq!(one(&sage, "SELECT count(*) FROM runs"), 1);
    assert!(!sage.path("x.db").exists());
    std::fs::remove_file(sage.path(".sage/history.db")).unwrap();
    std::fs::create_dir(sage.path(".sage/history.db")).unwrap();
    assert_eq!(one(&sage, "SELECT count(*) FROM runs"), 1, "it is made in memory");
}
