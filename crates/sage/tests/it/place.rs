//! Where state is kept: refused where it cannot be saved or might be somebody else's, and private (R15, R4).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::dsl::Sage;

const MARK: &str = "
name: t
phases:
  - id: p
    operations:
      - { id: mark, type: shell, params: { run: \"echo ran >> ran\" } }
      - { id: big, type: shell, params: { run: \"head -c 100000 /dev/zero | tr '\\\\0' x\" } }
      - { id: ask, type: approval, params: { message: \"?\" } }
";

fn template() -> (Sage, String) {
    let sage = Sage::new();
    let file = sage.write("t.yaml", MARK).display().to_string();
    (sage, file)
}

#[track_caller]
fn refuses(sage: &Sage, file: &str, told: &str) {
    let before = sage.listing();
    sage.args(["run", "x", "-t", file]).run().exit(1).stderr_has(told);
    sage.args(["resume", "x"]).run().exit(1).stderr_has(told);
    assert_eq!(sage.lines("ran"), [""; 0], "what cannot be saved is not run");
    assert_eq!(sage.listing(), before);
}

// covers: R15
#[test]
fn a_state_directory_that_is_a_file_is_refused() {
    let (sage, file) = template();
    sage.write(".sage/state", "I am a file\n");
    refuses(&sage, &file, "not a directory");
    assert_eq!(sage.lines(".sage/state"), ["I am a file"]);
}

// covers: R15
#[test]
fn a_runs_directory_that_is_a_file_is_refused() {
    let (sage, file) = template();
    sage.write(".sage/state/runs", "I am a file\n");
    refuses(&sage, &file, "not a directory");
}

/// Whoever may write everywhere (root) is told by the other tests of this file.
// covers: R15
#[test]
fn a_read_only_state_directory_is_refused() {
    if rustix::process::geteuid().is_root() {
        return read_only_mount();
    }
    let (sage, file) = template();
    std::fs::create_dir_all(sage.path(".sage/state/runs")).unwrap();
    for mode in [0o500, 0o700] {
        std::fs::set_permissions(sage.path(".sage/state"), std::fs::Permissions::from_mode(mode)).unwrap();
        if mode == 0o500 {
            refuses(&sage, &file, "nothing was started");
        }
    }
}

/// In a mount namespace of its own; where there is none to be had, there is nothing to see.
fn read_only_mount() {
    let (sage, file) = template();
    std::fs::create_dir_all(sage.path(".sage/state")).unwrap();
    let script = r#"mount --bind .sage/state .sage/state && mount -o remount,ro,bind .sage/state || exit 77
"$0" run x -t "$1"; echo "code $?""#;
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_sage"), &file]);
    command.current_dir(sage.root()).env("XDG_STATE_HOME", sage.user_state());
    let Ok(output) = command.output() else { return };
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !stdout.contains("code ") {
        return println!("no mount namespace here: not shown");
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stdout.contains("code 1"), "{stdout}{stderr}");
    assert!(stderr.contains("nothing was started"), "{stderr}");
    assert_eq!(sage.lines("ran"), [""; 0]);
}

// covers: R17, RELIABILITY 20
#[test]
fn a_symlinked_sage_directory_is_refused() {
    let (sage, file) = template();
    std::fs::remove_dir_all(sage.path(".sage")).unwrap();
    let elsewhere = sage.outside().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, sage.path(".sage")).unwrap();
    refuses(&sage, &file, "symlink");
    sage.sage("init").exit(1);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing was written through the link");
}

// covers: R17
#[test]
fn nothing_is_written_through_a_link_of_a_clone() {
    let commands = [
        "run x -t t.yaml",
        "check",
        "init",
        "tickets add later",
        "handoff list",
        "wake finding --session me --summary hi",
    ];
    for name in
        ["types", "handoffs", "cache", "tickets", "templates", "sessions", "inbox", "worktrees", "logs"]
    {
        let (sage, _) = template();
        let _ = std::fs::remove_dir_all(sage.path(".sage").join(name));
        let elsewhere = sage.outside().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, sage.path(".sage").join(name)).unwrap();
        for command in commands {
            let outcome = sage.sage(command);
            let count = std::fs::read_dir(&elsewhere).unwrap().count();
            assert_eq!(count, 0, "`{command}` wrote through `{name}`: {}", outcome.stderr);
        }
        sage.sage("run x -t t.yaml").exit(1).stderr_has("is a symlink").stderr_has(name);
    }
    // Definitions may lie elsewhere in the project.
    let (sage, _) = template();
    std::fs::remove_dir_all(sage.path(".sage/templates")).unwrap_or_default();
    std::fs::create_dir(sage.path("flows")).unwrap();
    std::os::unix::fs::symlink("../flows", sage.path(".sage/templates")).unwrap();
    sage.sage("run x -t t.yaml").exit(4);
}

// covers: R17
#[test]
fn init_follows_no_link_out_of_the_project() {
    for link in [".claude", ".claude/commands", ".mcp.json"] {
        let sage = Sage::new();
        let elsewhere = sage.outside().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let target = if link == ".mcp.json" { elsewhere.join("mcp.json") } else { elsewhere.clone() };
        if link == ".mcp.json" {
            std::fs::write(&target, "{}").unwrap();
        }
        std::fs::create_dir_all(sage.path(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&target, sage.path(link)).unwrap();
        sage.sage("init").exit(0).stderr_has("outside the project");
        let left: Vec<_> = std::fs::read_dir(&elsewhere).unwrap().flatten().collect();
        assert!(left.len() == usize::from(link == ".mcp.json"), "{link}: {left:?}");
        assert!(link != ".mcp.json" || std::fs::read_to_string(&target).unwrap() == "{}");
    }
}

// covers: R17, RELIABILITY 20
#[test]
fn a_symlinked_state_directory_is_refused() {
    let (sage, file) = template();
    let elsewhere = sage.outside().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, sage.path(".sage/state")).unwrap();
    let outcome = sage.args(["run", "x", "-t", &file]).run();
    assert_eq!(
        std::fs::read_dir(&elsewhere).unwrap().count(),
        0,
        "state was written through a link: {}",
        outcome.stderr
    );
    outcome.exit(1);
}

/// What a journal becomes, and how.
type Replace = (&'static str, fn(&Path));

// covers: RELIABILITY 20
#[test]
fn a_journal_that_is_something_else_is_refused() {
    let replace: [Replace; 3] = [
        ("directory", |path| std::fs::create_dir(path).unwrap()),
        ("symlink", |path| std::os::unix::fs::symlink("/etc/hostname", path).unwrap()),
        ("fifo", |path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success())),
    ];
    for (what, replace) in replace {
        let (sage, file) = template();
        sage.args(["run", "x", "-t", &file]).run().exit(4);
        let journal = sage.latest_dir("x").join("journal.jsonl");
        std::fs::remove_file(&journal).unwrap();
        replace(&journal);
        for command in ["status x", "verify", "list", "resume x"] {
            let outcome = sage.sage(command);
            assert!(
                command == "list" || outcome.code != 0 || outcome.stderr.contains("warning"),
                "{what}: {command}"
            );
        }
    }
}

#[track_caller]
fn assert_private(dir: &Path) -> usize {
    let mut count = 0;
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{} is {mode:o}", path.display());
        count += 1;
        if meta.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    count
}

// covers: R4, R17
#[test]
fn everything_that_is_kept_is_private_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let (sage, file) = template();
        sage.args(["run", "x", "-t", &file]).umask(umask).run().exit(4);
        sage.args(["approve", "x"]).umask(umask).run().exit(0);
        sage.args(["resume", "x"]).umask(umask).run().exit(0);
        let count = assert_private(&sage.path(".sage/state"));
        assert!(count > 15, "{count} files were looked at");
        assert_eq!(std::fs::metadata(sage.path(".sage")).unwrap().permissions().mode() & 0o777, 0o700);
        let ignored = std::fs::read_to_string(sage.path(".sage/.gitignore")).unwrap();
        assert!(ignored.contains("/state/"));
    }
}

// covers: R4, R17
#[test]
fn everything_of_a_rich_project_is_private_under_an_open_umask() {
    let text = r#"
name: rich
phases:
  - id: p
    operations:
      - { id: told, type: agent, agent: fake, session: talk, prompt: x, params: { script: [{ result: { a: 1 }, usage: { input: 9, output: 1 } }] } }
      - { id: outside, type: agent, agent: stranger, session: far, prompt: y }
      - { id: tool, type: tool, params: { server: pages, tool: text, arguments: { text: hi } } }
      - { id: tree, type: shell, isolation: worktree, params: { run: "echo x > made" } }
      - { id: file, type: shell, output: docs/out.md, expect: { command: 'true' }, params: { run: echo x } }
      - { id: kept, type: shell, cache: true, params: { run: echo x } }
"#;
    let sage = Sage::bare();
    crate::dsl::git(&sage, &["init", "-q"]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    crate::dsl::git(&sage, &[&who[..], &["commit", "-q", "--allow-empty", "-m", "first"]].concat());
    let open = |args: &[&str]| sage.args(args).umask("000").run();
    open(&["init"]).exit(0);
    open(&["templates", "new", "mine"]).exit(0);
    let starts = sage.path("starts").display().to_string();
    let toml = format!(
        "[mcp.pages]\ncommand = {:?}\nargs = [\"debug\", \"fake-mcp\", {starts:?}]\n[agents.stranger]\nadapter = \"foreign\"\n",
        env!("CARGO_BIN_EXE_sage")
    );
    sage.write("sage.toml", toml);
    let template = sage.write("rich.yaml", text).display().to_string();
    let running = sage.args(["run", "x", "-t", &template]).umask("000").spawn();
    let order = sage.path(".sage/inbox/orders/far.md");
    crate::dsl::wait_until(|| order.exists(), crate::dsl::DEADLINE, "the order is written");
    open(&["wake", "COMPLETE", "--session", "far", "--summary", "done"]).exit(0);
    running.end().exit(0);
    open(&["run", "x again", "-t", &template, "--detach"]);
    open(&["cancel", "x again"]);
    open(&["tickets", "add", "a thing"]).exit(0);
    open(&["skills", "save", "x"]);
    open(&["skills", "save", "x"]);
    open(&["session", "fork", "talk", "talk-two"]);
    open(&["check"]);
    open(&["tools", "search"]).exit(0);
    let mut handoff = vec!["handoff", "create", "--from", "planner", "--to", "implementer", "--task-id", "t"];
    handoff.extend([
        "--phase",
        "p",
        "--scope",
        "s",
        "--deliverable",
        "plan",
        "--location",
        "docs",
        "--summary",
        "s",
    ]);
    handoff.extend(["--artifact", "docs/out.md", "--instruction", "i", "--criterion", "c"]);
    open(&handoff).exit(0);
    crate::dsl::wait_until(|| sage.processes().is_empty(), crate::dsl::DEADLINE, "nobody is at work");
    // What git checks out in a worktree is the project's own.
    let trees = sage.path(".sage/worktrees");
    let private = |path: &Path| {
        let meta = path.symlink_metadata().unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let hook = path.ends_with("reference-transaction");
        // Git's own objects cannot be written, either.
        let object = !meta.is_dir() && path.components().any(|part| part.as_os_str() == "objects");
        let wanted = if meta.is_dir() || hook { 0o700 } else { 0o600 };
        let wanted = if object { 0o400 } else { wanted };
        assert_eq!(mode, wanted, "{} is {mode:o}", path.display());
        meta.is_dir()
    };
    let (mut open, mut seen) = (vec![sage.path(".sage"), sage.user_state().join("sage")], 0);
    while let Some(path) = open.pop() {
        let inside_tree = path.strip_prefix(&trees).is_ok_and(|rest| match rest.components().count() {
            0 | 1 => false,
            2 => path.is_dir() && !rest.ends_with(".hooks"),
            _ => !rest.to_string_lossy().contains(".hooks"),
        });
        if !inside_tree && path.exists() && private(&path) {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen += 1;
    }
    assert!(seen > 60, "{seen} files were looked at");
    for part in [
        "state/usage.json",
        "cache",
        "sessions",
        "inbox",
        "handoffs",
        "tickets/index.json",
        "state/tools",
        "state/outputs",
        "templates/mine.yaml",
    ] {
        assert!(sage.path(".sage").join(part).exists(), "{part} was not looked at");
    }
    // What people read has the mode that their umask gives.
    assert_eq!(std::fs::metadata(sage.path("docs/out.md")).unwrap().permissions().mode() & 0o777, 0o666);
}

/// A damaged registry is nobody's end.
// covers: R9
#[test]
fn a_damaged_registry_is_set_aside() {
    let (sage, file) = template();
    sage.write(".sage/state/ACTIVE_WORKFLOWS.json", "{ not json");
    sage.args(["run", "x", "-t", &file]).run().exit(4);
    let (entries, damage) = sage_engine::registry::read(&sage.path(".sage/state"));
    assert_eq!((entries.len(), damage.is_none()), (1, true));
    assert_eq!(sage.lines(".sage/state/ACTIVE_WORKFLOWS.json.damaged"), ["{ not json"]);
}
