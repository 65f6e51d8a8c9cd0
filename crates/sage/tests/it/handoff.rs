//! `sage handoff` from the outside: creating in both ways, a whole chain, what is refused, what is stuck.

use std::time::Instant;

use serde_json::{Value, json};

use crate::dsl::{Outcome, Sage};

fn desk() -> Sage {
    let sage = Sage::bare();
    sage.write("docs/plan.md", "plan");
    sage
}

fn create(sage: &Sage, from: &str, to: &str, more: &[&str]) -> Outcome {
    let mut args = vec!["handoff", "create", "--json", "--from", from, "--to", to, "--task-id", "login"];
    args.extend(["--phase", "plan", "--scope", "the login page", "--deliverable", "plan"]);
    args.extend(["--location", "docs", "--summary", "a plan", "--artifact", "docs/plan.md"]);
    args.extend(["--instruction", "build it", "--criterion", "tests pass"]);
    args.extend(more);
    sage.args(args).run()
}

fn id(outcome: &Outcome) -> String {
    outcome.json()["handoff"]["handoff"]["handoffId"].as_str().unwrap().to_owned()
}

fn listed(sage: &Sage, flags: &str) -> Vec<Value> {
    let list = sage.sage(&format!("handoff list --json {flags}")).exit(0).json();
    list["handoffs"].as_array().unwrap().clone()
}

// covers: S6
#[test]
fn work_goes_its_way_and_is_archived() {
    let sage = desk();
    let start = Instant::now();
    let issue = [
        "--issue",
        "low | a thing | look at it",
        "--session",
        "planner-claude-1",
        "--constraint",
        "no new table",
    ];
    let first = id(&create(&sage, "planner", "IMPLEMENTER", &issue).exit(0));
    sage.sage(&format!("handoff accept {first}")).exit(0).stdout_has("PLANNER -> IMPLEMENTER (accepted)");
    sage.sage(&format!("handoff complete {first}")).exit(0).stdout_has("(completed)");
    let took = start.elapsed();
    println!("three commands, create + accept + complete: {} ms", took.as_millis());

    let shown = sage.sage(&format!("handoff show {first}")).exit(0);
    for text in [
        "PLANNER -> IMPLEMENTER",
        "completed (",
        "low: a thing (look at it)",
        "planner-claude-1",
        "no new table",
    ] {
        assert!(shown.stdout.contains(text), "{text}: {}", shown.stdout);
    }
    for (from, to) in [("implementer", "auditor"), ("auditor", "cleaner"), ("cleaner", "orchestrator")] {
        let id = id(&create(&sage, from, to, &[]).exit(0));
        // The end of an id is enough.
        sage.sage(&format!("handoff accept {}", &id[24..])).exit(0);
        sage.sage(&format!("handoff complete {id}")).exit(0);
    }
    sage.sage("handoff list").exit(0).stderr_has("sage handoff list --all");
    let all = listed(&sage, "--all");
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|row| row["archived"] == true && row["stuck"] == false));
    assert!(all[0]["transitions"][1]["afterMs"].is_u64() && all[0]["ageMs"].is_u64());
    sage.sage("handoff list --all")
        .exit(0)
        .stdout_has("accepted after ")
        .stdout_has("CLEANER -> ORCHESTRATOR");
    sage.sage(&format!("handoff show {first} --json")).exit(0);
    assert!(sage.path(".sage/handoffs/archive/chain-login.json").exists());
    assert!(sage.path(".sage/.gitignore").exists());
}

// covers: S6
#[test]
fn what_is_incomplete_or_out_of_order_is_refused() {
    let sage = desk();
    let before = sage.listing();
    let empty = sage.sage("handoff create --location nowhere").exit(2);
    for field in [
        "handoff.from",
        "context.taskId",
        "nextSteps.acceptanceCriteria",
        "deliverable.location` does not exist: nowhere",
    ] {
        assert!(empty.stderr.contains(field), "{field}: {}", empty.stderr);
    }
    assert_eq!(sage.sage("handoff create --json").exit(2).json()["problems"].as_array().unwrap().len(), 10);
    create(&sage, "planner", "auditr", &[]).exit(2).stdout_has("did you mean `auditor`?");
    create(&sage, "planner", "auditor", &[]).exit(2).stderr_has("PLANNER hands to IMPLEMENTER");
    assert_eq!(sage.listing(), before);

    let first = id(&create(&sage, "planner", "implementer", &[]).exit(0));
    create(&sage, "implementer", "auditor", &[]).exit(2).stderr_has(&format!("sage handoff accept {first}"));
    sage.sage(&format!("handoff complete {first}")).exit(2).stderr_has("cannot become completed");
    sage.args(["handoff", "reject", &first, "--reason", " "]).run().exit(2).stderr_has("needs a reason");
    sage.args(["handoff", "reject", &first, "--reason", "no plan"]).run().exit(0).stdout_has("(rejected)");
    sage.sage("handoff accept handoff_nothing").exit(2).stderr_has("no handoff `handoff_nothing`");
    create(&sage, "planner", "implementer", &[]).exit(0);
    create(&sage, "auditor", "planner", &["--type", "requires_replanning"])
        .exit(2)
        .stderr_has("AUDITOR does not have the work");
}

