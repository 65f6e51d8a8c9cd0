//! The table of `choose`, row by row, with an agent that only writes down what it is asked.

use std::path::Path;
use std::sync::{Arc, Mutex};

use sage_core::policy::FailureClass;
use sage_core::port::{
    BoxFuture, Continuity, Progress, Questions, StepCall, StepCx, StepOutcome, StopSignal, Usage,
};
use sage_core::template::{Isolation, Kind};
use serde_json::{Map, Value, json};

use super::Store;
use crate::agent::{Agent, AgentConfig, Capabilities, Conversation, Feed, Order, Probe, Turn, run};
use crate::attempt::Attempt;
use crate::executor::ExecutorConfig;
use crate::outcome::Miss;

/// What the agent does in its next turn.
#[derive(Clone, Debug)]
enum Act {
    Answer(&'static str),
    Fail(FailureClass),
    /// Works, then its owner is killed: nothing is settled.
    Vanish,
    UnknownConversation,
}

#[derive(Debug, Default)]
struct Parrot {
    acts: Mutex<Vec<Act>>,
    heard: Mutex<Vec<(String, Conversation)>>,
    forgets: Mutex<bool>,
}

impl Agent for Parrot {
    fn name(&self) -> &'static str {
        "parrot"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: true, fork: true, ..Capabilities::default() }
    }

    fn probe<'a>(&'a self, _: &'a AgentConfig) -> BoxFuture<'a, Probe> {
        Box::pin(std::future::ready(Probe::default()))
    }

    fn chooses_id(&self) -> bool {
        true
    }

    fn knows(&self, _: &AgentConfig, _: &str, _: &Path) -> bool {
        !*self.forgets.lock().unwrap()
    }

    fn turn<'a>(&'a self, _: &'a Attempt<'a>, order: &'a Order, feed: &'a Feed) -> BoxFuture<'a, Turn> {
        Box::pin(async move {
            self.heard.lock().unwrap().push((order.prompt.clone(), order.conversation.clone()));
            let act = self.acts.lock().unwrap().remove(0);
            if !matches!(act, Act::UnknownConversation) {
                feed.text("working");
            }
            let usage = Usage { input: Some(1), ..Usage::default() };
            match act {
                Act::Answer(text) => Turn::new(Ok(json!(text)), usage),
                Act::Fail(class) => Turn::new(Err(Miss::failed(class, "broke")), usage),
                Act::Vanish => std::future::pending().await,
                Act::UnknownConversation => {
                    let miss = Miss::failed(FailureClass::Lost, "who?");
                    Turn { unknown_conversation: true, ..Turn::missed(miss) }
                }
            }
        })
    }
}

struct Desk {
    dir: tempfile::TempDir,
    config: ExecutorConfig,
    agent: Parrot,
    told: Arc<Mutex<Vec<Continuity>>>,
}

impl Desk {
    fn new(acts: &[Act]) -> Desk {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Some(dir.path().join("sessions"));
        let config = ExecutorConfig { sessions, ..ExecutorConfig::default() };
        let agent = Parrot { acts: Mutex::new(acts.to_vec()), ..Parrot::default() };
        Desk { dir, config, agent, told: Arc::default() }
    }

    fn call(&self, attempt: u32) -> StepCall {
        StepCall {
            run: "run_1".into(),
            feature: "f".into(),
            path: "p/x".into(),
            kind: Kind::Agent,
            attempt,
            key: "k".into(),
            params: Map::from_iter([("prompt".to_string(), json!("paint it"))]),
            agent: Some("parrot".into()),
            model: None,
            schema: None,
            role: None,
            session: None,
            isolation: Isolation::None,
            input: Value::Null,
            timeout_ms: None,
            idle_timeout_ms: None,
            unknown: false,
            fresh: false,
            feedback: None,
        }
    }

    async fn ask(&self, call: &StepCall) -> StepOutcome {
        let told = self.told.clone();
        let cx = StepCx {
            project: self.dir.path().to_path_buf(),
            scratch: self.dir.path().to_path_buf(),
            children_lock: None,
            proofs: Vec::new(),
            stop: StopSignal::default(),
            nudge: Default::default(),
            questions: Questions::default(),
            progress: Arc::new(move |progress| {
                if let Progress::Session { continuity, .. } = progress {
                    told.lock().unwrap().push(continuity);
                }
            }),
        };
        let attempt = Attempt { config: &self.config, cx: &cx, call };
        let config = AgentConfig { name: "parrot".into(), ..AgentConfig::default() };
        run(&attempt, &self.agent, &config).await
    }

    /// The attempt's owner is killed while the agent works.
    async fn ask_and_die(&self, call: &StepCall) {
        tokio::select! {
            biased;
            outcome = self.ask(call) => panic!("{outcome:?}"),
            () = tokio::task::yield_now() => {}
        }
    }

    fn heard(&self) -> Vec<String> {
        self.agent.heard.lock().unwrap().iter().map(|(prompt, _)| prompt.clone()).collect()
    }

    fn resumed(&self, at: usize) -> bool {
        matches!(self.agent.heard.lock().unwrap()[at].1, Conversation::Resume { .. })
    }

    fn told(&self) -> Vec<Continuity> {
        self.told.lock().unwrap().clone()
    }
}

fn answer(outcome: StepOutcome) -> Value {
    match outcome {
        StepOutcome::Succeeded { result, .. } => result,
        other => panic!("{other:?}"),
    }
}

