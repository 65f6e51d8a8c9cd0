//! A journal that is lost makes no run look better than it was: what the checkpoint tells is all that is known.

use super::*;

/// Loses the journal of the only run, wholly or by one byte.
fn lose(sage: &Sage, wholly: bool) {
    let runs = std::fs::read_dir(sage.path(".sage/state/runs")).unwrap();
    let journal =
        runs.map(|run| run.unwrap().path().join("journal.jsonl")).find(|path| path.is_file()).unwrap();
    if wholly {
        return std::fs::remove_file(journal).unwrap();
    }
    let mut bytes = std::fs::read(&journal).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 20;
    bytes[second] ^= 1;
    std::fs::write(journal, bytes).unwrap();
}

fn sources() -> [bool; 2] {
    [true, false]
}

// covers: R4, P4
#[test]
fn a_check_that_was_passed_over_is_not_passed() {
    for wholly in sources() {
        let sage = Sage::new();
        sage.write("notes.txt", "nothing to build, nothing to test\n");
        scripted(&sage, "implement.fix", done(json!({"notes.txt": "changed\n"})));
        sage.sage("run x -t bugfix").exit(4);
        sage.sage("approve x validation/tests").exit(0);
        sage.sage("approve x validation/regression").exit(0);
        sage.sage("resume x").exit(3);
        lose(&sage, wholly);
        sage.sage("resume x").exit(4);
        sage.sage("skills save x").exit(2);
    }
}

// covers: R4, P4
#[test]
fn a_check_is_made_again_for_what_is_there_now() {
    for wholly in sources() {
        let sage = python(true);
        scripted(&sage, "implement.fix", done(json!({"cart.py": "def total(a, b):\n    return b + a\n"})));
        sage.sage("run x -t bugfix").exit(0);
        sage.write("cart.py", "def total(a, b):\n    return a - b\n");
        lose(&sage, wholly);
        sage.sage("resume x").exit(1);
        let failed = sage.status("x")["verdict"].clone();
        assert_eq!(failed, "failed", "wholly: {wholly}");
    }
}

const PARTS: &str = "
name: t
phases:
  - id: main
    operations: { id: sub, type: workflow, params: { template: inner } }
";
const INNER: &str = "
name: inner
phases:
  - id: p
    operations:
      - { id: work, type: shell, params: { run: 'echo once >> worked' } }
      - { id: tests, type: test.run }
";

// covers: R4, P4
#[test]
fn work_inside_of_others_is_kept_and_its_checks_are_not_vouched_for() {
    let sage = python(true).template("t", PARTS).template("inner", INNER);
    sage.sage("run x -t t").exit(0);
    lose(&sage, true);
    sage.sage("resume x").exit(3);
    assert!(reasons(&sage, "x").contains("main/sub was not checked"), "{}", reasons(&sage, "x"));
    assert_eq!(sage.lines("worked"), ["once"], "what is finished is not done again");
}

// covers: R4
#[test]
fn a_fallback_stays_one() {
    let sage = Sage::new().template(
        "t",
        "
name: t
phases:
  - id: p
    operations: { id: a, type: shell, params: { run: 'exit 1' }, retry: 1, fallback: { value: {} } }
",
    );
    sage.sage("run x -t t").exit(3);
    lose(&sage, true);
    sage.sage("resume x").exit(3);
}