// covers: S6
#[test]
fn a_file_will_do_and_flags_win() {
    let sage = desk();
    let whole = json!({
        "handoff": {"from": "PLANNER", "to": "IMPLEMENTER"},
        "context": {"taskId": "../x", "phase": "p", "scope": "s", "dependencies": []},
        "deliverable": {"type": "plan", "location": "docs/plan.md", "summary": "\u{1b}[31mred", "artifacts": []},
        "nextSteps": {"instructions": ["i"], "constraints": [], "acceptanceCriteria": ["a"]},
        "issues": [], "memory": {"created": [], "referenced": []}, "session": null
    });
    sage.write("h.json", whole.to_string());
    let made =
        sage.args(["handoff", "create", "--file", "h.json", "--phase", "mine", "--json"]).run().exit(0);
    assert_eq!(made.json()["handoff"]["context"]["phase"], "mine");
    let shown = sage.sage(&format!("handoff show {}", id(&made))).exit(0);
    assert!(!shown.stdout.contains('\u{1b}'), "{}", shown.stdout);
    sage.sage("handoff create --file none.json").exit(2).stderr_has("cannot read `none.json`");
    sage.write("bad.json", "{");
    sage.sage("handoff create --file bad.json").exit(2).stderr_has("is not JSON");
    // Nothing on stdin is no handoff either.
    sage.sage("handoff create --file -").exit(2).stderr_has("is not JSON");
    assert_eq!(
        sage.listing().iter().filter(|path| path.contains("chain")).count(),
        0,
        "nothing beside .sage"
    );
}

// covers: S6, R5
#[test]
fn what_nobody_looks_after_is_stuck_and_damage_is_told() {
    let sage = desk();
    let made = create(&sage, "planner", "implementer", &[]).exit(0).json()["handoff"].clone();
    let fresh = made["handoff"]["timestamp"].as_str().unwrap();
    let id = made["handoff"]["handoffId"].as_str().unwrap();
    assert_eq!(listed(&sage, "--stuck").len(), 0);
    let old = sage.path(&format!(".sage/handoffs/{}/{id}.json", &fresh[..10]));
    let text = std::fs::read_to_string(&old).unwrap().replace(fresh, "2020-01-01T00:00:00.000Z");
    std::fs::remove_file(old).unwrap();
    sage.write(&format!(".sage/handoffs/2020-01-01/{id}.json"), text);
    let list = sage.sage("handoff list").exit(0).stdout_has("pending (stuck)");
    list.stderr_has("the next change writes it anew").stderr_has("1 stuck for 24 hours");
    assert_eq!(listed(&sage, "--stuck").len(), 1);
    sage.sage("handoff list --stuck").exit(0).stderr_lacks("made anew");
    sage.write(".sage/handoffs/2020-01-01/broken.json", "{");
    sage.sage("handoff list").exit(0).stderr_has("broken.json` cannot be read").stdout_has(id);
}

// covers: S6
#[test]
fn processes_that_create_at_once_lose_nothing() {
    let sage = desk();
    let running: Vec<_> = (0..6)
        .map(|n| {
            let id = format!("t{n}");
            let mut args =
                vec!["handoff", "create", "--from", "planner", "--to", "implementer", "--phase", "p"];
            args.extend(["--scope", "s", "--deliverable", "d", "--location", ".", "--summary", "s"]);
            args.extend(["--instruction", "i", "--criterion", "c", "--task-id", &id]);
            sage.args(args).spawn()
        })
        .collect();
    running.into_iter().for_each(|process| drop(process.end().exit(0)));
    assert_eq!(listed(&sage, "").len(), 6);
    sage.sage("handoff list").exit(0).stderr_lacks("note");
}
