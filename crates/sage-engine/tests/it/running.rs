//! Runs without trouble: order, joins, fan-outs, sub-workflows, approvals, retries, edits.

use std::sync::Arc;

use sage_core::event::Event;
use sage_core::role::Role;
use sage_core::run::{Run, Status};
use sage_core::template::Isolation;
use sage_core::verdict::Verdict;
use sage_engine::control::Signal;
use sage_engine::sim::SimFs;

use crate::world::{World, simulate, states};

fn world() -> World {
    World::new(Arc::new(SimFs::new(1)))
}

fn run(world: &World, text: &str) -> Run {
    simulate(async { world.start(text).unwrap().drive().await.unwrap() })
}

const DIAMOND: &str = "
name: diamond
phases:
  - id: a
    operations: { id: x, type: shell, params: { run: 'ms=10' } }
  - id: b
    dependencies: [a]
    operations:
      - { id: y, type: shell, params: { run: 'ms=30' } }
      - { id: z, type: shell, params: { run: 'ms=50' } }
  - id: c
    dependencies: [b]
    operations: { id: w, type: shell, params: { run: 'ms=10' } }
";

// covers: R1, R2
#[test]
fn a_diamond_takes_its_longest_path() {
    let world = world();
    let run = run(&world, DIAMOND);
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert!(states(&run).values().all(|state| *state == "succeeded"), "{:?}", states(&run));
    assert_eq!(run.tally.sequential_ms, 100);
    assert!((70..=76).contains(&run.elapsed_ms()), "{}", run.elapsed_ms());
}

// covers: R1
#[test]
fn a_step_starts_the_moment_its_own_needs_allow() {
    let world = world();
    let run = run(
        &world,
        "
name: no-barrier
phases:
  - id: p
    operations:
      - { id: a1, type: sleep, params: { ms: 100 } }
      - { id: a2, type: sleep, needs: [a1], params: { ms: 100 } }
      - { id: a3, type: sleep, needs: [a2], params: { ms: 100 } }
      - { id: a4, type: sleep, needs: [a3], params: { ms: 100 } }
      - { id: a5, type: sleep, needs: [a4], params: { ms: 100 } }
      - { id: b1, type: sleep, params: { ms: 500 } }
      - { id: b2, type: sleep, needs: [b1], params: { ms: 10 } }
",
    );
    assert!(
        (510..=525).contains(&run.elapsed_ms()),
        "a level barrier would take 900 ms: {}",
        run.elapsed_ms()
    );
}

// covers: R7, P5
#[test]
fn three_of_four_is_degraded_and_two_of_four_pauses() {
    let four = |scripts: [&str; 4]| {
        let ops: String = scripts
            .iter()
            .enumerate()
            .map(|(n, s)| format!("      - {{ id: o{n}, type: shell, params: {{ run: '{s}' }} }}\n"))
            .collect();
        format!(
            "name: j\nphases:\n  - id: p\n    join: {{ atLeast: 0.75 }}\n    onJoin: pause\n    operations:\n{ops}  - id: q\n    dependencies: [p]\n    operations: {{ id: after, type: shell, params: {{ run: x }} }}\n"
        )
    };
    let first = world();
    let degraded = run(&first, &four(["ms=1", "fail", "ms=2", "ms=3"]));
    assert_eq!(degraded.status, Status::Finished(Verdict::Degraded));
    assert_eq!(states(&degraded)["q/after"], "succeeded");
    let second = world();
    let paused = run(&second, &four(["fail", "fail", "ms=2", "ms=3"]));
    assert_eq!(paused.status.name(), "paused");
    assert_eq!(states(&paused)["q/after"], "blocked");
    assert_eq!(states(&paused)["p/o3"], "succeeded", "siblings finish");
}

// covers: P5
#[test]
fn a_failure_blocks_what_depends_on_it_and_resume_runs_only_that() {
    let world = world();
    let text = |second: &str| {
        format!(
            "
name: f
phases:
  - id: p
    operations:
      - {{ id: good, type: shell, params: {{ run: 'ms=5' }} }}
      - {{ id: bad, type: shell, params: {{ run: '{second}' }} }}
      - {{ id: after-good, type: shell, needs: [good], params: {{ run: 'ms=1' }} }}
      - {{ id: after-bad, type: shell, needs: [bad], params: {{ run: 'ms=1' }} }}
"
        )
    };
    let failed = run(&world, &text("fail<2"));
    assert_eq!(failed.status, Status::Finished(Verdict::Failed));
    assert_eq!(states(&failed)["p/after-bad"], "blocked");
    assert_eq!(states(&failed)["p/after-good"], "succeeded");
    let resumed = simulate(async { world.resume().unwrap().unwrap().drive().await.unwrap() });
    assert_eq!(resumed.status, Status::Finished(Verdict::Succeeded), "{:?}", states(&resumed));
    assert_eq!((world.begun("p/good"), world.begun("p/bad"), world.begun("p/after-good")), (1, 2, 1));
}

