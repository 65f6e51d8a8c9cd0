//! Makes the summary of a run fit a model's context. What is left out can be read page by page.
//!
//! One pass after the other takes away what matters least, until the answer fits: figures that only
//! `sage_workflow_status` needs, large results, long texts, finished phases. `omitted` counts what is missing from
//! lists, and `read` says how to get the rest.

use sage_engine::tokens;
use serde_json::{Map, Value, json};

use super::super::error::{call_text, cut};

/// Of a whole answer, its text included.
pub const MOST_TOKENS: u64 = 2_000;
/// No text of this size has so few tokens: it is not worth counting.
const MOST_BYTES: usize = 16_000;

/// Figures that an answer keeps.
const METRICS: &[&str] = &[
    "totalTime",
    "totalTokens",
    "contextReloads",
    "phaseCount",
    "sequentialTime",
    "speedup",
    "cacheHitRate",
    "tokensSaved",
    "costUsd",
    "costEstimated",
    "tokensByClass",
    "budget",
];
/// Lists of an answer, beside its phases.
const LISTS: &[&str] = &["outputs", "questions", "errors", "reasons", "notices", "allowances"];

type Pass = fn(&mut Value, &str);

const PASSES: &[Pass] = &[
    |value, _| keep_figures(value),
    |value, feature| point(value, feature, Sizes { whole: 1_000, preview: 300 }),
    |value, feature| point(value, feature, Sizes { whole: 300, preview: 120 }),
    |value, _| cut_lists(value, 300, 10),
    |value, _| bare_phases(value),
    |value, _| keep_phases(value, 20),
    |value, _| cut_lists(value, 120, 5),
    |value, _| keep_phases(value, 5),
    |value, _| cut_lists(value, 40, 2),
];

/// `told` are the tokens of what is answered beside the value.
pub fn fit(value: &mut Value, feature: &str, told: u64) {
    let room = MOST_TOKENS.saturating_sub(told);
    for (number, pass) in PASSES.iter().enumerate() {
        if fits(value, room) {
            return;
        }
        pass(value, feature);
        if number > 0 {
            value["read"] = call_text("sage_result", feature).into();
        }
    }
}

fn fits(value: &Value, room: u64) -> bool {
    let text = value.to_string();
    let bytes = text.len();
    bytes as u64 <= room || (bytes <= MOST_BYTES && tokens::count(&text) <= room)
}

fn keep_figures(value: &mut Value) {
    if let Some(metrics) = value["results"]["metrics"].as_object_mut() {
        let alerts = metrics.remove("alerts").filter(|alerts| *alerts != json!([]));
        metrics.retain(|name, _| METRICS.contains(&name.as_str()));
        metrics.extend(alerts.map(|alerts| ("alerts".to_string(), alerts)));
    }
}

