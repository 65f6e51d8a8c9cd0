//! Handoffs without files: what is read, what is refused, what follows from a list of them.

use serde_json::{Value, json};

use super::*;

const AT: &str = "2026-01-31T10:00:00.000Z";

fn whole() -> Value {
    json!({
        "handoff": {"from": "PLANNER", "to": "implementer", "type": "work", "handoffId": "h-1"},
        "context": {"taskId": "login", "phase": "plan", "scope": "the login page", "dependencies": ["auth"]},
        "deliverable": {"type": "plan", "location": "docs/plan.md", "summary": "a plan", "artifacts": ["docs/plan.md"]},
        "nextSteps": {"instructions": "build it", "constraints": [], "acceptanceCriteria": ["tests pass"]},
        "issues": [{"severity": "LOW", "description": "d", "recommendation": "r"}],
        "memory": {"created": ["m1"], "referenced": []},
        "session": "planner-claude-1"
    })
}

fn problems(value: &Value) -> Vec<String> {
    read(value).unwrap_err().iter().map(ToString::to_string).collect()
}

fn made(from: Role, to: Role, id: &str) -> Handoff {
    let mut handoff = read(&whole()).unwrap();
    handoff.handoff = Header {
        from,
        to,
        timestamp: AT.into(),
        kind: WORK.into(),
        status: Status::Pending,
        handoff_id: id.into(),
    };
    handoff.transitions = vec![Transition { status: Status::Pending, at: AT.into(), reason: None }];
    handoff
}

// covers: S6
#[test]
fn a_whole_one_is_read_and_written_with_exactly_its_fields() {
    let handoff = read(&whole()).unwrap();
    assert_eq!((handoff.handoff.from, handoff.handoff.to), (Role::Planner, Role::Implementer));
    assert_eq!(handoff.next_steps.instructions, ["build it"]);
    assert_eq!(handoff.issues[0].severity, Severity::Low);
    let written = serde_json::to_value(&handoff).unwrap();
    assert_eq!(written["handoff"]["from"], "PLANNER");
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(fields(&written), "handoff context deliverable nextSteps issues memory session transitions");
    assert_eq!(fields(&written["handoff"]), "from to timestamp type status handoffId");
    assert_eq!(fields(&written["context"]), "taskId phase scope dependencies");
    assert_eq!(fields(&written["deliverable"]), "type location summary artifacts");
    assert_eq!(fields(&written["nextSteps"]), "instructions constraints acceptanceCriteria");
    assert_eq!(fields(&written["issues"][0]), "severity description recommendation");
    assert_eq!(fields(&written["memory"]), "created referenced");
    assert_eq!(serde_json::from_value::<Handoff>(written.clone()).unwrap(), handoff);
    assert_eq!(read(&written).unwrap(), handoff, "what sage writes can be given to it again");
}

// covers: S6
#[test]
fn everything_that_is_missing_is_said_at_once() {
    assert_eq!(
        problems(&json!({})),
        [
            "`handoff.from` is missing",
            "`handoff.to` is missing",
            "`context.taskId` is missing",
            "`context.phase` is missing",
            "`context.scope` is missing",
            "`deliverable.type` is missing",
            "`deliverable.location` is missing",
            "`deliverable.summary` is missing",
            "`nextSteps.instructions` is missing",
            "`nextSteps.acceptanceCriteria` is missing",
        ]
    );
    assert!(problems(&json!([1])).len() > 10);
}

// covers: S6
#[test]
fn what_is_wrong_is_said_with_the_nearest_name() {
    let wrong = |pointer: &str, value: Value| {
        let mut whole = whole();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        whole.pointer_mut(parent).unwrap()[name] = value;
        problems(&whole)
    };
    assert_eq!(
        wrong("/handoff/to", json!("AUDITER")),
        ["`handoff.to` `AUDITER` is no role; did you mean `auditor`?"]
    );
    assert_eq!(
        wrong("/handoff/status", json!("accepted")),
        ["`handoff.status` of a new one is `pending`; leave it out"]
    );
    assert!(
        wrong("/handoff/handoffId", json!("../x"))[0].starts_with("`handoff.handoffId` has other characters")
    );
    assert_eq!(wrong("/context/scope", json!("  ")), ["`context.scope` is empty"]);
    assert_eq!(wrong("/context/scop", json!("x")), ["`context.scop` is not known; did you mean `scope`?"]);
    assert_eq!(wrong("/deliverable/summary", json!(7)), ["`deliverable.summary` must be text"]);
    assert_eq!(
        wrong("/deliverable/artifacts", json!([""])),
        ["`deliverable.artifacts` must be a list of texts that are not empty"]
    );
    assert_eq!(wrong("/nextSteps/instructions", json!([])), ["`nextSteps.instructions` is missing"]);
    assert_eq!(wrong("/memory", json!("m")), ["`memory` must be an object"]);
    assert_eq!(wrong("/session", json!("")), ["`session` must be the name of a session, or left out"]);
    assert_eq!(
        wrong("/issues", json!([{"severity": "hihg"}, 5])),
        [
            "`issues[0].severity` `hihg` is not known; did you mean `high`?",
            "`issues[0].description` is missing",
            "`issues[0].recommendation` is missing",
            "`issues[1]` must be an object: {severity, description, recommendation}",
        ]
    );
}

