//! The table of `choose`, row by row, with an agent that only writes down what it is asked.

use std::path::Path;
use std::sync::{Arc, Mutex};

use sage_core::policy::FailureClass;
use sage_core::port::{
    BoxFuture, Continuity, Message, Messages, Progress, Questions, StepCall, StepCx, StepOutcome, StopSignal,
    Usage,
};
use sage_core::seal::Key;
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
    /// Fails before it has worked: a limit, an overload.
    Refuse(FailureClass),
    /// The program does not even start.
    NotStarted,
    /// Calls the conversation itself bad.
    Spoil,
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
            if !matches!(act, Act::UnknownConversation | Act::NotStarted) {
                feed.conversation(order.conversation.id());
            }
            if !matches!(act, Act::UnknownConversation | Act::NotStarted | Act::Refuse(_)) {
                feed.text("working");
            }
            let usage = Usage { input: Some(1), ..Usage::default() };
            match act {
                Act::Answer(text) => Turn::new(Ok(json!(text)), usage),
                Act::NotStarted => Turn::missed(Miss::failed(FailureClass::Failed, "no program")),
                Act::Spoil => {
                    let miss = Miss::invalid("the prompt is too long");
                    Turn { spoiled: true, ..Turn::new(Err(miss), usage) }
                }
                Act::Fail(class) | Act::Refuse(class) => Turn::new(Err(Miss::failed(class, "broke")), usage),
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
    alive: Arc<Mutex<u32>>,
    messages: Mutex<Messages>,
}

impl Desk {
    fn new(acts: &[Act]) -> Desk {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Some(dir.path().join("sessions"));
        let config = ExecutorConfig { sessions, key: Some(Key::new(&[1; 32])), ..ExecutorConfig::default() };
        let agent = Parrot { acts: Mutex::new(acts.to_vec()), ..Parrot::default() };
        Desk { dir, config, agent, told: Arc::default(), alive: Arc::default(), messages: Mutex::default() }
    }

    fn call(&self, attempt: u32) -> StepCall {
        StepCall {
            run: "run_1".into(),
            feature: "f".into(),
            path: "p/x".into(),
            kind: Kind::Agent,
            operation: "agent".into(),
            attempt,
            key: "k".into(),
            params: Map::from_iter([("prompt".to_string(), json!("paint it"))]),
            agent: Some("parrot".into()),
            model: None,
            schema: None,
            allow: Default::default(),
            role: None,
            session: None,
            isolation: Isolation::None,
            input: Value::Null,
            timeout_ms: None,
            idle_timeout_ms: None,
            unknown: false,
            fresh: false,
            feedback: None,
            messages: Vec::new(),
            keep_output: false,
            files: Vec::new(),
        }
    }

    async fn ask(&self, call: &StepCall) -> StepOutcome {
        self.ask_as("parrot", call).await
    }

