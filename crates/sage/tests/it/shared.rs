//! Limits that several sage processes share: a provider's quota, pools, slots and who is next for them.
//!
//! Every step at work in a pool has an entry in `at-work`: whoever enters counts those that live, itself
//! included, and writes to `overlap` what it should not have found.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sage_core::event::Event;
use sage_engine::limits::{Limits, LimitsConfig};

use crate::calls::{agents, calls, count, first, is_pause, starts_after};
use crate::dsl::{DEADLINE, Journal, Random, Running, Sage, long, wait_until};

/// Between a run's question and its journal others may write: so late a start may still have been asked for
/// before the refusal was known.
const IN_BETWEEN_MS: u64 = 300;

/// No start of the run between the refusal and the reset, but starts after it.
#[track_caller]
fn assert_waited(journal: &Journal, refused_ms: u64, reset_ms: u64) {
    let starts = starts_after(journal, 0);
    let within = |at: &&u64| (refused_ms + IN_BETWEEN_MS..reset_ms).contains(*at);
    assert_eq!(starts.iter().filter(within).count(), 0, "{starts:?}, closed {refused_ms}..{reset_ms}");
    assert!(starts.iter().any(|at| *at < refused_ms), "it was under way before");
    assert!(starts.iter().any(|at| *at >= reset_ms), "it went on after");
    assert!(first(journal, is_pause).is_some(), "it told that it waits");
}

// covers: R7, R13
#[test]
fn a_refusal_of_one_run_parks_all_of_the_user() {
    let busy = agents(14, "refuse: 0", "delayMs: 150,");
    let refused = agents(2, "refuse: 1, fault: quota, resetAfterMs: 3000, whileClosed: true", "");
    // Another endpoint's log: the busy ones must not count as its calls.
    let refused = refused.replace("calls.jsonl", "refused.jsonl");
    let here = Sage::new().template("busy", &busy).template("t", &refused);
    let there = Sage::new().template("busy", &busy);
    let started = |sage: &Sage, feature: &str| {
        sage.engine().latest(feature).is_some() && !sage.journal(feature).started().is_empty()
    };
    let mut second = here.spawn("run second -t busy --parallel 1");
    let third = there.args(["run", "third", "-t", "busy", "--parallel", "1"]);
    let mut third = third.env("XDG_STATE_HOME", here.user_state()).spawn();
    second.until(|| started(&here, "second"), "the second run");
    third.until(|| started(&there, "third"), "the third run");
    here.sage("run first -t t").exit(0);
    second.end().exit(0);
    third.end().exit(0);
    let journal = here.journal("first");
    let refused_ms = first(&journal, |event| matches!(event, Event::StepParked(_))).unwrap().at_ms;
    let Event::RunPaused(paused) = &first(&journal, is_pause).unwrap().event else { unreachable!() };
    let reset_ms = paused.until.unwrap();
    for (sage, feature) in [(&here, "second"), (&there, "third")] {
        let journal = sage.journal(feature);
        assert_waited(&journal, refused_ms, reset_ms);
        assert_eq!((journal.succeeded().len(), count(&journal, "step.parked")), (14, 0));
        assert_eq!(calls(sage).len(), 14);
    }
}

