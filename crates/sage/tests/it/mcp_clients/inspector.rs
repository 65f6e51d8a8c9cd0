//! The Inspector's command line: a new `sage mcp` for every call, so every run outlasts its client.
//!
//! It cannot lose its patience: its command line (2.12) has no option for the time of a call, leaves `requestTimeout`
//! of a server in a `--config` file aside, and so waits for the SDK's 60 seconds; no call of sage takes that long.
//! The part of the story with a time-out is played by the SDK itself (`sdk.rs`).

use std::time::Duration;

use serde_json::{Value, json};

use super::story::{Expected, Step, TRIES, check, check_complete, project, steps};
use crate::dsl::Sage;
use crate::installed::{Installed, finished};

const LIMIT: Duration = Duration::from_secs(90);

struct Inspector {
    installed: Installed,
    sage: Sage,
}

impl Inspector {
    fn call(&self, args: &[&str]) -> String {
        let script = self.installed.path("node_modules/@modelcontextprotocol/inspector");
        let package: Value =
            serde_json::from_slice(&std::fs::read(script.join("package.json")).unwrap()).unwrap();
        let bin = &package["bin"];
        let main = bin.as_str().or(bin["mcp-inspector"].as_str()).unwrap();
        let mut command = self.installed.node(&self.sage, &script.join(main));
        command.args(["--cli", env!("CARGO_BIN_EXE_sage"), "-C"]).arg(self.sage.root()).arg("mcp");
        command.args(["--format", "json", "-q"]).args(args);
        let (_, stdout, stderr) = finished(command, LIMIT);
        format!("{stdout}{stderr}")
    }

    fn tool(&self, step: &Step) -> String {
        let arguments = step.arguments.to_string();
        self.call(&["--method", "tools/call", "--tool-name", step.tool, "--tool-args-json", &arguments])
    }
}

// covers: R16
#[test]
fn the_inspector_calls_every_tool() {
    let Some(installed) = Installed::find("node_modules/@modelcontextprotocol/inspector") else { return };
    let inspector = Inspector { installed, sage: project() };
    let listed = inspector.call(&["--method", "tools/list"]);
    let listed: Value = serde_json::from_str(listed.trim()).unwrap_or_else(|_| panic!("{listed}"));
    let tools = listed["tools"].as_array().or(listed["result"]["tools"].as_array()).unwrap().clone();
    let names: Vec<String> = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_string()).collect();
    check_complete(&names);
    for step in steps().iter().filter(|step| !matches!(step.expected, Expected::TimesOut)) {
        if step.lets_go {
            inspector.sage.write("go", "");
        }
        let mut answer = inspector.tool(step);
        for _ in 0..TRIES {
            if step.until.is_none_or(|until| compact(&answer).contains(&json!(until).to_string())) {
                break;
            }
            answer = inspector.tool(step);
        }
        check(step, &compact(&answer));
    }
}

/// Without the white space between tokens.
fn compact(answer: &str) -> String {
    serde_json::from_str::<Value>(answer.trim())
        .map_or_else(|_| answer.to_string(), |value| value.to_string())
}
