//! Every fault of the scripted agent: its class, its message and what to do about it.

use sage_agents::FAULTS;

use crate::dsl::Sage;

/// Fault, fields of the step, class and beginning of the message, a word of the hint.
const TABLE: [(&str, &str, &str, &str); 12] = [
    ("hang", "idleTimeout: 500ms", "timeout: idle: no progress for 500ms", "sage logs"),
    ("crash", "", "lost: killed by SIGABRT", "last ones"),
    ("garbage", "", "lost: ended without a result", "last ones"),
    ("truncated", "", "lost: ended without a result", "last ones"),
    ("silent-exit", "", "lost: ended without a result", "last ones"),
    ("ignore-term", "timeout: 500ms", "timeout: timed out after 500ms", "sage logs"),
    ("flood", "timeout: 500ms", "timeout: timed out after 500ms", "sage logs"),
    ("rate-limit", "", "rate-limit: too many requests", "sage limits"),
    ("quota", "", "quota: the quota is used up", "reset"),
    ("overloaded", "", "transient: overloaded: the service is overloaded", "resume later"),
    ("auth", "", "auth: not logged in", "log in"),
    ("double-result", "", "invalid: two results", "is wrong"),
];

fn project(fault: &str, fields: &str) -> Sage {
    let comma = if fields.is_empty() { "" } else { ", " };
    let operation = format!(
        "{{ id: x, type: agent, agent: fake, retry: 1{comma}{fields}, params: {{ prompt: go, script: [ {{ fault: {fault} }} ] }} }}"
    );
    Sage::new().template("f", &format!("name: f\nphases:\n  - id: p\n    operations: {operation}\n"))
}

// covers: R7, S4
#[test]
fn every_fault_of_the_scripted_agent_has_its_class_message_and_hint() {
    assert_eq!(TABLE.map(|row| row.0), FAULTS);
    for (fault, fields, said, hint) in TABLE {
        let sage = project(fault, fields);
        let refused = matches!(fault, "rate-limit" | "quota");
        let run = sage.sage(if refused { "run x -t f --quiet --no-wait" } else { "run x -t f --quiet" });
        if refused {
            // A refusal is no failure: the step waits for its target, which says until when.
            run.exit(4);
            sage.sage("logs x").exit(0).stdout_has(said);
        } else {
            run.exit(1).stdout_has(said).stdout_has(hint);
            let step = sage.status("x")["steps"][0].clone();
            assert!(step["error"].as_str().unwrap().contains(said), "{fault}: {step}");
            assert!(step["hint"].as_str().unwrap().contains(hint), "{fault}: {step}");
        }
        sage.assert_nothing_alive();
    }
}
