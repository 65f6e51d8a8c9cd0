//! Promises, loops and conditions: code may come any way, and the same way again.

use serde_json::json;

use super::{flow, paths, ran, returned, value};
use crate::dsl::Sage;

// covers: R21, R1
#[test]
fn all_at_once_takes_as_long_as_the_longest() {
    let sage = flow(
        r#"
  const nap = (n: number) => sage.shell(`echo start ${n} >> ran; while [ $(wc -l < ran) -lt 4 ]; do sleep 0.01; done; echo ${n}`);
  const all = await Promise.all([1, 2, 3, 4].map(nap));
  return all.map((it) => Number(it.stdout));"#,
    );
    // Each waits for the other three: in a row they would wait for ever.
    sage.sage("run x -t t --parallel 4").exit(0);
    assert_eq!(value(&sage), json!([1, 2, 3, 4]));
}

// covers: R21
#[test]
fn the_first_of_a_race_wins_and_the_others_are_given_up() {
    let sage = flow(
        r#"
  const slow = sage.shell("echo slow >> ran; sleep 300; echo slow-end >> ran", { label: "slow" });
  const quick = sage.shell("while [ ! -s ran ]; do sleep 0.01; done; echo quick", { label: "quick" });
  const first = await Promise.race([slow, quick]);
  return first.stdout;"#,
    );
    sage.sage("run x -t t").exit(0);
    assert_eq!(value(&sage), json!("quick\n"));
    assert_eq!(ran(&sage), ["slow"]);
    assert_eq!(sage.state_of("x", "main/slow"), "cancelled");
    sage.assert_nothing_alive();
}

// covers: R21, R5
#[test]
fn a_race_ends_the_same_way_after_a_resume() {
    let sage = flow(
        r#"
  const a = sage.shell("while [ ! -e b-done ]; do sleep 0.01; done; echo a", { label: "a" });
  const b = sage.shell("echo b", { label: "b" });
  const first = (await Promise.race([a, b])).stdout.trim();
  await sage.shell("touch b-done");
  await Promise.all([a, b]);
  await sage.approve("go on?");
  const again = (await Promise.race([a, b])).stdout.trim();
  return [first, again, (await sage.shell(`echo after ${first} >> ran; echo`)).exitCode];"#,
    );
    sage.sage("run x -t t").exit(4);
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0);
    assert_eq!(value(&sage), json!(["b", "a", 0]));
    assert_eq!(ran(&sage), ["after b"]);
}

// covers: R21
#[test]
fn all_settled_tells_who_failed_and_any_takes_who_did_not() {
    let value = returned(
        r#"
  const all = await Promise.allSettled([sage.shell("echo fine"), sage.shell("echo no >&2; exit 3")]);
  const any = await Promise.any([sage.shell("exit 4"), sage.shell("echo well")]);
  return {
    states: all.map((it) => it.status), reason: all[1].reason.message, code: all[1].reason.code, any: any.stdout,
  };"#,
    );
    assert_eq!(value["states"], json!(["fulfilled", "rejected"]));
    assert_eq!(value["code"], "failed");
    assert!(value["reason"].as_str().unwrap().contains("exit code 3"), "{value}");
    assert_eq!(value["any"], "well\n");
}

// covers: R21
#[test]
fn loops_and_conditions_decide_by_results() {
    let sage = flow(
        r#"
  let n = 0;
  while (n < 5) {
    const { stdout } = await sage.shell(`echo ${n} >> ran; echo $((${n} + 1))`, { label: "step" });
    n = Number(stdout);
  }
  if (n === 5) await sage.shell("echo end >> ran", { label: "even" });
  else await sage.shell("echo never >> ran", { label: "odd" });
  return n;"#,
    );
    sage.sage("run x -t t").exit(0);
    assert_eq!(value(&sage), json!(5));
    assert_eq!(sage.lines("ran"), ["0", "1", "2", "3", "4", "end"]);
    let steps = [
        "main/script",
        "main/step",
        "main/step[1]",
        "main/step[2]",
        "main/step[3]",
        "main/step[4]",
        "main/even",
    ];
    assert_eq!(paths(&sage), steps);
}

// covers: R21, R7
#[test]
fn a_failure_that_is_caught_is_part_of_the_plan() {
    let sage = flow(
        r#"
  const tried: string[] = [];
  for (let n = 1; n <= 3; n++) {
    try {
      await sage.shell(`echo ${n} >> ran; [ ${n} -eq 3 ]`, { label: "try" });
      return { tried, at: n };
    } catch (error) {
      tried.push(`${error.code} ${error.message.includes("exit code 1")}`);
    } finally {
      sage.log(`after ${n}`);
    }
  }"#,
    );
    sage.sage("run x -t t").exit(0).stdout_has("after 3");
    assert_eq!(value(&sage), json!({"tried": ["failed true", "failed true"], "at": 3}));
    assert_eq!(sage.lines("ran"), ["1", "2", "3"]);
    // What was caught is not the run's verdict; it is still seen.
    assert_eq!(sage.status("x")["verdict"], "succeeded");
    assert_eq!(sage.state_of("x", "main/try"), "failed");
}

// covers: R21, R7
#[test]
fn a_failure_that_nobody_catches_ends_the_run_with_its_place() {
    let sage = flow("\n\n  await sage.shell('echo gone >&2; exit 9', { label: 'bad' });\n");
    sage.sage("run x -t t").exit(1).stdout_has("exit code 9").stdout_has("t.ts:4:");
    assert_eq!(sage.status("x")["verdict"], "failed");
}

// covers: R21, R7
#[test]
fn what_is_thrown_has_its_line() {
    let sage = flow("  const deep = () => {\n    throw new TypeError('bad day');\n  };\n  deep();");
    sage.sage("run x -t t").exit(1).stdout_has("TypeError: bad day").stdout_has("t.ts:3:");
    sage.sage("explain x main/script").exit(0).stdout_has("bad day");
}

// covers: R21
#[test]
fn a_promise_that_nobody_awaits_is_no_accident() {
    let sage = flow(
        "sage.shell('exit 1').catch(() => 0); const it = sage.shell('echo a >> ran'); await sage.shell('true'); await it; return 'ok';",
    );
    sage.sage("run x -t t").exit(0);
    assert_eq!(value(&sage), json!("ok"));
    assert_eq!(ran(&sage), ["a"]);
}

// covers: R21
#[test]
fn nothing_at_all_is_a_workflow() {
    let sage = flow("");
    sage.sage("run x -t t").exit(0);
    assert_eq!(value(&sage), json!(null));
    let values = Sage::new()
        .code("t", "export default async () => ({ a: undefined, b: NaN, c: [undefined], d: new Date(0) });");
    values.sage("run x -t t").exit(0);
    assert_eq!(value(&values), json!({"b": null, "c": [null], "d": "1970-01-01T00:00:00.000Z"}));
}
