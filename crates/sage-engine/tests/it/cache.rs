//! Results that later runs take: when they do, when they do not, and that nothing of it can harm a run.

use std::sync::Arc;

use sage_core::event::{End, Event, StepCached, StepStarted};
use sage_core::policy::FailureClass;
use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::cache::{Cache, DAY_MS, DEFAULT_TTL_MS, Entry};
use sage_engine::open::{Notice, ResumeRequest, Resumed, StartRequest};
use sage_engine::results::{Face, value_of};
use sage_engine::sim::SimFs;
use serde_json::{Value, json};

use crate::script::Closed;
use crate::world::{World, states};

pub fn world() -> World {
    let mut world = World::new(Arc::new(SimFs::new(1)));
    world.cache = true;
    world
}

pub fn one(fields: &str, prompt: &str) -> String {
    format!(
        "name: h\nphases:\n  - id: p\n    operations: {{ id: x, type: agent, agent: fake, {fields}, prompt: '{prompt}' }}\n"
    )
}

pub fn store(world: &World) -> Cache {
    world.live(async || world.engine().cache.unwrap())
}

pub fn started(world: &World) -> Vec<StepStarted> {
    let starts = |(_, event)| match event {
        Event::StepStarted(started) => Some(started),
        _ => None,
    };
    world.events().into_iter().filter_map(starts).collect()
}

pub fn taken(world: &World) -> Vec<StepCached> {
    let hits = |(_, event)| match event {
        Event::StepCached(cached) => Some(cached),
        _ => None,
    };
    world.events().into_iter().filter_map(hits).collect()
}

fn start(world: &World, change: impl FnOnce(&mut StartRequest), text: &str) -> Run {
    let mut request = world.request(text);
    change(&mut request);
    world.live(async || world.engine().start(request).unwrap().drive().await.unwrap())
}

pub fn value(world: &World, run: &Run, path: &str, face: Face) -> Value {
    let output = run.step(run.find(path).unwrap()).output.clone().unwrap();
    let blobs = world.live(async || world.engine().blobs(&run.id));
    value_of(&output, face, &blobs).unwrap()
}

#[track_caller]
fn good(run: &Run) {
    let errors = sage_core::wire::errors(run);
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{errors:?}");
    assert_eq!(run.active, Default::default());
}

// covers: R11, R19
#[test]
fn a_second_run_takes_what_the_first_has_made() {
    let world = world();
    let text = one("cache: true, filter: .stdout", "ms=500 usage=100,20");
    let first = world.run(&text);
    good(&first);
    assert_eq!((first.tally.cache_hits, first.tally.cache_misses), (0, 1));
    assert!(taken(&world).is_empty());
    world.wait(3 * DAY_MS);
    let second = world.run(&text);
    good(&second);
    assert_eq!(world.begun("p/x"), 1, "no agent has worked");
    assert_eq!((second.tally.cache_hits, second.tally.cache_misses, second.tally.calls), (1, 0, 0));
    assert_eq!((second.tally.cache_saved_tokens, second.tally.cache_saved_ms), (120, 1000));
    assert_eq!(
        (second.tally.usage.total(), second.tally.sequential_ms, second.tally.unattributed),
        (0, 0, 0)
    );
    for face in [Face::Filtered, Face::Full] {
        assert_eq!(value(&world, &second, "p/x", face), value(&world, &first, "p/x", face));
    }
    let hit = taken(&world).remove(0);
    assert_eq!((hit.from.as_str(), hit.age_ms / DAY_MS), (first.id.as_str(), 3));
    assert_eq!(hit.expires_in_ms.unwrap() / DAY_MS, 27);
    let metrics = sage_core::wire::WorkflowMetrics::of(&second);
    assert_eq!((metrics.cache_hit_rate, metrics.tokens_saved), (Some(1.0), 120));
    let view = sage_core::wire::StatusView::of(&second, 0).steps.remove(0);
    assert!(view.cached && !view.reused && !view.stale && view.cached_age_ms > Some(2 * DAY_MS));
    let (entry, _) = store(&world).entries().remove(0);
    assert_eq!((entry.uses, entry.operation.as_str(), entry.step.as_str()), (1, "agent", "p/x"));
    let counts = store(&world).counts();
    assert_eq!((counts.hits, counts.misses, counts.saved_tokens), (1, 1, 120));
    // The journal alone tells it: what is folded again is the same.
    let read = world.live(async || world.engine().read("f").unwrap().run);
    assert_eq!((read.tally.cache_hits, states(&read)), (1, states(&second)));
}

