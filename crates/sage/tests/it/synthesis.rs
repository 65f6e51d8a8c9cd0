//! `synthesize` steps in the binary: claims of several agents, compared; what cannot be resolved goes to a person.

use serde_json::{Value, json};

use crate::dsl::Sage;

/// Three agents look, one of them fails; two contradict each other.
const AUDIT: &str = r#"
name: t
phases:
  - id: look
    join: { atLeast: 2 }
    operations:
      - { id: a, type: agent, agent: fake, prompt: look, params: { script: [{ result: {
          claims: [{ subject: login, predicate: is rate limited, value: true, confidence: 0.7, evidence: ["src/login.rs:3"] },
                   { subject: login, predicate: timeout, value: 1.5 s, confidence: 0.6 }] } }] } }
      - { id: b, type: agent, agent: fake, prompt: look, params: { script: [{ result: {
          claims: [{ subject: Login, predicate: isn't rate limited, value: true, confidence: 0.7, evidence: ["src/login.rs:9"] },
                   { subject: login, predicate: timeout, value: 1500ms, confidence: 0.4 }] } }] } }
      - { id: c, type: agent, agent: fake, prompt: look, retry: 1, params: { script: [{ fault: crash }] } }
  - id: synthesis
    dependencies: [look]
    operations: { type: synthesize, params: { from: [look/a, look/b, look/c] } }
  - id: decide
    dependencies: [synthesis]
    operations:
      id: person
      type: approval
      when: '.steps["synthesis/synthesize"].result.escalate'
      params: { message: 'which one? {{ steps["synthesis/synthesize"].result.escalateWhy }}' }
  - id: write
    dependencies: [decide]
    operations: { id: report, type: shell, params: { run: "echo written" } }
"#;

fn synthesis(sage: &Sage, feature: &str) -> Value {
    sage.args(["result", feature, "synthesis/synthesize"]).run().exit(0).json()
}

// covers: S5
#[test]
fn agents_that_contradict_each_other_are_told_apart_and_a_person_decides() {
    let sage = Sage::new().template("t", AUDIT);
    sage.sage("run x -t t").exit(4).stdout_has("sage approve x");
    sage.sage("inbox").exit(0).stdout_has("which one? confidence 0.475 is below 0.5");
    let result = synthesis(&sage, "x");
    let conflict = &result["conflicts"][0];
    assert_eq!(result["conflicts"].as_array().unwrap().len(), 1, "{result}");
    assert_eq!(
        (&conflict["subject"], &conflict["predicate"], &conflict["resolved"]),
        (&json!("Login"), &json!("is rate limited"), &json!(false))
    );
    let sides = |name: &str| {
        conflict["sides"].as_array().unwrap().iter().map(|side| side[name].clone()).collect::<Vec<_>>()
    };
    assert_eq!(sides("value"), [json!(false), json!(true)]);
    assert_eq!(sides("sources"), [json!(["look/b"]), json!(["look/a"])]);
    assert_eq!(sides("evidence"), [json!(["src/login.rs:9"]), json!(["src/login.rs:3"])]);
    assert_eq!(result["agreements"][0]["sources"], json!(["look/a", "look/b"]));
    let gaps = result["gaps"].as_array().unwrap();
    assert_eq!((gaps.len(), &gaps[0]["source"]), (1, &json!("look/c")), "{result}");
    assert!(gaps[0]["why"].as_str().unwrap().starts_with("it failed: "), "{result}");
    assert_eq!((&result["escalate"], &result["confidence"]["value"]), (&json!(true), &json!(0.475)));
    let document = result["document"].as_str().unwrap();
    assert!(document.contains("| no | look/b | src/login.rs:9 | 0.7 |"), "{document}");
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(3);
    sage.journal("x").assert_nothing_repeated();
    assert_eq!(sage.sage("result x write/report").exit(0).json()["stdout"], "written\n");
}

// covers: S5
#[test]
fn agents_that_agree_ask_nobody() {
    let text = AUDIT.replace("isn't rate limited", "is rate limited").replace("fault: crash", "result: {}");
    let sage = Sage::new().template("t", &text);
    sage.sage("run x -t t").exit(0);
    let result = synthesis(&sage, "x");
    assert_eq!((&result["escalate"], &result["conflicts"]), (&json!(false), &json!([])), "{result}");
    assert_eq!(result["agreements"].as_array().unwrap().len(), 2);
    assert_eq!(
        result["gaps"],
        json!([{"source": "look/c", "why": "its result has no claims and no findings"}])
    );
    assert_eq!(sage.state_of("x", "decide/person"), "skipped");
}

/// Items are sources of their own; what a later step could read is no second opinion; a filter hides nothing.
// covers: S5
#[test]
fn items_count_each_and_who_saw_the_others_does_not_count() {
    let text = r#"
name: t
phases:
  - id: look
    operations:
      id: each
      type: agent
      agent: fake
      foreach: '["one", "two", "three"]'
      tolerate: 1
      retry: 1
      prompt: '{{ item }}'
      filter: '.nothing'
      params:
        script:
          - run: |
              ! grep -q '"two"' "$SAGE_INPUT"
            result: { claims: [{ subject: "x", predicate: is slow, value: yes, confidence: 0.8 }] }
  - id: review
    dependencies: [look]
    operations: { id: check, type: agent, agent: fake, prompt: p, params: { script: [{ result: { claims: [{ subject: "x", predicate: is slow, value: true, confidence: 0.9 }] } }] } }
  - id: end
    dependencies: [review]
    operations: { type: synthesize, params: { from: [look/each, review/check] } }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(3);
    let result = sage.args(["result", "x", "end/synthesize"]).run().exit(0).json();
    let agreement = &result["agreements"][0];
    assert_eq!(agreement["sources"], json!(["look/each[0]", "look/each[2]", "review/check"]), "{result}");
    assert_eq!((&agreement["independentSources"], &agreement["confidence"]), (&json!(2), &json!(0.8)));
    assert_eq!(result["gaps"][0]["source"], "look/each[1]");
    assert_eq!(
        result["dependent"],
        json!([{"source": "review/check", "why": "it saw look/each[0], look/each[1], look/each[2]"}])
    );
}

/// A changed claim runs the synthesis again; an equal one does not.
// covers: S5
#[test]
fn a_synthesis_is_as_old_as_its_sources() {
    let text = r#"
name: t
phases:
  - id: first
    operations: { id: a, type: shell, params: { json: true, run: "cat claims.json" } }
  - id: second
    dependencies: [first]
    operations: { id: b, type: shell, params: { run: "echo same" } }
  - id: end
    dependencies: [second]
    operations: { type: synthesize, params: { from: [first/a] } }
"#;
    let sage = Sage::new().template("t", text);
    let claims = |value: u32| json!({"claims": [{"subject": "x", "predicate": "n", "value": value, "confidence": 0.8}]});
    sage.write("claims.json", claims(1).to_string());
    sage.sage("run x -t t").exit(0);
    let value = |sage: &Sage| {
        let result = sage.args(["result", "x", "end/synthesize"]).run().exit(0).json();
        result["partial"][0]["value"].clone()
    };
    assert_eq!(value(&sage), 1);
    sage.write("claims.json", claims(2).to_string());
    sage.write(".sage/templates/t.yaml", text.replace("cat claims.json", "cat  claims.json"));
    sage.sage("resume x -t t").exit(0);
    assert_eq!(value(&sage), 2);
}

// covers: S5, R6
#[test]
fn a_synthesis_of_what_it_cannot_see_is_refused_before_anything_runs() {
    let sage = Sage::new()
        .template(
            "far",
            &AUDIT.replace("    dependencies: [look]\n", "").replace("[look/a, look/b, look/c]", "[look/a]"),
        )
        .template("typo", &AUDIT.replace("look/c]", "look/d]"))
        .template("none", "name: t\nphases: [{ id: a, operations: { type: synthesize } }]");
    sage.sage("run x -t far").exit(2).stderr_has("does not depend on it").stderr_has("dependencies: [look]");
    sage.sage("run x -t typo").exit(2).stderr_has("unknown step `look/d`").stderr_has("did you mean");
    sage.sage("run x -t none").exit(2).stderr_has("nothing to synthesize");
}
