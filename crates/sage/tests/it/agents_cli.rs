//! `sage agents`, and what a run is told before it starts about agents that are not there.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::dsl::Sage;

/// Nothing that is installed on this machine is found.
pub const NOTHING_INSTALLED: &str = "[agents.claude]\nenv = { PATH = \"/nonexistent\" }\n\
    [agents.codex]\nenv = { PATH = \"/nonexistent\" }\n\
    [agents.gemini]\nenv = { PATH = \"/nonexistent\" }\n";

/// A program of the project.
fn program(sage: &Sage, name: &str, script: &str) -> PathBuf {
    let path = sage.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn codex(path: &std::path::Path, more: &str) -> String {
    format!("[agents.codex]\nadapter = \"codex\"\ncommand = [\"{}\"]\n{more}\n", path.display())
}

fn agent(sage: &Sage, name: &str) -> Value {
    let rows = sage.sage("agents --json").exit(0).json()["agents"].take();
    let found = rows.as_array().unwrap().iter().find(|row| row["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("no {name} in {rows}"))
}

// covers: R23
#[test]
fn agents_are_listed_with_what_they_can_and_what_they_miss() {
    let sage = Sage::new();
    let path = program(&sage, "codex", "echo codex-cli 9.9.9");
    let more = "env = { CODEX_API_KEY = \"none\" }\n[agents.mine]\ncommand = [\"sh\", \"-c\", \"cat\"]\nprovider = \"acme\"\n\
        [agents.ghost]\ncommand = [\"no-such-program\"]";
    sage.write("sage.toml", codex(&path, more));
    let row = agent(&sage, "codex");
    assert_eq!((row["state"].as_str(), row["version"].as_str()), (Some("ready"), Some("9.9.9")));
    assert_eq!((row["auth"].as_str(), row["provider"].as_str()), (Some("ready"), Some("openai")));
    assert_eq!((&row["capabilities"]["resume"], &row["capabilities"]["asks"]), (&true.into(), &false.into()));
    assert_eq!(row["program"].as_str(), path.to_str());
    assert_eq!(agent(&sage, "mine")["state"], "ready");
    assert_eq!(agent(&sage, "fake")["state"], "ready");
    assert_eq!(agent(&sage, "ghost")["state"], "missing");
    let shown = sage.sage("agents").exit(0);
    let line = shown.stdout.lines().find(|line| line.starts_with("codex")).unwrap();
    assert!(line.contains("ready") && line.contains("9.9.9") && line.contains("resume fork"), "{line}");
    assert!(shown.stdout.starts_with("AGENT"), "{}", shown.stdout);
    shown.stderr_has("hint: ghost: install `no-such-program`");
}

// covers: R23
#[test]
fn an_agent_without_a_login_says_how_to_get_one() {
    let sage = Sage::new();
    let path = program(&sage, "codex", "[ \"$1\" = --version ] && echo codex-cli 1.2.3 || exit 1");
    sage.write("sage.toml", codex(&path, ""));
    assert_eq!(agent(&sage, "codex")["state"], "noLogin");
    sage.sage("agents").exit(0).stdout_has("no login").stderr_has("hint: codex: codex login");
}

// covers: R23
#[test]
fn a_version_that_is_too_old_is_reported_with_the_versions_that_were_tested() {
    let template =
        "name: t\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: codex, prompt: x }\n";
    let sage = Sage::new().template("t", template);
    let path = program(&sage, "codex", "echo \"$@\" >> started; echo codex-cli 0.2.1");
    let other = "env = { CODEX_API_KEY = \"none\" }\n[agents.mine]\ncommand = [\"cat\"]\n";
    sage.write("sage.toml", codex(&path, other));
    let row = agent(&sage, "codex");
    assert_eq!((row["state"].as_str(), row["version"].as_str()), (Some("tooOld"), Some("0.2.1")));
    let range = row["tested"].as_str().unwrap();
    let hint = format!("codex: versions {range} were tested; npm install -g @openai/codex@latest");
    sage.sage("agents").exit(0).stdout_has("too old").stderr_has(&hint);
    sage.sage("doctor").exit(0).stdout_has("`codex` is too old, 0.2.1").stdout_has(&hint);
    let told = sage.sage("run x -t t").exit(2);
    told.stderr_has(&format!("agent `codex` is too old: it is version 0.2.1; versions {range} were tested"));
    assert!(!sage.path(".sage/state").exists(), "found before anything is spent");
    let started = std::fs::read_to_string(sage.path("started")).unwrap();
    assert!(started.lines().all(|line| ["--version", "login status"].contains(&line)), "{started}");
    // A newer one is used.
    program(&sage, "codex", "echo codex-cli 99.0.0");
    sage.sage("trust --yes").exit(0);
    assert_eq!(agent(&sage, "codex")["state"], "ready");
    sage.sage("agents").exit(0).stderr_has(&format!("newer than the versions that were tested ({range})"));
}

#[test]
fn a_program_that_does_not_answer_holds_nobody_up() {
    let sage = Sage::new();
    let path = program(&sage, "codex", "exec sleep 300");
    sage.write("sage.toml", codex(&path, ""));
    let started = Instant::now();
    assert_eq!(agent(&sage, "codex")["state"], "installed");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

// covers: R23
#[test]
fn a_missing_program_is_found_before_anything_is_spent() {
    let text = |agent: &str| {
        format!(
            "name: t\nphases:\n  - id: p\n    operations: {{ id: a, type: agent, agent: {agent}, prompt: x }}\n"
        )
    };
    let sage = Sage::new().template("t", &text("codex")).template("u", &text("ghost"));
    sage.write("sage.toml", format!("{NOTHING_INSTALLED}[agents.ghost]\ncommand = [\"no-such-program\"]\n"));
    let told =
        sage.sage("run x -t t").exit(2).stderr_has("agent `codex` cannot start: there is no program `codex`");
    told.stderr_has("npm install -g @openai/codex");
    sage.sage("run x -t u").exit(2).stderr_has("there is no program `no-such-program`");
    assert!(!sage.path(".sage/state").exists(), "found before anything is spent");
    sage.sage("run x -t t --dry-run").exit(0);
    sage.sage("validate t").exit(0);
}
