//! Every error has its code, says what is wrong, and what to do.

use serde_json::{Value, json};

use super::client::{Client, Era};
use super::{ASK, QUICK, SLOW};
use crate::dsl::Sage;

fn step(fields: &str) -> String {
    format!("name: t\nphases:\n  - id: a\n    operations:\n      - {{ id: x, {fields} }}\n")
}

fn client(sage: &Sage) -> Client {
    Client::start(sage, Era::Stateless)
}

// covers: R16
#[test]
fn a_template_that_is_wrong_starts_nothing() {
    let cycle = "name: c\nphases:\n  - id: a\n    dependencies: [b]\n    operations: { id: x, type: shell, params: { run: 'true' } }\n  - id: b\n    dependencies: [a]\n    operations: { id: y, type: shell, params: { run: 'true' } }\n";
    let sage =
        Sage::new().template("cycle", cycle).template("wrong", &step("type: shel")).template("quick", QUICK);
    let mut client = client(&sage);
    let mut run =
        |template: &str| client.call("sage_workflow_execute", json!({"feature": "x", "template": template}));
    let error = run("cycle").error("CYCLE_DETECTED");
    assert!(error["message"].as_str().unwrap().contains("a -> b -> a"), "{error}");
    let error = run("wrong").error("WORKFLOW_VALIDATION_ERROR");
    assert!(error["message"].as_str().unwrap().contains("wrong.yaml:5:"), "{error}");
    let error = run("quik").error("WORKFLOW_VALIDATION_ERROR");
    assert!(error["hint"].as_str().unwrap().contains("did you mean `quick`"), "{error}");
    let inputs = json!({"feature": "x", "template": "quick", "options": {"budget": "much"}});
    let error = client.call("sage_workflow_execute", inputs).error("WORKFLOW_VALIDATION_ERROR");
    assert!(error["message"].as_str().unwrap().contains("much"), "{error}");
    assert!(
        client.call("sage_workflow_list", json!({})).good()["workflows"] == json!([]),
        "nothing was started"
    );
}

/// What agents may do is a person's word: no model can give it with a call.
// covers: R16, R17
#[test]
fn a_model_cannot_say_what_agents_may_do() {
    let sage = Sage::new().template("quick", QUICK);
    let mut client = client(&sage);
    for options in [json!({"allow": "all"}), json!({"mode": "all"})] {
        let call = json!({"feature": "x", "template": "quick", "options": options});
        let error = client.call("sage_workflow_execute", call).error("WORKFLOW_VALIDATION_ERROR");
        assert!(error["message"].as_str().unwrap().contains("unknown argument"), "{error}");
    }
    let call = json!({"feature": "x", "template": "quick", "allow": "all"});
    client.call("sage_workflow_execute", call).error("WORKFLOW_VALIDATION_ERROR");
    client
        .call("sage_workflow_resume", json!({"feature": "x", "allow": "all"}))
        .error("WORKFLOW_VALIDATION_ERROR");
    assert!(sage.engine().latest("x").is_none());
}

// covers: R16, R6
#[test]
fn inputs_that_do_not_fit_start_nothing() {
    let declared = step("type: shell, params: { env: { V: '{{ inputs.version }}' }, run: 'true' }")
        .replace("phases:", "inputs: { version: { type: string, required: true } }\nphases:");
    let sage = Sage::new().template("declared", &declared);
    let mut client = client(&sage);
    let mut run = |inputs: Value| {
        let call = json!({"feature": "x", "template": "declared", "inputs": inputs});
        client.call("sage_workflow_execute", call)
    };
    let table = [
        (json!({}), "missing input `version` (string)", "version"),
        (json!({"version": 1}), "must be a string, not 1", "version"),
        (json!({"verison": "1"}), "unknown input `verison`", "did you mean `version`?"),
    ];
    for (inputs, message, hint) in table {
        let error = run(inputs).error("WORKFLOW_VALIDATION_ERROR");
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    }
    run(json!({"version": "1"})).good();
}

