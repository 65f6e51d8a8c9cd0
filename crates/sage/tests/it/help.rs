//! Help and version: for every command, without touching the disk.

use crate::dsl::Sage;

const COMMANDS: &[&str] = &[
    "init",
    "run",
    "resume",
    "fork",
    "explain",
    "list",
    "status",
    "logs",
    "attach",
    "diff",
    "result",
    "pause",
    "cancel",
    "approve",
    "reject",
    "inbox",
    "wake",
    "session",
    "skills",
    "budget",
    "limits",
    "breakers",
    "cache",
    "handoff",
    "tickets",
    "validate",
    "graph",
    "templates",
    "config",
    "agents",
    "doctor",
    "verify",
    "repair",
    "gc",
    "mcp",
    "serve",
    "bench",
    "debug",
];

// covers: R16
#[test]
fn help_and_version_touch_nothing() {
    let sage = Sage::bare();
    let before = sage.listing();
    sage.sage("--version").exit(0).stdout_has("sage ");
    let help = sage.sage("--help").exit(0);
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("  {command} ")), "--help does not name {command}");
        for flag in ["--help", "-h"] {
            let outcome = sage.args([command, flag]).run().exit(0).stdout_has("Usage: sage ");
            assert_eq!(outcome.stderr, "", "{command} {flag}");
        }
    }
    help.stdout_has("Exit codes: ");
    assert_eq!(sage.listing(), before);
    sage.sage("").exit(2);
    assert_eq!(sage.listing(), before);
}

// covers: R16
#[test]
fn looking_creates_nothing() {
    let sage = Sage::bare();
    let before = sage.listing();
    for (command, code) in [
        ("list", 0),
        ("config", 0),
        ("templates", 0),
        ("status x", 2),
        ("budget x", 2),
        ("limits", 0),
        ("breakers", 0),
        ("cache", 0),
        ("cache list", 0),
        ("cache clear", 0),
        ("inbox", 0),
        ("inbox handle", 0),
        ("inbox show x", 2),
        ("inbox retry x", 2),
        ("verify", 0),
        ("handoff list", 0),
        ("gc", 0),
        ("gc --dry-run", 0),
        ("tickets", 0),
        ("tickets ready", 0),
        ("tickets show x", 2),
        ("handoff show x", 2),
        ("skills list", 0),
        ("skills search x", 0),
        ("skills show x", 2),
        ("skills save x", 2),
        ("skills approve x", 2),
        ("skills run x", 2),
        ("templates schema", 0),
    ] {
        sage.sage(command).exit(code);
    }
    assert_eq!(sage.listing(), before);
    assert!(!sage.user_state().exists(), "nothing of the user's either");
}

// covers: R16
#[test]
fn a_new_project_is_ready_to_run() {
    let sage = Sage::bare();
    sage.sage("init").exit(0).stdout_has("is ready");
    sage.args(["run", "my first feature"]).run().exit(3).stdout_has("planned in");
    let config = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    sage.write("sage.toml", "parallel = 2\n");
    sage.sage("init").exit(0);
    assert_eq!(sage.lines("sage.toml"), ["parallel = 2"], "nothing that exists is overwritten");
    assert!(config.starts_with('#'));
    sage.sage("templates new other").exit(0);
    sage.sage("validate other").exit(0);
}
