//! Hand-made cases with their exact output (`tests/cases.json`), and what holds for all inputs.
//!
//! In the file a claim is `[subject, predicate, value, confidence, evidence?, critical?]`, and what is empty,
//! null or false in the output is left out.

mod laws;

use serde_json::{Map, Value, json};

use super::*;

/// Read when the test runs, so that a case can be changed without building everything anew.
fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/synthesis/tests/cases.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn claim(short: &Value) -> Value {
    let Value::Array(parts) = short else { return short.clone() };
    let names = ["subject", "predicate", "value", "confidence", "evidence", "critical"];
    Value::Object(names.iter().zip(parts).map(|(name, part)| ((*name).to_owned(), part.clone())).collect())
}

/// `{name, claims: [[..]]}` means a step that succeeded with a result of these claims.
fn source(short: &Value) -> Source {
    let mut full = short.as_object().unwrap().clone();
    if let Some(Value::Array(claims)) = full.shift_remove("claims") {
        full.insert("result".into(), json!({"claims": claims.iter().map(claim).collect::<Vec<_>>()}));
    }
    full.entry("state").or_insert_with(|| json!("succeeded"));
    serde_json::from_value(Value::Object(full)).unwrap()
}

fn bare(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(name, value)| name == "value" || !is_empty(value));
            Value::Object(kept.map(|(name, value)| (name, bare(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(bare).collect()),
        other => other,
    }
}

fn found(case: &Value) -> Value {
    let sources: Vec<Source> = case["sources"].as_array().unwrap().iter().map(source).collect();
    let threshold = case["threshold"].as_f64().unwrap_or(THRESHOLD);
    let mut found = serde_json::to_value(synthesize(&sources, threshold)).unwrap();
    found.as_object_mut().unwrap().shift_remove("document").unwrap();
    bare(found)
}

// covers: S5, LESSONS "Synthesis"
#[test]
fn cases_have_exactly_their_output() {
    let cases = cases();
    assert!(cases.len() >= 30, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let found = found(case);
        if found != case["output"] {
            wrong.push(format!("CASE {}\nFOUND {found}\nWANTED {}", case["name"], case["output"]));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ\n{}", wrong.len(), wrong.join("\n"));
}

/// Thousands of claims of many sources: all of them are there.
// covers: S5
#[test]
fn a_flood_of_claims_is_put_in_order() {
    let claims = |source: usize| {
        let claim = |n: usize| {
            let value = if n.is_multiple_of(10) { json!(source) } else { json!(n) };
            json!({"subject": format!("subject {n}"), "predicate": "is", "value": value, "confidence": 0.8,
                   "evidence": [format!("src/f{}.rs:{source}", n % 50)]})
        };
        json!({"claims": (0..2_000).map(claim).collect::<Vec<_>>()})
    };
    let named = |n: usize| Source {
        name: format!("p/each[{n}]"),
        state: "succeeded".into(),
        result: Some(claims(n)),
        ..Source::default()
    };
    let sources: Vec<Source> = (0..8).map(named).collect();
    let out = synthesize(&sources, THRESHOLD);
    assert_eq!((out.agreements.len(), out.conflicts.len(), out.gaps.len()), (1_800, 200, 0));
    assert!(out.conflicts.iter().all(|conflict| conflict.sides.len() == 8));
    assert!(out.insights.is_empty(), "each of them says all of it");
    assert_eq!((out.confidence.value, out.confidence.independent), (0.73, 8));
}

// covers: S5
#[test]
fn the_document_has_everything_in_it() {
    let sources = json!([
        {"name": "a/one", "claims": [["login", "is safe", true, 0.7, ["src/login.rs:1"], true],
                                     ["x", "retries", 3, 0.8, ["src/x.rs:1"]],
                                     ["db", "engine", "a | b\n# not a heading", 0.6]]},
        {"name": "a/two", "claims": [["login", "is safe", false, 0.7, ["src/login.rs:2"]],
                                     ["x", "retries", "three", 0.6],
                                     ["db", "owner", "Ann"]]},
        {"name": "a/three", "claims": [["x", "retries", 3, 0.6], ["login", "is safe", "no", 0.4]], "saw": ["a/one"]},
        {"name": "a/four", "state": "failed", "why": "exit code 3"}
    ]);
    let sources: Vec<Source> = sources.as_array().unwrap().iter().map(source).collect();
    insta::assert_snapshot!(synthesize(&sources, THRESHOLD).document, @r"
    # Synthesis

    3 of 4 sources made claims: 1 agreement, 1 conflict, 2 said by one source only, 1 insight, 1 gap. Confidence 0.5694 (0.2231 to 0.65).

    **A person should decide:** unresolved and critical: login, is safe

    ## Agreements

    - **x**, retries: 3 - a/one, a/two, a/three; independent: 2; confidence 0.8 (0.64 to 0.8); evidence: src/x.rs:1

    ## Conflicts

    ### login: is safe (critical)

    one says yes, the other says no; a source calls it critical. Not resolved; confidence in the first side: 0.3776

    | value | sources | evidence | confidence |
    |---|---|---|---|
    | no | a/two, a/three | src/login.rs:2 | 0.7 |
    | yes | a/one | src/login.rs:1 | 0.7 |

    ## Said by one source only

    - **db**, engine: a | b # not a heading - a/one; others are silent; confidence 0.6
    - **db**, owner: Ann - a/two; others are silent; confidence 0.5
    - **login**, is safe: yes - a/one; others contradict; confidence 0.7; evidence: src/login.rs:1

    ## Only seen together

    - db - engine: a | b # not a heading (a/one); owner: Ann (a/two); confidence 0.5

    ## Gaps

    - a/four: it failed: exit code 3

    ## Not independent

    - a/three: it saw a/one

    ## Notes

    - a/two: 1 claim has no confidence from 0 to 1; 0.5 is assumed

    ## Confidence

    0.5694 (0.2231 to 0.65), from 2 independent sources. Never above the best independent evidence.
    ");
}
