//! The client against the protocol's own conformance suites, in the versions for the older and the newer lifecycle.
//!
//! Every scenario for clients is run. Those in `not_applicable.txt`, each with its reason, must not pass: a line that
//! is not true any more fails the test, as does a scenario that is in no list and does not pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::bench::sage;

const NOT_APPLICABLE: &str = include_str!("not_applicable.txt");
/// Per scenario, in ms.
const PATIENCE_MS: &str = "20000";
/// A suite is a node program each; more at once help nobody on a small machine.
const AT_ONCE: usize = 4;

fn folder() -> PathBuf {
    let given = std::env::var_os("SAGE_TEST_MCP").map(PathBuf::from);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    given.unwrap_or_else(|| target.join("tools/mcp"))
}

/// Node and the suite.
fn suite(package: &str) -> Option<Command> {
    let modules = folder().join("node_modules");
    let (node, program) = (modules.join("node/bin/node"), modules.join(package).join("dist/index.js"));
    if !node.exists() || !program.exists() {
        println!("skipped: there is no {package} in {}", folder().display());
        return None;
    }
    let mut command = Command::new(node);
    command.arg(program);
    Some(command)
}

/// Scenarios for clients, as the suite lists them.
fn scenarios(package: &str) -> Vec<String> {
    let output = suite(package).unwrap().arg("list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("Client scenarios")).skip(1);
    let lines = lines.take_while(|line| line.starts_with("  - "));
    lines.filter_map(|line| Some(line.trim_start_matches("  - ").split(' ').next()?.to_owned())).collect()
}

/// What the suite has to say against it; `None` if nothing.
fn run(package: &str, scenario: &str) -> Option<String> {
    let client = format!("{} debug mcp-client", sage().display());
    let scratch = tempfile::tempdir().unwrap();
    let mut command = suite(package).unwrap();
    command.args(["client", "--command", &client, "--scenario", scenario, "--timeout", PATIENCE_MS]);
    let output = command.current_dir(scratch.path()).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (!output.status.success()).then(|| said.concat())
}

/// Reasons by scenario.
fn reasons(package: &str) -> BTreeMap<&'static str, &'static str> {
    let lines = NOT_APPLICABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = lines.map(|line| {
        let mut parts = line.splitn(3, " | ");
        let mut part = || parts.next().unwrap_or_else(|| panic!("not `suite | scenario | reason`: {line}"));
        (part(), part(), part())
    });
    lines.filter(|(suite, ..)| *suite == package).map(|(_, scenario, reason)| (scenario, reason)).collect()
}

fn check(package: &str) {
    if suite(package).is_none() {
        return;
    }
    let (scenarios, reasons) = (scenarios(package), reasons(package));
    assert!(scenarios.len() > 20, "{scenarios:?}");
    for pattern in reasons.keys().copied() {
        assert!(scenarios.iter().any(|scenario| scenario == pattern), "there is no scenario {pattern}");
    }
    let (left, wrong) = (Mutex::new(scenarios), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(scenario) = { left.lock().unwrap().pop() } {
                    let excused = reasons.contains_key(scenario.as_str());
                    match (run(package, &scenario), excused) {
                        (None, true) => {
                            wrong.lock().unwrap().push(format!("{scenario} passes: its line is stale"));
                        }
                        (Some(said), false) => wrong.lock().unwrap().push(format!("{scenario}: {said}")),
                        (None, false) => println!("passed: {scenario}"),
                        (Some(_), true) => println!("does not apply: {scenario}"),
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

// covers: R16, R24
#[test]
fn the_client_keeps_to_the_older_versions() {
    check("conformance-2025");
}

// covers: R16, R24
#[test]
fn the_client_keeps_to_the_newer_version() {
    check("conformance-2026");
}