// covers: R11
#[test]
fn what_is_too_old_is_made_again() {
    for (fields, ttl) in [("cache: true", DEFAULT_TTL_MS), ("cache: { ttl: 2h }", 7_200_000)] {
        let world = world();
        let text = one(fields, "ms=1000");
        world.run(&text);
        world.wait(ttl - 60_000);
        world.run(&text);
        assert_eq!(world.begun("p/x"), 1, "{fields}");
        world.wait(60_000);
        let run = world.run(&text);
        assert_eq!((world.begun("p/x"), run.tally.cache_misses), (2, 1), "{fields}");
        world.run(&text);
        assert_eq!(world.begun("p/x"), 2, "{fields}: the new one counts from now");
    }
}

// covers: R11
#[test]
fn a_damaged_entry_is_told_and_made_again() {
    let disk = SimFs::new(1);
    let mut world = World::new(Arc::new(disk.clone()));
    world.cache = true;
    let text = one("cache: true", "ms=10");
    world.run(&text);
    let key = store(&world).entries()[0].0.key;
    let path = world.root().join(format!(".sage/cache/{key}.json"));
    let whole = world.vfs.read(&path, 1 << 20).unwrap();
    let mut damages: Vec<Vec<u8>> = vec![Vec::new(), b"{}".to_vec(), whole[..whole.len() - 1].to_vec()];
    for bit in (0..whole.len() * 8).step_by(97) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        damages.push(bytes);
    }
    let other = Entry {
        key: sage_core::digest::Digest::of(b"other"),
        ..Entry::open(&whole, &crate::world::key()).unwrap()
    };
    damages.push(other.seal(&crate::world::key()).unwrap());
    for (round, bytes) in damages.iter().enumerate() {
        disk.plant(&path, bytes).unwrap();
        let run = world.run(&text);
        good(&run);
        assert_eq!(world.begun("p/x") as usize, round + 2, "made again");
        assert_eq!((run.tally.cache_misses, run.tally.cache_damaged), (1, 1));
        let miss = started(&world)[0].cache.clone().unwrap();
        assert!(miss.damaged.is_some(), "{miss:?}");
        assert_eq!(world.run(&text).tally.cache_hits, 1, "and taken the next time");
    }
}

// covers: R11, R17
#[test]
fn an_entry_that_this_user_did_not_write_is_a_miss_and_replaced() {
    let disk = SimFs::new(1);
    let mut world = World::new(Arc::new(disk.clone()));
    world.cache = true;
    let text = one("cache: true", "ms=10");
    world.run(&text);
    let (entry, _) = store(&world).entries().remove(0);
    let path = world.root().join(format!(".sage/cache/{}.json", entry.key));
    // Whole, with the right checksum, but sealed with the key of another user.
    disk.plant(&path, &entry.seal(&sage_core::seal::Key::new(&[8; 32])).unwrap()).unwrap();
    assert_eq!((store(&world).entries().len(), store(&world).foreign()), (0, vec![entry.key]));
    let run = world.run(&text);
    assert_eq!((run.tally.cache_hits, run.tally.cache_misses, world.begun("p/x")), (0, 1, 2));
    assert_eq!((store(&world).entries().len(), store(&world).foreign().len()), (1, 0));
    assert_eq!(world.run(&text).tally.cache_hits, 1);
}

// covers: R11
#[test]
fn other_files_another_agent_and_another_question_are_another_result() {
    let world = world();
    let write = |text: &str| {
        std::fs::create_dir_all(world.root().join("src")).unwrap();
        std::fs::write(world.root().join("src/a.rs"), text).unwrap();
    };
    write("one");
    let text = "name: h\nphases:\n  - id: p\n    operations: { id: x, type: agent, cache: { files: [src] }, prompt: 'ms=5' }\n";
    let run = |change: &dyn Fn(&mut StartRequest)| {
        let run = start(
            &world,
            |request| {
                request.settings.agent = Some("fake".into());
                change(request);
            },
            text,
        );
        good(&run);
        run.tally.cache_hits
    };
    let same = |_: &mut StartRequest| {};
    assert_eq!((run(&same), run(&same)), (0, 1));
    write("two");
    assert_eq!((run(&same), run(&same)), (0, 1), "a declared file");
    write("one");
    assert_eq!(run(&same), 1, "as before");
    *world.steps.version.lock().unwrap() = 2;
    assert_eq!((run(&same), run(&same)), (0, 1), "another version of the agent");
    let other = |request: &mut StartRequest| request.settings.agent = Some("other".into());
    assert_eq!((run(&other), run(&other)), (0, 1), "another agent by default");
    let title = |request: &mut StartRequest| request.title = "Another thing".into();
    assert_eq!((run(&title), run(&title)), (0, 1), "programs see the title");
    let feature = |request: &mut StartRequest| request.feature = "g".into();
    assert_eq!((run(&feature), run(&feature)), (0, 1), "and the feature");
    let inputs = |request: &mut StartRequest| drop(request.inputs.insert("a".into(), json!(1)));
    assert_eq!((run(&inputs), run(&inputs)), (0, 1), "inputs");
    assert_eq!(run(&same), 1);
}

