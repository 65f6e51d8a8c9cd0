use sage_core::event::PauseReason;
use sage_core::policy::FailureClass;
use sage_core::port::Usage;
use sage_core::verdict::Verdict;
use unicode_width::UnicodeWidthStr;

use super::Canned;
use crate::display::{Size, frame_text};

const FEATURE: &str = "
name: feature
phases:
  - id: research
    operations:
      - { id: market, type: agent, prompt: look, agent: fake }
      - { id: competitive, type: agent, prompt: look, agent: fake }
      - { id: practices, type: shell, params: { run: 'true' } }
      - { id: patterns, type: shell, params: { run: 'true' } }
  - id: gate
    dependencies: [research]
    operations: { id: sign-off, type: approval, params: { message: 'Spend $5 on it?' } }
  - id: build
    dependencies: [gate]
    operations:
      - { id: code, type: shell, params: { run: 'true' } }
      - { id: docs, type: shell, needs: [code], params: { run: 'true' } }
";

fn picture(canned: &Canned, width: usize, height: usize) -> String {
    let lines =
        frame_text(&canned.run, canned.now(), Size { width, height }, false, true, &mut Default::default());
    assert!(lines.len() <= height, "{} lines in {height}", lines.len());
    for line in &lines {
        assert!(line.width() <= width, "{} columns in {width}: {line}", line.width());
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    }
    lines.join("\n")
}

fn usage(input: u64, output: u64, cost: f64) -> Usage {
    Usage { input: Some(input), output: Some(output), cost_usd: Some(cost), ..Usage::default() }
}

fn in_research() -> Canned {
    Canned::new(FEATURE)
        .start("research/market")
        .start("research/competitive")
        .start("research/practices")
        .start("research/patterns")
        .at(2_000)
        .done("research/practices", 2_000)
        .at(3_000)
        .retry("research/patterns", 3_000, 4_500, "connection reset\nby peer")
        .at(3_900)
        .done_with("research/competitive", 3_900, usage(14_000, 220, 0.051))
        .at(4_000)
}

