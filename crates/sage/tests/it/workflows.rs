//! The templates and operations that come with Sage: routed by verdicts and flags, overridden by the project,
//! frozen with the run.

use serde_json::{Value, json};

use crate::dsl::Sage;

pub const TEMPLATES: [&str; 6] = ["audit", "bugfix", "delivery", "enhancement", "feature", "swarm"];

/// Puts a scripted agent in the place of an operation.
fn scripted(sage: &Sage, operation: &str, turns: Value) {
    let text = format!("---\nagent: fake\nretry: 1\nparams: {{ script: {turns} }}\n---\n");
    sage.write(&format!(".sage/operations/{operation}.md"), text);
}

fn report(summary: &str) -> Value {
    json!({"result": {"summary": summary, "findings": [], "claims": []}})
}

fn work() -> Value {
    json!([{"write": {"done.txt": "x"}, "result": {"summary": "done", "filesChanged": ["done.txt"], "done": [], "open": []}}])
}

/// `delivery` whose stages are all scripted. Research says `second` once it has seen a critique.
fn delivery(verdict: &str) -> Sage {
    let sage = Sage::new();
    let round = "{{ 'second' if steps['critique/critique'].result else 'first' }}";
    scripted(&sage, "research.practices", json!([report(round)]));
    let critique = json!([{"result": {"verdict": verdict, "summary": "look at the edges", "issues": []}}]);
    scripted(&sage, "critique", critique);
    for name in ["implement.backend", "implement.frontend"] {
        scripted(&sage, name, work());
    }
    scripted(&sage, "build.verify", json!([{"result": {"ran": true, "passed": true, "summary": "ok"}}]));
    for name in ["qa.backend", "qa.frontend", "audit.performance", "audit.security"] {
        scripted(&sage, name, json!([report("fine")]));
    }
    for name in ["devops.prepare", "document"] {
        scripted(&sage, name, json!([report("written")]));
    }
    sage
}

const ONCE_MORE: &str =
    "{{ 'APPROVED' if steps['research/practices'].result.summary == 'second' else 'REQUEST_CHANGES' }}";

// covers: R6
#[test]
fn the_templates_are_valid_and_can_be_looked_at() {
    let sage = Sage::new();
    for name in TEMPLATES {
        sage.sage(&format!("validate {name}")).exit(0).stdout_has("valid (");
        sage.sage(&format!("graph {name}")).exit(0);
        sage.sage(&format!("templates show {name}")).exit(0).stdout_has(&format!("name: {name}\n"));
    }
    sage.sage("templates").exit(0).stdout_has("Research from all sides at once");
}

// covers: P3, P1
#[test]
fn requested_changes_go_back_once_with_the_critique() {
    let sage = delivery(ONCE_MORE);
    sage.sage("run x -t delivery --quiet").exit(0);
    let started = sage.journal("x").started();
    let count = |path: &str| started.iter().filter(|step| *step == path).count();
    assert_eq!((count("research@2/practices"), count("critique@2/critique")), (1, 1), "{started:?}");
    assert_eq!(count("research@3/practices"), 0);
    assert_eq!(sage.state_of("x", "decision/person"), "skipped");
    // Both conditional stages are off by default.
    assert_eq!(sage.state_of("x", "checks/performance"), "skipped");
    assert_eq!(sage.state_of("x", "checks/security"), "skipped");
    let statistics = std::fs::read_to_string(sage.path("docs/specs/x/statistics.md")).unwrap();
    assert!(statistics.contains("| qa/backend | succeeded |"), "{statistics}");
}

// covers: P3
#[test]
fn the_second_round_reads_what_the_first_was_told() {
    let sage = delivery(ONCE_MORE);
    let prompt = "---\nagent: command\nretry: 1\nparams:\n  critique: \"\"\n  command: [sh, -c, \"cat > prompt-$SAGE_ATTEMPT-$(echo $SAGE_STEP | tr / _).txt; \
        grep -q edges prompt-*2*.txt 2>/dev/null && S=second || S=first; echo \\\"{\\\\\\\"summary\\\\\\\": \\\\\\\"$S\\\\\\\", \\\\\\\"findings\\\\\\\": []}\\\"\"]\n\
        schema: { type: object }\n---\nResearch.{% if params.critique %} Answer: {{ params.critique }}{% endif %}\n";
    sage.write(".sage/operations/research.practices.md", prompt);
    sage.sage("run x -t delivery --quiet").exit(0);
    let read = |name: &str| std::fs::read_to_string(sage.path(name)).unwrap();
    assert_eq!(read("prompt-1-research_practices.txt").trim(), "Research.");
    assert!(read("prompt-1-research@2_practices.txt").contains("look at the edges"));
}

// covers: P3
#[test]
fn an_escalation_waits_for_a_person_in_the_inbox() {
    let sage = delivery("ESCALATE");
    sage.sage("run x -t delivery --quiet").exit(4);
    sage.sage("inbox").exit(0).stdout_has("decision/person").stdout_has("look at the edges");
    assert_eq!(sage.state_of("x", "implementation/backend"), "pending");
    sage.sage("approve x decision/person").exit(0);
    sage.sage("resume x --quiet").exit(0);
    sage.journal("x").assert_nothing_repeated();
    let refused = delivery("ESCALATE");
    refused.sage("run x -t delivery --quiet").exit(4);
    refused.sage("reject x decision/person").exit(0);
    refused.sage("resume x --quiet").exit(1);
    assert_eq!(refused.state_of("x", "implementation/backend"), "blocked");
}

