//! Sessions, handoffs, skills, results in pages, code, and resources.

use serde_json::{Value, json};

use super::SLOW;
use super::client::{BOTH, Client, Era};
use crate::dsl::{DEADLINE, Sage, wait_until};

// covers: R16
#[test]
fn sessions_are_made_shown_and_deleted() {
    let sage = Sage::new();
    let mut client = Client::start(&sage, Era::Session);
    let mut call = |args: Value| client.call("sage_session", args);
    let made = call(json!({"action": "new", "agent": "fake", "role": "planner", "name": "chat"})).good();
    assert_eq!((&made["session"]["id"], &made["session"]["role"]), (&"chat".into(), &"planner".into()));
    assert_eq!(call(json!({})).good()["sessions"][0]["turns"], 0);
    assert_eq!(call(json!({"action": "show", "name": "chat"})).good()["session"]["agent"], "fake");
    call(json!({"action": "show", "name": "chat", "turn": 1})).error("WORKFLOW_NOT_FOUND");
    call(json!({"action": "show", "name": "chta"})).error("WORKFLOW_NOT_FOUND");
    call(json!({"action": "fork", "name": "chat", "as": "other"})).error("WORKFLOW_VALIDATION_ERROR");
    call(json!({"action": "new", "agent": "nobody"})).error("WORKFLOW_VALIDATION_ERROR");
    call(json!({"action": "delete", "name": "chat"})).good();
    assert_eq!(call(json!({"action": "list", "all": true})).good()["sessions"], json!([]));
}

// covers: R16
#[test]
fn handoffs_go_from_role_to_role() {
    let sage = Sage::new();
    sage.write("plan.md", "# The plan");
    let mut client = Client::start(&sage, Era::Stateless);
    let mut call = |args: Value| client.call("sage_handoff", args);
    let draft = json!({
        "handoff": {"from": "planner", "to": "implementer", "type": "work"},
        "context": {"taskId": "t1", "phase": "build", "scope": "all"},
        "deliverable": {"type": "plan", "location": "plan.md", "summary": "the plan", "artifacts": ["plan.md"]},
        "nextSteps": {"instructions": ["do it"], "constraints": ["none"], "acceptanceCriteria": ["it works"]},
    });
    let lacks = call(json!({"action": "create", "handoff": {"handoff": {"from": "planner"}}}))
        .error("WORKFLOW_VALIDATION_ERROR");
    assert!(lacks["problems"].as_array().unwrap().len() > 2, "{lacks}");
    let made = call(json!({"action": "create", "handoff": draft})).good();
    let id = made["handoff"]["handoff"]["handoffId"].as_str().unwrap().to_string();
    assert_eq!(call(json!({})).good()["handoffs"][0]["handoffId"], id.as_str());
    assert_eq!(
        call(json!({"action": "accept", "id": id})).good()["handoff"]["handoff"]["status"],
        "accepted"
    );
    call(json!({"action": "accept", "id": id})).error("WORKFLOW_CONFLICT");
    assert_eq!(call(json!({"action": "complete", "id": id})).good()["success"], true);
    assert_eq!(call(json!({"action": "show", "id": id})).good()["handoff"]["context"]["taskId"], "t1");
    call(json!({"action": "show", "id": "nobody"})).error("WORKFLOW_NOT_FOUND");
    let missing = call(json!({"action": "reject", "id": id})).error("WORKFLOW_VALIDATION_ERROR");
    assert!(missing["message"].as_str().unwrap().contains("`reason`"), "{missing}");
}

// covers: R16, R12
#[test]
fn skills_are_saved_by_agents_and_approved_by_people() {
    let text = "name: quick\nphases:\n  - id: a\n    operations: { id: x, type: shell, params: { run: echo hello }, \
                expect: { command: 'true' } }\n";
    let sage = Sage::new().template("quick", text);
    let mut client = Client::start(&sage, Era::Session);
    client.call("sage_workflow_execute", json!({"feature": "say hello", "template": "quick"})).good();
    let mut call = |args: Value| client.call("sage_skill", args);
    let saved = call(
        json!({"action": "save", "feature": "say hello", "name": "hello", "description": "How to say hello"}),
    )
    .good();
    assert_eq!((&saved["skill"]["name"], &saved["skill"]["approved"]), (&"hello".into(), &false.into()));
    assert_eq!(call(json!({})).good()["skills"][0]["name"], "hello");
    assert_eq!(call(json!({"action": "search", "query": "say hello"})).good()["skills"][0]["name"], "hello");
    let shown = call(json!({"action": "show", "name": "hello"})).good();
    assert!(shown["skill"]["text"].as_str().unwrap().contains("How to say hello"));
    let error = call(json!({"action": "approve", "name": "hello"})).error("WORKFLOW_CONFLICT");
    assert!(error["hint"].as_str().unwrap().contains("sage skills approve"), "{error}");
    assert_eq!(call(json!({"action": "show", "name": "hello"})).good()["skill"]["approved"], false);
    call(json!({"action": "show", "name": "../hello"})).error("WORKFLOW_NOT_FOUND");
    call(json!({"action": "save", "feature": "nobody"})).error("WORKFLOW_NOT_FOUND");
}

