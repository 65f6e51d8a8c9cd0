//! The figures of runs in a world whose time is exact: what was saved by working at once, and what does not count.

use std::sync::Arc;

use sage_core::event::Event;
use sage_core::run::Run;
use sage_core::wire::{PhaseMetrics, WorkflowMetrics};
use sage_engine::sim::SimFs;

use crate::world::World;

fn world() -> World {
    let mut world = World::new(Arc::new(SimFs::new(1)));
    world.parallel = 6;
    world
}

/// Phases one after the other: name, and the seconds that each of its agents takes.
fn stages(stages: &[(&str, &[u64])]) -> String {
    let mut text = String::from("name: t\nphases:\n");
    for (at, (id, seconds)) in stages.iter().enumerate() {
        let after =
            if at == 0 { String::new() } else { format!("    dependencies: [{}]\n", stages[at - 1].0) };
        text.push_str(&format!("  - id: {id}\n{after}    operations:\n"));
        for (number, seconds) in seconds.iter().enumerate() {
            let ms = seconds * 1000;
            text.push_str(&format!(
                "      - {{ id: s{number}, type: agent, agent: steady, prompt: 'ms={ms} usage=100' }}\n"
            ));
        }
    }
    text
}

#[track_caller]
fn near(shown: f64, exact: f64, what: &str) {
    assert!((shown - exact).abs() <= exact.abs() * 0.02, "{what} is {shown}, not {exact}");
}

fn measured(run: &Run) -> WorkflowMetrics {
    WorkflowMetrics::of(run)
}

/// 45, 30, 40 and 20 at once, then 20, 15 and 30.
// covers: R1, R18
#[test]
fn research_takes_its_longest_part() {
    let run = world().run(&stages(&[
        ("research", &[45, 30, 40, 20]),
        ("specification", &[20]),
        ("planning", &[15]),
        ("implementation", &[30]),
    ]));
    let shown = measured(&run);
    println!("{shown:?}");
    near(shown.total_time as f64, 110_000.0, "total time");
    near(shown.parallel_time as f64, 110_000.0, "parallel time");
    near(shown.sequential_time as f64, 200_000.0, "sequential time");
    near(shown.speedup, 200.0 / 110.0, "speed-up");
    near(shown.percentage_saved, 45.0, "percentage saved");
    assert_eq!((shown.operation_count, shown.parallel_operations, shown.phase_count), (7, 4, 4));
    assert_eq!((shown.total_tokens, shown.context_reloads), (700, 0));
    let research = PhaseMetrics::of(&run, run.find_phase("research").unwrap());
    near(research.duration as f64, 45_000.0, "the research phase");
    near(research.speedup, 3.0, "its speed-up");
    assert_eq!((research.sequential_time, research.operation_count, research.parallel_ops), (135_000, 4, 4));
}

/// The stages of `delivery`, with and without the conditional ones.
// covers: P2
#[test]
fn delivery_saves_three_tenths_by_its_graph_alone() {
    let before: [(&str, &[u64]); 4] =
        [("research", &[45]), ("critique", &[30]), ("implementation", &[60, 60]), ("qa", &[45, 45])];
    let conditional: [(&str, &[u64]); 1] = [("checks", &[60, 60])];
    let after: [(&str, &[u64]); 3] = [("devops", &[90]), ("statistics", &[15]), ("document", &[30])];
    let with = measured(&world().run(&stages(&[&before[..], &conditional, &after].concat())));
    println!("{with:?}");
    near(with.sequential_time as f64, 540_000.0, "sequential time");
    near(with.parallel_time as f64, 375_000.0, "parallel time");
    near(with.time_saved as f64, 165_000.0, "time saved");
    assert_eq!(with.percentage_saved, 30.6);
    let mut alone = world();
    alone.parallel = 1;
    let one_by_one = measured(&alone.run(&stages(&[&before[..], &conditional, &after].concat())));
    near(one_by_one.total_time as f64, with.sequential_time as f64, "a run that really was sequential");
    assert_eq!((one_by_one.speedup, one_by_one.percentage_saved), (1.0, 0.0));
    let without = measured(&world().run(&stages(&[&before[..], &after].concat())));
    assert_eq!((without.sequential_time, without.percentage_saved), (420_000, 25.0));
}

