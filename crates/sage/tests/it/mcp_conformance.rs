//! The protocol's own conformance suites against the transports, with fixtures in place of the project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::dsl::{Running, Sage};
use crate::installed::{Installed, finished};

const NOT_APPLICABLE: &str = include_str!("mcp_conformance/not_applicable.txt");
const LIMIT: Duration = Duration::from_secs(120);

/// Package, and what of it.
const RUNS: [(&str, &[&str]); 3] = [
    ("conformance-2025", &["--suite", "all"]),
    ("conformance-2026", &["--suite", "all"]),
    ("conformance-2026", &["--suite", "all", "--spec-version", "2025-11-25"]),
];
/// What the two packages had when this was written: a suite that runs nothing passes, too.
const SCENARIOS: usize = 65;

fn not_applicable() -> BTreeMap<&'static str, &'static str> {
    let lines = NOT_APPLICABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"))).collect()
}

/// Starts a server on a free port; its URL.
pub fn serving(sage: &Sage, more: &[&str]) -> (Running, String) {
    let args = ["serve", "--port", "0", "--json"].iter().chain(more);
    let mut server = sage.args(args).spawn();
    let mut said = String::new();
    wait_for_line(&mut server, &mut said);
    let url = serde_json::from_str::<Value>(&said).unwrap()["url"].as_str().unwrap().to_string();
    (server, url)
}

fn wait_for_line(server: &mut Running, said: &mut String) {
    let started = std::time::Instant::now();
    while !said.ends_with('\n') {
        assert!(!server.ended() && started.elapsed() < LIMIT, "{said} {}", server.stderr());
        std::thread::sleep(Duration::from_millis(2));
        *said = server.stdout();
    }
}

/// Every check that did not succeed, by scenario; those without any are there, too.
fn unmet(results: &Path) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for entry in std::fs::read_dir(results).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        // server-<scenario>-2026-01-31T01-02-03-456Z
        let scenario = &name["server-".len()..name.len() - "-2026-01-31T01-02-03-456Z".len()];
        let checks = std::fs::read(entry.path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
        let is_met = |check: &Value| check["status"] == "SUCCESS" || check["status"] == "INFO";
        let none_met = !checks.iter().any(|check| check["status"] == "SUCCESS");
        let unmet = checks.into_iter().filter(|check| !is_met(check) || none_met);
        found.entry(scenario.to_string()).or_default().extend(unmet);
    }
    found
}

fn run(
    sage: &Sage,
    installed: &Installed,
    url: &str,
    (package, args): (&str, &[&str]),
) -> BTreeMap<String, Vec<Value>> {
    let results = tempfile::tempdir_in(sage.outside()).unwrap();
    let script = installed.path(&format!("node_modules/{package}/dist/index.js"));
    let mut command = installed.node(sage, &script);
    command.args(["server", "--url", url]).args(args).arg("-o").arg(results.path());
    let (_, stdout, stderr) = finished(command, LIMIT);
    assert!(stdout.contains("=== SUMMARY ==="), "{package} {args:?} did not run:\n{stdout}\n{stderr}");
    unmet(results.path())
}

// covers: R16
#[test]
fn both_conformance_suites_pass() {
    let Some(installed) = Installed::find("node_modules/conformance-2026") else { return };
    let sage = Sage::new();
    let (server, url) = serving(&sage, &["--conformance"]);
    let (project, tools, at) = (&sage, &installed, url.as_str());
    let all = std::thread::scope(|scope| {
        let runs = RUNS.map(|it| scope.spawn(move || run(project, tools, at, it)));
        runs.map(|run| run.join().unwrap())
    });
    let known = not_applicable();
    let seen: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let is_unmet =
        |scenario: &str| all.iter().any(|run| run.get(scenario).is_some_and(|unmet| !unmet.is_empty()));
    for (scenario, unmet) in all.iter().flatten() {
        let failed = unmet.iter().any(|check| check["status"] == "FAILURE");
        let excused = known.contains_key(scenario.as_str()) && !failed;
        assert!(unmet.is_empty() || excused, "{scenario}: {unmet:#?}");
    }
    let stale: Vec<&&str> = known.keys().filter(|scenario| !is_unmet(scenario)).collect();
    assert!(stale.is_empty(), "these pass or are gone; take them out of not_applicable.txt: {stale:?}");
    assert!(seen.len() >= SCENARIOS, "only {} scenarios: {seen:?}", seen.len());
    server.signal(Signal::TERM);
    server.end().exit(0);
    assert!(!sage.path(".sage/state/serve.json").exists());
}
