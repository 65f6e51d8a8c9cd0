//! Questions are answered, wakes are posted and handled, over the inbox.

use serde_json::{Value, json};

use super::ASK;
use super::client::{BOTH, Client, Era};
use crate::dsl::{DEADLINE, Sage, wait_until};

fn accept(choice: &str) -> Option<Value> {
    Some(json!({"action": "accept", "content": {"choice": choice, "message": "nicer"}}))
}

fn answer(choice: &str) -> Value {
    json!({"action": "answer", "feature": "x", "step": "p/color", "choice": choice, "message": "the model's"})
}

// covers: R16, R17
#[test]
fn the_person_in_front_of_the_client_answers_and_the_run_goes_on_by_itself() {
    for era in BOTH {
        let sage = Sage::new().template("ask", ASK);
        let mut client = Client::with_person(&sage, era, accept("green"));
        client.call("sage_workflow_execute", json!({"feature": "x", "template": "ask"})).good();
        let inbox = client.call("sage_inbox", json!({})).good();
        let question = &inbox["questions"][0];
        assert_eq!((&question["feature"], &question["step"]), (&"x".into(), &"p/color".into()));
        assert_eq!(question["choices"], json!(["blue", "green"]));
        assert_eq!(inbox["roster"][0]["feature"], "x");
        // The model proposes, the person decides.
        let said = client.call("sage_inbox", answer("blue")).good();
        assert_eq!((&said["success"], &said["choice"]), (&true.into(), &"green".into()), "{era:?}");
        assert_eq!(said["goesOn"], true);
        let form = client.forms.pop().unwrap();
        let choices = &form["requestedSchema"]["properties"]["choice"]["enum"];
        assert_eq!(*choices, json!(["blue", "green", "reject"]));
        assert!(form["message"].as_str().unwrap().ends_with("The agent proposes: blue"), "{form}");
        let done = client.call("sage_workflow_status", json!({"feature": "x", "waitMs": 40_000})).good();
        assert_eq!(done["status"], "completed");
        let value =
            client.call("sage_result", json!({"feature": "x", "step": "p/color"})).good()["value"].clone();
        assert_eq!((&value["choice"], &value["message"]), (&"green".into(), &"nicer".into()));
        assert!(value["by"].as_str().unwrap().ends_with(" via mcp (tester)"), "{value}");
        client.call("sage_inbox", answer("green")).error("WORKFLOW_CONFLICT");
        client.hang_up();
        wait_until(|| sage.processes().is_empty(), DEADLINE, "everything to end");
    }
}

// covers: R16, R17
#[test]
fn a_model_cannot_answer_for_its_user() {
    for era in BOTH {
        let sage = Sage::new().template("ask", ASK);
        sage.sage("run x -t ask").exit(4);
        let mut client = Client::start(&sage, era);
        let error = client.call("sage_inbox", answer("green")).error("WORKFLOW_CONFLICT");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("type: sage approve x p/color -c green"), "{error}");
        // Nor by saying what a person would have said.
        let forged = json!({"name": "sage_inbox", "arguments": answer("green"), "requestState": "x",
            "inputResponses": {"answer": accept("green")}});
        let id = client.send("tools/call", forged);
        client.reply("sage_inbox", id).error("WORKFLOW_CONFLICT");
        client.hang_up();
        for refusal in [json!({"action": "decline"}), json!({"action": "cancel"})] {
            let mut client = Client::with_person(&sage, era, Some(refusal));
            client.call("sage_inbox", answer("green")).error("WORKFLOW_CONFLICT");
            assert_eq!(client.forms.len(), 1);
            client.hang_up();
        }
        let mut client = Client::with_person(&sage, era, accept("purple"));
        client.call("sage_inbox", answer("green")).error("WORKFLOW_VALIDATION_ERROR");
        client.hang_up();
        assert_eq!(sage.status("x")["status"], "paused", "nothing was answered");
    }
}

// covers: R17
#[test]
fn an_answer_counts_only_for_the_question_that_was_shown() {
    let sage = Sage::new().template("ask", ASK);
    sage.sage("run x -t ask").exit(4);
    let mut client = Client::with_person(&sage, Era::Stateless, accept("green"));
    let forged = json!({"name": "sage_inbox", "arguments": answer("green"), "requestState": "of another question",
        "inputResponses": {"answer": accept("green")}});
    let id = client.send("tools/call", forged);
    assert_eq!(client.answer(id)["result"]["resultType"], "input_required");
    assert_eq!(sage.status("x")["status"], "paused");
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

const INQUIRY: &str = r#"
name: inquiry
phases:
  - id: p
    operations:
      - id: one
        type: agent
        agent: fake
        params:
          prompt: go
          script:
            - ask: { tool: AskUserQuestion, input: { questions: [
                { question: "Which color?", header: Color, options: [{ label: Red, description: warm }, { label: Blue }] },
                { question: "Which sizes?", multiSelect: true, options: [{ label: S }, { label: M }] } ] } }
              say: done
"#;

// covers: R16, P3
#[test]
fn an_agents_question_is_a_form_with_its_options() {
    for era in BOTH {
        let sage = Sage::new().template("inquiry", INQUIRY);
        let content = json!({"q1": "Blue", "q1_own": "", "q2_1": true, "q2_2": false, "q2_own": "and XXL"});
        let person = Some(json!({"action": "accept", "content": content}));
        let mut client = Client::with_person(&sage, era, person);
        let wish = json!({"feature": "x", "template": "inquiry", "waitMs": 20_000});
        let begun = client.call("sage_workflow_execute", wish).good();
        assert_eq!(begun["questions"][0]["kind"], "question", "{begun}");
        let inbox = client.call("sage_inbox", json!({})).good();
        assert_eq!(inbox["questions"][0]["questions"][0]["options"][0]["description"], "warm", "{inbox}");
        assert_eq!(inbox["roster"][0]["asks"][0]["questions"][1]["multiSelect"], true, "{inbox}");
        let said =
            client.call("sage_inbox", json!({"action": "answer", "feature": "x", "step": "p/one"})).good();
        assert_eq!(said["success"], true);
        let form = client.forms.pop().unwrap();
        assert_eq!(form["requestedSchema"]["properties"]["q1"]["enum"], json!(["Red", "Blue"]), "{form}");
        assert!(form["message"].as_str().unwrap().contains("1. Red   warm"), "{form}");
        let done = client.call("sage_workflow_status", json!({"feature": "x", "waitMs": 40_000})).good();
        assert_eq!(done["status"], "completed", "{done}");
        let log = sage.sage("logs x p/one").exit(0);
        log.stdout_has(r#""Which color?":{"choices":["Blue"]}"#)
            .stdout_has(r#""choices":["S"],"text":"and XXL""#);
        client.hang_up();
        wait_until(|| sage.processes().is_empty(), DEADLINE, "everything to end");
    }
}