/// Nobody can say which of them the step has seen.
// covers: R11
#[test]
fn what_was_made_while_its_files_changed_is_not_kept() {
    let world = world();
    let file = world.root().join("src.rs");
    // The first step writes what the second one declares, while that one works.
    let text = "name: h\nphases:\n  - id: p\n    operations:\n      - { id: w, type: agent, agent: fake, output: src.rs, prompt: 'ms=50' }\n      - { id: x, type: agent, agent: fake, cache: { files: [src.rs] }, prompt: 'ms=500' }\n";
    good(&world.run(text));
    assert!(file.exists());
    assert_eq!(store(&world).entries().len(), 0);
    // Now it writes what is there already.
    good(&world.run(text));
    assert_eq!((store(&world).entries().len(), world.begun("p/x")), (1, 2));
    assert_eq!((world.run(text).tally.cache_hits, world.begun("p/x")), (1, 2));
}

// covers: R11
#[test]
fn without_reading_everything_runs_and_is_kept() {
    let world = world();
    let text = one("cache: true", "ms=10");
    world.run(&text);
    let made = store(&world).entries()[0].0.created_ms;
    world.wait(1000);
    let run = start(&world, |request| request.settings.no_cache = true, &text);
    good(&run);
    assert_eq!((world.begun("p/x"), run.tally.cache_hit_rate()), (2, None));
    assert!(store(&world).entries()[0].0.created_ms > made, "the newer result is kept");
    assert_eq!(world.run(&text).tally.cache_hits, 1);
}

// covers: R11
#[test]
fn what_is_more_than_its_result_always_runs_and_failures_are_not_kept() {
    let cases = [
        ("cache: true, role: implementer", "ms=1"),
        ("cache: true, session: talk", "ms=1"),
        ("cache: true, isolation: worktree", "ms=1"),
        ("role: researcher", "ms=1"),
        ("cache: true, retry: 1", "ms=1 fail"),
        ("cache: true, retry: 1, fallback: { value: 1 }", "ms=1 fail"),
    ];
    for (fields, prompt) in cases {
        let world = world();
        let (first, second) = (world.run(&one(fields, prompt)), world.run(&one(fields, prompt)));
        assert_eq!(world.begun("p/x"), 2, "{fields}");
        assert_eq!(states(&first), states(&second));
        assert!(store(&world).entries().is_empty(), "{fields}");
    }
}

// covers: R11
#[test]
fn a_hit_writes_the_file_that_the_step_would_have_written() {
    let world = world();
    let text = one(
        "retry: 1, cache: true, filter: .item, output: docs/x.md, expect: { files: [README] }",
        "ms=1 text",
    );
    std::fs::write(world.root().join("README"), "").unwrap();
    good(&world.run(&text));
    let file = world.root().join("docs/x.md");
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let run = world.run(&text);
    good(&run);
    assert_eq!((world.begun("p/x"), std::fs::read_to_string(&file).unwrap()), (1, written));
    assert_eq!(taken(&world)[0].artifacts, ["docs/x.md"]);
    std::fs::remove_file(world.root().join("README")).unwrap();
    assert_eq!(world.run(&text).status, Status::Finished(Verdict::Failed), "what it expects is not there");
    assert_eq!(world.begun("p/x"), 2, "so it was tried, and not again: it has one try");
}

const WIDE: &str = "
name: wide
phases:
  - id: list
    operations: { id: l, type: agent, agent: fake, cache: true, prompt: 'ms=10 usage=7' }
  - id: each
    dependencies: [list]
    operations:
      - { id: e, type: agent, agent: fake, cache: true, foreach: '[3, 1, 3]', prompt: 'ms=10 usage=5 {{ item }}' }
      - { id: skipped, type: agent, agent: fake, cache: true, when: 'false', prompt: x }
  - id: sum
    dependencies: [each]
    operations: { id: s, type: shell, cache: true, params: { run: 'ms=10', env: { N: '{{ steps[\"each/e\"].result | length }}' } } }
";