fn phases(value: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    value["results"]["phases"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
}

/// In bytes and characters.
#[derive(Clone, Copy)]
struct Sizes {
    /// Of a result that stays.
    whole: usize,
    preview: usize,
}

/// Large results become pointers.
fn point(value: &mut Value, feature: &str, sizes: Sizes) {
    for phase in phases(value) {
        let id = phase["phaseId"].as_str().unwrap_or_default().to_string();
        for (operation, result) in phase["results"].as_object_mut().into_iter().flatten() {
            if result["omitted"] == true {
                let shorter = result["preview"].as_str().map(|preview| cut(preview, sizes.preview));
                result["preview"] = shorter.into();
                continue;
            }
            let text = result.to_string();
            if text.len() > sizes.whole {
                let whole = json!({"feature": feature, "step": format!("{id}/{operation}")});
                *result = json!({
                    "omitted": true, "bytes": text.len(), "preview": cut(&text, sizes.preview),
                    "read": format!("sage_result {whole}"),
                });
            }
        }
    }
}

/// Phases by name and state only.
fn bare_phases(value: &mut Value) {
    for phase in phases(value) {
        phase.retain(|name, _| {
            ["phaseId", "status", "failed", "unfinished", "error"].contains(&name.as_str())
        });
        phase.insert("results".into(), json!({}));
    }
}

/// The first ones that have not succeeded, then the first of the others.
fn keep_phases(value: &mut Value, most: usize) {
    let Some(all) = value["results"]["phases"].as_array_mut() else { return };
    let before = all.len();
    let is_done = |phase: &Value| phase["status"] == "completed";
    let open = all.iter().filter(|phase| !is_done(phase)).count().min(most);
    let (mut open_left, mut done_left) = (open, most - open);
    all.retain(|phase| {
        let left = if is_done(phase) { &mut done_left } else { &mut open_left };
        let keep = *left > 0;
        *left = left.saturating_sub(1);
        keep
    });
    let gone = before - all.len();
    count(value, "phases", gone);
}

fn cut_lists(value: &mut Value, chars: usize, items: usize) {
    for name in LISTS {
        let Some(list) = value.get_mut(*name) else { continue };
        let before = list.as_array().map_or(0, Vec::len);
        shorten(list, chars, items);
        let gone = before - list.as_array().map_or(0, Vec::len);
        count(value, name, gone);
    }
    for phase in phases(value) {
        for name in ["failed", "unfinished", "error"] {
            phase.get_mut(name).into_iter().for_each(|part| shorten(part, chars, items));
        }
    }
}

fn count(value: &mut Value, list: &str, gone: usize) {
    if gone > 0 {
        let before = value["omitted"][list].as_u64().unwrap_or(0);
        value["omitted"][list] = (before + gone as u64).into();
    }
}

fn shorten(value: &mut Value, chars: usize, items: usize) {
    match value {
        Value::String(text) => *text = cut(text, chars),
        Value::Array(list) => {
            list.truncate(items);
            list.iter_mut().for_each(|item| shorten(item, chars, items));
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, chars, items)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(phases: usize, result: &Value, text: &str) -> Value {
        let phase = |n: usize| {
            let status = if n % 10 == 3 { "failed" } else { "completed" };
            json!({
                "phaseId": format!("phase-{n}"), "status": status, "startedAt": "2026-01-01T00:00:00.000Z",
                "completedAt": "2026-01-01T00:00:00.000Z", "results": {"one": result, "two": 2},
                "failed": vec![text; n], "metrics": {"duration": 1, "tokens": 2, "operationCount": 3, "parallelOps": 1},
            })
        };
        let plan = json!({"kind": "plan", "plan": text.repeat(50), "choices": ["yes", "no"]});
        json!({
            "workflowId": "wf_1", "feature": "x", "status": "failed", "verdict": "failed",
            "results": {"phases": (0..phases).map(phase).collect::<Vec<_>>(), "metrics": {"totalTime": 1, "alerts": []}},
            "outputs": ["docs/a.md", "docs/b.md"], "errors": vec![text; phases], "notices": vec![text; 7],
            "reasons": vec![text; 9], "questions": vec![plan; 12],
        })
    }

    // covers: R11, R16
    #[test]
    fn every_answer_fits_and_keeps_what_matters() {
        let texts = ["it failed ".repeat(40), "失敗した。".repeat(300), "😀\u{202e}\"\\".repeat(400)];
        let noise: String =
            (0..900u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        for text in &texts {
            for (phases, result) in [(1, json!(vec![text; 30])), (200, json!({"out": noise}))] {
                let mut value = summary(phases, &result, text);
                fit(&mut value, "x", 300);
                let counted = tokens::count(&value.to_string());
                assert!(counted + 300 <= MOST_TOKENS, "{phases}: {counted}");
                assert_eq!((&value["status"], &value["workflowId"]), (&json!("failed"), &json!("wf_1")));
                assert_eq!(value["outputs"], json!(["docs/a.md", "docs/b.md"]));
                assert_eq!(value["read"], call_text("sage_result", "x"));
                let left = value["results"]["phases"].as_array().unwrap();
                let gone = value["omitted"]["phases"].as_u64().unwrap_or(0);
                assert_eq!(left.len() as u64 + gone, phases as u64);
                assert!(phases == 1 || left.iter().any(|phase| phase["status"] == "failed"));
            }
        }
    }

    #[test]
    fn a_small_answer_stays_as_it_is_and_a_large_result_says_where_it_is() {
        let whole = json!({"status": "completed", "results": {"phases": [], "metrics": {"owners": 1}}});
        let mut value = whole.clone();
        fit(&mut value, "x", 100);
        assert_eq!(value, whole);
        let long = "word ".repeat(3_000);
        let mut value =
            json!({"results": {"metrics": {}, "phases": [{"phaseId": "p", "results": {"a": long, "b": 1}}]}});
        fit(&mut value, "x", 100);
        let results = &value["results"]["phases"][0]["results"];
        assert_eq!((&results["b"], &results["a"]["bytes"]), (&json!(1), &json!(long.len() + 2)));
        assert_eq!(results["a"]["read"], r#"sage_result {"feature":"x","step":"p/a"}"#);
    }
}
