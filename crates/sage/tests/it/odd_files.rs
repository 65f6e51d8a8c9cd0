//! Files that are none: pipes, devices and huge files in the place of configuration, and a full standard output.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::dsl::Sage;

const ONE: &str =
    "name: one\nphases:\n  - id: a\n    operations: { id: b, type: shell, params: { run: \"echo hi\" } }\n";

#[track_caller]
fn pipe(sage: &Sage, path: &str) {
    std::fs::create_dir_all(sage.path(path).parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(sage.path(path)).status().unwrap().success());
}

// covers: R15
#[test]
fn a_configuration_that_is_no_file_or_too_large_is_refused_at_once() {
    for odd in ["pipe", "device", "large", "directory"] {
        let sage = Sage::new();
        let path = sage.path("sage.toml");
        match odd {
            "pipe" => pipe(&sage, "sage.toml"),
            "device" => symlink("/dev/zero", path).unwrap(),
            "large" => drop(sage.write("sage.toml", "#".repeat((1 << 20) + 1))),
            _ => std::fs::create_dir(path).unwrap(),
        }
        let why = match odd {
            "large" => "larger than 1 MiB",
            "device" => "a symlink that leads out of the project",
            _ => "not a regular file",
        };
        for command in ["list", "status", "config", "run x", "validate one"] {
            sage.sage(command).exit(2).stderr_has("sage.toml").stderr_has(why);
        }
    }
}

// covers: R15, R23
#[test]
fn servers_templates_and_scripts_that_are_no_files_are_named() {
    let sage = Sage::new().template("one", ONE);
    symlink("/dev/zero", sage.path(".mcp.json")).unwrap();
    sage.sage("doctor").stdout_has("a symlink that leads out of the project");
    std::fs::remove_file(sage.path(".mcp.json")).unwrap();
    pipe(&sage, ".mcp.json");
    sage.sage("doctor").stdout_has("not a regular file");
    std::fs::remove_file(sage.path(".mcp.json")).unwrap();
    for (name, file) in [("two", ".sage/templates/two.yaml"), ("three", ".sage/templates/three.ts")] {
        symlink("/dev/zero", sage.path(file)).unwrap();
        sage.args(["validate", file]).run().exit(2).stderr_has(name);
        sage.args(["run", "x", "-t", name]).run().exit(2).stderr_has(name);
    }
    pipe(&sage, ".claude/workflows/four.js");
    sage.sage("run x -t four").exit(2);
    sage.sage("run x -t one").exit(0);
}

/// Each would hang, or eat all memory.
// covers: R15, R17
#[test]
fn state_that_is_no_file_is_not_read() {
    let sage = Sage::new().template("one", ONE);
    sage.sage("run x -t one").exit(0);
    for dir in [".sage/sessions/s", ".sage/sessions/t", ".sage/worktrees/run_A"] {
        std::fs::create_dir_all(sage.path(dir)).unwrap();
    }
    symlink("/dev/zero", sage.path(".sage/sessions/s/session.json")).unwrap();
    pipe(&sage, ".sage/sessions/t/session.json");
    sage.sage("session list").exit(0);
    symlink("/dev/zero", sage.path(".sage/worktrees/run_A/a.json")).unwrap();
    pipe(&sage, ".sage/worktrees/run_A/b.json");
    sage.sage("gc --dry-run").exit(0);
    sage.sage("status x").exit(0);
    pipe(&sage, ".sage/tsconfig.json");
    sage.sage("init").exit(0);
    symlink("/dev/zero", sage.path(".gitignore")).unwrap();
    std::fs::create_dir(sage.path("sub")).unwrap();
    pipe(&sage, "sub/.gitignore");
    symlink("/dev/zero", sage.path(".env")).unwrap();
    sage.sage("run y -t audit --yes");
    std::fs::remove_file(sage.path(".mcp.json")).unwrap();
    pipe(&sage, ".mcp.json");
    sage.sage("run z -t one --dry-run");
}

/// Messages quote what they complain about: it must not be another file of the user.
// covers: R17
#[test]
fn a_link_that_leads_out_of_the_project_is_not_quoted() {
    let sage = Sage::new().template("one", ONE);
    let secret = sage.outside().join("id_rsa");
    std::fs::write(&secret, "-----BEGIN hush\n").unwrap();
    let quiet = |command: &str| {
        let said = sage.args(command.split_whitespace()).env("SECRET_TOKEN", "hush").run();
        assert!(!said.stdout.contains("hush") && !said.stderr.contains("hush"), "{command}: {}", said.stderr);
        said
    };
    for target in ["/proc/self/environ".as_ref(), secret.as_path()] {
        symlink(target, sage.path("sage.toml")).unwrap();
        for command in ["list", "config", "doctor", "run x -t one", "init"] {
            quiet(command);
        }
        quiet("list").exit(2).stderr_has("sage.toml");
        std::fs::remove_file(sage.path("sage.toml")).unwrap();
    }
    for name in ["two.yaml", "three.ts", "four.json"] {
        let file = format!(".sage/templates/{name}");
        symlink(&secret, sage.path(&file)).unwrap();
        let stem = name.split('.').next().unwrap();
        for command in [format!("validate {file}"), format!("validate {stem}"), format!("run x -t {stem}")] {
            quiet(&command).exit(2).stderr_has("leads out of the project");
        }
        for command in
            [format!("templates show {stem}"), "templates".into(), "check".into(), "validate".into()]
        {
            quiet(&command);
        }
    }
    std::fs::create_dir_all(sage.path(".sage/operations")).unwrap();
    symlink(&secret, sage.path(".sage/operations/op.md")).unwrap();
    quiet("validate");
}

// covers: R16
#[test]
fn data_that_cannot_be_written_is_a_failure() {
    let sage = Sage::new().template("one", ONE);
    sage.sage("run x -t one").exit(0);
    for command in [
        "result x",
        "templates show feature",
        "graph feature",
        "list --json",
        "status x",
        "logs x",
        "run y -t one",
    ] {
        let mut full = sage.args(command.split_whitespace()).command();
        full.stdout(std::fs::File::create("/dev/full").unwrap()).stderr(Stdio::piped()).stdin(Stdio::null());
        let output = full.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{command}: {told}");
        assert!(
            told.contains("cannot write to standard output: No space left on device"),
            "{command}: {told}"
        );
    }
    // The run itself has ended well.
    assert_eq!(sage.status("y")["verdict"], "succeeded");
    // A reader that has seen enough is no failure.
    let mut head =
        sage.args(["templates", "show", "feature"]).command().stdout(Stdio::piped()).spawn().unwrap();
    drop(head.stdout.take());
    assert!(head.wait().unwrap().success());
}
