//! The official SDKs, over pipes and over HTTP.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::story::{check, check_complete, project, script, steps};
use crate::dsl::Sage;
use crate::installed::{Installed, finished};
use crate::mcp_conformance::serving;

const LIMIT: Duration = Duration::from_secs(120);
/// Far less than the run takes, which waits for whoever comes after the time-out.
const IMPATIENT_MS: u64 = 700;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_clients").join(name)
}

fn play(sage: &Sage, mut client: Command, mut story: Value) {
    story["steps"] = script(sage, IMPATIENT_MS).into();
    let file = sage.write("story.json", story.to_string());
    client.arg(file);
    let (succeeded, stdout, stderr) = finished(client, LIMIT);
    let mut lines = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let about = lines.next().unwrap_or_else(|| panic!("the client said nothing:\n{stderr}"));
    let listed: Vec<String> = serde_json::from_value(about["tools"].clone()).unwrap();
    check_complete(&listed);
    let answers: Vec<Value> = lines.collect();
    for (step, answer) in steps().iter().zip(&answers) {
        check(step, &answer.to_string());
        // Structured and as text: some clients look at one, some at the other.
        if answer.get("failed").is_none() {
            assert!(answer["value"].is_object() && answer["text"] != "", "{answer}");
        }
    }
    assert!(succeeded && answers.len() == steps().len(), "{answers:#?}\n{stderr}");
}

/// How to start the server; what belongs to the test's project stays there.
fn pipes(sage: &Sage, era: &str) -> Value {
    let args = json!(["-C", sage.root(), "mcp"]);
    let env = json!({"XDG_STATE_HOME": sage.user_state(), "HOME": sage.root(), "PATH": std::env::var("PATH").unwrap()});
    json!({"command": env!("CARGO_BIN_EXE_sage"), "args": args, "env": env, "era": era})
}

fn over_http(sage: &Sage, era: &str, client: impl FnOnce() -> Command) {
    let (_server, url) = serving(sage, &[]);
    let card: Value =
        serde_json::from_slice(&std::fs::read(sage.path(".sage/state/serve.json")).unwrap()).unwrap();
    play(sage, client(), json!({"url": url, "token": card["token"], "era": era}));
}

// covers: R16
#[test]
fn the_python_sdk_over_pipes_in_both_lifecycles() {
    let Some(installed) = Installed::find("python/mcp") else { return };
    for era in ["auto", "legacy"] {
        let sage = project();
        play(&sage, installed.python(&sage, &source("client.py")), pipes(&sage, era));
    }
}

// covers: R16
#[test]
fn the_python_sdk_over_http_in_both_lifecycles() {
    let Some(installed) = Installed::find("python/mcp") else { return };
    for era in ["auto", "legacy"] {
        let sage = project();
        over_http(&sage, era, || installed.python(&sage, &source("client.py")));
    }
}

// covers: R16
#[test]
fn the_typescript_sdk_over_pipes() {
    let Some(installed) = Installed::find("node_modules/@modelcontextprotocol/sdk") else { return };
    let sage = project();
    play(&sage, installed.node(&sage, &source("client.cjs")), pipes(&sage, "legacy"));
}

// covers: R16
#[test]
fn the_typescript_sdk_over_http() {
    let Some(installed) = Installed::find("node_modules/@modelcontextprotocol/sdk") else { return };
    let sage = project();
    over_http(&sage, "legacy", || installed.node(&sage, &source("client.cjs")));
}
