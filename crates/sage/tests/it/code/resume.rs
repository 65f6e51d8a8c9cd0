//! Killed and failed workflows in code go on: finished calls are not made again.

use serde_json::json;

use super::{flow, ran, value, whole};
use crate::dsl::{DEADLINE, Sage, wait_until};

// covers: R21, R5
#[test]
fn a_killed_run_goes_on_where_it_was() {
    let sage = flow(
        r#"
  const said: string[] = [];
  for (let n = 0; n < 4; n++) {
    const wait = n === 2 ? "[ -e go ] || sleep 300; " : "";
    said.push((await sage.shell(`echo ${n} >> ran; ${wait}echo ${n}`)).stdout.trim());
  }
  return said;"#,
    );
    let running = sage.spawn("run x -t t");
    wait_until(|| sage.lines("ran").len() == 3, DEADLINE, "the third step");
    running.kill();
    sage.assert_nothing_alive();
    sage.write("go", "");
    sage.sage("resume x").exit(0);
    assert_eq!(value(&sage), json!(["0", "1", "2", "3"]));
    assert_eq!(ran(&sage), ["0", "1", "2", "2", "3"]);
    sage.journal("x").assert_nothing_repeated();
}

// covers: R21, R5, R7
#[test]
fn what_failed_runs_again_and_what_was_done_does_not() {
    let sage = flow(
        r#"
  await sage.shell("echo one >> ran");
  // It fails only after the other has ended: a script that has failed stops what it called.
  const last = sage.shell("echo three >> ran; until [ -e two ]; do sleep 0.01; done; [ -e mended ]");
  const a = await sage.shell("echo two >> ran; echo a");
  await sage.shell("touch two");
  const b = await last;
  return a.stdout + b.exitCode;"#,
    );
    sage.sage("run x -t t").exit(1);
    assert_eq!(ran(&sage), ["one", "three", "two"]);
    sage.write("mended", "");
    sage.sage("resume x").exit(0);
    assert_eq!(value(&sage), json!("a\n0"));
    assert_eq!(ran(&sage), ["one", "three", "three", "two"]);
    assert_eq!(sage.status("x")["verdict"], "succeeded");
    // And once more: there is nothing to do.
    let seq = sage.journal("x").last_seq();
    sage.sage("resume x").exit(0);
    assert_eq!(sage.journal("x").last_seq(), seq);
}

/// A failure that the script has dealt with is history: a kill afterwards does not repeat it.
// covers: R21, R5
#[test]
fn a_failure_that_was_caught_before_a_kill_is_not_tried_again() {
    let sage = flow(
        r#"
  const first = await sage.shell("echo bad >> ran; exit 1").then(() => "fine", () => "caught");
  await sage.shell("echo wait >> ran; [ -e go ] || sleep 300");
  return first;"#,
    );
    let running = sage.spawn("run x -t t");
    wait_until(|| sage.lines("ran").len() == 2, DEADLINE, "the second step");
    running.kill();
    sage.write("go", "");
    sage.sage("resume x").exit(0);
    assert_eq!(value(&sage), json!("caught"));
    assert_eq!(ran(&sage), ["bad", "wait", "wait"]);
}

// covers: R21, R5
#[test]
fn a_sleep_outlives_its_owner() {
    let sage = flow(
        r#"
  const from = Date.now();
  sage.log("asleep");
  await sage.sleep("2s");
  const slept = Date.now() - from;
  await sage.sleep(1);
  return slept;"#,
    );
    let running = sage.spawn("run x -t t");
    wait_until(
        || sage.engine().latest("x").is_some() && sage.journal("x").started().len() == 1,
        DEADLINE,
        "the sleep",
    );
    let begun = std::time::Instant::now();
    running.kill();
    sage.sage("resume x").exit(0);
    assert!(begun.elapsed().as_millis() < 30_000);
    let slept = value(&sage).as_u64().unwrap();
    assert!((1_900..20_000).contains(&slept), "one sleep, not two: {slept} ms");
    assert_eq!(sage.journal("x").started().len(), 2, "the sleep went on: {:?}", sage.journal("x").started());
}

// covers: R21, R5
#[test]
fn large_prompts_and_results_are_kept_beside_the_journal() {
    let sage = flow(
        r#"
  const big = "x".repeat(100_000);
  const back = await sage.agent("big", { prompt: big, agent: "echo" });
  const shown = await sage.shell("echo shell >> ran; head -c 200000 /dev/zero | tr '\\0' y");
  await sage.approve("go on?");
  const again = await sage.agent("small", { prompt: shown.stdout.slice(0, 70_000), agent: "echo" });
  return { back: back.length, shown: shown.stdout.length, again: again.length, whole: "z".repeat(80_000) };"#,
    );
    sage.write(
        "sage.toml",
        "[agents.echo]\nadapter = \"command\"\ncommand = [\"sh\", \"-c\", 'echo agent >> ran; cat']\n",
    );
    sage.sage("run x -t t").exit(4);
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0);
    let value = value(&sage);
    assert_eq!(
        (&value["back"], &value["shown"], &value["again"]),
        (&100_000.into(), &200_000.into(), &70_000.into())
    );
    assert_eq!(value["whole"].as_str().unwrap().len(), 80_000);
    assert_eq!(ran(&sage), ["agent", "agent", "shell"]);
    let journal = std::fs::metadata(sage.latest_dir("x").join("journal.jsonl")).unwrap().len();
    assert!(journal < 60_000, "the journal has {journal} bytes");
    sage.sage("verify").exit(0).stdout_has(" 0 damaged");
    sage.sage("gc").exit(0);
    sage.sage("verify").exit(0).stdout_has(" 0 damaged");
}

// covers: R21, R5
#[test]
fn a_new_run_runs_everything() {
    let sage = Sage::new().code("t", &whole("await sage.shell('echo a >> ran'); return 1;"));
    sage.sage("run x -t t").exit(0);
    sage.sage("run x -t t").exit(0);
    assert_eq!(ran(&sage), ["a", "a"]);
}

// covers: R21, R5
#[test]
fn logged_lines_are_not_said_again() {
    let sage = flow("sage.log('hello'); await sage.approve('go?'); sage.log('bye'); return 1;");
    sage.sage("run x -t t").exit(4).stdout_has("hello");
    sage.sage("approve x").exit(0);
    let told = sage.sage("resume x").exit(0).stdout_has("bye");
    assert!(!told.stdout.contains("hello"), "{}", told.stdout);
    assert_eq!(crate::calls::count(&sage.journal("x"), "step.noted"), 2);
}

// covers: R21, R5
#[test]
fn resume_from_a_call_runs_it_again() {
    let sage = flow(
        "await sage.shell('echo a >> ran', { label: 'a' }); await sage.shell('echo b >> ran', { label: 'b' }); return 1;",
    );
    sage.sage("run x -t t").exit(0);
    sage.sage("resume x --from main/b").exit(0);
    assert_eq!(ran(&sage), ["a", "b", "b"]);
}
