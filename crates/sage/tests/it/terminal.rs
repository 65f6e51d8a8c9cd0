//! On a terminal nothing that a step, an agent, a server, a person or a cloned file wrote is obeyed.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::dsl::{DEADLINE, Invocation, Sage};

/// A colour, a title, a C1 control, a bidi control, a lone carriage return and a backspace.
const EVIL: &str = "\u{1b}[99mEVIL\u{1b}]0;EVIL\u{7}\u{9b}2J\u{202e}live\rFAKE\u{8}";
/// The same as YAML and JSON write it in double quotes.
const ESCAPED: &str = "\\u001b[99mEVIL\\u001b]0;EVIL\\u0007\\u009b2J\\u202elive\\rFAKE\\u0008";

/// What a terminal would have shown, as bytes; the exit code does not matter here.
fn on_terminal(invocation: Invocation<'_>) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let end = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
    let mut command = invocation.env("TERM", "xterm").env("NO_COLOR", "1").command();
    let mut child = command.stdin(Stdio::null()).stdout(end()).stderr(end()).spawn().unwrap();
    drop((command, theirs));
    let reader = std::thread::spawn(move || {
        let (mut ours, mut seen, mut piece) = (File::from(ours), Vec::new(), [0; 4096]);
        // Linux tells the end of a terminal as an error.
        while let Ok(count @ 1..) = ours.read(&mut piece) {
            seen.extend_from_slice(&piece[..count]);
        }
        seen
    });
    let deadline = Instant::now() + DEADLINE;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::yield_now();
    }
    String::from_utf8_lossy(&reader.join().unwrap()).into_owned()
}

/// Of everything that is hostile, none.
#[track_caller]
fn assert_harmless(what: &str, shown: &str) {
    for evil in ["\u{1b}[99m", "\u{1b}]", "\u{9b}", "\u{202e}", "\u{8}", "\u{7}", "\rFAKE"] {
        assert!(!shown.contains(evil), "{what} shows {evil:?}: {shown:?}");
    }
}

/// Hostile words in everything that is shown later.
fn hostile() -> Sage {
    let text = format!(
        r#"
name: evil
description: "{ESCAPED}"
phases:
  - id: look
    onFailure: continue
    operations:
      - {{ id: prints, type: shell, output: out.txt, params: {{ run: "cat payload; cat payload >&2" }} }}
      - {{ id: says, type: agent, agent: fake, prompt: "x{ESCAPED}", params: {{ script: [{{ say: "{ESCAPED}", result: {{ text: "{ESCAPED}", "{ESCAPED}": 1 }} }}] }} }}
      - {{ id: breaks, type: shell, params: {{ run: "cat payload >&2; exit 1" }} }}
  - id: ask
    operations: {{ id: person, type: approval, params: {{ message: "{ESCAPED}?" }} }}
"#
    );
    let sage = Sage::new().template("evil", &text);
    sage.write("payload", EVIL);
    sage.write(".sage/templates/broken.yaml", format!("name: \"{ESCAPED}\"\nphases: \"{ESCAPED}\"\n"));
    sage.write(".sage/templates/odd.ts", format!("// {EVIL}\nexport const x = \"{ESCAPED}\";\n"));
    sage.write(
        ".sage/skills/evil/SKILL.md",
        format!("---\nname: evil\ndescription: \"{ESCAPED}\"\n---\n{EVIL}\n"),
    );
    sage.write(".sage/operations/evil.md", format!("---\ndescription: \"{ESCAPED}\"\n---\n{EVIL}\n"));
    let starts = sage.path("starts").display().to_string();
    let args = ["debug", "fake-mcp", &starts, "loud"];
    let toml = format!(
        "[mcp.pages]\ncommand = {:?}\nargs = {args:?}\n[agents.mine]\ncommand = [\"nope\"]\nmodel = \"{ESCAPED}\"\n",
        env!("CARGO_BIN_EXE_sage")
    );
    sage.write("sage.toml", toml);
    sage.args(["tickets", "add", EVIL]).run();
    sage.args(["wake", "FINDING", "--session", "a-b-c", "--summary", EVIL]).run();
    sage.args(["session", "new", "talk", "--agent", "fake"]).run();
    let mut handoff = vec!["handoff", "create", "--from", "planner", "--to", "implementer", "--task-id", "t"];
    handoff.extend(["--phase", "p", "--scope", EVIL, "--deliverable", EVIL, "--location", "payload"]);
    handoff.extend(["--summary", EVIL, "--artifact", "payload", "--instruction", EVIL, "--criterion", EVIL]);
    sage.args(handoff).run();
    sage
}