// covers: R11
#[test]
fn fan_outs_conditions_and_what_depends_on_hits_are_taken_too() {
    let world = world();
    good(&world.run(WIDE));
    let preview = world.live(async || world.engine().would_take(&world.request(WIDE)).unwrap());
    let paths: Vec<&str> = preview.iter().map(|kept| kept.path.as_str()).collect();
    assert_eq!(paths, ["list/l", "each/e[0]", "each/e[1]", "each/e[2]", "sum/s"]);
    assert_eq!(preview.iter().map(|kept| kept.saved_tokens).sum::<u64>(), 22);
    let shuffled = WIDE.replace("[3, 1, 3]", "[1, 3, 3]");
    let run = world.run(&shuffled);
    good(&run);
    assert_eq!((run.tally.cache_hits, run.tally.cache_misses), (4, 1), "the sum is of another list");
    let begun: u32 = world.steps.begun.lock().unwrap().values().sum();
    assert_eq!(begun, 6);
}

// covers: R11, R15
#[test]
fn what_is_there_is_taken_although_its_target_takes_no_calls() {
    let world = world();
    let text = |first: &str| {
        format!(
            "name: t\nphases:\n  - id: p\n    operations:\n      - {{ id: a, type: agent, agent: fake, prompt: '{first}' }}\n      - {{ id: x, type: agent, agent: fake, cache: true, prompt: 'ms=5' }}\n"
        )
    };
    good(&world.run(&text("ms=1")));
    let until_ms = world.now_ms() + 10 * DAY_MS;
    let closed = Closed { until_ms, class: FailureClass::Quota, refusal: Default::default() };
    world.steps.closed.lock().unwrap().insert("fake".into(), closed);
    let request = StartRequest { no_wait: true, ..world.request(&text("ms=1 again")) };
    let run = world.live(async || world.engine().start(request).unwrap().drive().await.unwrap());
    assert_eq!(run.status.name(), "paused");
    assert_eq!((states(&run)["p/x"], states(&run)["p/a"]), ("succeeded", "waiting"));
}

// covers: R11, R15
#[test]
fn a_cache_that_cannot_be_used_is_done_without() {
    let disk = SimFs::new(1);
    let mut world = World::new(Arc::new(disk.clone()));
    world.cache = true;
    disk.plant(&world.root().join(".sage/cache"), b"in the way").unwrap();
    let text = one("cache: true", "ms=10");
    for round in 1..3 {
        let (notices, run) = world.live(async || {
            let owned = world.start(&text).unwrap();
            (owned.notices.clone(), owned.drive().await.unwrap())
        });
        good(&run);
        assert!(matches!(&notices[..], [Notice::NoCache(_)]), "{notices:?}");
        assert_eq!((world.begun("p/x"), run.tally.cache_hit_rate()), (round, None));
    }
    let plain = world.live(async || world.start(&one("retry: 1", "ms=1")).unwrap().notices.clone());
    assert!(plain.is_empty(), "whoever does not need it is not told");
}

// covers: R5, R11
#[test]
fn refreshing_runs_what_was_made_by_another_agent_and_nothing_else() {
    let world = world();
    let text = "name: r\nphases:\n  - id: a\n    operations:\n      - { id: old, type: agent, agent: fake, cache: true, prompt: 'ms=1' }\n      - { id: own, type: agent, agent: fake, prompt: 'ms=2' }\n  - id: b\n    dependencies: [a]\n    operations: { id: end, type: shell, params: { run: 'ms=1' } }\n";
    good(&world.run(text));
    let request = || ResumeRequest { refresh: true, ..ResumeRequest::default() };
    let complete = |request: ResumeRequest| {
        world.live(async || match world.engine().resume("f", request).unwrap() {
            Resumed::Complete { notices, .. } => Ok(notices),
            Resumed::Owned(owned) => Err(Box::new(owned.drive().await.unwrap())),
        })
    };
    assert_eq!(complete(request()).unwrap(), [], "nothing has changed");
    *world.steps.version.lock().unwrap() = 2;
    assert_eq!(
        complete(ResumeRequest::default()).unwrap(),
        [Notice::Drifted { feature: "f".into(), steps: vec!["a/old".into()] }]
    );
    let run = complete(request()).unwrap_err();
    good(&run);
    assert_eq!((world.begun("a/old"), world.begun("a/own"), world.begun("b/end")), (2, 1, 2));
    assert_eq!(complete(request()).unwrap(), []);
    let ends = world.events().into_iter().filter(
        |(_, event)| matches!(event, Event::StepFinished(f) if matches!(f.end, End::Succeeded { .. })),
    );
    assert_eq!(ends.count(), 5);
}
