//! Runs that tell the inbox what ended and what waits, and that listen to it: on a real disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sage_core::event::Event;
use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_core::wire::wait_text;
use sage_engine::inbox::{Delivery, Inbox, Recorded, Wake, WakeType};
use sage_engine::open::Owned;
use sage_engine::run_loop::CommitMode;
use sage_engine::vfs::DiskFs;

use crate::world::World;

const DEADLINE: Duration = Duration::from_secs(60);

const ASKS: &str = "name: w\nphases:\n  - id: p\n    operations:\n      \
    - { id: good, type: agent, agent: fake, prompt: ok }\n      \
    - { id: other, type: shell, params: { run: ok } }\n      \
    - { id: ask, type: approval, params: { message: 'go on?' } }\n";

fn world() -> (World, Inbox) {
    let mut world = World::new(DiskFs::new());
    world.commit = CommitMode::Thread;
    let inbox = Inbox::open(world.engine().project.inbox());
    world.wakes = Some(inbox.clone());
    (world, inbox)
}

fn drive(owned: Owned) -> Run {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { owned.drive().await.unwrap() })
}

fn unhandled(inbox: &Inbox) -> Vec<Wake> {
    inbox.unhandled().unwrap().into_iter().map(|letter| letter.wake.unwrap()).collect()
}

fn ids(wakes: &[Wake]) -> Vec<&str> {
    wakes.iter().map(|wake| wake.wake_id.as_str()).collect()
}

#[track_caller]
fn wait_until(mut done: impl FnMut() -> bool, what: &str) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < DEADLINE, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

// covers: S2
#[test]
fn what_ended_and_what_waits_is_told_after_it_is_durable() {
    let (world, inbox) = world();
    let run = drive(world.start(ASKS).unwrap());
    assert!(matches!(run.status, Status::Paused { .. }));
    let wakes = unhandled(&inbox);
    let mut told: Vec<_> = wakes.iter().map(|wake| (wake.kind.name(), wake.session_id.clone())).collect();
    let (step, question) = (format!("{}/p/good", run.id), format!("{}/p/ask", run.id));
    assert_eq!(told.pop().unwrap(), ("BLOCKED", run.id.clone()), "the pause comes last");
    told.sort();
    assert_eq!(told, [("BLOCKED", question), ("COMPLETE", step)]);
    // Each is told of a record that is in the journal.
    let last = world.events().len();
    let number = |wake: &Wake| wake.wake_id.rsplit('_').next().unwrap().parse::<usize>().unwrap();
    assert!(wakes.iter().all(|wake| number(wake) <= last));
}

// covers: S2
#[test]
fn a_run_that_was_killed_before_its_wakes_makes_up_for_them() {
    let (world, inbox) = world();
    let run = drive(world.start(ASKS).unwrap());
    let before = unhandled(&inbox);
    assert_eq!(before.len(), 3);
    // As after a kill: the events are durable, none of their wakes was posted.
    std::fs::remove_dir_all(inbox.dir()).unwrap();
    std::fs::write(world.engine().project.run_dir(&run.id).join("wakes"), "2\n").unwrap();
    let again = drive(world.resume().unwrap().unwrap());
    assert!(matches!(again.status, Status::Paused { .. }));
    let after = unhandled(&inbox);
    assert_eq!(ids(&after)[..3], ids(&before), "the same wakes");
    assert_eq!(after.len(), 4, "and the pause of the new owner: {after:?}");
    // And once more with a mark that was never written: what was posted has no second effect.
    std::fs::write(world.engine().project.run_dir(&run.id).join("wakes"), "").unwrap();
    drive(world.resume().unwrap().unwrap());
    let mut delivery = Delivery::new(inbox.clone(), Arc::new(Recorded));
    let done = delivery.until_quiet(DEADLINE).unwrap();
    assert_eq!((done.handled, done.repeated), (5, 4));
    // A clean end leaves nothing to make up for.
    drive(world.resume().unwrap().unwrap());
    assert_eq!(unhandled(&inbox).len(), 1);
}

// covers: S9
#[test]
fn whoever_does_not_ask_gets_none() {
    let (mut world, inbox) = world();
    world.wakes = None;
    drive(world.start(ASKS).unwrap());
    assert!(!inbox.dir().exists());
}

// covers: S2
#[test]
fn a_full_inbox_holds_back_agents_and_nothing_else() {
    let (world, inbox) = world();
    for number in 0..101 {
        inbox.post(&Wake::new(WakeType::Finding, format!("s{number}"))).unwrap();
    }
    let text = ASKS.replace("- { id: ask, type: approval, params: { message: 'go on?' } }\n", "");
    let owned = world.start(&text).unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| drive(owned));
        let parked = |event: &Event| matches!(event, Event::TargetParked(parked) if parked.target == "inbox");
        wait_until(|| world.events().iter().any(|(_, event)| parked(event)), "the run to say why it waits");
        wait_until(|| world.begun("p/other") == 1, "the shell step");
        assert_eq!(world.begun("p/good"), 0);
        let run = world.engine().read("f").unwrap().run;
        let wait = run.wait_reason(run.find("p/good").unwrap()).unwrap();
        assert_eq!(wait_text(&wait), "slot(inbox)");
        Delivery::new(inbox.clone(), Arc::new(Recorded)).until_quiet(DEADLINE).unwrap();
        let run = running.join().unwrap();
        assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
        assert!(run.parked.is_empty());
    });
    assert_eq!(world.begun("p/good"), 1);
}