// covers: P1
#[test]
fn a_false_condition_skips_and_satisfies() {
    let world = world();
    let run = run(
        &world,
        "
name: w
inputs: { needs_security: false }
phases:
  - id: p
    operations: { id: audit, type: shell, when: '.inputs.needs_security', params: { run: fail } }
  - id: q
    dependencies: [p]
    operations: { id: done, type: shell, params: { run: 'ms=1' } }
",
    );
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", states(&run));
    assert_eq!(states(&run)["p/audit"], "skipped");
    assert_eq!(world.begun("p/audit"), 0);
}

const FAN: &str = "
name: fan
phases:
  - id: list
    operations: { id: names, type: shell, params: { run: 'a b c', env: { X: '1' } } }
  - id: fan
    dependencies: [list]
    operations:
      id: each
      type: shell
      foreach: '.steps[\"list/names\"].result.stdout | split(\" \")'
      maxParallel: 2
      params: { run: 'ms=10', env: { NAME: '{{ item }}-{{ index }}' } }
  - id: join
    dependencies: [fan]
    operations: { id: all, type: shell, params: { run: x, env: { N: '{{ steps[\"fan/each\"].result | length }}' } } }
";

// covers: R1
#[test]
fn a_fan_out_keeps_item_order_and_its_own_limit() {
    let world = world();
    let run = run(&world, FAN);
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    assert_eq!(states(&run).len(), 6);
    let phase = run.find_phase("fan").unwrap();
    let took = run.phase(phase).judged_ms - run.phase(phase).opened_ms;
    assert!((20..30).contains(&took), "two at once: {took}");
    let all = run.step(run.find("join/all").unwrap()).output.clone().unwrap();
    let value = sage_engine::results::value_of(
        &all,
        sage_engine::results::Face::Filtered,
        &world.engine().blobs(&run.id),
    )
    .unwrap();
    assert_eq!(value["env"]["N"], "3");
}

// covers: R13
#[test]
fn fan_outs_inside_sub_workflows_finish_at_limit_one() {
    for limit in [1, 2, 100] {
        let mut world = world().with(
            "inner",
            "
name: inner
phases:
  - id: deep
    operations: { id: leaf, type: shell, foreach: '[range(.inputs.n)]', params: { run: 'ms=3' } }
  - id: end
    dependencies: [deep]
    operations: { id: sum, type: shell, params: { run: 'ms=1' } }
",
        );
        world.parallel = limit;
        let run = run(
            &world,
            "
name: outer
phases:
  - id: fan
    operations: { id: each, type: workflow, foreach: '[1, 2, 2, 3]', params: { template: inner, inputs: { n: '{{ item }}' } } }
",
        );
        assert_eq!(
            run.status,
            Status::Finished(Verdict::Succeeded),
            "limit {limit}: {:?}",
            sage_core::wire::errors(&run)
        );
        assert!(run.find("fan/each[3]/deep/leaf[2]").is_some());
        assert_eq!(world.steps.begun.lock().unwrap().len(), 8 + 4);
    }
}

// covers: R7
#[test]
fn retries_back_off_and_progressive_ones_restart_the_phase() {
    let world = world();
    let run = run(
        &world,
        "
name: r
phases:
  - id: p
    operations:
      - { id: ok, type: shell, params: { run: 'ms=1' } }
      - id: flaky
        type: shell
        retry: { attempts: 3, delay: 100, backoff: exponential, jitter: false }
        params: { run: 'fail<3' }
  - id: q
    dependencies: [p]
    operations:
      - { id: steady, type: shell, params: { run: 'ms=1' } }
      - id: stubborn
        type: shell
        retry: { attempts: 4, delay: 10ms, jitter: false, progressive: true }
        params: { run: 'fail<4' }
",
    );
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    assert_eq!(world.begun("p/flaky"), 3);
    assert_eq!(world.begun("q/stubborn"), 4);
    assert_eq!(world.begun("q/steady"), 2, "the whole phase went again");
    assert_eq!(world.begun("p/ok"), 1);
    assert!(run.elapsed_ms() >= 300);
}