// covers: R16
#[test]
fn a_large_result_is_read_page_by_page() {
    let large = "name: large\nphases:\n  - id: a\n    operations: { id: x, type: shell, params: { run: 'seq 1 20000' } }\n";
    let sage = Sage::new().template("large", large);
    let mut client = Client::start(&sage, Era::Stateless);
    let done = client.call("sage_workflow_execute", json!({"feature": "x", "template": "large"})).good();
    assert!(done.to_string().len() < 20_000, "what is large is pointed at");
    assert!(done.to_string().contains("sage_result"), "{done}");
    let (mut whole, mut cursor, mut pages) = (String::new(), Value::Null, 0);
    loop {
        let args = json!({"feature": "x", "step": "a/x", "full": true, "cursor": cursor, "maxChars": 50_000});
        let page = client.call("sage_result", args).good();
        whole.push_str(page["text"].as_str().unwrap());
        cursor = page["next"].clone();
        pages += 1;
        if cursor.is_null() {
            break;
        }
    }
    let value: Value = serde_json::from_str(&whole).unwrap();
    assert!(value["stdout"].as_str().unwrap().ends_with("19999\n20000\n"));
    assert_eq!(pages, whole.chars().count().div_ceil(50_000));
    let odd = json!({"feature": "x", "step": "a/x", "cursor": "12-abc"});
    client.call("sage_result", odd).error("WORKFLOW_VALIDATION_ERROR");
}

// covers: R16
#[test]
fn runs_can_be_read_as_resources() {
    for era in BOTH {
        let sage = Sage::new().template("slow", SLOW);
        let mut client = Client::start(&sage, era);
        client.call("sage_workflow_execute", json!({"feature": "x", "template": "slow", "waitMs": 0})).good();
        wait_until(|| sage.path("up").exists(), DEADLINE, "the slow step");
        let alone = || sage.journal("x").succeeded().iter().any(|step| step == "p/quick");
        wait_until(alone, DEADLINE, "the end of the quick one");
        let listed = client.ask("resources/list", json!({}));
        let uris: Vec<&str> =
            listed["resources"].as_array().unwrap().iter().map(|it| it["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, ["sage://runs", "sage://roster", "sage://runs/x"]);
        let templates = client.ask("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "sage://runs/{feature}");
        let mut read = |uri: &str| -> Value {
            let read = client.ask("resources/read", json!({"uri": uri}));
            assert_eq!(read["contents"][0]["mimeType"], "application/json");
            serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
        };
        assert_eq!(read("sage://runs")["workflows"][0]["feature"], "x");
        assert_eq!(read("sage://runs/x")["status"], "running");
        let roster = read("sage://roster");
        assert_eq!(roster["runs"][0]["working"][0]["path"], "p/slow", "{roster}");
        for uri in ["sage://runs/nobody", "sage://else", "file:///etc/passwd", "sage://runs/../../x", ""] {
            let id = client.send("resources/read", json!({"uri": uri}));
            let code = if era == Era::Session { -32002 } else { -32602 };
            let message = client.answer(id);
            assert_eq!(message["error"]["code"], code, "{uri}: {message}");
        }
        client.call("sage_workflow_cancel", json!({"feature": "x"})).good();
    }
}

// covers: R16, R21
#[test]
fn other_servers_are_used_in_code() {
    let sage = Sage::new();
    let starts = sage.path("starts").display().to_string();
    let toml = format!(
        "[mcp.research]\ncommand = {:?}\nargs = [\"debug\", \"fake-mcp\", {starts:?}]\ntimeout = \"60s\"\n[approvals]\ntools = [\"research/echo\"]\n",
        env!("CARGO_BIN_EXE_sage"),
    );
    sage.write("sage.toml", &toml);
    let mut client = Client::start(&sage, Era::Stateless);
    let found = client.call("sage_tools_search", json!({"query": "echo", "detail": "signatures"})).good();
    assert!(found["tools"].as_str().unwrap().contains("servers/research"), "{found}");
    let code = "import { echo } from \"servers/research\";\nconst said = await echo({ a: 20 });\nreturn said.a + 22;";
    let ran = client.call("sage_code_run", json!({"code": code})).good();
    assert_eq!((&ran["value"], &ran["calls"]), (&42.into(), &1.into()), "{ran}");
    let again = client.call("sage_code_run", json!({"code": "return 1", "session": ran["session"]})).good();
    assert_eq!(again["session"], ran["session"]);
    let error =
        client.call("sage_code_run", json!({"code": "return 1 +;"})).error("WORKFLOW_VALIDATION_ERROR");
    assert!(error["message"].as_str().unwrap().contains(":1:"), "{error}");
    client.call("sage_code_run", json!({"code": "for (;;) {}", "timeoutMs": 500})).error("TIMEOUT_EXCEEDED");
    let save = json!({"code": "return 1", "save": {"name": "one", "description": "gives one"}});
    assert_eq!(client.call("sage_code_run", save).good()["saved"]["approved"], false);
    let lines = std::fs::read_to_string(&starts).unwrap().lines().count();
    assert_eq!(lines, 1, "one server for all calls");
    client.hang_up();
    wait_until(|| sage.processes().is_empty(), DEADLINE, "everything to end");
}