// covers: S6
#[test]
fn the_way_of_the_work_is_checked_for_every_pair() {
    let fine = |kind: &str| {
        let mut ways = Vec::new();
        for from in Role::ALL {
            for to in Role::ALL.into_iter().filter(|to| check_parties(from, *to, kind).is_ok()) {
                ways.push(format!("{from}>{to}"));
            }
        }
        ways.join(" ")
    };
    assert_eq!(
        fine(WORK),
        "planner>implementer implementer>auditor auditor>cleaner cleaner>orchestrator orchestrator>planner"
    );
    assert_eq!(fine(REPLANNING), "implementer>planner auditor>planner cleaner>planner orchestrator>planner");
    assert_eq!(fine(SESSION_LOST).split(' ').count(), Role::ALL.len());
    let refused = check_parties(Role::Implementer, Role::Cleaner, WORK).unwrap_err();
    assert_eq!(refused.message, "IMPLEMENTER does not hand to CLEANER with the type `work`");
    assert_eq!(
        refused.hint,
        "IMPLEMENTER hands to AUDITOR, or to PLANNER (type `requires_replanning`), \
         or to itself (type `session_lost`, after a broken session)"
    );
    assert!(
        check_parties(Role::Observer, Role::Planner, WORK)
            .unwrap_err()
            .hint
            .contains("PLANNER -> IMPLEMENTER")
    );
}

// covers: S6
#[test]
fn a_status_goes_its_way_and_no_other() {
    use Status::{Accepted, Completed, Pending, Rejected};
    let all = [Pending, Accepted, Rejected, Completed];
    let mut ways = Vec::new();
    for now in all {
        for next in all {
            let mut handoff = made(Role::Planner, Role::Implementer, "h");
            handoff.handoff.status = now;
            if handoff.advance(next, AT, Some("why")).is_ok() {
                ways.push((now, next));
                let last = handoff.transitions.last().unwrap();
                assert_eq!((last.status, last.at.as_str(), handoff.handoff.status), (next, AT, next));
            }
        }
    }
    assert_eq!(ways, [(Pending, Accepted), (Pending, Rejected), (Accepted, Completed)]);
    let mut handoff = made(Role::Planner, Role::Implementer, "h");
    let refused = handoff.advance(Completed, AT, None).unwrap_err();
    assert_eq!(refused.message, "`h` is pending and cannot become completed");
    assert!(refused.hint.starts_with("sage handoff accept h"), "{}", refused.hint);
    assert!(handoff.advance(Rejected, AT, Some(" ")).unwrap_err().message.contains("needs a reason"));
    assert_eq!((handoff.handoff.status, handoff.transitions.len()), (Pending, 1));
}

// covers: S6
#[test]
fn only_who_has_the_work_hands_it_on() {
    let mut first = made(Role::Planner, Role::Implementer, "h1");
    let next = made(Role::Implementer, Role::Auditor, "h2");
    let chain = |handoffs: &[Handoff]| Index::of(handoffs).chain("login").unwrap();
    let refused = chain(std::slice::from_ref(&first)).check_next(&next).unwrap_err();
    assert_eq!(refused.message, "IMPLEMENTER does not have the work of `login`");
    assert_eq!(refused.hint, "sage handoff accept h1    # first");
    first.advance(Status::Accepted, AT, None).unwrap();
    chain(std::slice::from_ref(&first)).check_next(&next).unwrap();
    let cleaner = made(Role::Cleaner, Role::Orchestrator, "h3");
    let refused = chain(&[first.clone(), next.clone()]).check_next(&cleaner).unwrap_err();
    assert_eq!(refused.hint, "the last handoff is IMPLEMENTER -> AUDITOR (pending)");
    // Several may get work from one, and a rejected one is offered again.
    chain(std::slice::from_ref(&first)).check_next(&made(Role::Planner, Role::Implementer, "h4")).unwrap();
}