// covers: R8
#[test]
fn a_running_phase_lists_its_steps() {
    insta::assert_snapshot!(picture(&in_research(), 80, 50), @"
    Payment processing · feature · …00TEST · 4s · 2/7 · 28% · ~10s left · $0.05
    ⠋ research       2/4 · 4s · ~6s left
      ⠋ market       4s
      ✓ competitive  3.9s · 14.2k tokens · $0.05
      ✓ practices    2.0s
      ↻ patterns     retry in 4s · attempt 1: transient: connection reset
    ○ gate           1 step · after research
    ○ build          2 steps · after gate
    ");
}

// covers: R8
#[test]
fn narrow_terminals_lose_the_least_needed() {
    insta::assert_snapshot!(picture(&in_research(), 40, 50), @"
    Payment pr… · 4s · 2/7 · 28% · ~10s left
    ⠋ research       2/4 · 4s · ~6s left
      ⠋ market       4s
      ✓ competitive  3.9s · 14.2k tokens · …
      ✓ practices    2.0s
      ↻ patterns     retry in 4s · attempt …
    ○ gate           1 step · after research
    ○ build          2 steps · after gate
    ");
}

fn waiting_for_a_person() -> Canned {
    in_research()
        .at(8_000)
        .start("research/patterns")
        .at(9_000)
        .done("research/patterns", 1_000)
        .done("research/market", 9_000)
        .ask("gate/sign-off", "Spend $5 on it?\nReally?")
        .at(11_000)
}

// covers: R8
#[test]
fn a_question_comes_with_the_command_to_type() {
    insta::assert_snapshot!(picture(&waiting_for_a_person(), 120, 50), @"
    Payment processing · feature · …00TEST · 11s · 4/7 · 57% · $0.05
    ✓ research       4 steps · 9.0s · 14.2k tokens · $0.05
      ✓ competitive  3.9s · 14.2k tokens · $0.05
    ? gate           0/1 · 0s
      ? sign-off     approval: Spend $5 on it? → sage approve payment-processing gate/sign-off
    ○ build          2 steps · after gate
    ");
    insta::assert_snapshot!(picture(&waiting_for_a_person(), 60, 50), @"
    Payment processing · feature · 11s · 4/7 · 57% · $0.05
    ✓ research       4 steps · 9.0s · 14.2k tokens · $0.05
      ✓ competitive  3.9s · 14.2k tokens · $0.05
    ? gate           0/1 · 0s
      ? sign-off     approval: Spend $5 on it?
        → sage approve payment-processing gate/sign-off
    ○ build          2 steps · after gate
    ");
}

// covers: R8
#[test]
fn what_is_over_is_one_line_and_failures_stay() {
    let failed = Canned::new(FEATURE)
        .start("research/market")
        .start("research/competitive")
        .start("research/practices")
        .start("research/patterns")
        .at(5_000)
        .done("research/market", 5_000)
        .done("research/practices", 5_000)
        .done("research/patterns", 5_000)
        .fail(
            "research/competitive",
            5_000,
            FailureClass::Timeout,
            "\x1b[31mno answer\x1b[0m within 5s\nsecond line",
        )
        .finish(Verdict::Failed);
    insta::assert_snapshot!(picture(&failed, 80, 50), @"
    Payment processing · feature · …00TEST · failed in 5.0s · 3/7 · 42%
    ✗ research       3 of 4 succeeded · 5.0s
      ✗ competitive  timeout: no answer within 5s
    - gate           1 step blocked
    - build          2 steps blocked
    ");
}

const FAN: &str = "
name: fan
phases:
  - id: work
    operations:
      - { id: each, type: shell, foreach: '.inputs.list', tolerate: 5, params: { run: 'true' } }
      - { id: other, type: shell, params: { run: 'true' } }
";

fn fan() -> Canned {
    let mut canned = Canned::new(FAN).start("work/other").fan("work/each", 100);
    for n in 0..37 {
        canned = canned.at(n * 10).start(&format!("work/each[{n}]"));
        canned = if n == 12 {
            canned.at(n * 10 + 5).fail("work/each[12]", 5, FailureClass::Failed, "exit code 1")
        } else {
            canned.at(n * 10 + 5).done(&format!("work/each[{n}]"), 5)
        };
    }
    for n in 37..40 {
        canned = canned.start(&format!("work/each[{n}]"));
    }
    canned.at(4_000)
}

// covers: R8
#[test]
fn a_fan_out_is_one_line_with_a_bar_above_its_running_items() {
    insta::assert_snapshot!(picture(&fan(), 80, 50), @"
    Payment processing · fan · …00TEST · 4s · 36/101 · 35% · ~1s left
    ⠋ work          36/101 · 4s
      ⠋ each        ███░░░░░░░ 36/100 · 3 running · 1 failed · 4s · 60 wait for a s…
        ✗ each[12]  exit code 1
        ⠋ each[37]  3s
        ⠋ each[38]  3s
        ⠋ each[39]  3s
      ⠋ other       4s
    ");
}

fn many(steps: usize, running: usize) -> Canned {
    let mut yaml = String::from(
        "name: many\nphases:\n  - id: first\n    operations: { id: one, type: shell, params: { run: 'true' } }\n",
    );
    yaml.push_str("  - id: wide\n    dependencies: [first]\n    operations:\n");
    for n in 0..steps {
        yaml.push_str(&format!("      - {{ id: s{n}, type: shell, params: {{ run: 'true' }} }}\n"));
    }
    yaml.push_str("  - id: last\n    dependencies: [wide]\n    operations: { id: end, type: shell, params: { run: 'true' } }\n");
    let mut canned = Canned::new(&yaml).start("first/one").at(1_000).done("first/one", 1_000);
    for n in 0..20.min(steps / 2) {
        canned = canned.start(&format!("wide/s{n}")).done(&format!("wide/s{n}"), 1_000);
    }
    canned = canned.start("wide/s30").fail("wide/s30", 900, FailureClass::Failed, "exit code 2: boom");
    for n in 0..running {
        canned = canned.start(&format!("wide/s{}", 100 + n));
    }
    canned.at(7_000)
}

// covers: R8
#[test]
fn four_hundred_steps_fit_in_any_terminal() {
    let canned = many(400, 4);
    insta::assert_snapshot!(picture(&canned, 80, 10), @"
    Payment processing · many · …00TEST · 7s · 21/402 · 5% · ~1m 40s left
    ✓ first   1 step · 1.0s
    ⠋ wide    20/400 · 6s · ~1m 40s left
      ✗ s30   exit code 2: boom
      ⠋ s100  6s
      ⠋ s101  6s
      ⠋ s102  6s
      ⠋ s103  6s
    ○ last    1 step · after wide
    … 395 more (375 waiting for a slot, 20 done)
    ");
    insta::assert_snapshot!(picture(&canned, 200, 50), @"
    Payment processing · many · …00TEST · 7s · 21/402 · 5% · ~1m 40s left
    ✓ first   1 step · 1.0s
    ⠋ wide    20/400 · 6s · ~1m 40s left
      ◌ s20   waits for a slot
      ◌ s21   waits for a slot
      ◌ s22   waits for a slot
      ◌ s23   waits for a slot
      ◌ s24   waits for a slot
      ✗ s30   exit code 2: boom
      ⠋ s100  6s
      ⠋ s101  6s
      ⠋ s102  6s
      ⠋ s103  6s
    ○ last    1 step · after wide
    … 390 more (370 waiting for a slot, 20 done)
    ");
    for (width, height) in [(40, 10), (80, 24), (200, 10), (1, 1), (10, 2), (80, 3), (7, 4)] {
        picture(&canned, width, height);
    }
}

// covers: R8
#[test]
fn many_failures_do_not_hide_what_runs() {
    let mut canned = many(400, 0);
    for n in 200..300 {
        let step = format!("wide/s{n}");
        canned = canned.start(&step).fail(&step, 1, FailureClass::Failed, "no");
    }
    for n in 300..304 {
        canned = canned.start(&format!("wide/s{n}"));
    }
    let shown = picture(&canned, 80, 9);
    assert_eq!(shown.matches('✗').count(), 2, "{shown}");
    assert!(shown.contains("s300") && shown.contains("s303"), "{shown}");
    assert!(shown.contains("99 failed"), "{shown}");
}

// covers: R8, R17
#[test]
fn hostile_texts_cannot_do_anything() {
    let title =
        "\u{1b}]0;pwned\u{7}日本語のとても長いタイトル🚀 שלום \u{202e}gnp.exe e\u{301}\u{301}\u{301}\u{301}";
    let message = "\x1b[2J\x1b[H\x1b]52;c;aGk=\x07🚀日本語\u{9b}31m\r\nnext\u{8}\u{7f}";
    let canned = Canned::titled(title, FEATURE, &[])
        .start("research/market")
        .fail("research/market", 10, FailureClass::Failed, message)
        .start("research/practices")
        .retry("research/practices", 10, 5_000, message);
    for (width, height) in [(40, 10), (80, 10), (200, 50), (7, 4)] {
        picture(&canned, width, height);
    }
    insta::assert_snapshot!(picture(&canned, 60, 6), @"
    日本語のとても長いタイ… · feature · …00TEST · 0s · 0/7 · 0%
    ◌ research     0/4 · 0s
      ✗ market     🚀日本語�31m
      ↻ practices  retry in 5s · attempt 1: transient: 🚀日本語…
    ○ gate         1 step · after research
    … 4 more (2 waiting, 2 pending)
    ");
}

const OUTER: &str = "
name: outer
phases:
  - id: main
    operations: { id: sub, type: workflow, params: { template: inner } }
";
const INNER: &str = "
name: inner
phases:
  - id: one
    operations: { id: a, type: shell, params: { run: 'true' } }
  - id: two
    dependencies: [one]
    operations: { id: b, type: shell, params: { run: 'true' } }
";

// covers: R8
#[test]
fn a_sub_workflow_is_a_tree_of_its_own() {
    let canned = Canned::titled("Nested", OUTER, &[("inner", INNER)])
        .open("main/sub", "inner")
        .start("main/sub/one/a")
        .at(1_500)
        .done("main/sub/one/a", 1_500)
        .start("main/sub/two/b")
        .at(2_000);
    insta::assert_snapshot!(picture(&canned, 80, 10), @"
    Nested · outer · …00TEST · 2s · 1/2 · 50% · ~1s left
    ⠋ main     1/2 · 2s · ~1s left
      ⠋ sub    2s
        ✓ one  1 step · 1.5s
        ⠋ two  0/1 · 0s · ~1s left
          ⠋ b  0s
    ");
}

// covers: R8, R3
#[test]
fn a_paused_run_stands_still_and_a_resumed_one_says_what_it_kept() {
    let canned = waiting_for_a_person().pause(PauseReason::Approval);
    let later = canned.at(500_000);
    assert!(
        picture(&later, 80, 10)
            .starts_with("Payment processing · feature · …00TEST · paused after 11.0s · 4/7")
    );
    // Neither the run's time nor its phases' goes on.
    let (shown, later) = (picture(&later, 80, 10), later.at(900_000));
    assert_eq!(picture(&later, 80, 10), shown);
    let later = later.at(500_000);
    let resumed = later.resume().at(501_000);
    insta::assert_snapshot!(picture(&resumed, 100, 10), @"
    Payment processing · feature · …00TEST · 12s · 4/7 · 57% · $0.05
    ✓ research       4 steps · reused · 9.0s · 14.2k tokens · $0.05
      ✓ competitive  reused · 14.2k tokens · $0.05
    ? gate           0/1 · 0s
      ? sign-off     approval: Spend $5 on it? → sage approve payment-processing gate/sign-off
    ○ build          2 steps · after gate
    ");
}

// covers: R8, R20
#[test]
fn ten_thousand_steps_are_drawn_in_no_time() {
    let canned = many(10_000, 4);
    let start = std::time::Instant::now();
    let shown = picture(&canned, 80, 10);
    assert!(shown.ends_with("… 9995 more (9975 waiting for a slot, 20 done)"), "{shown}");
    // Ten times a second, beside the run; unoptimised and on a loaded machine this is far more than it takes.
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
    let all = frame_text(
        &canned.run,
        canned.now(),
        Size { width: 80, height: usize::MAX },
        false,
        true,
        &mut Default::default(),
    );
    assert_eq!(all.len(), 10_004, "a status lists them all");
}
