//! What holds for every input: nothing is lost, nothing is surer than its best evidence, and the order of the
//! sources decides about nothing but the order of their names.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(true)),
        Just(json!("no")),
        Just(json!("Yes")),
        Just(json!(null)),
        Just(json!("n/a")),
        Just(json!("1.2k")),
        Just(json!("1200 ms")),
        Just(json!("1.2 s")),
        Just(json!("not safe")),
        Just(json!("safe")),
        Just(json!(["a", "b"])),
        Just(json!({"x": 1})),
        (0..4u32).prop_map(|n| json!(n)),
        "[a-c]{1,2}".prop_map(|text| json!(text)),
        "\\PC{0,12}".prop_map(|text| json!(text)),
    ]
}

fn claim() -> impl Strategy<Value = Value> {
    let subject = prop_oneof!["[a-d]{1,2}", "[A-D] the", "\\PC{0,8}"];
    let predicate = prop_oneof![
        Just("is".to_owned()),
        Just("is not".to_owned()),
        Just("is safe".to_owned()),
        Just("lacks".to_owned()),
        Just("version".to_owned()),
        "[p-r]",
        "\\PC{0,8}"
    ];
    let confidence = prop_oneof![
        (0..=100u32).prop_map(|n| json!(f64::from(n) / 100.0)),
        Just(json!(7)),
        Just(json!("high")),
        Just(json!(null))
    ];
    let evidence = proptest::collection::vec("[x-z]\\.rs:[1-3]", 0..3);
    (subject, predicate, value(), confidence, evidence).prop_map(|(subject, predicate, value, confidence, evidence)| {
        json!({"subject": subject, "predicate": predicate, "value": value, "confidence": confidence, "evidence": evidence})
    })
}

fn result() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        8 => proptest::collection::vec(claim(), 0..6).prop_map(|claims| Some(json!({"claims": claims}))),
        1 => proptest::collection::vec("[a-c]", 0..3).prop_map(|titles| {
            let findings: Vec<Value> = titles.iter().map(|title| json!({"title": title, "confidence": 0.4})).collect();
            Some(json!({"findings": findings}))
        }),
        1 => Just(None),
        1 => Just(Some(json!({"claims": "many"}))),
        1 => Just(Some(json!({"claims": [3, {"subject": 1}, {"subject": "x"}]}))),
    ]
}

fn sources() -> impl Strategy<Value = Vec<Source>> {
    let one = (result(), proptest::collection::vec(0..5usize, 0..2), proptest::option::of("[s-t]"));
    proptest::collection::vec(one, 0..5).prop_map(|list| {
        let name = |index: usize| format!("p/s{index}");
        let mut sources = Vec::new();
        for (index, (result, saw, session)) in list.into_iter().enumerate() {
            let state = if index % 4 == 3 && result.is_none() { "failed" } else { "succeeded" };
            sources.push(Source {
                name: name(index),
                state: state.into(),
                result,
                saw: saw.into_iter().map(name).collect(),
                session,
                ..Source::default()
            });
        }
        sources
    })
}

/// The claims that can be read, with their sources and confidences.
fn claims(sources: &[Source]) -> Vec<(String, Value)> {
    let of = |source: &Source| -> Vec<(String, Value)> {
        let result = source.result.clone().unwrap_or_default();
        let claims = result.get("claims").and_then(Value::as_array).cloned().unwrap_or_default();
        claims.into_iter().map(|claim| (source.name.clone(), claim)).collect()
    };
    sources.iter().flat_map(of).collect()
}

/// Everything that is said in the output: subject and source.
fn said(out: &Synthesis) -> Vec<(String, String)> {
    let mut said = Vec::new();
    let mut add = |subject: &str, sources: &[String]| {
        said.extend(sources.iter().map(|source| (words::name(subject), source.clone())));
    };
    out.agreements.iter().for_each(|a| add(&a.subject, &a.sources));
    out.partial.iter().for_each(|p| add(&p.subject, &p.sources));
    out.minority.iter().for_each(|m| add(&m.subject, std::slice::from_ref(&m.source)));
    for conflict in &out.conflicts {
        conflict.sides.iter().for_each(|side| add(&conflict.subject, &side.sources));
    }
    said
}

