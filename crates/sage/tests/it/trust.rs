//! A project that came from elsewhere: nothing of it runs, and nothing leaves, before a person has said so (R17).

mod clone;
mod links;
mod looking;
mod people;
mod settings;
mod state;
mod strange;
#[cfg(target_os = "linux")]
mod terminal;
mod workflow;

use crate::dsl::{Outcome, Sage};

/// A program of the project that leaves a trace when it is started: its name in `started`.
pub fn canary(sage: &Sage, path: &str) {
    use std::os::unix::fs::PermissionsExt;
    let name = path.replace('/', "-");
    let trace = sage.outside().join("started");
    let text =
        format!("#!/bin/sh\necho {name} $SECRET_TOKEN >> {}\ncat >/dev/null\necho done\n", trace.display());
    let path = sage.write(path, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What was started, each once.
pub fn started(sage: &Sage) -> Vec<String> {
    let text = std::fs::read_to_string(sage.outside().join("started")).unwrap_or_default();
    let mut names: Vec<String> = text.lines().map(str::to_string).collect();
    names.sort();
    names.dedup();
    names
}

/// As its person would call it, with a secret in the environment.
pub fn call(sage: &Sage, command: &str) -> Outcome {
    sage.args(command.split_whitespace()).env("SECRET_TOKEN", "sesame").run()
}

/// `PATH` leads into the project, as some people set it.
// covers: R17
#[test]
fn looking_starts_no_program_that_lies_in_the_project() {
    let sage = Sage::new();
    for name in ["claude", "codex", "gemini", "git"] {
        canary(&sage, name);
        canary(&sage, &format!("node_modules/.bin/{name}"));
    }
    std::fs::remove_file(sage.path("node_modules/.bin/git")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let inside = sage.root().canonicalize().unwrap().join("node_modules/.bin");
    for first in [".", "", "node_modules/.bin", inside.to_str().unwrap()] {
        for command in ["agents", "doctor", "init", "gc --dry-run", "run x --dry-run"] {
            let mut looks =
                sage.args(command.split_whitespace()).env("PATH", format!("{first}:{path}")).command();
            looks.current_dir(sage.root()).output().unwrap();
            assert_eq!(started(&sage), [""; 0], "`{command}` with `{first}` first");
        }
    }
}

// covers: R17
#[test]
fn what_a_project_defines_runs_only_after_it_was_trusted() {
    let sage = Sage::untrusted();
    canary(&sage, "agent.sh");
    sage.write(
        "sage.toml",
        "[agents.mine]\ncommand = [\"./agent.sh\"]\n[agents.mild]\nadapter = \"offline\"\nmodel = \"m\"\n",
    );
    sage.write(
        ".sage/templates/t.yaml",
        "name: t\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: mine, params: { prompt: go } }\n",
    );
    let refused = call(&sage, "run x -t t").exit(2);
    let refused =
        refused.stderr_has("`sage.toml: agents.mine` is not trusted").stderr_has("hint: sage trust");
    assert!(!refused.stderr.contains("mild"), "it starts nothing of the project");
    assert!(!sage.path(".sage/state/runs").exists(), "nothing was begun");
    // Looking shows it, and what it would do.
    call(&sage, "agents").exit(0).stdout_has("not trusted").stderr_has("runs ./agent.sh");
    call(&sage, "run x -t t --dry-run").exit(0);
    call(&sage, "trust --list").exit(0).stdout_has("nothing is trusted");
    call(&sage, "trust").exit(2).stdout_has("agents.mine").stderr_has("pass --yes");
    assert_eq!(started(&sage), [""; 0]);
    call(&sage, "trust agents.other --yes").exit(2).stderr_has("does not wait");
    call(&sage, "trust agents.mine --yes").exit(0).stdout_has("trusted: agents.mine");
    call(&sage, "trust --list").exit(0).stdout_has("agents.mine").stdout_has("via command line");
    call(&sage, "run x -t t").exit(0);
    assert_eq!(started(&sage), ["agent.sh sesame"]);
    // A change asks again; a limit is none.
    sage.write("sage.toml", "[agents.mine]\ncommand = [\"./agent.sh\"]\nbudget = \"5usd\"\n");
    call(&sage, "trust --yes").exit(0).stdout_has("nothing in");
    sage.write("sage.toml", "[agents.mine]\ncommand = [\"./agent.sh\", \"-v\"]\n");
    call(&sage, "run y -t t").exit(2).stderr_has("not trusted");
    call(&sage, "trust --list").exit(0).stdout_has("changed since");
    let json = call(&sage, "trust --yes --json").exit(0).json();
    assert_eq!(json["definitions"][0]["does"], "runs ./agent.sh -v");
    call(&sage, "trust --revoke").exit(0).stdout_has("no longer trusted: agents.mine");
    call(&sage, "run z -t t").exit(2).stderr_has("not trusted");
}

// covers: R17
#[test]
fn trust_belongs_to_one_place_and_one_user() {
    let sage = Sage::untrusted();
    canary(&sage, "server.sh");
    sage.write(".mcp.json", r#"{"mcpServers": {"s": {"command": "./server.sh"}}}"#);
    call(&sage, "trust --yes").exit(0);
    let stored = std::fs::read_to_string(sage.user_state().join("sage/trust.json")).unwrap();
    assert!(stored.contains("mcp.s") && !sage.path(".sage/trust.json").exists());
    // Another user, and a copy of the project.
    let other = sage.args(["doctor"]).env("XDG_STATE_HOME", sage.outside().join("other")).run();
    other.stdout_has("`.mcp.json: mcp.s` is not trusted");
    let copy = sage.outside().join("copy");
    std::process::Command::new("cp").args(["-r"]).args([sage.root(), copy.as_path()]).status().unwrap();
    let mut doctor = sage.args([""; 0]).command_of(env!("CARGO_BIN_EXE_sage"));
    let copied = doctor.arg("-C").arg(copy).arg("doctor").output().unwrap();
    let copied = String::from_utf8_lossy(&copied.stdout);
    assert!(copied.contains("`.mcp.json: mcp.s` is not trusted"), "{copied}");
    assert_eq!(started(&sage), [""; 0]);
    call(&sage, "doctor");
    // Without the secret: a server sees few variables.
    assert_eq!(started(&sage), ["server.sh"], "it is trusted here");
}

// covers: R17
#[test]
fn rules_of_a_clone_answer_for_nobody() {
    let sage = Sage::untrusted();
    sage.write("sage.toml", "[approvals]\ntools = [\"*\"]\ncommands = [\"*\"]\ndefault = \"allow\"\n");
    let template = r#"
name: t
phases:
  - id: p
    operations: { id: a, type: agent, agent: fake, params: { script: [{ ask: { tool: Bash, input: { command: "rm -rf /" } }, say: done }] } }
"#;
    sage.write(".sage/templates/t.yaml", template);
    let mut running = sage.spawn("run x -t t");
    running.until(|| sage.engine().read("x").is_ok_and(|it| !it.run.asks.is_empty()), "its question");
    assert!(running.stderr().contains("agents work without: approvals"), "{}", running.stderr());
    call(&sage, "reject x").exit(0);
    running.end();
    call(&sage, "trust --yes").exit(0).stdout_has("approvals");
    sage.sage("run y -t t").exit(0);
}

// covers: R17, R16
#[test]
fn what_init_wrote_needs_no_trust_and_what_was_there_does() {
    let sage = Sage::untrusted();
    let told = call(&sage, "init").exit(0);
    assert!(!told.stderr.contains("not trusted"), "{}", told.stderr);
    assert!(sage.path(".mcp.json").is_file());
    call(&sage, "trust").exit(0).stdout_has("nothing in");
    // A program that only takes the name of ours is a program like any other.
    canary(&sage, "server.sh");
    sage.write(".mcp.json", r#"{"mcpServers": {"sage": {"command": "./server.sh", "args": ["mcp"]}}}"#);
    call(&sage, "init").exit(0).stderr_has("note: not trusted yet: mcp.sage").stderr_has("hint: sage trust");
    call(&sage, "doctor");
    assert_eq!(started(&sage), [""; 0]);
}
