//! Reminders to agents that seem stuck.

use sage_core::policy::FailureClass;
use serde_json::json;

use crate::bench::{Bench, mode, until};

const FILE: &str = ".scratch/nudge";

// covers: S4
#[tokio::test]
async fn a_hanging_agent_goes_on_when_it_is_nudged() {
    let turn = json!({"say": "stuck", "fault": "hang", "wakeOnNudge": true, "result": "awake"});
    let bench = Bench::fake(json!([turn]));
    let story = async {
        until("the hang", || bench.read(".scratch/stdout.log").contains("stuck")).await;
        assert!(!bench.path(FILE).exists());
        bench.cx.nudge.give();
    };
    assert_eq!(bench.run_with(story).await.succeeded(), "awake");
    assert_eq!((bench.read(FILE).as_str(), mode(&bench.path(FILE))), ("1\n", 0o600));
}

// covers: S4
#[tokio::test]
async fn it_may_take_more_than_one_nudge() {
    let bench = Bench::fake(json!([{"fault": "hang", "wakeOnNudge": 2, "say": "awake"}]));
    let story = async {
        for count in ["1\n", "2\n"] {
            bench.cx.nudge.give();
            until("the passed-on reminder", || bench.read(FILE) == count).await;
        }
    };
    assert_eq!(bench.run_with(story).await.succeeded(), "awake");
    let deaf = Bench::fake(json!([{"fault": "hang", "wakeOnNudge": 2}])).timeout(500);
    deaf.cx.nudge.give();
    deaf.run().await.failed(FailureClass::Timeout);
    assert_eq!(deaf.read(FILE), "1\n");
    let sound_asleep = Bench::fake(json!([{"fault": "hang"}])).timeout(300);
    sound_asleep.cx.nudge.give();
    sound_asleep.run().await.failed(FailureClass::Timeout);
}

// covers: S4
#[tokio::test]
async fn any_program_can_wait_for_its_reminder() {
    let script = "test -e \"$SAGE_NUDGE\" && exit 9; echo > waits; \
        while ! test -e \"$SAGE_NUDGE\"; do sleep 0.01; done; cat \"$SAGE_NUDGE\"";
    let bench = Bench::command(&["sh", "-c", script], "go");
    // Of an earlier call of the same attempt: it must not count for this one.
    std::fs::write(bench.path(FILE), "7\n").unwrap();
    let story = async {
        until("the wait", || bench.path("waits").exists()).await;
        bench.cx.nudge.give();
    };
    assert_eq!(bench.run_with(story).await.succeeded(), "1");
}

#[tokio::test]
async fn shell_steps_are_not_nudged() {
    let bench = Bench::shell("echo \"${SAGE_NUDGE-none}\"");
    bench.cx.nudge.give();
    assert_eq!(bench.run().await.succeeded()["stdout"], "none\n");
    assert!(!bench.path(FILE).exists());
}
