//! Two thousand calls: none is lost, none is made twice, whatever is killed or edited.

use std::time::Instant;

use serde_json::json;

use super::{flow, ran, value, whole};
use crate::calls::count;
use crate::dsl::{DEADLINE, long, wait_until};

fn calls() -> u32 {
    if long() { 10_000 } else { 2_000 }
}

fn body(last: &str) -> String {
    format!(
        r#"
  const half = {} / 2;
  let sum = 0;
  for (let n = 0; n < half; n++) {{
    await sage.run("sleep", {{ ms: 0 }}, {{ key: `row ${{n}}`, label: "row" }});
    sum += n;
  }}
  const all = await Promise.all([...Array(half).keys()].map((n) => sage.run("sleep", {{ ms: 0 }}, {{ key: `wide ${{n}}`, label: "wide" }})));
  await sage.shell("{last}", {{ label: "last" }});
  return {{ sum, wide: all.length }};"#,
        calls()
    )
}

// covers: R21, R5
#[test]
fn thousands_of_calls_are_replayed_and_only_the_changed_one_runs() {
    let sage = flow(&body("echo first >> ran; exit 1"));
    let started = Instant::now();
    sage.sage("run x -t t --quiet").exit(1);
    let live = started.elapsed();
    let steps = calls() as usize;
    assert_eq!(count(&sage.journal("x"), "step.called"), steps + 1);
    let seq = sage.journal("x").last_seq();
    let sage = sage.code("t", &whole(&body("echo second >> ran")));
    let started = Instant::now();
    sage.sage("resume x -t t --quiet").exit(0);
    let replay = started.elapsed();
    println!("{steps} calls: live {live:?}, resumed in {replay:?}");
    let half = u64::from(calls()) / 2;
    assert_eq!(value(&sage), json!({"sum": half * (half - 1) / 2, "wide": half}));
    assert_eq!(sage.journal("x").started_after(seq), ["main/last"], "all others were found again");
    assert_eq!(ran(&sage), ["first", "second"]);
    sage.sage("verify").exit(0).stdout_has(" 0 damaged");
}

// covers: R21, R5
#[test]
fn a_kill_in_the_middle_of_thousands() {
    let sage = flow(&body("echo last >> ran"));
    let mut running = sage.spawn("run x -t t --quiet");
    running.until(|| sage.engine().latest("x").is_some(), "the run");
    let enough = calls() as usize / 3;
    let path = sage.latest_dir("x").join("journal.jsonl");
    // Records of a call have some 300 bytes; the file is cheaper to look at than to read.
    let grown = || std::fs::metadata(&path).map_or(0, |meta| meta.len()) > enough as u64 * 600;
    wait_until(|| grown() || running.ended(), DEADLINE, "a third of the calls");
    running.kill();
    sage.sage("resume x --quiet").exit(0);
    let journal = sage.journal("x");
    assert_eq!(count(&journal, "step.called"), calls() as usize + 1);
    journal.assert_nothing_repeated();
    assert_eq!(value(&sage)["wide"], calls() / 2);
    assert_eq!(ran(&sage), ["last"]);
}