// covers: R16
#[test]
fn what_lies_outside_of_a_run_has_a_code() {
    let fault =
        step("type: agent, agent: fake, retry: 1, params: { prompt: go, script: [ { fault: auth } ] }");
    let slow = step("type: shell, timeout: 300ms, retry: 1, params: { argv: [sleep, '60'] }");
    let failing = step("type: shell, retry: 1, params: { run: 'echo no >&2; exit 3' }");
    let sage = Sage::new().template("fault", &fault).template("slow", &slow).template("failing", &failing);
    let sage = sage.template("endless", &step("type: shell, params: { argv: [sleep, '60'] }"));
    let mut client = client(&sage);
    let mut run = |feature: &str, options: Value| {
        client.call(
            "sage_workflow_execute",
            json!({"feature": feature, "template": feature, "options": options}),
        )
    };
    let error = run("fault", json!({})).error("EXTERNAL_API_FAILURE");
    assert!(error["message"].as_str().unwrap().contains("a/x"), "{error}");
    assert_eq!((&error["status"], &error["success"]), (&"failed".into(), &false.into()));
    let error = run("slow", json!({})).error("TIMEOUT_EXCEEDED");
    assert_eq!(error["verdict"], "failed");
    let error = run("endless", json!({"timeout": "400ms"})).error("TIMEOUT_EXCEEDED");
    assert_eq!(error["status"], "paused");
    // A step that says no is an answer, not an error.
    let failed = run("failing", json!({})).good();
    assert_eq!((&failed["success"], &failed["status"]), (&false.into(), &"failed".into()));
    assert!(failed["errors"][0].as_str().unwrap().starts_with("a/x: "), "{failed}");
    client.call("sage_workflow_cancel", json!({"feature": "endless"})).good();
    sage.assert_nothing_alive();
}

/// A server that dies at its start, one that dies in a call, and one that says that it cannot.
// covers: R16
#[test]
fn an_mcp_server_that_fails_is_an_external_failure() {
    let tool = |server: &str, rest: &str| {
        step(&format!("type: tool, retry: 1, params: {{ server: {server}, {rest} }}"))
    };
    let sage = Sage::new()
        .template("dead", &tool("dead", "tool: echo"))
        .template("crash", &tool("research", "tool: crash"))
        .template("says", &tool("research", "tool: error, arguments: { text: service unavailable }"));
    let server = env!("CARGO_BIN_EXE_sage");
    sage.write(
        "sage.toml",
        format!(
            "[mcp.dead]\ncommand = \"false\"\n[mcp.research]\ncommand = {server:?}\nargs = [\"debug\", \"fake-mcp\", \"starts\"]\n"
        ),
    );
    let mut client = client(&sage);
    for (feature, said) in
        [("dead", "server `dead` ended"), ("crash", "crashing as told"), ("says", "service unavailable")]
    {
        let arguments = json!({"feature": feature, "template": feature});
        let error = client.call("sage_workflow_execute", arguments).error("EXTERNAL_API_FAILURE");
        assert!(error["message"].as_str().unwrap().contains(said), "{error:#}");
        assert!(error["hint"].as_str().unwrap().contains("sage_workflow_resume"), "{error:#}");
        assert_eq!((&error["status"], &error["success"]), (&"failed".into(), &false.into()));
    }
    let error = client.call("sage_workflow_resume", json!({"feature": "dead"})).error("EXTERNAL_API_FAILURE");
    assert!(error["message"].as_str().unwrap().contains("a/x"), "{error:#}");
}

