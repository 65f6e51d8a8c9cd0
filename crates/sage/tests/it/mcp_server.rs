//! `sage mcp` as clients see it: over real pipes, in both lifecycles of the protocol.

pub mod client;
mod errors;
mod hostile;
mod inbox;
mod notices;
mod others;
mod place;
mod room;
mod waiting;
mod workflows;

use crate::dsl::Sage;

/// Two phases that are done at once.
const QUICK: &str = r#"
name: quick
phases:
  - id: look
    operations: { id: word, type: shell, params: { run: "echo hello" } }
  - id: tell
    dependencies: [look]
    operations: { id: again, type: shell, params: { run: "echo again >> ran" } }
"#;

/// A step that is done at once, one that runs until `go` is there, one after both.
const SLOW: &str = r#"
name: slow
phases:
  - id: p
    operations:
      - { id: quick, type: shell, params: { run: "echo quick >> ran" } }
      - { id: slow, type: shell, params: { run: "echo up >> up; until [ -e go ]; do sleep 0.02; done; echo slow >> ran" } }
  - id: q
    dependencies: [p]
    operations: { id: last, type: shell, params: { run: "echo last >> ran" } }
"#;

const ASK: &str = r#"
name: ask
phases:
  - id: p
    operations: { id: color, type: approval, params: { message: "Which?", choices: [blue, green] } }
  - id: q
    dependencies: [p]
    operations: { id: last, type: shell, params: { argv: [echo, '{{ steps["p/color"].result.choice }}'] } }
"#;

/// Of `SLOW`: each step once, the last one last.
#[track_caller]
fn assert_ran_once(sage: &Sage) {
    let mut ran = sage.lines("ran");
    assert_eq!(ran.last().map(String::as_str), Some("last"), "{ran:?}");
    ran.sort();
    assert_eq!(ran, ["last", "quick", "slow"]);
}