// covers: P1
#[test]
fn flags_switch_the_conditional_stages() {
    for (flag, on, off) in
        [("performance", "performance", "security"), ("security", "security", "performance")]
    {
        let sage = delivery("APPROVED");
        sage.sage(&format!("run x -t delivery --quiet -i needs_{flag}=true")).exit(0);
        assert_eq!(sage.state_of("x", &format!("checks/{on}")), "succeeded");
        assert_eq!(sage.state_of("x", &format!("checks/{off}")), "skipped");
    }
}

// covers: P5
#[test]
fn a_failing_qa_stage_lets_its_sibling_finish_and_the_report_has_both() {
    let sage = delivery("APPROVED");
    scripted(&sage, "qa.backend", json!([{"fault": "crash"}]));
    scripted(&sage, "qa.frontend", json!([{"delayMs": 300, "fault": "silent-exit"}]));
    let run = sage.sage("run x -t delivery --json").exit(1);
    let summary = run.json_lines().pop().unwrap();
    let errors = summary["errors"].to_string();
    assert!(errors.contains("qa/backend") && errors.contains("qa/frontend"), "{errors}");
    assert_eq!(sage.state_of("x", "documentation/document"), "blocked");
    scripted(&sage, "qa.frontend", json!([report("fine")]));
    sage.sage("run y -t delivery --quiet").exit(1);
    assert_eq!(sage.state_of("y", "qa/frontend"), "succeeded");
}

// covers: R6
#[test]
fn the_projects_operations_win_and_bad_ones_are_told_with_their_place() {
    let sage = Sage::new().template("t", "name: t\nphases:\n  - id: a\n    operations: { type: look }\n");
    sage.sage("validate t").exit(2).stderr_has("unknown type `look`");
    sage.write(".sage/operations/look.md", "---\nkind: shell\nfliter: {}\n---\necho hi\n");
    sage.sage("validate t")
        .exit(2)
        .stderr_has(".sage/operations/look.md:3:1")
        .stderr_has("did you mean `filter`?");
    sage.write(".sage/operations/look.md", "---\nkind: shell\nfilter: .stdout\n---\necho hi\n");
    sage.sage("run x -t t --quiet").exit(0);
    assert_eq!(sage.sage("result x a/look").exit(0).json(), json!("hi\n"));
}

/// Not even the built-in operation of the same name takes its place.
// covers: R6
#[test]
fn a_broken_operation_stops_who_names_it_and_only_warns_others() {
    let sage =
        Sage::new().template("t", "name: t\nphases:\n  - id: a\n    operations: { type: audit.security }\n");
    sage.write(".sage/operations/audit.security.md", "---\nkind: agnet\n---\nhi\n");
    sage.sage("run x -t t").exit(2).stderr_has("unknown kind `agnet`").stderr_has("nothing was run");
    sage.sage("validate t").exit(2).stderr_has(".sage/operations/audit.security.md has mistakes");
    let warned = sage.sage("validate feature").exit(0);
    warned.stderr_has("warning: the file has mistakes; this template does not use it");
}

// covers: R6
#[test]
fn inputs_that_the_template_does_not_know_are_told_before_anything_runs() {
    let sage = Sage::new();
    let maybe = sage.sage("run x -t delivery -i needs_security=maybe").exit(2);
    maybe.stderr_has("input `needs_security` must be true or false");
    let other = sage.sage("run x -t delivery -i needs_perf=true --dry-run").exit(2);
    other.stderr_has("unknown input `needs_perf`").stderr_has("hint: ");
    sage.sage("run x -t delivery -i needs_performance=true --dry-run")
        .exit(0)
        .stdout_has("of them free (no model)");
}

/// Planning is not paid for where the implementers cannot begin.
// covers: R6
#[test]
fn a_swarm_without_a_repository_is_refused_before_it_starts() {
    let sage = Sage::new();
    sage.sage("run x -t swarm").exit(2).stderr_has("is not in a git repository").stderr_has("hint: git init");
    sage.sage("status x").exit(2);
}

// covers: R5
#[test]
fn a_run_keeps_the_operations_that_it_began_with() {
    let template = "name: t\nphases:\n  - id: b\n    operations: { id: ask, type: approval }\n  - id: c\n    \
        dependencies: [b]\n    operations: { type: look }\n";
    let sage = Sage::new().template("t", template);
    sage.write(".sage/operations/look.md", "---\nkind: shell\nfilter: .stdout\n---\necho old\n");
    sage.sage("run x -t t --quiet").exit(4);
    sage.write(".sage/operations/look.md", "---\nkind: shell\nfilter: .stdout\n---\necho new\n");
    sage.sage("approve x b/ask").exit(0);
    sage.sage("resume x").exit(0).stderr_has("has changed since this run started");
    assert_eq!(sage.sage("result x c/look").exit(0).json(), json!("old\n"));
    sage.sage("resume x -t t --quiet").exit(0);
    assert_eq!(sage.sage("result x c/look").exit(0).json(), json!("new\n"));
}

// covers: R6
#[test]
fn nothing_is_spent_without_an_agent_that_somebody_chose() {
    let template = "name: t\nphases:\n  - id: a\n    operations: { type: agent, prompt: do it }\n";
    let sage = Sage::new().template("t", template);
    let run = sage.sage("run x -t t").exit(1);
    run.stderr_has("agent: offline")
        .stdout_has("does not know the operation `agent`")
        .stdout_has("sage agents");
    assert_eq!(sage.journal("x").started().len(), 1, "the same question has the same answer");
    sage.sage("run y -t t --agent nobody").exit(2).stderr_has("agent `nobody` is not configured");
}
