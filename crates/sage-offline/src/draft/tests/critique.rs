use serde_json::{Value, json};

use super::{ask, shop};

fn found(title: &str, place: &str) -> Value {
    json!({"title": title, "detail": "", "relevance": 0.8, "evidence": [place]})
}

fn good() -> Value {
    json!({"findings": [found("one", "shop/payments.py:1"), found("two", "shop/orders.py"), found("three", "README.md:3")]})
}

#[track_caller]
fn verdict(steps: Value, params: Value) -> (String, Vec<String>) {
    let result = ask("critique", &shop(), "payment processing").steps(steps).params(params).done();
    let titles =
        result["issues"].as_array().unwrap().iter().map(|issue| issue["title"].as_str().unwrap().to_string());
    (result["verdict"].as_str().unwrap().to_string(), titles.collect())
}

// covers: P3
#[test]
fn enough_findings_that_stand_are_approved() {
    assert_eq!(verdict(json!({"research/practices": good()}), json!({})), ("APPROVED".into(), vec![]));
}

// covers: P3
#[test]
fn evidence_that_does_not_exist_is_sent_back() {
    let mut report = good();
    report["findings"].as_array_mut().unwrap().push(found("four", "shop/payments.py:999"));
    let (verdict, issues) = verdict(json!({"research/practices": report}), json!({}));
    assert_eq!(
        (verdict.as_str(), issues),
        ("REQUEST_CHANGES", vec!["Evidence that does not exist: shop/payments.py:999".to_string()])
    );
}

// covers: P3
#[test]
fn no_findings_are_sent_back_and_the_number_can_be_chosen() {
    let (first, issues) = verdict(json!({"research/practices": null}), json!({}));
    assert_eq!((first.as_str(), issues), ("REQUEST_CHANGES", vec!["No findings".to_string()]));
    let (second, issues) = verdict(json!({"research/practices": good()}), json!({"minFindings": 4}));
    assert_eq!(second, "REQUEST_CHANGES");
    assert_eq!(issues, ["3 of 3 findings stand on a place in the project, 4 are needed"]);
    assert_eq!(verdict(json!({"research/practices": good()}), json!({"minFindings": 1})).0, "APPROVED");
}

// covers: P3
#[test]
fn what_was_asked_for_before_must_be_answered() {
    let feedback = json!({"issues": [{"title": "How are refunds limited?"}]});
    let (first, issues) = verdict(json!({"r": good()}), json!({"round": 2, "feedback": feedback}));
    assert_eq!(
        (first.as_str(), issues),
        ("REQUEST_CHANGES", vec!["Not answered: How are refunds limited?".to_string()])
    );
    let mut report = good();
    report["findings"]
        .as_array_mut()
        .unwrap()
        .push(found("Refunds are limited to the receipt", "shop/payments.py:18"));
    assert_eq!(verdict(json!({"r": report}), json!({"round": 2, "feedback": feedback})).0, "APPROVED");
}

// covers: P3
#[test]
fn a_round_that_brings_nothing_new_goes_to_a_person() {
    let first = ask("critique", &shop(), "x").steps(json!({"r": {"findings": []}})).done();
    assert_eq!(first["verdict"], "REQUEST_CHANGES");
    let (second, _) = verdict(json!({"r": {"findings": []}}), json!({"round": 2, "feedback": first}));
    assert_eq!(second, "ESCALATE");
}

// covers: P3, S5
#[test]
fn steps_that_contradict_each_other_go_to_a_person() {
    let claim = |value: Value| json!({"subject": "Payments", "predicate": "retries", "value": value});
    let with = |value: Value| {
        let mut report = good();
        report["claims"] = json!([claim(value)]);
        report
    };
    let (first, issues) = verdict(json!({"a": with(json!(3)), "b": with(json!("none"))}), json!({}));
    assert_eq!((first.as_str(), issues), ("ESCALATE", vec!["Contradiction: Payments retries".to_string()]));
    assert_eq!(verdict(json!({"a": with(json!(3)), "b": with(json!(3.0))}), json!({})).0, "APPROVED");
    // One step may say two things about one subject; that is its own affair.
    let mut alone = good();
    alone["claims"] = json!([claim(json!(1)), claim(json!(2))]);
    assert_eq!(verdict(json!({"a": alone}), json!({})).0, "APPROVED");
}