/// Without what the order of the sources decides.
fn unordered(out: &Synthesis) -> Value {
    fn sort(value: &mut Value) {
        match value {
            Value::Array(items) => {
                items.iter_mut().for_each(sort);
                items.sort_by_key(Value::to_string);
            }
            Value::Object(map) => map.values_mut().for_each(sort),
            _ => {}
        }
    }
    let mut out = out.clone();
    (out.document, out.dependent) = (String::new(), Vec::new());
    out.agreements.iter_mut().for_each(|agreement| agreement.dependent.clear());
    out.insights
        .iter_mut()
        .for_each(|insight| insight.text = insight.text.replace(|c: char| !c.is_alphabetic(), ""));
    let mut value = serde_json::to_value(out).unwrap();
    sort(&mut value);
    value
}

// covers: S5
proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost(sources in sources()) {
        let out = synthesize(&sources, THRESHOLD);
        let said = said(&out);
        for (source, claim) in claims(&sources) {
            let subject = claim.get("subject").and_then(Value::as_str).unwrap_or_default();
            let stands = said.contains(&(words::name(subject), source.clone()));
            let told = out.gaps.iter().any(|gap| gap.source == source);
            prop_assert!(stands || told, "{claim} of {source} is nowhere in {out:?}");
        }
        for source in sources.iter().filter(|source| source.result.is_none()) {
            prop_assert!(out.gaps.iter().any(|gap| gap.source == source.name));
        }
    }

    #[test]
    fn nothing_is_surer_than_its_best_evidence(sources in sources()) {
        let out = synthesize(&sources, THRESHOLD);
        let sure = |claim: &Value| claim["confidence"].as_f64().filter(|c| (0.0..=1.0).contains(c)).unwrap_or(0.5);
        let best = claims(&sources).iter().map(|(_, claim)| sure(claim)).fold(0.5, f64::max) + 1e-9;
        let whole = out.confidence;
        prop_assert!(0.0 <= whole.low && whole.low <= whole.high && whole.value <= whole.high && whole.high <= best);
        for agreement in &out.agreements {
            let own = |(source, claim): &&(String, Value)| {
                let subject = claim["subject"].as_str().unwrap_or_default();
                agreement.sources.contains(source) && words::name(subject) == words::name(&agreement.subject)
            };
            let best = claims(&sources).iter().filter(own).map(|(_, claim)| sure(claim)).fold(0.0, f64::max).max(0.4);
            prop_assert!(agreement.confidence <= best + 1e-9, "{agreement:?}");
            prop_assert!(agreement.range[0] <= agreement.range[1] && agreement.range[1] == agreement.confidence);
            prop_assert!((1..=agreement.sources.len()).contains(&agreement.independent_sources));
        }
        for conflict in &out.conflicts {
            prop_assert!(conflict.sides.len() > 1 && conflict.confidence <= conflict.sides[0].confidence);
        }
        for insight in &out.insights {
            prop_assert!(insight.from.len() > 1);
        }
    }

    #[test]
    fn the_order_of_the_sources_decides_about_nothing(sources in sources(), turn in 0..5usize) {
        let mut turned = sources.clone();
        turned.reverse();
        let middle = turn.min(turned.len());
        turned.rotate_left(middle);
        prop_assert_eq!(unordered(&synthesize(&sources, THRESHOLD)), unordered(&synthesize(&turned, THRESHOLD)));
    }

    #[test]
    fn the_same_input_gives_the_same_bytes(sources in sources()) {
        let text = || serde_json::to_string(&synthesize(&sources, THRESHOLD)).unwrap();
        prop_assert_eq!(text(), text());
    }
}
