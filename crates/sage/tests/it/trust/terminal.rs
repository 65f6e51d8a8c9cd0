//! On a terminal the person is asked once, and the command goes on.

use std::io::Write;
use std::process::Stdio;

use super::{canary, started};
use crate::dsl::Sage;

/// Types `keys` into a terminal in which a command of sage runs; all that it shows, and its exit code.
fn on_terminal(sage: &Sage, command: &str, keys: &str) -> (String, Option<i32>) {
    let binary = env!("CARGO_BIN_EXE_sage");
    let mut terminal = sage.args([""; 0]).command_of("script");
    let command = format!("{binary} -C {} {command}", sage.root().display());
    terminal.args(["-qec", &command, "/dev/null"]);
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = terminal.spawn().expect("`script` of util-linux is a terminal without a person");
    child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

const TEMPLATE: &str = "name: t\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: mine, params: { prompt: go } }\n";

// covers: R17
#[test]
fn a_person_is_asked_once_and_the_command_goes_on() {
    let sage = Sage::untrusted();
    canary(&sage, "agent.sh");
    sage.write("sage.toml", "[agents.mine]\ncommand = [\"./agent.sh\"]\n");
    sage.write(".sage/templates/t.yaml", TEMPLATE);
    let (shown, code) = on_terminal(&sage, "run x -t t", "n\n");
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("sage.toml: agents.mine is not trusted: it runs ./agent.sh"), "{shown}");
    assert!(shown.contains("Trust it and go on? [y/N]"), "{shown}");
    assert_eq!(started(&sage), [""; 0]);
    let (shown, _) = on_terminal(&sage, "run x -t t", "y\n");
    assert!(shown.contains("Trust it and go on?"), "{shown}");
    assert_eq!(started(&sage).len(), 1, "{shown}");
    sage.sage("trust --list").exit(0).stdout_has("via terminal");
    let (shown, _) = on_terminal(&sage, "run y -t t", "");
    assert!(!shown.contains("Trust it"), "asked a second time: {shown}");
    // Looking never asks.
    sage.sage("trust --revoke").exit(0);
    let (shown, code) = on_terminal(&sage, "agents", "y\n");
    assert_eq!((code, shown.contains("[y/N]")), (Some(0), false), "{shown}");
    let (shown, code) = on_terminal(&sage, "run z -t t --yes", "y\n");
    assert_eq!((code, shown.contains("[y/N]")), (Some(2), false), "--yes takes the default: {shown}");
}

// covers: R17
#[test]
fn a_dry_run_asks_and_adopts_nothing() {
    let maker = Sage::new().template("t", "name: t\nphases:\n  - id: p\n    operations: { id: ok, type: approval, params: { message: \"?\" } }\n");
    maker.sage("run x -t t").exit(4);
    let sage = super::state::cloned(&maker);
    let before = sage.listing();
    let (shown, code) = on_terminal(&sage, "repair x --dry-run", "y\n");
    assert_eq!((code, shown.contains("[y/N]")), (Some(2), false), "{shown}");
    assert_eq!(sage.listing(), before);
}

// covers: R17
#[test]
fn a_person_may_continue_what_somebody_else_began() {
    let maker = Sage::new().template("t", "name: t\nphases:\n  - id: p\n    operations: { id: ok, type: approval, params: { message: \"?\" } }\n");
    maker.sage("run x -t t").exit(4);
    let sage = super::state::cloned(&maker);
    let (shown, code) = on_terminal(&sage, "approve x", "n\n");
    assert_eq!(code, Some(2), "{shown}");
    let (shown, code) = on_terminal(&sage, "approve x", "y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Continue it? [y/N]") && shown.contains("p/ok: approve"), "{shown}");
    sage.sage("resume x").exit(0);
    let by = sage.sage("result x p/ok").exit(0).json()["by"].as_str().unwrap().to_string();
    assert!(by.ends_with(" via terminal"), "{by}");
}
