//! Links at any depth of `.sage`: nothing behind them is written, removed or read as Sage's own.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{call, canary};
use crate::dsl::Sage;

/// A folder outside of the project with files that nobody may touch.
fn documents(sage: &Sage) -> PathBuf {
    let dir = sage.outside().join("documents");
    std::fs::create_dir_all(dir.join("2026")).unwrap();
    std::fs::write(dir.join("diary.txt"), "x").unwrap();
    std::fs::write(dir.join("2026/letter.ts"), "x").unwrap();
    dir
}

/// Puts a link to the documents into `.sage`.
fn link(sage: &Sage, path: &str, to: &Path) {
    let path = sage.path(".sage").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(to, path).unwrap();
}

/// Names and contents.
fn inside(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found: Vec<(PathBuf, Vec<u8>)> = super::state::find(dir, |_| true)
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    found.sort();
    found
}

const TEMPLATE: &str =
    "name: t\nphases:\n  - id: p\n    operations: { id: a, type: shell, params: { run: \"true\" } }\n";

/// Each of these commands writes or clears up where the link is.
// covers: R17
#[test]
fn nothing_behind_a_link_below_sage_is_touched() {
    for (path, commands) in [
        ("state/limits/live", &["run x -t t", "run y -t t --detach", "run z -t audit --agent offline"][..]),
        ("state/limits/targets", &["run x -t t", "breakers"]),
        ("state/limits", &["run x -t t"]),
        ("state/trash", &["run x -t t", "gc --older-than 1s"]),
        ("state/runs", &["run x -t t", "gc --older-than 1s"]),
        ("sessions/mine", &["session new mine --agent offline", "session delete mine", "session list", "gc"]),
        ("handoffs", &["gc", "handoff list"]),
        ("inbox/orders", &["run x -t t", "inbox"]),
        ("inbox/new", &["inbox", "inbox --all"]),
        ("types/servers", &["check", "init"]),
        ("cache", &["run x -t t", "cache clear"]),
        ("logs", &["run x -t t --detach"]),
        ("worktrees", &["gc", "doctor"]),
    ] {
        let sage = Sage::untrusted();
        sage.write(".sage/templates/t.yaml", TEMPLATE);
        sage.write(".sage/templates/code.ts", "export default async (sage: Sage) => sage.title;\n");
        let documents = documents(&sage);
        link(&sage, path, &documents);
        let before = inside(&documents);
        for command in commands {
            let said = call(&sage, command);
            assert_eq!(inside(&documents), before, "`sage {command}` with .sage/{path}: {}", said.stderr);
            assert!(!said.stdout.contains("diary"), "`sage {command}` shows it: {}", said.stdout);
        }
        crate::dsl::wait_until(|| sage.processes().is_empty(), crate::dsl::DEADLINE, "all of it to end");
        assert_eq!(inside(&documents), before, ".sage/{path}");
    }
}

/// Types of tools are written only where a server is trusted.
// covers: R17
#[test]
fn the_types_of_a_trusted_server_go_through_no_link() {
    for path in ["types/servers", "types/servers/demo", "types"] {
        let sage = Sage::untrusted();
        let server = serde_json::json!({"mcpServers": {"demo": {"command": env!("CARGO_BIN_EXE_sage"), "args": ["debug", "fake-mcp", sage.outside().join("starts")]}}});
        sage.write(".mcp.json", server.to_string());
        sage.write(".sage/templates/code.ts", "export default async (sage: Sage) => sage.title;\n");
        call(&sage, "trust mcp.demo --yes").exit(0);
        let documents = documents(&sage);
        let _ = std::fs::remove_dir_all(sage.path(".sage/types"));
        link(&sage, path, &documents);
        let before = inside(&documents);
        call(&sage, "check");
        assert_eq!(inside(&documents), before, ".sage/{path}");
    }
}

/// A link that a step makes while its run goes on.
// covers: R17
#[test]
fn a_link_that_appears_later_is_not_followed_either() {
    let sage = Sage::untrusted();
    let documents = documents(&sage);
    canary(&sage, "own.sh");
    let make =
        format!("rm -rf .sage/state/limits/live && ln -s {} .sage/state/limits/live", documents.display());
    let text = format!(
        "name: t\nphases:\n  - id: p\n    operations: {{ id: a, type: shell, params: {{ run: \"{make}\" }} }}\n  - id: q\n    dependencies: [p]\n    operations: {{ id: b, type: shell, params: {{ run: \"true\" }} }}\n"
    );
    sage.write(".sage/templates/t.yaml", text);
    let before = inside(&documents);
    call(&sage, "run x -t t");
    call(&sage, "run y -t t");
    call(&sage, "gc");
    assert_eq!(inside(&documents), before);
    assert!(sage.path(".sage/state/limits/live").is_symlink(), "the step made none");
}
