//! Questions are answered, wakes are posted and handled, over the inbox.

use serde_json::json;

use super::ASK;
use super::client::{BOTH, Client, Era};
use crate::dsl::{DEADLINE, Sage, wait_until};

// covers: R16
#[test]
fn an_approval_is_answered_and_the_run_goes_on_by_itself() {
    for era in BOTH {
        let sage = Sage::new().template("ask", ASK);
        let mut client = Client::start(&sage, era);
        client.call("sage_workflow_execute", json!({"feature": "x", "template": "ask"})).good();
        let inbox = client.call("sage_inbox", json!({})).good();
        let question = &inbox["questions"][0];
        assert_eq!((&question["feature"], &question["step"]), (&"x".into(), &"p/color".into()));
        assert_eq!(question["choices"], json!(["blue", "green"]));
        assert_eq!(inbox["roster"][0]["feature"], "x");
        let answer = |choice: &str| json!({"action": "answer", "feature": "x", "step": "p/color", "choice": choice, "message": "nicer"});
        let error = client.call("sage_inbox", answer("purple")).error("WORKFLOW_VALIDATION_ERROR");
        assert!(error["message"].as_str().unwrap().contains("blue, green"), "{error}");
        let said = client.call("sage_inbox", answer("green")).good();
        assert_eq!((&said["success"], &said["goesOn"]), (&true.into(), &true.into()));
        let done = client.call("sage_workflow_status", json!({"feature": "x", "waitMs": 40_000})).good();
        assert_eq!(done["status"], "completed");
        let page = client.call("sage_result", json!({"feature": "x", "step": "p/color"})).good();
        assert_eq!(page["value"], json!({"choice": "green", "by": "mcp:tester", "message": "nicer"}));
        client.call("sage_inbox", answer("green")).error("WORKFLOW_VALIDATION_ERROR");
        client.hang_up();
        wait_until(|| sage.processes().is_empty(), DEADLINE, "everything to end");
    }
}

// covers: R16
#[test]
fn wakes_are_posted_once_and_handled() {
    let sage = Sage::new();
    let mut client = Client::start(&sage, Era::Session);
    let wake = json!({"action": "wake", "type": "FINDING", "session": "me", "message": "found it", "wakeId": "w1", "files": ["a"]});
    assert_eq!(client.call("sage_inbox", wake.clone()).good()["wakeId"], "w1");
    client.call("sage_inbox", wake).good();
    let inbox = client.call("sage_inbox", json!({"action": "list"})).good();
    assert_eq!(inbox["wakes"][0]["wake"]["summary"], "found it", "{inbox}");
    let done = client.call("sage_inbox", json!({"action": "acknowledge"})).good();
    assert_eq!((&done["success"], &done["handled"]), (&true.into(), &1.into()));
    let inbox = client.call("sage_inbox", json!({"action": "list", "all": true})).good();
    assert_eq!((&inbox["wakes"], &inbox["handled"][0]["wakeId"]), (&json!([]), &"w1".into()));
    client.call("sage_inbox", json!({"action": "wake", "session": "me"})).error("WORKFLOW_VALIDATION_ERROR");
    client.call("sage_inbox", json!({"action": "answer", "feature": "x"})).error("WORKFLOW_NOT_FOUND");
}
