//! Edited code: only calls that changed run again, wherever they stand now.

use serde_json::json;

use super::{flow, paths, ran, value, whole};
use crate::dsl::Sage;

fn shell(name: &str) -> String {
    format!(
        "out.push((await sage.shell(\"echo {name} >> ran; echo {name}\", {{ label: \"{name}\" }})).stdout.trim());\n"
    )
}

fn body(names: &[&str]) -> String {
    let calls: String = names.iter().map(|name| shell(name)).collect();
    format!("const out: string[] = [];\n{calls}return out;")
}

/// Runs `before`, goes on with `after`, gives what ran after the edit.
#[track_caller]
fn edit(before: &[&str], after: &[&str]) -> (Sage, Vec<String>) {
    let sage = flow(&body(before));
    sage.sage("run x -t t").exit(0);
    std::fs::remove_file(sage.path("ran")).unwrap();
    let sage = sage.code("t", &whole(&body(after)));
    sage.sage("resume x -t t").exit(0);
    assert_eq!(value(&sage), json!(after));
    sage.sage("verify").exit(0);
    let ran = ran(&sage);
    (sage, ran)
}

// covers: R21, R5, LESSONS "Resume"
#[test]
fn a_changed_call_runs_again_alone() {
    let (_, ran) = edit(&["a", "b", "c"], &["a", "B", "c"]);
    assert_eq!(ran, ["B"]);
}

// covers: R21, R5, LESSONS "Resume"
#[test]
fn an_inserted_call_runs_alone() {
    let (_, ran) = edit(&["a", "b", "c"], &["new", "a", "b", "other", "c"]);
    assert_eq!(ran, ["new", "other"]);
}

// covers: R21, R5
#[test]
fn a_removed_call_takes_nothing_with_it() {
    let (sage, ran) = edit(&["a", "b", "c"], &["a", "c"]);
    assert!(ran.is_empty(), "{ran:?}");
    assert_eq!(sage.status("x")["verdict"], "succeeded");
}

// covers: R21, R5, LESSONS "Resume"
#[test]
fn calls_in_another_order_are_the_same_calls() {
    let (_, ran) = edit(&["a", "b", "c", "d"], &["d", "b", "a", "c"]);
    assert!(ran.is_empty(), "{ran:?}");
}

// covers: R21, R5, LESSONS "Resume"
#[test]
fn a_hundred_in_another_order_and_one_more() {
    let list = |order: &str| {
        format!(
            "const all = {order};\nconst out = await Promise.all(all.map((n) => sage.shell(`echo ${{n}} >> ran; echo ${{n}}`, {{ label: \"each\" }})));\nreturn out.map((it) => Number(it.stdout));"
        )
    };
    let sage = flow(&list("[...Array(100).keys()]"));
    sage.sage("run x -t t --parallel 16").exit(0);
    assert_eq!(ran(&sage).len(), 100);
    let sage = sage.code("t", &whole(&list("[...Array(101).keys()].reverse()")));
    sage.sage("resume x -t t").exit(0);
    assert_eq!(ran(&sage).len(), 101, "only the new one ran");
    assert_eq!(value(&sage)[0], 100);
    assert_eq!(value(&sage)[100], 0);
}

// covers: R21, R5
#[test]
fn a_result_that_changes_a_prompt_runs_that_call_again() {
    let body = |first: &str| {
        format!(
            "const a = await sage.shell(\"echo run-a >> ran; {first}\");\nconst b = await sage.shell(`echo b-${{a.stdout.trim()}} >> ran`);\nawait sage.shell(\"echo aside >> ran\");\nreturn 1;"
        )
    };
    let sage = flow(&body("echo 1"));
    sage.sage("run x -t t").exit(0);
    // Another text with an equal result changes nothing after it.
    let sage = sage.code("t", &whole(&body("echo 1;")));
    sage.sage("resume x -t t").exit(0);
    assert_eq!(ran(&sage), ["aside", "b-1", "run-a", "run-a"]);
    let sage = sage.code("t", &whole(&body("echo 2")));
    sage.sage("resume x -t t").exit(0);
    assert_eq!(ran(&sage), ["aside", "b-1", "b-2", "run-a", "run-a", "run-a"]);
}

