use super::Canned;
use crate::display::left_ms;

const FOUR: &str = "
name: four
phases:
  - id: work
    operations:
      - { id: a, type: shell, params: { run: 'true' } }
      - { id: b, type: shell, params: { run: 'true' } }
      - { id: c, type: shell, params: { run: 'true' } }
      - { id: d, type: shell, params: { run: 'true' } }
  - id: after
    dependencies: [work]
    operations:
      - { id: e, type: shell, params: { run: 'true' } }
      - { id: f, type: shell, needs: [e], params: { run: 'true' } }
";

fn left(canned: &Canned) -> Option<u64> {
    left_ms(&canned.run, canned.now())
}

// covers: R8
#[test]
fn nothing_is_said_until_there_is_something_to_go_on() {
    let canned = Canned::new(FOUR).start("work/a").at(5_000);
    assert_eq!(left(&canned), None);
}

// covers: R8
#[test]
fn what_is_left_is_the_longest_way() {
    let canned = Canned::new(FOUR).start("work/a").start("work/b").start("work/c").start("work/d");
    let canned = canned.at(10_000).done("work/a", 10_000);
    // b, c and d are due now; e and f follow one another.
    assert_eq!(left(&canned), Some(20_000));
    let late = canned.at(30_000);
    assert_eq!(left(&late), Some(20_000), "a step that takes longer than expected never makes it negative");
    let canned = late.done("work/b", 10_000).done("work/c", 10_000).done("work/d", 10_000).start("after/e");
    assert_eq!(left(&canned.at(34_000)), Some(16_000));
}

// covers: R8
#[test]
fn few_slots_make_it_longer() {
    let mut yaml = String::from("name: many\nphases:\n  - id: p\n    operations:\n");
    for n in 0..41 {
        yaml.push_str(&format!("      - {{ id: s{n}, type: shell, params: {{ run: 'true' }} }}\n"));
    }
    let canned = Canned::new(&yaml).start("p/s0").at(1_000).done("p/s0", 1_000);
    assert_eq!(left(&canned), Some(10_000), "40 steps of 1 s on 4 slots");
    let mut canned = canned;
    canned.run.settings.sequential = true;
    assert_eq!(left(&canned), Some(40_000));
}

// covers: R8
#[test]
fn items_are_measured_by_their_siblings_and_sleeps_by_what_they_say() {
    let yaml = "
name: mixed
phases:
  - id: p
    operations:
      - { id: quick, type: shell, params: { run: 'true' } }
      - { id: each, type: shell, foreach: '.inputs.x', maxParallel: 2, params: { run: 'true' } }
      - { id: nap, type: sleep, params: { for: 30s } }
      - { id: doze, type: sleep, params: { ms: 1000 } }
      - { id: ok, type: approval, params: { message: 'ok?' } }
";
    let canned = Canned::new(yaml).start("p/quick").at(10).done("p/quick", 10).fan("p/each", 21);
    let canned = canned.start("p/each[0]").at(4_010).done("p/each[0]", 4_000).sleep("p/nap", 30_000);
    assert_eq!(left(&canned), Some(40_000), "20 items of 4 s, two at once");
    let canned = canned.at(34_000);
    assert_eq!(left(&canned), Some(40_000));
}

// covers: R8
#[test]
fn an_unknown_kind_or_a_still_run_has_no_estimate() {
    let yaml = "
name: mixed
phases:
  - id: p
    operations:
      - { id: quick, type: shell, params: { run: 'true' } }
      - { id: think, type: agent, agent: fake, prompt: hi }
";
    let canned = Canned::new(yaml).start("p/quick").at(10).done("p/quick", 10);
    assert_eq!(left(&canned), None, "no agent has finished yet");
    let canned = canned.start("p/think").at(60_010).done("p/think", 60_000);
    assert_eq!(left(&canned), Some(0));
    assert_eq!(left(&canned.pause(sage_core::event::PauseReason::User)), None);
}

// covers: R8
#[test]
fn ten_thousand_steps_in_a_chain_are_no_trouble() {
    let mut yaml = String::from("name: chain\nphases:\n  - id: p\n    operations:\n");
    for n in 0..10_000 {
        let needs = if n == 0 { String::new() } else { format!("needs: [s{}], ", n - 1) };
        yaml.push_str(&format!("      - {{ id: s{n}, type: shell, {needs}params: {{ run: 'true' }} }}\n"));
    }
    let canned = Canned::new(&yaml).start("p/s0").at(1_000).done("p/s0", 1_000);
    assert_eq!(left(&canned), Some(9_999_000));
}
