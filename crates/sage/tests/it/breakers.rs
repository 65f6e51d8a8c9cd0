//! A target that fails again and again is left alone for a while, by every run of the project.

use std::path::PathBuf;

use crate::calls::{count, first, is_pause, now_ms};
use crate::dsl::Sage;

const FLAKY: &str = r#"
name: t
phases:
  - id: p
    operations:
      - id: each
        type: shell
        foreach: "[range(9)]"
        target: command:flaky
        params: { run: "echo $SAGE_STEP >> called; exit 1" }
"#;

const STATE: &str = ".sage/state/limits/targets";

/// The target's file, whatever its name is.
fn file(sage: &Sage) -> PathBuf {
    let mut files = std::fs::read_dir(sage.path(STATE)).unwrap().flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "json")).unwrap()
}

fn state(sage: &Sage) -> Vec<u8> {
    std::fs::read(file(sage)).unwrap()
}

#[track_caller]
fn assert_open(sage: &Sage, feature: &str) {
    let status = sage.status(feature);
    assert_eq!(
        (&status["status"], &status["pauseReason"]),
        (&"paused".into(), &"breaker".into()),
        "{status}"
    );
    let until = humantime::parse_rfc3339(status["until"].as_str().unwrap()).unwrap();
    let until_ms = until.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let left_ms = until_ms.saturating_sub(now_ms());
    assert!((30_000..=60_000).contains(&left_ms), "{left_ms} ms are left of a minute");
    let wait = format!("breaker(command:flaky, {})", status["until"].as_str().unwrap());
    let waits = status["steps"].as_array().unwrap().iter().filter(|step| step["waitReason"] == *wait);
    assert!(waits.count() >= 4, "{status}");
}

// covers: R7, R13
#[test]
fn five_failures_in_a_row_open_it() {
    let sage = Sage::new().template("t", FLAKY);
    sage.sage("run x -t t --parallel 1 --no-wait").exit(4).stdout_has("command:flaky");
    assert_eq!(sage.lines("called").len(), 5);
    assert_open(&sage, "x");
    // Another run of the project knows it, and so does a resumed one.
    sage.sage("run y -t t --parallel 8 --no-wait").exit(4);
    assert_open(&sage, "y");
    sage.sage("resume x --no-wait").exit(4);
    assert_eq!(sage.lines("called").len(), 5, "nobody called it");
    assert_eq!(count(&sage.journal("y"), "step.started"), 0);
}

// covers: R5, R7, R13
#[test]
fn it_stays_open_when_its_run_is_killed() {
    let sage = Sage::new().template("t", FLAKY);
    let mut running = sage.spawn("run x -t t --parallel 1");
    running.until(
        || sage.engine().latest("x").is_some() && first(&sage.journal("x"), is_pause).is_some(),
        "the run to stand still",
    );
    assert_open(&sage, "x");
    let before = state(&sage);
    assert!(running.kill());
    assert_eq!(state(&sage), before);
    sage.sage("run y -t t --no-wait").exit(4);
    assert_open(&sage, "y");
    sage.sage("resume x --no-wait").exit(4);
    assert_eq!(sage.lines("called").len(), 5, "nobody called it");
    assert_eq!(state(&sage), before);
}

/// As if its minute were over.
fn let_the_minute_pass(sage: &Sage) {
    let text = String::from_utf8(state(sage)).unwrap();
    let (before, rest) = text.split_once("\"untilMs\":").unwrap();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    std::fs::write(file(sage), format!("{before}\"untilMs\":{}{after}", now_ms() - 1)).unwrap();
}

// covers: R7, R13
#[test]
fn one_at_a_time_finds_out_whether_it_is_well() {
    // Who finds another at work tells how many were well before.
    let well = "mkdir one || wc -l < well >> overlap; sleep 0.1; rmdir one; echo $SAGE_STEP >> well";
    let text = FLAKY.replace("echo $SAGE_STEP >> called; exit 1", well);
    let sage = Sage::new().template("t", FLAKY).template("well", &text.replace("range(9)", "range(2)"));
    sage.sage("run x -t t --parallel 1 --no-wait").exit(4);
    let_the_minute_pass(&sage);
    // It still fails: one call, and it is open again.
    sage.sage("run y -t t --parallel 8 --no-wait").exit(4);
    assert_eq!(sage.lines("called").len(), 6);
    assert_open(&sage, "y");
    let_the_minute_pass(&sage);
    sage.write("well", "");
    let both = ["a", "b"].map(|feature| sage.spawn(&format!("run {feature} -t well --parallel 8")));
    both.into_iter().for_each(|running| drop(running.end().exit(0)));
    assert_eq!((sage.lines("well").len(), sage.lines("called").len()), (4, 6));
    let overlap = sage.lines("overlap");
    assert!(overlap.iter().all(|well| well.trim().parse::<u32>().unwrap() >= 2), "{overlap:?}");
    let text = String::from_utf8(state(&sage)).unwrap();
    assert!(text.contains(r#""state":"closed""#), "{text}");
}

// covers: R7, P4
#[test]
fn red_checks_are_answers_and_open_no_breaker() {
    let text = |agent: &str, params: &str| {
        format!(
            "name: t\nphases:\n  - id: p\n    operations:\n      - id: each\n        type: test.run\n        agent: {agent}\n        \
             retry: 1\n        foreach: \"[range(7)]\"\n        params: {params}\n"
        )
    };
    let offline = text("offline", "{ commands: ['echo x >> called; exit 1'] }");
    let sage = Sage::new().template("t", &offline);
    sage.sage("run x -t t --parallel 1 --no-wait -q").exit(1);
    assert_eq!(sage.lines("called").len(), 7);
    // Also where another agent makes the check.
    for said in ["{ ran: true, passed: false, summary: red }", "{ ran: false, passed: null, summary: none }"]
    {
        let sage = Sage::new().template("t", &text("fake", &format!("{{ script: [{{ result: {said} }}] }}")));
        let told = sage.sage("run x -t t --parallel 1 --no-wait");
        assert_eq!(told.stdout.matches("] started").count(), 7, "{}", told.stdout);
        let told = sage.sage("breakers").exit(0);
        assert!(!told.stdout.contains(" open "), "{}", told.stdout);
    }
}
