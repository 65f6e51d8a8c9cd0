//! Answers fit a model's context: what is left out is counted and can be read page by page.

use serde_json::{Value, json};

use super::client::{BOTH, Client, Reply};
use crate::dsl::Sage;

/// Phases of the large run.
const PHASES: usize = 30;

/// A run with many phases, long results that look like noise, and a document of each phase.
fn large() -> String {
    let mut text = String::from("name: large\nphases:\n");
    for n in 0..PHASES {
        let output = format!("output: docs/p{n}.md");
        text.push_str(&format!(
            "  - {{ id: phase-{n}, operations: [{{ id: noise, type: shell, params: {{ run: \"seq {n} 791 4000000 | tr -d '\\\\n' | head -c 6000\" }} }}, {{ id: doc, type: shell, {output}, params: {{ run: 'echo {n}' }} }}] }}\n"
        ));
    }
    text
}

#[track_caller]
fn assert_fits(reply: &Reply) {
    let tokens = |text: &str| sage_engine::tokens::count(text);
    let (value, text) = (tokens(&reply.value.to_string()), tokens(&reply.text));
    println!("{value} + {text} tokens");
    assert!(value + text <= 2_000, "{value} + {text} tokens: {:#}", reply.value);
}

/// All pages of a call that an answer names.
fn pages(client: &mut Client, read: &str) -> Value {
    let (tool, arguments) = read.split_once(' ').unwrap();
    let mut arguments: Value = serde_json::from_str(arguments).unwrap();
    let mut whole = String::new();
    loop {
        let page = client.call(tool, arguments.clone()).good();
        if let Some(value) = page.get("value") {
            return value.clone();
        }
        whole.push_str(page["text"].as_str().unwrap());
        match page["next"].as_str() {
            Some(next) => arguments["cursor"] = next.into(),
            None => return serde_json::from_str(&whole).unwrap(),
        }
    }
}

// covers: R11, R16
#[test]
fn a_large_run_is_answered_in_few_tokens_and_read_in_pages() {
    let sage = Sage::new().template("large", &large());
    let mut client = Client::start(&sage, BOTH[0]);
    let reply = client.call("sage_workflow_execute", json!({"feature": "x", "template": "large"}));
    assert_fits(&reply);
    assert!(reply.text.contains("wrote docs/p0.md, "), "{}", reply.text);
    let done = reply.good();
    assert_eq!((&done["status"], &done["success"]), (&json!("completed"), &json!(true)));
    assert_eq!(done["results"]["metrics"]["phaseCount"], PHASES);
    let (shown, left) = (done["outputs"].as_array().unwrap().len(), &done["omitted"]["outputs"]);
    assert_eq!(shown as u64 + left.as_u64().unwrap_or(0), PHASES as u64, "{done:#}");
    let all = pages(&mut client, done["read"].as_str().unwrap());
    assert_eq!(all, sage.sage("result x --json").exit(0).json()["result"]);
    assert_eq!(all[7]["results"]["noise"]["stdout"].as_str().unwrap().len(), 6_000);
    let resumed = client.call("sage_workflow_resume", json!({"feature": "x"}));
    assert_fits(&resumed);
    assert_eq!(resumed.good()["resumedFrom"], format!("phase-{}", PHASES - 1));
    let status = client.call("sage_workflow_status", json!({"feature": "x"})).good();
    assert_eq!(status["outputs"].as_array().unwrap().len(), PHASES);
}

// covers: R16
#[test]
fn a_failure_outside_of_the_run_is_told_in_few_tokens_too() {
    let noise = "失敗 $(seq 1 791 4000000 | tr -d '\\\\n' | head -c 9000)";
    let step = format!(
        "{{ id: s, type: shell, timeout: 1s, retry: {{ attempts: 1 }}, params: {{ run: \"echo '{noise}' >&2; exec sleep 600\" }} }}"
    );
    let sage = Sage::new().template("t", &format!("name: t\nphases:\n  - id: p\n    operations: {step}\n"));
    let mut client = Client::start(&sage, BOTH[0]);
    let reply = client.call("sage_workflow_execute", json!({"feature": "x", "template": "t"}));
    assert_fits(&reply);
    let failed = reply.error("TIMEOUT_EXCEEDED");
    assert_eq!(failed["status"], "failed");
}

// covers: R16
#[test]
fn the_built_in_workflow_is_answered_with_its_documents_and_its_agent() {
    let sage = Sage::bare();
    sage.write("shop/cart.py", "def total(items):\n    return sum(items)\n");
    let mut client = Client::start(&sage, BOTH[1]);
    let reply = client.call("sage_workflow_execute", json!({"feature": "gift cards"}));
    assert_fits(&reply);
    assert!(reply.text.contains("agent `offline` analyses and drafts; it writes no code"), "{}", reply.text);
    let done = reply.good();
    let documents = ["patterns", "spec", "plan"].map(|name| format!("docs/specs/gift-cards/{name}.md"));
    assert_eq!(done["outputs"], json!(documents));
    documents.iter().for_each(|document| assert!(sage.path(document).is_file()));
}
