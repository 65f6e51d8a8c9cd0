use sage_core::event::{PauseReason, RunPaused, TargetParked};
use sage_core::run::Wait;
use sage_core::target::HoldReason;

use super::Canned;
use crate::display::frame::{Purpose, frame};
use crate::display::why::{because, pause_text, retry_text, wait_text};
use crate::display::{Size, Style};

const WORK: &str = "
name: work
phases:
  - id: read
    operations:
      - { id: each, type: agent, prompt: look, agent: fake, foreach: '[1, 2, 3]' }
      - { id: one, type: agent, prompt: look, agent: fake }
  - id: write
    dependencies: [read]
    operations: { id: all, type: agent, prompt: look, agent: fake }
";

/// Everything waits for a provider's quota, for eleven seconds and a half.
fn waiting() -> Canned {
    let canned = Canned::new(WORK).fan("read/each", 3).at(2_000);
    let until = Some(canned.now() + 11_500);
    let (target, reason, message) = ("provider:fake".into(), HoldReason::Quota, "quota used up".into());
    let canned = canned.event(TargetParked { target, reason, until, message });
    canned.event(RunPaused { until, ..RunPaused::new(PauseReason::Quota) })
}

fn shown(canned: &Canned, purpose: Purpose) -> String {
    let style = Style { color: false, width: 120 };
    let lines =
        frame(&canned.run, canned.now(), Size { width: 120, height: 30 }, purpose, &mut Default::default());
    lines.iter().map(|line| line.render(style)).collect::<Vec<_>>().join("\n")
}

// covers: R7, R8
#[test]
fn a_wait_for_a_known_time_is_shown_with_its_steps() {
    let canned = waiting();
    let live = shown(&canned, Purpose::Live);
    insta::assert_snapshot!(live, @"
    Payment processing · work · …00TEST · paused, 12s left: a provider's limit is reached · 0/5 · 0%
    ◌ read    0/4 · 2s
      ◌ each  ░░░░░░░░░░░░░░░░░░░░ 0/3 · 2s · 3 wait for the quota of provider:fake, 12s left
      ◌ one   waits for the quota of provider:fake, 12s left
    ○ write   1 step · after read
    ");
    assert_eq!(shown(&canned, Purpose::Status { owned: true }), live);
    // Nobody waits for it: the time says only when it could go on.
    insta::assert_snapshot!(shown(&canned, Purpose::Status { owned: false }), @"
    Payment processing · work · …00TEST · paused: a provider's limit is reached, until 2027-01-15T08:00:13.500Z · 0/5 · 0%
    ◌ read    0/4 · 2s
      ◌ each  ░░░░░░░░░░░░░░░░░░░░ 0/3 · 2s · 3 wait for the quota of provider:fake, 12s left
      ◌ one   waits for the quota of provider:fake, 12s left
    ○ write   1 step · after read
    ");
    insta::assert_snapshot!(shown(&canned, Purpose::Last), @"
    Payment processing · work · …00TEST · 0/5 · 0%
    ◌ read   0/4 · 2s
    ○ write  1 step · after read
    ");
}

// covers: R7, R8
#[test]
fn waits_are_told_in_words() {
    let canned = waiting();
    let (run, now) = (&canned.run, canned.now());
    let told = |wait: Wait| wait_text(run, &wait, now);
    assert_eq!(told(Wait::Slot("global".into())), "waits for a slot");
    assert_eq!(told(Wait::Slot("gpu".into())), "waits for a slot of pool gpu");
    assert_eq!(told(Wait::Budget), "waits for budget");
    assert_eq!(
        told(Wait::Breaker("host:b".into(), Some(now + 40_000))),
        "waits for host:b (breaker open, 40s left)"
    );
    assert_eq!(told(Wait::Quota("provider:fake".into(), None)), "waits for the quota of provider:fake");
    assert_eq!(pause_text(run), "a provider's limit is reached");
    assert_eq!(retry_text(now + 50, now), "retry in 50ms");
    assert_eq!(retry_text(now, now), "retry at once");
    assert_eq!(retry_text(now + 3_100, now), "retry in 4s");
}

// covers: R8
#[test]
fn nothing_is_said_twice() {
    assert_eq!(because("quota used up", "quota used up"), "");
    assert_eq!(because("quota: wait an hour", "quota"), ": wait an hour");
    assert_eq!(because("quotas are no fun", "quota"), ": quotas are no fun");
    assert_eq!(because(" ", "quota"), "");
}