/// For `sh`: an entry for each step at work. Nothing is forked, so that entries are quick.
const ENTER: &str = r#"
alive() { # pid, start
  { read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- "$1" "$2" $stat
  [ "$5" != Z ] && [ "$5" != X ] && [ "${24}" = "$2" ]
}
enter() { # most at once
  read -r stat < /proc/$$/stat
  set -- "$1" $stat
  echo "${23}" > "at-work/.$$"
  mv "at-work/.$$" "at-work/$$"
  found=0 names=
  for file in at-work/*; do
    { read -r start < "$file"; } 2>/dev/null || continue
    if alive "${file#at-work/}" "$start"; then found=$((found + 1)) names="$names $file"; fi
  done
  [ "$found" -le "$1" ] || echo "$SAGE_RUN $SAGE_STEP: $found at once:$names" >> overlap
  echo "$found" >> widths
}
leave() { rm "at-work/$$"; }
"#;

fn pooled(count: u32, body: &str) -> String {
    format!(
        r#"
name: t
phases:
  - id: p
    operations:
      - id: each
        type: shell
        foreach: "[range({count})]"
        pool: gpu
        params: {{ run: "trap '' TERM INT HUP; . ./enter.sh; enter 2; {body}; leave" }}
"#
    )
}

/// A project with a pool of two units.
fn with_pool(template: &str) -> Sage {
    let sage = Sage::new().template("t", template);
    sage.write("sage.toml", "[pools]\ngpu = 2\n");
    sage.write("enter.sh", ENTER);
    std::fs::create_dir(sage.path("at-work")).unwrap();
    sage
}

/// Who of the project holds or waits for what.
fn board(sage: &Sage) -> Vec<sage_engine::limits::Entry> {
    let (here, user) = (sage.path(".sage/state/limits"), sage.user_state().join("sage/limits"));
    Limits::shared(LimitsConfig::default(), here, user).board()
}

// covers: R13
#[test]
fn a_pool_is_shared_by_two_processes() {
    let sage = with_pool(&pooled(15, "sleep 0.05"));
    let both = ["a", "b"].map(|feature| sage.spawn(&format!("run {feature} -t t --parallel 8")));
    both.into_iter().for_each(|running| drop(running.end().exit(0)));
    assert_eq!(sage.lines("overlap"), [""; 0]);
    let widths = sage.lines("widths");
    assert_eq!(widths.len(), 30);
    assert!(widths.iter().any(|width| width == "2"), "the pool was used: {widths:?}");
    assert_eq!(board(&sage), []);
}

fn kill_at_random(sage: &Sage, kills: u32) -> u32 {
    let mut random = Random::new(u64::from(kills));
    let command = |feature: &str| match sage.engine().latest(feature) {
        Some(_) => format!("resume {feature}"),
        None => format!("run {feature} -t t --parallel 8"),
    };
    let mut both: Vec<(&str, Running)> = ["a", "b"].map(|f| (f, sage.spawn(&command(f)))).into();
    let mut killed = 0;
    while killed < kills {
        let moment = Instant::now() + Duration::from_millis(20 + random.below(150));
        wait_until(|| Instant::now() >= moment, DEADLINE, "the moment to kill");
        let (feature, running) = both.swap_remove(random.below(2) as usize);
        killed += u32::from(running.kill());
        both.push((feature, sage.spawn(&command(feature))));
    }
    sage.write("enough", "");
    both.into_iter().for_each(|(_, running)| drop(running.end().exit(0)));
    killed
}

// covers: R5, R13
#[test]
fn a_pool_outlives_those_who_die_in_it() {
    let kills = if long() { 300 } else { 30 };
    let sage = with_pool(&pooled(kills, "[ -e enough ] || sleep 0.1"));
    let killed = kill_at_random(&sage, kills);
    let overlap = sage.lines("overlap");
    assert!(overlap.is_empty(), "{} of {killed} kills: {overlap:#?}", overlap.len());
    // Each of two waits for the other: they end only if both units are theirs at once.
    let both = "until [ $(ls at-work | wc -l) -ge 2 ] || [ -e met ]; do sleep 0.01; done; touch met";
    sage.write(".sage/templates/pair.yaml", pooled(2, both));
    wait_until(|| sage.alive().is_empty(), DEADLINE, "the processes of the dead");
    for left in std::fs::read_dir(sage.path("at-work")).unwrap().flatten() {
        std::fs::remove_file(left.path()).unwrap();
    }
    let asked = Instant::now();
    sage.sage("run c -t pair").exit(0);
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(board(&sage), []);
    let entries = sage.lines("widths").len();
    println!("pool: {killed} kills, {entries} steps at work, 0 overlaps, a new run has it all in {took:?}");
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The dead run's keeper is stopped, so its child outlives it for as long as the test wants.
// covers: R5, R13
#[test]
fn a_unit_is_not_free_before_the_processes_of_the_dead_are_gone() {
    let sage = with_pool(&pooled(2, "[ -e enough ] || sleep 300"));
    let mut running = sage.spawn("run a -t t");
    let entered = || -> Vec<u32> {
        let files = std::fs::read_dir(sage.path("at-work")).unwrap().flatten();
        files.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect()
    };
    running.until(|| entered().len() == 2, "both units to be taken");
    let keepers: Vec<Pid> = entered()
        .into_iter()
        .map(|child| Pid::from_raw(parent(child).unwrap().cast_signed()).unwrap())
        .collect();
    keepers.iter().for_each(|keeper| kill_process(*keeper, Signal::STOP).unwrap());
    assert!(running.kill());
    sage.write("enough", "");
    let mut other = sage.spawn("run b -t t");
    let waits = || board(&sage).iter().any(|entry| entry.pool == "gpu" && entry.waiting.is_some());
    let known = || sage.engine().latest("b").is_some();
    other.until(|| known() && (waits() || !sage.journal("b").started().is_empty()), "the other run to ask");
    assert_eq!(sage.journal("b").started(), [""; 0], "the children of the dead are still at work");
    keepers.iter().for_each(|keeper| kill_process(*keeper, Signal::CONT).unwrap());
    other.end().exit(0);
    assert_eq!(sage.lines("overlap"), [""; 0]);
    assert_eq!(board(&sage), []);
}

/// Steps that tell when they begin and end, and end when they are told to.
fn told(name: &str, count: u32, priority: &str) -> String {
    format!(
        r#"
name: {name}
priority: {priority}
phases:
  - id: p
    operations:
      - id: each
        type: shell
        foreach: "[range({count})]"
        params:
          env: {{ ITEM: "{name}-{{{{ item }}}}" }}
          run: "echo start $ITEM >> order; until [ -e go-$ITEM ] || [ -e go ]; do sleep 0.02; done; echo end $ITEM >> order"
"#
    )
}

// covers: R13
#[test]
fn an_urgent_run_is_next() {
    let sage = Sage::new().template("slow", &told("slow", 16, "P2")).template("fast", &told("fast", 1, "P0"));
    let start =
        |feature: &str| sage.args(["run", feature, "-t", feature]).env("SAGE_PARALLEL_LIMIT", "8").spawn();
    let mut slow = start("slow");
    slow.until(|| sage.lines("order").len() == 8, "eight steps at work");
    let mut fast = start("fast");
    let waits =
        || board(&sage).iter().any(|entry| entry.waiting.is_some_and(|waiting| waiting.priority == 0));
    fast.until(waits, "the urgent step to wait for a slot");
    sage.write("go-slow-0", "");
    sage.write("go-fast-0", "");
    fast.end().exit(0);
    let order = sage.lines("order");
    assert_eq!(order[8..11], ["end slow-0", "start fast-0", "end fast-0"], "{order:?}");
    assert!(order[..8].iter().all(|line| line.starts_with("start slow-")), "{order:?}");
    sage.write("go", "");
    slow.end().exit(0);
    let journal = sage.journal("slow");
    assert_eq!((journal.started().len(), journal.succeeded().len()), (16, 16), "nobody was put out");
    let freed_ms = first(&journal, |event| matches!(event, Event::StepFinished(_))).unwrap().at_ms;
    let taken_ms =
        first(&sage.journal("fast"), |event| matches!(event, Event::StepStarted(_))).unwrap().at_ms;
    println!("priority: the slot was taken {} ms after it was free", taken_ms.saturating_sub(freed_ms));
    assert_eq!(board(&sage), []);
}

// covers: R13
#[test]
fn five_levels_of_workflows_need_one_slot() {
    let mut sage = Sage::new();
    for level in 1..=5 {
        let inner = match level {
            5 => r#"{ id: leaf, type: shell, params: { run: "echo leaf >> ran" } }"#.to_owned(),
            _ => format!("{{ id: sub, type: workflow, params: {{ template: l{} }} }}", level + 1),
        };
        let own = format!("{{ id: own, type: shell, params: {{ run: \"echo l{level} >> ran\" }} }}");
        let text = format!("name: l{level}\nphases:\n  - id: p\n    operations: [{own}, {inner}]\n");
        sage = sage.template(&format!("l{level}"), &text);
    }
    sage.sage("run x -t l1 --parallel 1").exit(0);
    let mut ran = sage.lines("ran");
    ran.sort();
    assert_eq!(ran, ["l1", "l2", "l3", "l4", "l5", "leaf"]);
    // Also while others need the slot.
    let both = ["y", "z"].map(|feature| sage.spawn(&format!("run {feature} -t l1 --parallel 1")));
    both.into_iter().for_each(|running| drop(running.end().exit(0)));
    assert_eq!(sage.lines("ran").len(), 18);
    assert_eq!(board(&sage), []);
}