    async fn ask_as(&self, agent: &str, call: &StepCall) -> StepOutcome {
        let (told, alive) = (self.told.clone(), self.alive.clone());
        let cx = StepCx {
            watch: None,
            project: self.dir.path().to_path_buf(),
            scratch: self.dir.path().to_path_buf(),
            children_lock: None,
            proofs: Vec::new(),
            stop: StopSignal::default(),
            nudge: Default::default(),
            questions: Questions::default(),
            messages: self.messages.lock().unwrap().clone(),
            crowd: Default::default(),
            prices: Default::default(),
            capped: false,
            progress: Arc::new(move |progress| match progress {
                Progress::Session { continuity, .. } => told.lock().unwrap().push(continuity),
                Progress::Alive => *alive.lock().unwrap() += 1,
                _ => {}
            }),
        };
        let attempt = Attempt { config: &self.config, cx: &cx, call };
        let config = AgentConfig { name: agent.into(), ..AgentConfig::default() };
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

    fn named(&self, session: &str, key: &str, task: &str) -> StepCall {
        let mut call = StepCall { session: Some(session.into()), key: key.into(), ..self.call(1) };
        call.params.insert("prompt".into(), task.into());
        call
    }

    fn store(&self) -> Store {
        self.config.session_store().unwrap()
    }

    /// What a person says to the attempts from now on.
    fn say(&self, ids: &[&str]) -> Vec<Message> {
        let box_ = Messages::default();
        let said: Vec<Message> = ids.iter().map(|id| message(id)).collect();
        said.iter().for_each(|message| box_.send(message.clone()));
        *self.messages.lock().unwrap() = box_;
        said
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

fn message(id: &str) -> Message {
    Message { id: id.into(), text: format!("mind the {id}") }
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
    let record = desk.config.session_store().unwrap().load("main").unwrap();
    assert_eq!((record.reloads, record.turns.len(), record.usage.input), (1, 2, Some(2)));
    let handoff = std::fs::read_to_string(desk.dir.path().join("sessions/main/handoff.json")).unwrap();
    assert!(handoff.contains("which colour?") && handoff.contains("first"), "{handoff}");

    *desk.agent.forgets.lock().unwrap() = true;
    desk.agent.acts.lock().unwrap().push(Act::Answer("third"));
    assert_eq!(answer(desk.ask(&named("3", "and now?")).await), "third");
    assert_eq!(desk.told().last(), Some(&Continuity::Reloaded));
}

// covers: R3
#[tokio::test]
async fn a_task_that_is_begun_again_in_another_conversation_is_told_once() {
    let desk = Desk::new(&[Act::Fail(FailureClass::Lost), Act::Answer("done")]);
    desk.ask(&desk.call(1)).await;
    *desk.agent.forgets.lock().unwrap() = true;
    assert_eq!(answer(desk.ask(&desk.call(2)).await), "done");
    let last = desk.heard().pop().unwrap();
    assert_eq!((last.matches("paint it").count(), last.matches("working").count()), (1, 1), "{last}");
    assert_eq!(desk.told().last(), Some(&Continuity::Reloaded));
}

// covers: S3
#[tokio::test]
async fn a_fork_knows_what_its_parent_knew_and_leaves_it_alone() {
    let desk = Desk::new(&[Act::Answer("a"), Act::Answer("b"), Act::Answer("c")]);
    let named = |id: &str, key: &str| StepCall { session: Some(id.into()), key: key.into(), ..desk.call(1) };
    desk.ask(&named("main", "1")).await;
    let store = desk.config.session_store().unwrap();
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
    let desk = Desk::new(&[bad.clone(), bad.clone(), bad, Act::Spoil, Act::Answer("x")]);
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

// covers: S3, R3
#[tokio::test]
async fn another_agent_has_a_session_beside_and_is_told_what_is_known() {
    let desk = Desk::new(&[Act::Answer("blue"), Act::Answer("2"), Act::Answer("3"), Act::Answer("4")]);
    desk.ask(&desk.named("main", "1", "choose a colour")).await;
    assert_eq!(answer(desk.ask_as("Jay", &desk.named("main", "2", "which one?")).await), "2");
    let told = desk.heard().pop().unwrap();
    assert!(
        told.contains("choose a colour") && told.contains("blue") && told.ends_with("which one?"),
        "{told}"
    );
    desk.ask(&desk.named("main", "3", "add a border")).await;
    desk.ask_as("Jay", &desk.named("main", "4", "and now?")).await;
    let told = desk.heard().pop().unwrap();
    assert!(told.contains("add a border") && !told.contains("choose a colour"), "only what is new: {told}");
    use Continuity::{New, Reloaded, Resumed};
    assert_eq!(desk.told(), [New, Reloaded, Resumed, Resumed]);
    let (main, jay) = (desk.store().load("main").unwrap(), desk.store().load("main-jay").unwrap());
    assert_eq!((main.agent.as_str(), main.turns.len(), main.reloads), ("parrot", 2, 0));
    assert_eq!((jay.agent.as_str(), jay.turns.len(), jay.reloads), ("Jay", 2, 1));
}

// covers: R3, R7
#[tokio::test]
async fn limits_say_nothing_about_a_conversation_and_the_task_is_told_once() {
    use FailureClass::{Auth, Quota, RateLimit, Timeout, Transient};
    let mut acts = vec![Act::Fail(Transient)];
    acts.extend([RateLimit, Quota, Auth, Timeout, Transient].map(Act::Refuse));
    acts.push(Act::Answer("done"));
    let desk = Desk::new(&acts);
    for attempt in 1..=7 {
        desk.ask(&desk.call(attempt)).await;
    }
    let heard = desk.heard();
    assert_eq!(heard.iter().filter(|prompt| prompt.contains("paint it")).count(), 1, "{heard:?}");
    assert!(desk.told()[1..].iter().all(|it| *it == Continuity::Resumed), "{:?}", desk.told());
}

// covers: R3
#[tokio::test]
async fn what_was_bad_in_an_earlier_conversation_does_not_count_in_the_next() {
    let desk = Desk::new(&vec![Act::Fail(FailureClass::Failed); 6]);
    for attempt in 1..=6 {
        desk.ask(&desk.call(attempt)).await;
    }
    use Continuity::{New, Reloaded, Resumed};
    assert_eq!(desk.told(), [New, Resumed, Resumed, Reloaded, Resumed, Resumed]);
}

// covers: R5
#[tokio::test]
async fn an_answer_is_paid_for_again_only_if_it_was_asked_for_anew() {
    let desk = Desk::new(&[Act::Answer("first"), Act::Answer("second")]);
    desk.ask(&desk.call(1)).await;
    // Stopped while the answer was checked: it was paid with the attempt that got it.
    let StepOutcome::Succeeded { result, usage } = desk.ask(&desk.call(2)).await else { panic!() };
    assert_eq!((result, usage), (json!("first"), Usage::none()));
    let mut record = desk.store().list().unwrap().remove(0).unwrap();
    record.counters = Some(Usage { input: Some(9), ..Usage::default() });
    desk.store().save(&record, false).unwrap();
    let fresh = StepCall { fresh: true, ..desk.call(3) };
    assert_eq!(answer(desk.ask(&fresh).await), "second");
    assert_eq!(desk.heard(), ["paint it", "paint it"]);
    assert!(!desk.resumed(1));
    assert_eq!(desk.store().load(&record.id).unwrap().counters, None);
}

// covers: S3
#[tokio::test]
async fn what_is_invalid_does_not_wipe_a_session_but_what_spoils_it_does() {
    let desk =
        Desk::new(&[Act::Answer("blue"), Act::Fail(FailureClass::Invalid), Act::Spoil, Act::Answer("x")]);
    desk.ask(&desk.named("main", "1", "a colour")).await;
    desk.ask(&desk.named("main", "2", "a shape")).await;
    desk.ask(&desk.named("main", "3", "a size")).await;
    let again =
        StepCall { feedback: Some("too big".into()), attempt: 2, ..desk.named("main", "3", "a size") };
    use Continuity::{New, Reloaded, Resumed};
    desk.ask(&again).await;
    assert_eq!(desk.told(), [New, Resumed, Resumed, Reloaded]);
    let told = desk.heard().pop().unwrap();
    assert!(told.contains("blue") && told.contains("too big"), "{told}");
}

// covers: S3
#[tokio::test]
async fn who_is_unknown_is_told_the_task_with_what_was_wrong() {
    let desk = Desk::new(&[Act::Answer("bad"), Act::UnknownConversation, Act::Answer("good")]);
    desk.ask(&desk.call(1)).await;
    let again = StepCall { feedback: Some("no `title`".into()), ..desk.call(2) };
    assert_eq!(answer(desk.ask(&again).await), "good");
    let told = desk.heard().pop().unwrap();
    assert!(told.contains("no `title`") && told.contains("# Now\npaint it"), "{told}");
}

// covers: S3
#[tokio::test]
async fn a_program_that_did_not_start_has_no_conversation_that_could_be_lost() {
    let desk = Desk::new(&[Act::Answer("a"), Act::NotStarted, Act::Answer("b"), Act::NotStarted]);
    desk.ask(&desk.named("main", "1", "a colour")).await;
    let parent = desk.store().load("main").unwrap().conversation.unwrap();
    desk.store().fork("main", "copy").unwrap();
    *desk.agent.forgets.lock().unwrap() = true;
    desk.ask(&desk.named("copy", "2", "a shape")).await;
    assert_eq!(desk.store().load("copy").unwrap().conversation, None);
    desk.ask(&desk.named("copy", "2", "a shape")).await;
    let again = desk.agent.heard.lock().unwrap()[2].1.clone();
    assert!(matches!(&again, Conversation::Fork { of, .. } if *of == parent), "{again:?}");
    for _ in 0..2 {
        desk.agent.acts.lock().unwrap().insert(0, Act::NotStarted);
        desk.ask(&desk.named("plain", "3", "a size")).await;
    }
    use Continuity::{Forked, New};
    assert_eq!(desk.told(), [New, Forked, Forked, New, New]);
    assert_eq!(desk.store().load("plain").unwrap().reloads, 0);
}

// covers: S3
#[tokio::test]
async fn a_proposed_conversation_that_is_not_there_after_all_is_new_again() {
    let desk = Desk::new(&[Act::NotStarted, Act::UnknownConversation, Act::Answer("x")]);
    desk.ask(&desk.call(1)).await;
    assert_eq!(answer(desk.ask(&desk.call(2)).await), "x");
    assert_eq!(desk.told(), [Continuity::New, Continuity::Resumed, Continuity::New]);
    assert_eq!(desk.heard().pop().unwrap(), "paint it");
}

// covers: S3, S4
#[tokio::test]
async fn waiting_for_a_session_is_alive_and_ends_with_the_time() {
    let desk = Desk::new(&[Act::Vanish]);
    desk.ask_and_die(&desk.named("main", "1", "a colour")).await;
    let held = desk.store().lock("main").unwrap().unwrap();
    let call = StepCall { timeout_ms: Some(2_500), ..desk.named("main", "2", "a shape") };
    let before = *desk.alive.lock().unwrap();
    let StepOutcome::Failed { class, message, .. } = desk.ask(&call).await else { panic!() };
    assert_eq!(class, FailureClass::Timeout);
    assert!(message.contains("`main`") && message.contains("`p/x` of run `run_1`"), "{message}");
    assert!(*desk.alive.lock().unwrap() > before);
    drop(held);
}

// covers: S3, R5
#[tokio::test]
async fn work_is_found_again_behind_the_turns_of_others() {
    let desk = Desk::new(&[Act::Vanish, Act::Answer("b"), Act::Answer("a"), Act::Answer("c")]);
    let (a, b) = (desk.named("main", "a", "task a"), desk.named("main", "b", "task b"));
    desk.ask_and_die(&a).await;
    desk.ask(&b).await;
    let again = StepCall { unknown: true, attempt: 2, ..a.clone() };
    assert_eq!(answer(desk.ask(&again).await), "a");
    let told = desk.heard().pop().unwrap();
    assert!(told.contains("begins with `task a`") && told.contains("interrupted"), "{told}");
    desk.ask(&desk.named("main", "c", "task c")).await;
    // The answers of both are still there.
    assert_eq!(answer(desk.ask(&StepCall { attempt: 3, ..again }).await), "a");
    assert_eq!(answer(desk.ask(&b).await), "b");
    assert_eq!(desk.heard().len(), 4);
}

#[tokio::test]
async fn a_damaged_turn_costs_its_words_and_not_the_answer() {
    let desk = Desk::new(&[Act::Vanish, Act::Answer("x")]);
    desk.ask_and_die(&desk.named("main", "1", "a colour")).await;
    let store = desk.store();
    for damage in [json!("text"), json!([1]), Value::Null] {
        std::fs::write(store.path("main").join("turn-1.json"), damage.to_string()).unwrap();
        assert_eq!(store.load_turn("main", 1), None);
    }
    assert_eq!(answer(desk.ask(&desk.named("main", "2", "a shape")).await), "x");
}

#[test]
fn the_lock_of_a_deleted_session_is_not_a_lock() {
    let desk = Desk::new(&[]);
    let store = desk.store();
    store.create(&super::Record::new("main", "parrot", None, true, 1)).unwrap();
    let old = store.lock("main").unwrap().unwrap();
    assert!(old.is_current(&store, "main"));
    std::fs::remove_dir_all(store.path("main")).unwrap();
    assert!(!old.is_current(&store, "main"));
    assert!(store.lock("main").unwrap().is_some(), "its name is free");
}

// covers: S4, S3
#[tokio::test]
async fn a_message_that_came_too_late_for_a_turn_begins_the_next_one() {
    let desk = Desk::new(&[Act::Answer("first"), Act::Answer("second")]);
    desk.say(&["gap", "door"]);
    let StepOutcome::Succeeded { result, usage } = desk.ask(&desk.call(1)).await else { panic!() };
    assert_eq!((result, usage.input), (json!("second"), Some(2)), "both turns are paid for");
    assert!(desk.resumed(1));
    let told = &desk.heard()[1];
    assert!(told.starts_with("mind the gap\n\nmind the door\n\n(The user sent this"), "{told}");
    assert!(!told.contains("paint it"));
    let box_ = desk.messages.lock().unwrap().clone();
    assert!(box_.is_closed(), "whoever sends something now is told that it ended");
}

// covers: S4, R5
#[tokio::test]
async fn a_message_is_told_until_the_conversation_knows_it_and_then_no_more() {
    let desk = Desk::new(&[Act::Answer("first"), Act::Vanish, Act::Answer("third"), Act::Answer("anew")]);
    // It was journaled, and its owner died before the agent heard of it.
    assert_eq!(answer(desk.ask(&desk.call(1)).await), "first");
    let call = |attempt| StepCall { unknown: true, messages: vec![message("gap")], ..desk.call(attempt) };
    desk.ask_and_die(&call(2)).await;
    assert!(desk.heard()[1].starts_with("mind the gap"), "not the kept answer: {:?}", desk.heard());
    // Now it knows it.
    assert_eq!(answer(desk.ask(&call(3)).await), "third");
    assert!(
        desk.heard()[2].contains("interrupted") && !desk.heard()[2].contains("gap"),
        "{:?}",
        desk.heard()
    );
    // A conversation that knows nothing is told all of it.
    *desk.agent.forgets.lock().unwrap() = true;
    let again = StepCall { unknown: false, feedback: Some("too short".into()), ..call(4) };
    assert_eq!(answer(desk.ask(&again).await), "anew");
    let last = desk.heard().pop().unwrap();
    assert!(last.contains("paint it") && last.contains("The user has added:\nmind the gap"), "{last}");
}

// covers: S4
#[tokio::test]
async fn an_answer_is_not_lost_to_a_message_that_cannot_be_delivered() {
    let desk = Desk::new(&[Act::Answer("first"), Act::UnknownConversation]);
    desk.say(&["gap"]);
    assert_eq!(answer(desk.ask(&desk.call(1)).await), "first");
    let activity = std::fs::read_to_string(desk.dir.path().join("activity.jsonl")).unwrap();
    assert!(activity.contains("a message was not delivered"), "{activity}");
}
