//! Questions of agents where nobody answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sage_core::port::{
    AskKind, BoxFuture, Permission, PermissionAsk, StepCall, StepCx, StepExecutor, StepOutcome, Usage,
};
use sage_engine::approvals::Approvals;
use sage_engine::sim::SimFs;
use serde_json::Value;
use tokio::time::Instant;

use crate::world::World;

/// An agent that asks three times, and how long each answer took.
#[derive(Default)]
struct Asker(Arc<Mutex<Vec<(Duration, Permission)>>>);

impl StepExecutor for Asker {
    fn execute(&self, cx: StepCx, _call: StepCall) -> BoxFuture<'static, StepOutcome> {
        let answers = self.0.clone();
        Box::pin(async move {
            for number in 1..=3 {
                let (id, tool, command) = (number.to_string(), "Bash".into(), Some("deploy $X".into()));
                let kind = AskKind::Run;
                let (input, paths, inquiry) = (Value::Null, Vec::new(), None);
                let ask = PermissionAsk { id, tool, input, kind, paths, command, inquiry, planning: false };
                let asked = Instant::now();
                let answer = cx.questions.ask(ask).await;
                answers.lock().unwrap().push((asked.elapsed(), answer));
            }
            StepOutcome::Succeeded { result: Value::Null, usage: Usage::default() }
        })
    }
}

const ONE: &str =
    "name: t\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: x, params: { prompt: go } }\n";

fn answers(approvals: Approvals) -> Vec<(u64, Permission)> {
    let world = World::new(Arc::new(SimFs::new(1)));
    let asker = Asker::default();
    let kept = asker.0.clone();
    let asker = Arc::new(asker);
    world.live(async || {
        let mut engine = world.engine();
        engine.executor = asker;
        engine.approvals = Arc::new(approvals);
        engine.start(world.request(ONE)).unwrap().drive().await.unwrap()
    });
    let answers = kept.lock().unwrap().clone();
    answers.into_iter().map(|(took, answer)| (took.as_secs(), answer)).collect()
}

// covers: P3
#[test]
fn after_a_question_that_nobody_answered_the_next_ones_are_not_waited_for() {
    let deadline_ms = Some(300_000);
    let waits = |once| {
        let told = answers(Approvals { deadline_ms, once, ..Approvals::default() });
        told.iter().map(|(seconds, _)| *seconds).collect::<Vec<_>>()
    };
    assert_eq!(waits(false), [300, 300, 300]);
    assert_eq!(waits(true), [300, 0, 0]);
    let told = answers(Approvals { deadline_ms: Some(0), ..Approvals::default() });
    for (seconds, answer) in told {
        let Permission::Deny { message } = answer else { panic!("{answer:?}") };
        assert_eq!(seconds, 0);
        for part in ["nobody is there", "it uses a variable (`$X`)", "Without a person you can"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let allowed = Approvals { deadline_ms: Some(0), allow_by_default: true, ..Approvals::default() };
    assert!(answers(allowed).iter().all(|(_, answer)| *answer == Permission::Allow { input: None }));
}
