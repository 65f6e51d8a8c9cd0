use serde_json::{Value, json};

use super::{ask, assert_line, project, shop, step, web};

// covers: R6
#[test]
fn a_whole_plan() {
    let dir = shop();
    let spec = ask("specify", &dir, "payment processing").done();
    let steps = json!({"specification/specify": step(spec)});
    let document = ask("plan", &dir, "payment processing").steps(steps).document();
    insta::assert_snapshot!(document, @r##"
    # Payment processing: plan

    6 tasks; T1 and T2 can begin at once.

    > [!NOTE]
    > A draft from facts, made without a model: files, functions and commands are the project's own. How each task is done is not in here.

    ## Order

    ```text
     1  T1  Answer the 6 open questions of the specification
        T2  Cover charge and refund with tests, as they behave today
     2  T3  Change shop/payments.py   <- T1, T2
     3  T4  Adapt shop/orders.py   <- T3
     4  T5  Bring the documents up to date   <- T4
     5  T6  Check the whole   <- T5
    ```

    ## Tasks

    ### T1 Answer the 6 open questions of the specification (P0)

    A person decides. What is decided here is what the other tasks build.

    - Files: `docs/specs/payment-processing/spec.md`
    - [ ] Q1 to Q6 have an answer in `docs/specs/payment-processing/spec.md`.

    ### T2 Cover `charge` and `refund` with tests, as they behave today (P1)

    Before `shop/payments.py` is changed: what they do today is then held.

    - Files: `tests/test_shop.py`
    - [ ] R4: a test shows `charge` failing with `ValueError` "nothing to pay" (`shop/payments.py:11`).
    - [ ] A test calls `refund` (`shop/payments.py:18`).
    - [ ] R5: a test shows `refund` failing with `ValueError` "nothing left" (`shop/payments.py:20`).
    - [ ] `python3 -m unittest discover -s tests` passes.

    ### T3 Change `shop/payments.py` (P1)

    Functions that may change: `charge` :8, `refund` :18.

    - Files: `shop/payments.py`
    - After: T1, T2
    - [ ] R1: the mark at `shop/payments.py:14` is gone, or the specification says why it stays.
    - [ ] R2: those who call it today still work.
    - [ ] `python3 -m unittest discover -s tests` passes.

    ### T4 Adapt `shop/orders.py` (P2)

    It calls `charge` and `refund`, in `place` :4 and `cancel` :9.

    - Files: `shop/orders.py`
    - After: T3
    - [ ] `python3 -m unittest discover -s tests` passes.

    ### T5 Bring the documents up to date (P3)

    They speak about it, or list what changed.

    - Files: `README.md`, `docs/changes.md`
    - After: T4
    - [ ] `README.md` says what is true afterwards.
    - [ ] `docs/changes.md` has an entry.

    ### T6 Check the whole (P2)

    - After: T5
    - [ ] `python3 -m unittest discover -s tests` passes.

    ## Risks

    - No test calls `refund` (`shop/payments.py:18`) directly.

    ## Open questions that block

    Until they are answered, T3 cannot begin.

    - **Q1** Nothing in the project is called "processing": what shall "payment processing" do that `shop/payments.py` does not do today?
    - **Q2** Which of `charge` and `refund` in `shop/payments.py` changes, or does a new one stand beside them?
    - **Q3** R1 is a known gap: is it part of this work, or does it stay?
    - **Q4** `charge` fails with `ValueError` "nothing to pay" and `Declined` "no card", up to `place`, which catches nothing: what shall the user see, and what must not have happened by then?
    - **Q5** The same for: `refund` fails with `ValueError` "nothing left", up to `cancel`, which catches nothing.
    - **Q6** Which example shows that it is done? One input and what must come out; `tests/test_shop.py` is where it would stand.

    ## How this was made

    By Sage's offline agent, without a model. From the specification before it. The order follows from who calls whom: tests for what is untested, then the files nearest the feature, then those that call them, then documents and checks.
    "##);
}

fn ids(tasks: &Value, key: &str) -> Vec<String> {
    tasks.as_array().unwrap().iter().map(|task| task[key].as_str().unwrap().to_string()).collect()
}

// covers: R6, R22
#[test]
fn tasks_wait_only_for_tasks_before_them_and_name_files_that_exist() {
    let dir = web();
    let result = ask("plan", &dir, "cart sharing").done();
    let known = ids(&result["tasks"], "id");
    for (at, task) in result["tasks"].as_array().unwrap().iter().enumerate() {
        for before in task["dependsOn"].as_array().unwrap() {
            assert!(known[..at].contains(&before.as_str().unwrap().to_string()), "{task}");
        }
        for file in task["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()) {
            assert!(file.starts_with("docs/specs/") || dir.path().join(file).is_file(), "{file}");
        }
        assert!(!task["acceptance"].as_array().unwrap().is_empty(), "{task}");
    }
}

// covers: R6
#[test]
fn an_empty_project_has_a_plan_that_names_no_file() {
    let result = ask("plan", &project(&[]), "dark mode").done();
    let titles = ids(&result["tasks"], "title");
    assert_eq!(titles[1], "Decide where it belongs, and write its first test");
    assert_eq!(result["tasks"][1]["files"], json!([]));
}

// covers: R6
#[test]
fn requirements_of_another_agent_become_tasks() {
    let spec = json!({"requirements": [
        {"id": "F1", "text": "Stock is counted per store.", "evidence": ["shop/stock.py:1"]},
        "Refunds are shown to the customer."], "openQuestions": []});
    let result = ask("plan", &shop(), "payment processing").steps(json!({"spec/specify": spec})).done();
    let titles = ids(&result["tasks"], "title");
    assert!(titles.contains(&"F1: Stock is counted per store".to_string()), "{titles:?}");
    assert!(titles.contains(&"R2: Refunds are shown to the customer".to_string()), "{titles:?}");
    let first = titles.iter().position(|title| title.starts_with("F1")).unwrap();
    assert_eq!(result["tasks"][first]["files"], json!(["shop/stock.py"]));
    assert!(!titles.iter().any(|title| title.starts_with("Answer")), "nothing is open\n{titles:?}");
}

// covers: R6
#[test]
fn what_steps_found_elsewhere_is_a_task_of_its_own() {
    let found = json!({"findings": [{"title": "Counting is slow.", "detail": "It reads all.", "kind": "performance",
        "relevance": 0.55, "evidence": ["shop/stock.py:1"]}]});
    let result = ask("plan", &shop(), "payment processing").steps(json!({"detection/profile": found})).done();
    let task =
        result["tasks"].as_array().unwrap().iter().find(|task| task["title"] == "Counting is slow").unwrap();
    assert_eq!((&task["files"], &task["priority"]), (&json!(["shop/stock.py"]), &json!("P2")));
}

// covers: R22
#[test]
fn implementing_without_a_model_changes_nothing_and_opens_tickets() {
    let dir = shop();
    let plan = ask("plan", &dir, "payment processing").done();
    let tasks = ids(&plan["tasks"], "id");
    let result =
        ask("implement", &dir, "payment processing").steps(json!({"planning/plan": step(plan)})).done();
    assert_eq!((&result["filesChanged"], &result["done"]), (&json!([]), &json!([])));
    assert_eq!(ids(&result["open"], "id"), tasks);
    assert!(result["open"][0]["why"].as_str().unwrap().contains("needs a model or a person"));
    assert_eq!(result["tests"]["ran"], json!(false));
    assert_eq!(result["tests"]["passed"], json!(null));
    assert_eq!(ids(&result["tickets"], "id"), tasks);
    let core = &result["tickets"][2];
    assert_eq!(
        (&core["title"], &core["blockedBy"]),
        (&json!("Change `shop/payments.py`"), &json!(["T1", "T2"]))
    );
}

// covers: P2
#[test]
fn backend_and_frontend_get_their_own_files() {
    let plan = json!({"tasks": [
        {"id": "A", "title": "both", "files": ["server/cart.py", "web/src/Cart.tsx"]},
        {"id": "B", "title": "page", "files": ["web/src/page.ts"]},
        {"id": "C", "title": "decide"}]});
    let of = |operation: &str| ask(operation, &project(&[]), "cart").steps(json!({"p": plan})).done();
    let (backend, frontend) = (of("implement.backend"), of("implement.frontend"));
    assert_eq!(ids(&backend["tickets"], "id"), ["A", "C"]);
    assert_eq!(ids(&frontend["tickets"], "id"), ["A", "B"]);
    assert_eq!(backend["tickets"][0]["files"], json!(["server/cart.py"]));
    assert_eq!(frontend["tickets"][0]["files"], json!(["web/src/Cart.tsx"]));
}

// covers: R6, R22
#[test]
fn a_fix_without_a_plan_has_tickets_from_what_was_found() {
    let found = json!({"findings": [
        {"title": "charge divides by zero", "detail": "ZeroDivisionError", "kind": "log", "relevance": 0.9,
            "evidence": ["shop/payments.py:9"]},
        {"title": "no place", "relevance": 1.0}]});
    let result =
        ask("implement.fix", &shop(), "crash at checkout").steps(json!({"analysis/errors": found})).done();
    assert_eq!(ids(&result["tickets"], "title"), ["charge divides by zero"]);
    let acceptance = result["tickets"][0]["acceptance"].as_array().unwrap();
    assert!(acceptance[0].as_str().unwrap().starts_with("A test fails because of it before the change"));
    assert_eq!(acceptance[1], json!("`python3 -m unittest discover -s tests` passes."));
}

// covers: R6
#[test]
fn documents_and_the_list_of_changes_are_named() {
    let dir = shop();
    let document = ask("document", &dir, "payment processing").document();
    assert_line(&document, "For `docs/changes.md`, whose newest section is *1.1* (`docs/changes.md:3`):");
    assert!(document.contains("TO BE WRITTEN when it is done"), "{document}");
    let plan = json!({"tasks": [{"id": "T1", "title": "Cards can be stored"}]});
    let done = json!({"filesChanged": ["shop/payments.py"], "done": ["T1"]});
    let steps = json!({"planning/plan": plan, "implementation/implement": done});
    let document = ask("document", &dir, "payment processing").steps(steps).document();
    assert_line(&document, "- Payment processing: Cards can be stored");
}
