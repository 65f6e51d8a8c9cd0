//! What a workflow in code may use: slots, tokens, processor time, memory.

use serde_json::json;

use super::{flow, ran, returned, value};
use crate::dsl::{DEADLINE, Sage, wait_until};

// covers: R21, P10
#[test]
fn the_runs_limit_holds_for_code() {
    let body =
        "await Promise.all([...Array(8).keys()].map((n) => sage.shell(`sleep 0.05; echo ${n}`))); return 1;";
    for (limit, most) in [("1", 1), ("3", 3)] {
        let sage = flow(body);
        sage.sage(&format!("run x -t t --parallel {limit}")).exit(0);
        assert_eq!(sage.journal("x").most_at_once(), most);
    }
    let sage = flow(body);
    sage.sage("run x -t t --sequential").exit(0);
    assert_eq!(sage.journal("x").most_at_once(), 1);
}

const SPENDER: &str = r#"
  const done: number[] = [];
  for (let n = 0; n < 5; n++) {
    await sage.agent(`spend-${n}`, { prompt: `n ${n}`, params: { script: [{ result: n, usage: { input: 900, output: 100 } }] } });
    done.push(sage.budget.spent());
  }
  return done;"#;

// covers: R21, R18
#[test]
fn spent_tokens_are_told_and_the_budget_stops_the_run() {
    assert_eq!(returned(SPENDER), json!([1_000, 2_000, 3_000, 4_000, 5_000]));
    let sage = flow(SPENDER);
    sage.sage("run x -t t --budget 3000").exit(4).stdout_has("budget");
    let status = sage.status("x");
    assert_eq!(status["pauseReason"], "budget", "{status}");
    let spent = status["metrics"]["totalTokens"].as_u64().unwrap();
    assert!((2_000..=4_000).contains(&spent), "{spent}");
    sage.sage("resume x --budget 100k").exit(0);
    assert_eq!(value(&sage), json!([1_000, 2_000, 3_000, 4_000, 5_000]));
    sage.journal("x").assert_nothing_repeated();
    assert_eq!(sage.status("x")["metrics"]["totalTokens"], 5_000);
}

// covers: R21, R18
#[test]
fn a_workflow_stops_by_itself_before_its_budget_is_gone() {
    let sage = flow(
        r#"
  let rounds = 0;
  while (sage.budget.total && sage.budget.remaining() >= 2_000) {
    await sage.agent("spend", { prompt: `round ${rounds}`, params: { script: [{ result: 1, usage: { input: 900, output: 100 } }] } });
    rounds++;
  }
  return { rounds, left: sage.budget.remaining(), total: sage.budget.total };"#,
    );
    sage.sage("run x -t t --budget 5000").exit(0);
    assert_eq!(value(&sage), json!({"rounds": 4, "left": 1_000, "total": 5_000}));
}

// covers: R21, R16
#[test]
fn a_loop_without_end_is_cut() {
    let sage = flow("await sage.shell('echo a >> ran'); for (;;) {}");
    sage.write("sage.toml", "[scripts]\ncpu = \"300ms\"\n");
    sage.sage("run x -t t").exit(1).stdout_has("CPU time");
    assert_eq!(ran(&sage), ["a"]);
    // A limit is no verdict of the script: mended, it goes on.
    let sage = sage.code("t", &super::whole("await sage.shell('echo a >> ran'); return 'mended';"));
    sage.sage("resume x -t t").exit(0);
    assert_eq!((value(&sage), ran(&sage)), (json!("mended"), vec!["a".to_owned()]));
}

// covers: R21, R16
#[test]
fn a_script_that_nobody_will_answer_is_stuck_and_says_so() {
    let sage = flow("await sage.shell('true'); await new Promise(() => {}); return 1;");
    sage.sage("run x -t t").exit(1).stdout_has("stuck");
}

// covers: R21, R16
#[test]
fn memory_has_an_end() {
    let sage = flow("const all = []; for (;;) all.push(new Array(100_000).fill(1)); ");
    sage.sage("run x -t t").exit(1).stdout_has("memory");
}

// covers: R21, R16
#[test]
fn code_reaches_nothing_but_its_calls() {
    let value = returned(
        r#"
  const names = ["process", "require", "fetch", "setTimeout", "WebSocket", "Deno", "std", "os", "eval", "performance", "Atomics"];
  const there = names.filter((name) => typeof globalThis[name] !== "undefined");
  const made = [() => new Function("return 1")(), () => (() => {}).constructor("return 1")(), () => (async () => {}).constructor("return 1")()]
    .map((make) => { try { make(); return "made"; } catch { return "refused"; } });
  return { there, made };"#,
    );
    assert_eq!(value, json!({"there": [], "made": ["refused", "refused", "refused"]}));
}

// covers: R21
#[test]
fn two_scripts_of_one_project_are_strangers() {
    let sage =
        Sage::new().code("a", &super::whole("globalThis.seen = 1; Array.prototype.odd = 1; return 1;")).code(
            "b",
            &super::whole("return [typeof globalThis.seen, typeof [].odd, await sage.workflow('a')];"),
        );
    sage.sage("run x -t b").exit(0);
    assert_eq!(value(&sage), json!(["undefined", "undefined", 1]));
}

/// Threads of scripts in a process.
fn living(pid: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm")).ok();
    threads.filter_map(name).filter(|name| name.starts_with("script ")).count()
}

/// Twelve scripts with room for two: all of their work is done at once, and hardly any of them is in memory.
// covers: R21, R16, P10
#[test]
fn many_scripts_need_little_room() {
    let template = r#"
name: t
phases:
  - id: each
    operations:
      - id: work
        type: script
        foreach: "[range(12)]"
        params:
          input: { n: "{{ item }}" }
          code: |
            export default async (sage, input) => {
              await sage.shell(`echo ${input.n} >> ran; while [ ! -e go ]; do sleep 0.01; done`, { label: "one" });
              const two = await sage.shell(`echo two >> ran; echo ${input.n}`, { label: "two" });
              return Number(two.stdout);
            };
"#;
    let sage = Sage::new().template("t", template);
    sage.write("sage.toml", "[scripts]\nmaxLiving = 2\n");
    let running = sage.spawn("run x -t t --parallel 12");
    wait_until(|| ran(&sage).len() == 12, DEADLINE, "all of them at work");
    wait_until(|| living(running.pid()) <= 2, DEADLINE, "two in memory");
    sage.write("go", "");
    running.end().exit(0);
    assert_eq!(ran(&sage).len(), 24);
    assert_eq!(sage.sage("result x each/work").exit(0).json(), json!((0..12).collect::<Vec<_>>()));
    sage.journal("x").assert_nothing_repeated();
    sage.sage("verify").exit(0);
}

// covers: R21, R16
#[test]
fn a_script_makes_room_for_the_one_that_it_waits_for() {
    let call = |next: &str| {
        super::whole(&format!(
            "const all = await Promise.all([1, 2].map((n) => sage.workflow('{next}', {{ n }}))); return all.flat();"
        ))
    };
    let sage = Sage::new()
        .code("t", &call("a"))
        .code("a", &call("b"))
        .code("b", &call("c"))
        .code("c", &super::whole("await sage.shell('echo c >> ran'); return [input.n];"));
    sage.write("sage.toml", "[scripts]\nmaxLiving = 1\n");
    sage.sage("run x -t t").exit(0);
    assert_eq!((value(&sage), ran(&sage).len()), (json!([1, 2, 1, 2, 1, 2, 1, 2]), 8));
}