// covers: R17
#[test]
fn no_command_passes_on_what_a_terminal_would_obey() {
    let sage = hostile();
    let run = on_terminal(sage.args(["run", "look out", "-t", "evil", "--yes"]));
    assert!(run.contains("EVIL"), "{run}");
    assert_harmless("run", &run);
    let mut commands: Vec<Vec<&str>> = [
        "explain look-out",
        "explain look-out look/breaks",
        "templates",
        "templates show evil",
        "logs look-out",
        "logs look-out look/prints",
        "logs look-out look/says",
        "logs look-out look/says --prompt",
        "attach look-out look/says",
        "attach look-out look/prints",
        "attach look-out look/says -m EVIL",
        "diff look-out",
        "diff look-out look/prints",
        "result look-out",
        "result look-out look/prints",
        "result look-out look/says",
        "status look-out",
        "status",
        "list",
        "inbox",
        "inbox --all",
        "graph evil",
        "graph look-out",
        "graph evil --format mermaid",
        "validate evil",
        "validate broken",
        "validate odd",
        "tools search",
        "tools search --detail all",
        "tools describe pages/read",
        "tools approve pages",
        "skills list",
        "skills show evil",
        "skills search live",
        "skills approve evil --yes",
        "tickets",
        "tickets show T-1",
        "tickets ready",
        "handoff list",
        "session list",
        "session show talk",
        "config",
        "agents",
        "doctor",
        "cache list",
        "cache stats",
        "limits",
        "breakers",
        "budget look-out",
        "verify",
        "gc --dry-run",
        "check",
        "pause look-out",
        "resume look-out",
        "cancel look-out",
    ]
    .iter()
    .map(|line| line.split(' ').collect())
    .collect();
    let text = format!("text={EVIL}");
    commands.push(vec!["tools", "call", "pages/text", "--arg", &text]);
    commands.push(vec!["tools", "call", "pages/error", "--arg", &text]);
    commands.push(vec!["approve", "look-out", EVIL]);
    commands.push(vec!["reject", "look-out", "-m", EVIL]);
    commands.extend([
        vec!["run", EVIL],
        vec!["resume", EVIL],
        vec!["status", EVIL],
        vec!["tools", "call", EVIL],
    ]);
    commands.extend([vec!["validate", EVIL], vec!["skills", "show", EVIL], vec!["run", "y", "-t", EVIL]]);
    let mut seen = 0;
    for command in &commands {
        let shown = on_terminal(sage.args(command));
        assert_harmless(&command.join(" "), &shown);
        seen += usize::from(shown.contains("EVIL"));
        let live = ["run", "resume"].contains(&command[0]);
        assert!(live || !shown.contains('\u{1b}'), "{command:?} shows an escape: {shown:?}");
    }
    assert!(seen > 20, "only {seen} commands have shown the words at all");
}

// covers: R17
#[test]
fn json_is_escaped_and_pipes_get_every_byte() {
    let sage = hostile();
    sage.args(["run", "look out", "-t", "evil", "--yes", "--quiet"]).run();
    for command in [
        "result look-out --json",
        "status look-out --json",
        "list --json",
        "templates --json",
        "inbox --json",
        "tools search --json",
        "tools describe pages/read --json",
        "logs look-out --json",
        "tickets --json",
        "run again -t evil --json",
    ] {
        let args: Vec<&str> = command.split(' ').collect();
        let shown = on_terminal(sage.args(&args));
        assert_harmless(command, &shown);
        assert!(!shown.contains('\u{1b}'), "{command}: {shown:?}");
        let piped = sage.args(&args).run();
        assert_harmless(command, &piped.stdout);
    }
    // The value is the same.
    let value = sage.args(["result", "look-out", "look/prints", "--json"]).run().json();
    assert_eq!(value["result"]["stdout"], EVIL);
    // Whoever reads a pipe gets what the step printed.
    assert_eq!(sage.args(["logs", "look-out", "look/prints"]).run().stdout, EVIL);
    assert_eq!(std::fs::read_to_string(sage.path("out.txt")).unwrap(), EVIL);
}
