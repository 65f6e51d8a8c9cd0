//! When a target is down: what earlier runs have is better than nothing, and it is told how old it is.

use sage_core::run::{State, Status};
use sage_core::verdict::Verdict;
use sage_engine::cache::DAY_MS;
use sage_engine::control::Signal;
use sage_engine::results::Face;

use crate::cache::{one, taken, value, world};
use crate::world::World;

const FIELDS: &str = "retry: 1, cache: { ttl: 2d }, fallback: cache";

/// A world in which `p/x` once gave something and its agent is down since.
fn down(days: u64, asks: bool) -> World {
    let mut world = world();
    world.asks = asks;
    world.run(&one(FIELDS, "ms=10 good"));
    world.wait(days * DAY_MS);
    world
}

fn run(world: &World) -> sage_core::run::Run {
    world.run(&one(FIELDS, "ms=10 fail"))
}

// covers: R15, R23
#[test]
fn an_old_result_stands_in_and_its_age_is_told() {
    let world = down(5, false);
    let run = run(&world);
    assert_eq!(run.status, Status::Finished(Verdict::Degraded), "{:?}", sage_core::wire::errors(&run));
    assert_eq!(value(&world, &run, "p/x", Face::Filtered)["stdout"], "ms=10 good");
    let hit = taken(&world).remove(0);
    assert_eq!((hit.age_ms / DAY_MS, hit.expires_in_ms), (5, None));
    let view = sage_core::wire::StatusView::of(&run, 0).steps.remove(0);
    assert!(view.cached && view.stale);
    assert_eq!((run.tally.cache_hits, run.tally.cache_misses, run.tally.cache_saved_ms), (0, 1, 0));
    let again = self::run(&world);
    assert_eq!(again.status, Status::Finished(Verdict::Degraded));
    assert_eq!(taken(&world)[0].age_ms / DAY_MS, 5, "what stood in is not taken for a new result");
}

// covers: R11, R15
#[test]
fn what_stands_in_is_also_in_the_output_file() {
    let world = world();
    let text = |prompt: &str| one(&format!("{FIELDS}, output: docs/x.md"), prompt);
    world.run(&text("ms=10 good"));
    let file = world.root().join("docs/x.md");
    std::fs::remove_file(&file).unwrap();
    let run = world.run(&text("ms=10 fail"));
    assert_eq!(run.status, Status::Finished(Verdict::Degraded));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "ms=10 good");
}

// covers: R15
#[test]
fn a_step_without_cache_falls_back_to_an_earlier_run_with_its_age() {
    let world = world();
    let text = |prompt: &str| one("retry: 1, fallback: cache", prompt);
    world.run(&text("ms=10 good"));
    world.wait(3 * DAY_MS);
    let run = world.run(&text("ms=10 fail"));
    assert_eq!(run.status, Status::Finished(Verdict::Degraded));
    let hit = taken(&world).remove(0);
    assert_eq!((hit.age_ms / DAY_MS, hit.expires_in_ms.map(|left| left / DAY_MS)), (3, Some(26)));
}

// covers: R23
#[test]
fn a_person_is_asked_about_what_is_too_old() {
    for approve in [true, false] {
        let world = down(5, true);
        let asked = run(&world);
        assert_eq!(asked.status.name(), "paused");
        let State::Running(running) = &asked.step(asked.find("p/x").unwrap()).state else {
            panic!("no question")
        };
        let question = running.ask.as_ref().unwrap().message.clone();
        assert!(question.contains("made 5days ago"), "{question}");
        assert_eq!((asked.tally.calls, world.begun("p/x")), (2 - 1, 2), "asking is no attempt");
        let choice = if approve { "approve" } else { "reject" };
        let signal = Signal::Answer {
            step: "p/x".into(),
            choice: choice.into(),
            by: "me".into(),
            message: None,
            ask: None,
            input: None,
        };
        world.live(async || world.engine().deliver("f", signal).await.map(drop)).unwrap();
        let run = world.go_on();
        let expected = if approve { Verdict::Degraded } else { Verdict::Failed };
        assert_eq!(run.status, Status::Finished(expected), "{:?}", sage_core::wire::errors(&run));
        assert_eq!((taken(&world).len(), run.active), (usize::from(approve), Default::default()));
        assert_eq!(world.begun("p/x"), 2, "nothing was tried again");
    }
    let young = down(1, true);
    assert_eq!(run(&young).status, Status::Finished(Verdict::Degraded), "young enough: nobody is asked");
}
