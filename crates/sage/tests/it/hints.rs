//! Commands that are printed to be copied: typed as they are, from where the first one was typed, they do what they
//! say. A title that is a template's name is not taken for a title.

use std::io::{Read, Write};
use std::process::Command;

use crate::dsl::Sage;

const ASK: &str = "
name: ask
inputs: { who: nobody }
phases:
  - id: p
    operations: { id: ask, type: approval, params: { message: go on?, choices: [ship it, hold] } }
";

const FAIL: &str = "
name: fail
phases:
  - id: p
    operations: { id: each, type: shell, foreach: '[1, 2]', params: { run: exit 1 } }
";

/// A project `my shop`, and a place beside it where somebody types.
struct Desk {
    sage: Sage,
}

impl Desk {
    fn new() -> Desk {
        let sage = Sage::new();
        for (name, text) in [("ask", ASK), ("fail", FAIL)] {
            let path = sage.outside().join("my shop/.sage/templates").join(format!("{name}.yaml"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir_all(sage.outside().join("desk")).unwrap();
        Desk { sage }
    }

    /// Runs a line of shell at the desk: exit code, and all that was printed.
    fn sh(&self, line: &str) -> (i32, String) {
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_sage"));
        let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(self.sage.outside().join("desk")).env_clear();
        command
            .env("PATH", path)
            .env("HOME", self.sage.outside())
            .env("XDG_STATE_HOME", self.sage.user_state());
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let text =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.code().unwrap(), text)
    }

    /// All commands that a text offers, without what is said about them.
    fn commands(text: &str) -> Vec<String> {
        let line = |line: &str| {
            let at = line.find("sage -C")?;
            let offered = matches!(line[..at].trim(), "hint:" | "next:" | "");
            let command = line[at..].split("  ").next().unwrap_or_default();
            offered.then(|| command.to_string())
        };
        text.lines().filter_map(line).collect()
    }
}

// covers: R5, R9
#[test]
fn printed_commands_work_where_the_first_one_was_typed() {
    let desk = Desk::new();
    let (code, told) = desk.sh("sage -C '../my shop' run 'first try' -t ask -i who=me");
    assert_eq!(code, 4, "{told}");
    let commands = Desk::commands(&told);
    assert!(commands.iter().any(|it| it == "sage -C '../my shop' resume first-try"), "{told}");
    assert!(
        commands.iter().any(|it| it.starts_with("sage -C '../my shop' approve first-try p/ask -c ")),
        "{told}"
    );
    // The same again, with everything that was typed.
    let (code, told) = desk.sh("sage -C '../my shop' run 'first try' -t ask -i who=me --sequential");
    assert_eq!(code, 5, "{told}");
    let new = "sage -C '../my shop' run 'first try' -t ask -i who=me --sequential --new";
    assert!(Desk::commands(&told).iter().any(|it| it == new), "{told}");
    let (code, told) = desk.sh(new);
    assert_eq!(code, 4, "{told}");
    // The inbox names a choice each, and each of them can be typed.
    let (_, told) = desk.sh("sage -C '../my shop' inbox --json");
    let line: serde_json::Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let text = line.to_string();
    let yes = "sage -C '../my shop' approve first-try p/ask -c 'ship it'";
    assert!(text.contains(&yes.replace('\\', "\\\\")), "{text}");
    assert_eq!(desk.sh(yes).0, 0);
    let (code, told) = desk.sh("sage -C '../my shop' resume first-try");
    assert_eq!(code, 0, "{told}");
}

// covers: R5
#[test]
fn every_command_after_a_failure_can_be_typed() {
    let desk = Desk::new();
    let (code, told) = desk.sh("sage -C '../my shop' run bad -t fail");
    assert_eq!(code, 1, "{told}");
    let commands = Desk::commands(&told);
    assert!(commands.len() >= 2, "{told}");
    for command in commands {
        let (code, told) = desk.sh(&command);
        assert!(code != 2 && !told.contains("no run of"), "{command}: {code}\n{told}");
    }
    // Cancelled for good, it starts as it was started.
    desk.sh("sage -C '../my shop' run 'no more' -t ask -i who=me");
    desk.sh("sage -C '../my shop' cancel no-more --no-checkpoint");
    let (code, told) = desk.sh("sage -C '../my shop' resume no-more");
    assert_eq!(code, 1, "{told}");
    assert_eq!(Desk::commands(&told), ["sage -C '../my shop' run no-more -t ask"], "{told}");
}

// covers: R5
#[test]
fn in_the_project_itself_the_directory_is_left_out() {
    let sage = Sage::new().template("ask", ASK);
    let told = sage.sage("run x -t ask").exit(4);
    assert!(told.stdout.contains("next: sage approve x p/ask -c "), "{}", told.stdout);
}

/// Hints never name a command without the directory: all of them are made in one place.
// covers: R5
#[test]
fn hints_of_errors_have_the_directory_too() {
    let desk = Desk::new();
    for command in ["status nope", "resume nope", "run x -t nope", "templates show nope", "approve nope"] {
        let (code, told) = desk.sh(&format!("sage -C '../my shop' {command}"));
        assert_eq!(code, 2, "{told}");
        let hints = told.lines().filter(|line| line.starts_with("hint: sage "));
        for hint in hints {
            assert!(hint.starts_with("hint: sage -C '../my shop' "), "{command}: {told}");
        }
    }
}

// covers: R6
#[test]
fn a_title_that_is_a_template_is_asked_about_and_never_guessed() {
    let sage = Sage::new().template(
        "hello",
        "name: hello\nphases:\n  - id: p\n    operations: { type: shell, params: { run: echo hello } }\n",
    );
    let before = sage.listing();
    for title in ["hello", ".sage/templates/hello.yaml", "audit"] {
        let refused = sage.args(["run", title]).run().exit(2);
        refused.stderr_has("is a template: did you mean").stderr_has(&format!("hint: sage run -t {title}"));
    }
    assert_eq!(sage.listing(), before, "nothing was written");
    // Who means the title says so.
    sage.sage("run hello -t feature --dry-run").exit(0).stdout_has("feature ·");
    // And without a title the template gives it.
    sage.sage("run -t hello").exit(0).stdout_has("run started: hello · hello");
    sage.sage("run -t .sage/templates/hello.yaml --new").exit(0).stdout_has("run started: hello · hello");
    sage.sage("run")
        .exit(2)
        .stderr_has("there is no title")
        .stderr_has("hint: sage run 'payment processing'");
}

// covers: R6
#[test]
fn on_a_terminal_a_template_as_a_title_is_a_question() {
    let sage = Sage::new().template("hello", "name: hello\nphases:\n  - id: p\n    operations: { type: shell, params: { run: echo hello > said } }\n");
    let answer = |line: &str| {
        let mut command = Command::new("script");
        command.args(["-qec", &format!("{} run hello", env!("CARGO_BIN_EXE_sage")), "/dev/null"]);
        command.current_dir(sage.root()).env("XDG_STATE_HOME", sage.user_state()).env("HOME", sage.root());
        let (stdin, stdout) = (std::process::Stdio::piped(), std::process::Stdio::piped());
        let mut child = command.stdin(stdin).stdout(stdout).spawn().unwrap();
        // The terminal keeps the line until somebody reads it; its end would end the terminal.
        let mut keyboard = child.stdin.take().unwrap();
        keyboard.write_all(line.as_bytes()).unwrap();
        let mut told = String::new();
        child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        child.wait().unwrap();
        told
    };
    let told = answer("y\n");
    assert!(told.contains("`hello` is a template. Run it?"), "{told}");
    assert!(sage.path("said").exists(), "{told}");
    std::fs::remove_file(sage.path("said")).unwrap();
    let told = answer("x\n");
    assert!(told.contains("did you mean") && !sage.path("said").exists(), "{told}");
}

/// A command that is printed without the piece that makes commands would forget the directory.
// covers: R5
#[test]
fn no_hint_is_printed_around_the_piece_that_makes_commands() {
    let mut open = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut seen = 0;
    while let Some(dir) = open.pop() {
        for path in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            seen += 1;
            let around = text
                .lines()
                .find(|line| line.contains("hint: sage ") && !line.trim_start().starts_with("//"));
            assert!(around.is_none(), "{}: {around:?}", path.display());
        }
    }
    assert!(seen > 100, "{seen} files");
}