// covers: S6
#[test]
fn a_chain_ends_when_the_orchestrator_has_it_back() {
    let mut all = Vec::new();
    for (n, pair) in ORDER.windows(2).enumerate() {
        let mut handoff = made(pair[0], pair[1], &format!("h{n}"));
        handoff.handoff.timestamp = format!("2026-01-31T1{n}:00:00.000Z");
        assert!(!Index::of(&all).chain("login").is_some_and(|chain| chain.archived), "{n}");
        handoff.advance(Status::Accepted, AT, None).unwrap();
        handoff.advance(Status::Completed, AT, None).unwrap();
        all.push(handoff);
    }
    all.reverse();
    let index = Index::of(&all);
    let ids: Vec<&str> = index.handoffs.iter().map(|entry| entry.handoff_id.as_str()).collect();
    assert_eq!(ids, ["h0", "h1", "h2", "h3"], "by time, however they were found");
    assert!(index.chain("login").unwrap().archived && index.handoffs.iter().all(|entry| entry.archived));
    let mut again = made(Role::Orchestrator, Role::Planner, "h9");
    again.handoff.timestamp = "2026-02-01T00:00:00.000Z".into();
    all.push(again);
    assert!(!Index::of(&all).chain("login").unwrap().archived, "a new one opens it again");
}

// covers: S6
#[test]
fn a_day_without_a_change_is_stuck() {
    let mut handoff = made(Role::Planner, Role::Implementer, "h");
    let day = |hours: u64| time_of(AT) + hours * 3_600_000;
    assert!(!Entry::of(&handoff).is_stuck(day(23)) && Entry::of(&handoff).is_stuck(day(24)));
    handoff.advance(Status::Accepted, "2026-02-01T00:00:00Z", None).unwrap();
    assert!(!Entry::of(&handoff).is_stuck(day(24)) && Entry::of(&handoff).is_stuck(day(38)));
    handoff.advance(Status::Completed, "2026-02-01T01:00:00Z", None).unwrap();
    assert!(!Entry::of(&handoff).is_stuck(day(1_000)));
    handoff.handoff.kind = SESSION_LOST.into();
    assert!(Index::of(&[handoff.clone()]).handoffs[0].archived, "a recovered session is done with");
    assert_eq!(Entry::of(&handoff).age_ms(day(5)), 5 * 3_600_000);
}

fn time_of(text: &str) -> u64 {
    let since = humantime::parse_rfc3339(text).unwrap().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_millis() as u64
}

// covers: S6
#[test]
fn names_of_files_are_safe_and_differ() {
    assert_eq!(chain_file("login-1.2"), "chain-login-1.2.json");
    let strange = ["../../etc/passwd", "a/b", "a b", "ab", "", "\u{1b}[2J", ".hidden", &"x".repeat(300)];
    let mut names: Vec<String> = strange.iter().map(|id| chain_file(id)).collect();
    for name in &names {
        assert!(!name.contains(['/', ' ', '\u{1b}']) && name.len() < 120, "{name}");
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), strange.len());
}

// covers: S3, S6
#[test]
fn a_broken_session_becomes_a_complete_handoff() {
    let files = ["src/a.rs".to_string()];
    let long = "word ".repeat(10_000);
    let broken = BrokenSession {
        role: Some(Role::Auditor),
        session: "auditor-claude-7",
        feature: "login",
        step: "check/files[2]",
        prompt: "check it",
        partial: &long,
        files: &files,
        why: "its file is gone",
    };
    let handoff = Handoff::from_session(&broken, "h", AT);
    read(&serde_json::to_value(&handoff).unwrap()).unwrap();
    check_parties(handoff.handoff.from, handoff.handoff.to, &handoff.handoff.kind).unwrap();
    assert_eq!(handoff.deliverable.artifacts, files);
    assert!(handoff.deliverable.summary.len() < 9_000 && handoff.deliverable.summary.starts_with("[…]"));
    assert_eq!(handoff.next_steps.instructions[0], "check it");
    let nothing = BrokenSession {
        role: None,
        session: "",
        feature: "",
        step: "",
        prompt: " ",
        partial: "",
        files: &[],
        why: "",
    };
    read(&serde_json::to_value(Handoff::from_session(&nothing, "h", AT)).unwrap()).unwrap();
}