// covers: R16
#[test]
fn what_is_not_there_is_said_to_be_missing() {
    let sage = Sage::new().template("ask", ASK).template("slow", SLOW);
    let mut client = client(&sage);
    client.call("sage_workflow_status", json!({"feature": "nobody"})).error("WORKFLOW_NOT_FOUND");
    client.call("sage_result", json!({"feature": "nobody"})).error("WORKFLOW_NOT_FOUND");
    client.call("sage_workflow_resume", json!({"feature": "nobody"})).error("NO_CHECKPOINT_FOUND");
    client.call("sage_workflow_cancel", json!({"feature": "nobody"})).error("WORKFLOW_NOT_RUNNING");
    let paused = client.call("sage_workflow_execute", json!({"feature": "x", "template": "ask"})).good();
    assert_eq!((&paused["status"], &paused["questions"][0]["step"]), (&"paused".into(), &"p/color".into()));
    let error =
        client.call("sage_workflow_resume", json!({"feature": "x", "fromPhase": "z"})).error("INVALID_PHASE");
    assert!(error["message"].as_str().unwrap().ends_with("it has p, q"), "{error}");
    let error = client
        .call("sage_workflow_execute", json!({"feature": "x", "template": "ask"}))
        .error("WORKFLOW_CONFLICT");
    assert!(error["hint"].as_str().unwrap().contains("sage_workflow_resume {\"feature\":\"x\"}"), "{error}");
    client.call("sage_result", json!({"feature": "x", "step": "q/lst"})).error("WORKFLOW_NOT_FOUND");
    client.call("sage_result", json!({"feature": "x", "step": "q/last"})).error("WORKFLOW_NOT_FOUND");
    client.call("sage_workflow_execute", json!({"feature": "y", "template": "slow", "waitMs": 0})).good();
    let error = client.call("sage_workflow_resume", json!({"feature": "y"})).error("WORKFLOW_CONFLICT");
    assert!(error["hint"].as_str().unwrap().contains("sage_workflow_status"), "{error}");
    client.call("sage_workflow_cancel", json!({"feature": "y"})).good();
}

// covers: R16
#[test]
fn damage_is_told_and_not_hidden() {
    let sage = Sage::new().template("ask", ASK).template("t", QUICK);
    let mut client = client(&sage);
    client.call("sage_workflow_execute", json!({"feature": "x", "template": "ask"})).good();
    // Its backup cannot be made, so no newer checkpoint takes the place of the old one.
    let backup = sage.path(".sage/state/workflow-x.json.bak");
    let _ = std::fs::remove_file(&backup);
    sage.write(".sage/state/workflow-x.json.bak/in-the-way", "");
    let error = client.call("sage_workflow_cancel", json!({"feature": "x"})).error("CHECKPOINT_SAVE_FAILED");
    assert!(error["hint"].as_str().unwrap().contains("sage_workflow_resume"), "{error}");
    std::fs::remove_dir_all(&backup).unwrap();
    let journal = sage.latest_dir("x").join("journal.jsonl");
    let mut bytes = std::fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&journal, bytes).unwrap();
    client.call("sage_workflow_status", json!({"feature": "x"})).error("STATE_CORRUPTED");
    // With nothing readable left, there is nothing to repair.
    let checkpoint = sage.path(".sage/state/workflow-x.json");
    [journal, checkpoint].iter().for_each(|path| std::fs::write(path, "garbage\n").unwrap());
    client.call("sage_workflow_resume", json!({"feature": "x"})).error("STATE_CORRUPTED");
    let listed = client.call("sage_workflow_list", json!({})).good();
    assert_eq!(listed["workflows"][0]["status"], "damaged", "{listed}");
    std::fs::remove_dir_all(sage.path(".sage/state")).unwrap();
    sage.write(".sage/state", "no directory");
    client.call("sage_workflow_list", json!({})).error("FILESYSTEM_ERROR");
    client.call("sage_workflow_execute", json!({"feature": "y", "template": "t"})).error("FILESYSTEM_ERROR");
    std::fs::remove_file(sage.path(".sage/state")).unwrap();
}

#[test]
fn a_tool_that_does_not_exist_is_an_error_of_the_protocol() {
    let sage = Sage::new();
    let mut client = client(&sage);
    for name in ["sage_workflow_delete", "", "../x"] {
        let id = client.send_call(name, json!({}));
        let message = client.answer(id);
        assert_eq!(message["error"]["code"], -32602, "{message}");
    }
    client.call("sage_workflow_list", json!({})).good();
}
