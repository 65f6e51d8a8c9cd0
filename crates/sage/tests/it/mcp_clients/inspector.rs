//! The Inspector's command line: a new `sage mcp` for every call, so every run outlasts its client.

use std::time::Duration;

use serde_json::{Value, json};

use super::story::{Expected, Step, TRIES, check, check_complete, project, steps};
use crate::dsl::Sage;
use crate::installed::{Installed, finished};

const LIMIT: Duration = Duration::from_secs(90);
/// Much less than the call would wait, and enough for a start.
const IMPATIENCE_MS: u64 = 3_000;

struct Inspector {
    installed: Installed,
    sage: Sage,
}

impl Inspector {
    fn call(&self, args: &[&str]) -> String {
        let root = self.sage.root().display().to_string();
        self.command(&[env!("CARGO_BIN_EXE_sage"), "-C", &root, "mcp"], args)
    }

    /// With a server of a file: only there a time-out can be set, in ms.
    fn impatient(&self, step: &Step, ms: u64) -> String {
        let server = json!({"command": env!("CARGO_BIN_EXE_sage"), "args": ["-C", self.sage.root(), "mcp"],
            "requestTimeout": ms});
        let file = self.sage.outside().join("inspector.json");
        std::fs::write(&file, json!({"mcpServers": {"sage": server}}).to_string()).unwrap();
        let (file, arguments) = (file.display().to_string(), step.arguments.to_string());
        let call = ["--method", "tools/call", "--tool-name", step.tool, "--tool-args-json", &arguments];
        self.command(&["--config", &file, "--server", "sage"], &call)
    }

    fn command(&self, server: &[&str], args: &[&str]) -> String {
        let script = self.installed.path("node_modules/@modelcontextprotocol/inspector");
        let package: Value =
            serde_json::from_slice(&std::fs::read(script.join("package.json")).unwrap()).unwrap();
        let bin = &package["bin"];
        let main = bin.as_str().or(bin["mcp-inspector"].as_str()).unwrap();
        let mut command = self.installed.node(&self.sage, &script.join(main));
        command.arg("--cli").args(server).args(["--format", "json", "-q"]).args(args);
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
    for step in &steps() {
        if matches!(step.expected, Expected::TimesOut) {
            check(step, &inspector.impatient(step, IMPATIENCE_MS));
            continue;
        }
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