/// Failed attempts take time either way; the pause between them is nobody's work.
// covers: R18
#[test]
fn retries_count_and_pauses_between_them_do_not() {
    let run = world().run(
        "
name: t
phases:
  - id: p
    operations:
      - { id: a, type: shell, retry: { attempts: 3, delay: 5s, jitter: false, on: [failed] }, params: { run: 'ms=1000 fail<3' } }
      - { id: b, type: sleep, params: { ms: 4000 } }
",
    );
    let shown = measured(&run);
    assert_eq!(run.tally.sequential_ms, 7_000, "three attempts of a second, and a sleep of four");
    assert_eq!(
        (run.tally.measured.between_ms, shown.time_saved),
        (0, 0),
        "a pause saves nothing and is no work"
    );
    assert_eq!((shown.attempts, shown.retries, shown.error_rate), (3, 2, 0.667));
    let phase = PhaseMetrics::of(&run, run.find_phase("p").unwrap());
    assert_eq!((phase.attempts, phase.error_rate), (3, 0.667), "a sleep is no attempt");
}

/// Hours until somebody answers are not what the work took.
// covers: R18, P2
#[test]
fn people_are_waited_for_outside_of_the_figures() {
    let world = world();
    let text = "
name: t
phases:
  - id: p
    operations:
      - { id: a, type: shell, params: { run: 'ms=2000' } }
      - { id: b, type: shell, params: { run: 'ms=2000' } }
      - { id: ok, type: approval, needs: [a], params: { message: '?', deadline: 3h, default: approve } }
      - { id: c, type: shell, needs: [ok], params: { run: 'ms=1000' } }
";
    let run = world.run(text);
    let shown = measured(&run);
    assert!(shown.total_time >= 3 * 3_600_000, "its owner stayed: {}", shown.total_time);
    assert_eq!(shown.sequential_time, 5_000);
    near(shown.parallel_time as f64, 3_000.0, "parallel time");
    near(shown.speedup, 5.0 / 3.0, "speed-up");
    let phase = PhaseMetrics::of(&run, run.find_phase("p").unwrap());
    near(phase.duration as f64, 3_000.0, "the phase");
}

/// One after the other, nobody would have begun what lost a race.
// covers: R18
#[test]
fn losers_of_a_race_are_not_saved_time() {
    let run = world().run(
        "
name: t
phases:
  - id: p
    join: any
    operations:
      - { id: quick, type: shell, params: { run: 'ms=1000' } }
      - { id: slow, type: shell, params: { run: 'ms=60000' } }
",
    );
    assert_eq!(measured(&run).sequential_time, 1_000);
}

// covers: R5, R18
#[test]
fn a_resume_keeps_what_was_finished_and_says_so() {
    let world = world();
    let text = stages(&[("a", &[1, 1]), ("b", &[5]), ("c", &[1])]);
    let early = world.live(async || {
        let owned = world.start(&text).unwrap();
        world.kill_after(owned, 3_000).await
    });
    assert!(early.is_none(), "it is killed in the middle of `b`");
    let run = world.go_on();
    let shown = measured(&run);
    assert_eq!((shown.resumes, shown.resume_success), (1, Some(1.0)));
    assert!(shown.alerts.is_empty(), "{:?}", shown.alerts);
    assert_eq!(world.begun("a/s0") + world.begun("a/s1"), 2);
    // What a person wants again is not a loss.
    let again = world.live(async || {
        let request = sage_engine::open::ResumeRequest { from: Some("a".into()), ..Default::default() };
        world.resume_with(request).unwrap().unwrap().drive().await.unwrap()
    });
    assert_eq!(world.begun("a/s0"), 2);
    assert_eq!(measured(&again).resume_success, Some(1.0));
    assert!(world.events().iter().any(|(_, event)| matches!(event, Event::RunRewound(_))));
}