// covers: R5
#[test]
fn an_edit_runs_only_what_changed_and_what_depends_on_it() {
    let world = world();
    let first = run(&world, DIAMOND);
    assert_eq!(first.status, Status::Finished(Verdict::Succeeded));
    let edited = DIAMOND.replace("ms=30", "ms=31");
    let run =
        simulate(async { world.resume_with(world.edit(&edited)).unwrap().unwrap().drive().await.unwrap() });
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(
        (world.begun("a/x"), world.begun("b/y"), world.begun("b/z"), world.begun("c/w")),
        (1, 2, 1, 2)
    );
    assert!(run.step(run.find("b/z").unwrap()).reused);
    let back =
        simulate(async { world.resume_with(world.edit(DIAMOND)).unwrap().unwrap().drive().await.unwrap() });
    assert_eq!(back.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(
        (world.begun("b/y"), world.begun("c/w")),
        (2, 2),
        "going back reuses what was finished before"
    );
}

// covers: R5
#[test]
fn moved_and_renamed_neighbours_cost_nothing() {
    let world = world();
    run(&world, DIAMOND);
    let moved = DIAMOND.replace(
        "      - { id: y, type: shell, params: { run: 'ms=30' } }\n      - { id: z, type: shell, params: { run: 'ms=50' } }",
        "      - { id: z, type: shell, params: { run: 'ms=50' } }\n      - { id: new, type: shell, params: { run: 'ms=5' } }\n      - { id: y, type: shell, params: { run: 'ms=30' } }",
    );
    let run =
        simulate(async { world.resume_with(world.edit(&moved)).unwrap().unwrap().drive().await.unwrap() });
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!((world.begun("b/y"), world.begun("b/z"), world.begun("b/new")), (1, 1, 1));
}

// covers: R5
#[test]
fn an_approval_pauses_holds_no_slot_and_is_answered_later() {
    let mut world = world();
    world.parallel = 1;
    let text = "
name: ask
phases:
  - id: p
    operations:
      - { id: ask, type: approval, params: { message: 'ship {{ title }}?' } }
      - { id: other, type: shell, params: { run: 'ms=5' } }
  - id: q
    dependencies: [p]
    operations: { id: ship, type: shell, params: { run: x, env: { BY: '{{ steps[\"p/ask\"].result.choice }}' } } }
";
    let paused = run(&world, text);
    assert_eq!(paused.status.name(), "paused");
    assert_eq!(states(&paused)["p/other"], "succeeded");
    let answer = Signal::approve("p/ask", "me");
    let answered = simulate(async { world.engine().deliver("f", answer).await.unwrap() });
    assert_eq!(states(&answered)["p/ask"], "succeeded");
    let done = simulate(async { world.resume().unwrap().unwrap().drive().await.unwrap() });
    assert_eq!(done.status, Status::Finished(Verdict::Succeeded), "{:?}", states(&done));
    assert_eq!(world.begun("p/other"), 1);
}

// covers: R14
#[test]
fn limits_of_time_count_active_time_and_leave_a_resumable_run() {
    let world = world();
    let mut request = world.request(
        "
name: t
phases:
  - id: p
    operations: { id: slow, type: shell, params: { run: hang } }
",
    );
    request.settings.timeout_ms = Some(5_000);
    let paused = simulate(async { world.engine().start(request).unwrap().drive().await.unwrap() });
    assert_eq!(paused.status.name(), "paused");
    assert!(matches!(paused.status, Status::Paused { reason: sage_core::event::PauseReason::Timeout, .. }));

    let world = self::world();
    let failed = run(
        &world,
        "
name: t
phases:
  - id: p
    timeout: 2s
    operations:
      - { id: slow, type: shell, params: { run: hang } }
      - { id: quick, type: shell, params: { run: 'ms=10' } }
",
    );
    assert_eq!(failed.status, Status::Finished(Verdict::Failed));
    assert_eq!(states(&failed)["p/quick"], "succeeded");
    assert!(sage_core::wire::errors(&failed)[0].contains("took longer than 2000 ms"));
}

// covers: P3
#[test]
fn a_phase_repeats_while_its_condition_holds() {
    let world = world();
    let run = run(
        &world,
        "
name: again
phases:
  - id: research
    operations: { id: look, type: shell, params: { run: 'ms=1' } }
  - id: critique
    dependencies: [research]
    repeat: { from: research, while: '.steps[\"critique/judge\"].result.item == null', max: 3 }
    operations: { id: judge, type: shell, params: { run: 'ms=1' } }
  - id: ship
    dependencies: [critique]
    operations: { id: it, type: shell, params: { run: 'ms=1' } }
",
    );
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", states(&run));
    assert_eq!(states(&run)["research@3/look"], "succeeded");
    assert_eq!(
        (world.begun("ship/it"), world.begun("research/look"), world.begun("research@2/look")),
        (1, 1, 1)
    );
}

// covers: R5
#[test]
fn rewinding_runs_the_step_and_all_after_it_again() {
    let world = world();
    run(&world, DIAMOND);
    let request = sage_engine::open::ResumeRequest { from: Some("b/y".into()), ..Default::default() };
    let run = simulate(async { world.resume_with(request).unwrap().unwrap().drive().await.unwrap() });
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(
        (world.begun("a/x"), world.begun("b/y"), world.begun("b/z"), world.begun("c/w")),
        (1, 2, 1, 2)
    );
}

// covers: R7
#[test]
fn a_race_is_won_once_and_failing_fast_stops_the_rest() {
    let world = world();
    let race = run(
        &world,
        "
name: race
phases:
  - id: p
    join: any
    operations:
      - { id: slow, type: shell, params: { run: hang } }
      - { id: quick, type: shell, params: { run: 'ms=10' } }
      - { id: nap, type: sleep, params: { for: 1h } }
",
    );
    assert_eq!(race.status, Status::Finished(Verdict::Succeeded), "{:?}", states(&race));
    assert_eq!(states(&race)["p/slow"], "cancelled");
    assert_eq!(states(&race)["p/nap"], "cancelled");
    let world = self::world();
    let fast = run(
        &world,
        "
name: fast
phases:
  - id: p
    onFailure: failFast
    operations:
      - { id: slow, type: shell, params: { run: hang } }
      - { id: bad, type: shell, params: { run: 'ms=10 fail' } }
",
    );
    assert_eq!(fast.status, Status::Finished(Verdict::Failed));
    assert_eq!(states(&fast)["p/slow"], "cancelled");
}

// covers: R5
#[test]
fn rewinding_expands_a_fan_out_anew() {
    let world = world();
    let first = run(&world, FAN);
    assert_eq!(first.tally.total, 5);
    let request = sage_engine::open::ResumeRequest { from: Some("list".into()), ..Default::default() };
    let run = simulate(async { world.resume_with(request).unwrap().unwrap().drive().await.unwrap() });
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    assert_eq!((world.begun("list/names"), world.begun("fan/each[0]"), world.begun("join/all")), (2, 2, 2));
    assert_eq!((run.tally.total, run.tally.settled), (5, 5));
    assert_eq!(run.live_steps().count(), 6, "what was taken back is gone");
}

// covers: P3
#[test]
fn loops_inside_loops_come_to_an_end_and_wait_for_what_is_outside() {
    let world = world();
    let run = run(
        &world,
        "
name: nested
phases:
  - id: slow
    operations: { id: x, type: shell, params: { run: 'ms=500' } }
  - id: a
    operations: { id: x, type: shell, params: { run: 'ms=1' } }
  - id: b
    dependencies: [a]
    repeat: { from: b, while: 'true', max: 3 }
    operations: { id: x, type: shell, params: { run: 'ms=1' } }
  - id: c
    dependencies: [b]
    repeat: { from: a, while: 'true', max: 4 }
    operations: { id: x, type: shell, params: { run: 'ms=1' } }
  - id: after
    dependencies: [a, c, slow]
    operations: { id: x, type: shell, needs: [a/x], params: { run: 'ms=1' } }
",
    );
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", states(&run));
    let started = |path: &str| run.step(run.find(path).unwrap()).started_ms;
    let ended = |path: &str| run.step(run.find(path).unwrap()).ended_ms;
    assert!(started("after/x") >= ended("slow/x"), "{} < {}", started("after/x"), ended("slow/x"));
    assert_eq!(world.begun("after/x"), 1);
    assert!(run.steps.len() < 30, "{}", run.steps.len());
}

// covers: R14
#[test]
fn a_phase_out_of_time_stops_also_what_was_about_to_start() {
    for timeout in [1, 2, 3, 5, 8, 13, 21] {
        let world = world();
        let text = format!(
            "name: t\nphases:\n  - id: p\n    timeout: {timeout}\n    operations: {{ id: s, type: shell, foreach: '[range(50)]', params: {{ run: 'ms=2' }} }}\n"
        );
        let run = run(&world, &text);
        assert_eq!(run.status, Status::Finished(Verdict::Failed));
    }
}

// covers: R7
#[test]
fn a_race_that_is_won_does_not_pause_for_its_losers() {
    let world = world().with(
        "inner",
        "name: inner\nphases:\n  - id: p\n    onJoin: pause\n    operations: { id: slow, type: shell, params: { run: hang } }\n",
    );
    let run = run(
        &world,
        "
name: race
phases:
  - id: p
    join: any
    operations:
      - { id: quick, type: shell, params: { run: 'ms=5' } }
      - { id: sub, type: workflow, params: { template: inner } }
",
    );
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", states(&run));
}

// covers: R6
#[test]
fn prose_about_steps_and_default_inputs_of_sub_workflows_work() {
    let world = world().with(
        "inner",
        "name: inner\ninputs: { word: hello }\nphases:\n  - id: p\n    operations: { id: x, type: shell, params: { run: x, env: { W: '{{ inputs.word }}' } } }\n",
    );
    let run = run(
        &world,
        "
name: prose
phases:
  - id: a
    operations: { id: x, type: shell, params: { run: one } }
  - id: b
    dependencies: [a]
    operations: { id: sub, type: workflow, params: { template: inner } }
  - id: c
    dependencies: [b]
    operations: { id: x, type: shell, params: { run: x, env: { T: 'next steps: {{ steps[\"a/x\"].result.stdout }}' } } }
",
    );
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
}

// covers: R7
#[test]
fn a_stopped_attempt_and_a_resume_do_not_use_up_tries() {
    let world = world();
    let text = "
name: tries
phases:
  - id: p
    operations: { id: x, type: shell, retry: { attempts: 3, delay: 1, jitter: false }, params: { run: 'fail<6' } }
";
    assert_eq!(run(&world, text).status, Status::Finished(Verdict::Failed));
    assert_eq!(world.begun("p/x"), 3);
    let again = simulate(async { world.resume().unwrap().unwrap().drive().await.unwrap() });
    assert_eq!(
        again.status,
        Status::Finished(Verdict::Succeeded),
        "attempt 6 is the third of the second round"
    );
    assert_eq!(world.begun("p/x"), 6);
}

// covers: S6, R6
#[test]
fn role_session_and_isolation_reach_the_executor() {
    let world = world();
    let text = "
name: told
phases:
  - id: a
    operations: { id: x, type: shell, role: auditor, session: plain, isolation: worktree, params: { run: one } }
  - id: b
    dependencies: [a]
    operations:
      - { id: y, type: shell, session: '{{ feature }}-{{ steps[\"a/x\"].result.stdout }}', params: { run: x } }
      - { id: empty, type: shell, session: '{{ \"\" }}', params: { run: x } }
      - { id: each, type: shell, foreach: '[1, 2]', session: 's{{ item }}', params: { run: x } }
";
    let run = run(&world, text);
    let given = |path: &str| world.steps.given.lock().unwrap().get(path).cloned();
    assert_eq!(given("a/x"), Some((Some(Role::Auditor), Some("plain".into()), Isolation::Worktree)));
    assert_eq!(given("b/y"), Some((None, Some("f-one".into()), Isolation::None)));
    assert_eq!(given("b/each[1]").unwrap().1.as_deref(), Some("s2"));
    assert_eq!(given("b/empty"), None);
    let errors = format!("{:?}", sage_core::wire::errors(&run));
    assert!(errors.contains("`session` is empty"), "{errors}");
}

// covers: P5
#[test]
fn role_and_isolation_are_parts_of_the_key_only_when_they_are_given() {
    let parts = |fields: &str| {
        let world = world();
        run(
            &world,
            &format!(
                "name: k\nphases:\n  - id: p\n    operations: {{ id: x, type: shell, {fields} params: {{ run: x }} }}\n"
            ),
        );
        world.events().into_iter().find_map(|(_, event)| match event {
            Event::StepStarted(started) => {
                Some(started.parts.read().keys().cloned().collect::<Vec<_>>().join(" "))
            }
            _ => None,
        })
    };
    assert_eq!(parts("").unwrap(), "inputs kind params path");
    assert_eq!(parts("session: s, isolation: none,"), parts(""));
    assert_eq!(
        parts("role: cleaner, isolation: worktree,").unwrap(),
        "inputs isolation kind params path role"
    );
}
