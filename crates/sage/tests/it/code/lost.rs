//! The journal of a workflow in code is lost: what it had called is taken over from the checkpoint.

use serde_json::{Value, json};

use super::{flow, ran, value, whole};
use crate::dsl::Sage;

fn lose_journal(sage: &Sage) -> std::path::PathBuf {
    let dir = sage.latest_dir("x");
    std::fs::remove_file(dir.join("journal.jsonl")).unwrap();
    dir
}

fn checkpoint(sage: &Sage) -> Value {
    serde_json::from_slice(&std::fs::read(sage.path(".sage/state/workflow-x.json")).unwrap()).unwrap()
}

// covers: R21, R4, R5
#[test]
fn finished_calls_are_not_paid_twice() {
    let sage = flow(
        r#"
  const a = await sage.shell("echo a >> ran; echo 1");
  const bad = await sage.shell("echo bad >> ran; exit 1").catch(() => "caught");
  const inner = await sage.workflow("inner", { n: 2 });
  const big = await sage.shell("echo big >> ran; head -c 100000 /dev/zero | tr '\\0' y");
  await sage.approve("go on?");
  const last = await sage.shell("echo last >> ran; echo 3");
  return [a.stdout.trim(), bad, inner, big.stdout.length, last.stdout.trim()];"#,
    )
    .code("inner", &whole("return (await sage.shell(`echo inner >> ran; echo ${input.n}`)).stdout.trim();"));
    sage.sage("run x -t t").exit(4);
    let before = ran(&sage);
    assert_eq!(before, ["a", "bad", "big", "inner"]);
    lose_journal(&sage);
    sage.sage("resume x").exit(4).stderr_has("3 finished calls");
    assert_eq!(ran(&sage), ["a", "bad", "bad", "big", "inner"], "only what had failed");
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0);
    assert_eq!(value(&sage), json!(["1", "caught", "2", 100_000, "3"]));
    assert_eq!(ran(&sage), ["a", "bad", "bad", "big", "inner", "last"]);
    sage.sage("verify").exit(0).stdout_has("1 run, 0 damaged");
    assert_eq!(checkpoint(&sage).get("calls"), None, "a finished phase has its results");
}

// covers: R21, R4, R5
#[test]
fn a_failed_script_keeps_what_it_has_too() {
    let sage =
        flow("await sage.shell('echo a >> ran'); await sage.shell('echo b >> ran; [ -e go ]'); return 1;");
    sage.sage("run x -t t").exit(1);
    lose_journal(&sage);
    sage.write("go", "");
    sage.sage("resume x").exit(0).stderr_has("1 finished call");
    assert_eq!(ran(&sage), ["a", "b", "b"]);
}

// covers: R21, R4, R5
#[test]
fn many_calls_make_no_large_checkpoint() {
    let sage = flow(
        r#"
  await Promise.all([...Array(80).keys()].map((n) =>
    sage.shell(`echo ${n} >> ran; head -c 4000 /dev/zero | tr '\\0' y`, { label: "each" })));
  await sage.approve("go on?");
  return "done";"#,
    );
    sage.sage("run x -t t --parallel 8").exit(4);
    let image = checkpoint(&sage);
    let (chunks, recent) = (image["calls"]["chunks"].as_array().unwrap(), &image["calls"]["recent"]);
    assert!(chunks.len() >= 4, "{chunks:?}");
    assert!(image.to_string().len() < 200_000 && recent.as_array().is_some());
    // One of them is gone, too: what was in it runs again, and nothing else.
    let (lost, blob) = (lose_journal(&sage), chunks[0]["blob"].as_str().unwrap().to_owned());
    let text = std::fs::read_to_string(lost.join("blobs").join(&blob)).unwrap();
    let gone = serde_json::from_str::<Vec<Value>>(&text).unwrap().len();
    std::fs::remove_file(lost.join("blobs").join(blob)).unwrap();
    sage.sage("resume x").exit(4).stderr_has(&format!("{} finished calls", 80 - gone));
    assert_eq!(ran(&sage).len(), 80 + gone);
    sage.sage("verify").exit(0).stdout_has("1 run, 0 damaged");
}

// covers: R21, R4
#[test]
fn the_dice_are_not_thrown_again() {
    let sage =
        flow("await sage.shell(`echo ${Math.random()} >> ran`); await sage.approve('go on?'); return 1;");
    sage.sage("run x -t t").exit(4);
    lose_journal(&sage);
    sage.sage("resume x").exit(4).stderr_has("1 finished call");
    assert_eq!(ran(&sage).len(), 1);
}