// covers: S3, R3, R5
#[tokio::test]
async fn work_that_was_killed_goes_on_and_is_not_told_again() {
    let desk = Desk::new(&[Act::Vanish, Act::Answer("done")]);
    desk.ask_and_die(&desk.call(1)).await;
    let call = StepCall { unknown: true, ..desk.call(2) };
    assert_eq!(answer(desk.ask(&call).await), "done");
    assert!(desk.resumed(1));
    assert_eq!(desk.heard()[0], "paint it");
    assert!(desk.heard()[1].contains("interrupted") && !desk.heard()[1].contains("paint it"));
    assert_eq!(desk.told(), [Continuity::New, Continuity::Resumed]);
}

// covers: R5
#[tokio::test]
async fn an_answer_that_only_the_session_knows_is_not_paid_for_again() {
    let desk = Desk::new(&[Act::Answer("done")]);
    assert_eq!(answer(desk.ask(&desk.call(1)).await), "done");
    let call = StepCall { unknown: true, ..desk.call(2) };
    assert_eq!(answer(desk.ask(&call).await), "done");
    assert_eq!(desk.heard().len(), 1, "nobody was asked");
}

// covers: S3
#[tokio::test]
async fn failures_and_bad_answers_go_on_in_the_same_conversation_with_what_was_wrong() {
    let desk = Desk::new(&[Act::Fail(FailureClass::Transient), Act::Answer("bad"), Act::Answer("good")]);
    desk.ask(&desk.call(1)).await;
    let again = StepCall { feedback: Some("overloaded".into()), ..desk.call(2) };
    assert_eq!(answer(desk.ask(&again).await), "bad");
    let better = StepCall { feedback: Some("no `title`".into()), ..desk.call(3) };
    assert_eq!(answer(desk.ask(&better).await), "good");
    assert!(desk.resumed(1) && desk.resumed(2));
    assert!(desk.heard()[1].contains("overloaded") && desk.heard()[2].contains("no `title`"));
    assert!(!desk.told().contains(&Continuity::Reloaded));
}

// covers: R3
#[tokio::test]
async fn a_conversation_that_cannot_go_on_is_told_what_it_knew_and_that_is_a_reload() {
    let desk = Desk::new(&[Act::Answer("first"), Act::UnknownConversation, Act::Answer("second")]);
    let named = |key: &str, task: &str| {
        let mut call = StepCall { session: Some("main".into()), key: key.into(), ..desk.call(1) };
        call.params.insert("prompt".into(), task.into());
        call
    };
    desk.ask(&named("1", "remember blue")).await;
    assert_eq!(answer(desk.ask(&named("2", "which colour?")).await), "second");
    let last = desk.heard().pop().unwrap();
    assert!(
        last.contains("remember blue") && last.contains("first") && last.ends_with("which colour?"),
        "{last}"
    );
    assert_eq!(desk.told().last(), Some(&Continuity::Reloaded));
    let record = Store::new(desk.config.sessions.clone().unwrap()).load("main").unwrap();
    assert_eq!((record.reloads, record.turns.len(), record.usage.input), (1, 2, Some(2)));
    let handoff = std::fs::read_to_string(desk.dir.path().join("sessions/main/handoff.json")).unwrap();
    assert!(handoff.contains("which colour?") && handoff.contains("first"), "{handoff}");

    *desk.agent.forgets.lock().unwrap() = true;
    desk.agent.acts.lock().unwrap().push(Act::Answer("third"));
    assert_eq!(answer(desk.ask(&named("3", "and now?")).await), "third");
    assert_eq!(desk.told().last(), Some(&Continuity::Reloaded));
}

// covers: S3
#[tokio::test]
async fn a_fork_knows_what_its_parent_knew_and_leaves_it_alone() {
    let desk = Desk::new(&[Act::Answer("a"), Act::Answer("b"), Act::Answer("c")]);
    let named = |id: &str, key: &str| StepCall { session: Some(id.into()), key: key.into(), ..desk.call(1) };
    desk.ask(&named("main", "1")).await;
    let store = Store::new(desk.config.sessions.clone().unwrap());
    let before = store.load("main").unwrap().conversation.unwrap();
    store.fork("main", "copy").unwrap();
    desk.ask(&named("copy", "2")).await;
    let of = match &desk.agent.heard.lock().unwrap()[1].1 {
        Conversation::Fork { of, .. } => of.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(of, before);
    assert_ne!(store.load("copy").unwrap().conversation.unwrap(), before);
    desk.ask(&named("copy", "3")).await;
    assert!(desk.resumed(2));
    assert_eq!(store.load("main").unwrap().turns.len(), 1);
}

#[tokio::test]
async fn bad_turns_in_a_row_and_bad_conversations_start_anew() {
    let bad = Act::Fail(FailureClass::Failed);
    let desk =
        Desk::new(&[bad.clone(), bad.clone(), bad, Act::Fail(FailureClass::Invalid), Act::Answer("x")]);
    for attempt in 1..=5 {
        let feedback = (attempt > 1).then(|| "broke".to_string());
        desk.ask(&StepCall { feedback, ..desk.call(attempt) }).await;
    }
    let expected = [
        Continuity::New,
        Continuity::Resumed,
        Continuity::Resumed,
        Continuity::Reloaded,
        Continuity::Reloaded,
    ];
    assert_eq!(desk.told(), expected);
}

#[tokio::test]
async fn a_session_belongs_to_one_agent() {
    let desk = Desk::new(&[]);
    let store = Store::new(desk.config.sessions.clone().unwrap());
    store.create(&super::Record::new("main", "other", None, true, 1)).unwrap();
    let call = StepCall { session: Some("main".into()), ..desk.call(1) };
    let StepOutcome::Failed { class, message, .. } = desk.ask(&call).await else { panic!() };
    assert_eq!(class, FailureClass::Invalid);
    assert!(message.contains("belongs to agent `other`"), "{message}");
}