// covers: R21, R5
#[test]
fn equal_calls_are_told_apart_by_their_number() {
    let times = |n: u32| {
        format!(
            "for (let i = 0; i < {n}; i++) await sage.shell('echo same >> ran', {{ label: 'same' }});\nreturn {n};"
        )
    };
    let sage = flow(&times(3));
    sage.sage("run x -t t").exit(0);
    assert_eq!(ran(&sage).len(), 3);
    let sage = sage.code("t", &whole(&times(5)));
    sage.sage("resume x -t t").exit(0);
    assert_eq!(ran(&sage).len(), 5, "the fourth and the fifth ran");
    // A key of one's own makes an equal call another one.
    let keyed = "for (let i = 0; i < 5; i++) await sage.shell('echo same >> ran', { label: 'same', key: 'second time' });\nreturn 0;";
    let sage = sage.code("t", &whole(keyed));
    sage.sage("resume x -t t").exit(0);
    assert_eq!(ran(&sage).len(), 10);
}

// covers: R21, R5
#[test]
fn a_new_label_or_timeout_is_no_change() {
    let sage = flow("await sage.shell('echo a >> ran', { label: 'old' }); return 1;");
    sage.sage("run x -t t").exit(0);
    let sage = sage.code("t", &whole("sage.phase('Later'); await sage.shell('echo a >> ran', { label: 'new', timeout: '1m' }); return 2;"));
    sage.sage("resume x -t t").exit(0);
    assert_eq!((ran(&sage), value(&sage)), (vec!["a".to_owned()], json!(2)));
}

// covers: R21, R5
#[test]
fn an_edit_of_a_failed_run_mends_it() {
    let sage =
        flow("await sage.shell('echo a >> ran'); await sage.shell('echo b >> ran; exit 1'); return 1;");
    sage.sage("run x -t t").exit(1);
    let sage = sage
        .code("t", &whole("await sage.shell('echo a >> ran'); await sage.shell('echo c >> ran'); return 2;"));
    // Without `-t` the run keeps the code that it began with, and says so.
    sage.sage("resume x").exit(1).stderr_has("has changed").stderr_has("sage resume x -t");
    assert_eq!(ran(&sage), ["a", "b", "b"]);
    sage.sage("resume x -t t").exit(0);
    assert_eq!((ran(&sage), value(&sage)), (["a", "b", "b", "c"].map(str::to_owned).to_vec(), json!(2)));
}

// covers: R21, R5
#[test]
fn an_edit_while_it_waits_is_taken() {
    let sage = flow(
        "await sage.shell('echo a >> ran'); await sage.approve('go?'); await sage.shell('echo old >> ran'); return 1;",
    );
    sage.sage("run x -t t").exit(4);
    let sage = sage.code("t", &whole("await sage.shell('echo a >> ran'); await sage.approve('go?'); await sage.shell('echo new >> ran'); return 2;"));
    sage.sage("approve x").exit(0);
    sage.sage("resume x -t t").exit(0);
    assert_eq!(ran(&sage), ["a", "new"]);
}

// covers: R21, R5
#[test]
fn an_edit_that_cannot_be_read_leaves_the_run_as_it_was() {
    let sage = flow("await sage.shell('echo a >> ran'); return 1;");
    sage.sage("run x -t t").exit(0);
    let (seq, before) = (sage.journal("x").last_seq(), paths(&sage));
    let sage = sage.code("t", "export default async (sage) => {\n  await sage.shell('echo' ;\n}\n");
    sage.sage("resume x -t t").exit(2).stderr_has("t.ts:2:");
    assert_eq!((sage.journal("x").last_seq(), paths(&sage)), (seq, before));
}
