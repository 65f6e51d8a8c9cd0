//! Settings of a clone that widen what agents may do, or weaken what protects the user.

use super::{call, canary, started};
use crate::dsl::Sage;
use crate::mcp_server::client::{BOTH, Client};
use serde_json::json;

const SHELL: &str =
    "name: t\nphases:\n  - id: p\n    operations: { id: a, type: shell, params: { run: \"true\" } }\n";

// covers: R17, P4
#[test]
fn checks_of_a_clone_run_and_allow_nothing_before_they_are_trusted() {
    let sage = Sage::untrusted();
    canary(&sage, "evil.sh");
    sage.write("sage.toml", "[checks]\ntest = \"./evil.sh\"\n");
    for role in ["auditor", "implementer"] {
        let said = sage.args(["approvals", "check", "./evil.sh", "--role", role]).run();
        assert!(!said.stdout.contains("a check of the project"), "{role}: {}", said.stdout);
    }
    let refused = call(&sage, "run x -t bugfix --agent offline").exit(2);
    refused.stderr_has("`sage.toml: checks` is not trusted").stderr_has("hint: sage trust");
    assert_eq!(started(&sage), [""; 0]);
    // Whoever runs none of them is told, and not asked.
    sage.write(".sage/templates/t.yaml", SHELL);
    call(&sage, "run y -t t").exit(0).stderr_has("do not count: checks");
    call(&sage, "trust").exit(2).stdout_has("checks  sage.toml  runs `./evil.sh`");
    call(&sage, "trust checks --yes").exit(0);
    sage.args(["approvals", "check", "./evil.sh", "--role", "auditor"])
        .run()
        .stdout_has("a check of the project");
    call(&sage, "run x -t bugfix --agent offline");
    assert_eq!(started(&sage), ["evil.sh sesame"]);
    // A test script changes while people and agents work; the line is what was trusted.
    sage.write("evil.sh", "#!/bin/sh\nexit 0\n");
    call(&sage, "trust").exit(0).stdout_has("nothing in");
}

// covers: R17
#[test]
fn the_name_of_a_built_in_agent_starts_no_other_one() {
    let sage = Sage::untrusted();
    let bin = sage.outside().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    canary(&sage, "claude");
    std::fs::rename(sage.path("claude"), bin.join("claude")).unwrap();
    sage.write("sage.toml", "[agents.offline]\nadapter = \"claude\"\n");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let refused = sage.args(["run", "x", "-t", "audit"]).env("PATH", &path).run().exit(2);
    refused.stderr_has("`sage.toml: agents.offline` is not trusted");
    assert_eq!(started(&sage), [""; 0]);
    call(&sage, "trust").exit(2).stdout_has("is claude under the name offline");
}

// covers: R17, R14
#[test]
fn prices_and_clean_up_of_a_clone_do_not_count() {
    let sage = Sage::untrusted();
    sage.write(".sage/templates/t.yaml", SHELL);
    call(&sage, "run x -t t").exit(0);
    sage.write(
        "sage.toml",
        "[gc]\nolderThan = \"1ms\"\nkeep = 0\nmaxSize = \"1B\"\n[prices.\"claude-opus-4-5\"]\ninput = 0\noutput = 0\n",
    );
    call(&sage, "run y -t t").exit(0).stderr_has("do not count: prices, gc");
    call(&sage, "gc").exit(0).stderr_has("do not count: prices, gc");
    for feature in ["x", "y"] {
        call(&sage, &format!("status {feature}")).exit(0);
        assert!(sage.latest_dir(feature).join("journal.jsonl").is_file(), "{feature} is gone");
    }
    let config = call(&sage, "config").exit(0).stderr_has("do not count: prices, gc");
    assert!(!config.stdout.contains("1ms"), "{}", config.stdout);
    call(&sage, "trust gc prices --yes").exit(0);
    call(&sage, "config").exit(0).stdout_has("1ms").stderr_lacks("do not count");
    call(&sage, "gc").exit(0);
    assert_eq!(std::fs::read_dir(sage.path(".sage/state/runs")).unwrap().count(), 0);
}

/// A step, or a model over MCP, gets what the project's person allowed.
// covers: R14, R16, R17
#[test]
fn nobody_but_a_person_gives_a_run_more_than_the_projects_budget() {
    let sage = Sage::new().template("t", SHELL);
    sage.write(".sage/templates/rich.yaml", SHELL.replace("name: t\n", "name: t\nbudget: 99999usd\n"));
    sage.write("sage.toml", "budget = \"1usd\"\n");
    let budget = |feature: &str| {
        sage.args(["budget", feature, "--json"]).run().exit(0).json()["nodes"][0]["cap"]["usd"].clone()
    };
    for era in BOTH {
        let mut client = Client::start(&sage, era);
        let wish = |budget: &str| json!({"feature": "m", "template": "t", "options": {"budget": budget}});
        let error =
            client.call("sage_workflow_execute", wish("100000usd")).error("WORKFLOW_VALIDATION_ERROR");
        assert!(
            error["message"].as_str().unwrap().contains("more than the project's budget of 1usd"),
            "{error}"
        );
        client.hang_up();
    }
    let script = format!("{} -C . run inner -t", env!("CARGO_BIN_EXE_sage"));
    for (name, command, code) in [
        ("over", format!("{script} t --budget 99999usd"), 1),
        ("tokens", format!("{script} t --budget 5k --new"), 0),
        ("rich", format!("{script} rich --new"), 0),
    ] {
        let text = format!(
            "name: by-{name}\nphases:\n  - id: p\n    operations: {{ id: a, type: shell, retry: 1, params: {{ run: \"{command}\" }} }}\n"
        );
        sage.write(&format!(".sage/templates/by-{name}.yaml"), text);
        call(&sage, &format!("run {name} -t by-{name}")).exit(code);
        if code == 0 {
            assert_eq!(budget("inner"), 1.0, "{name}");
        }
    }
    // A person can.
    call(&sage, "run own -t t --budget 2usd").exit(0);
}
