//! The display on a real journal: written by the engine's own writer, followed while it grows.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sage_agents::activity::{What, Writer};
use sage_core::event::{AccountUsed, Event, RunEdited, StepNoted};
use sage_core::policy::FailureClass;
use sage_core::port::{Allowance, Usage};
use sage_core::verdict::Verdict;
use sage_engine::journal::{Journal, JournalFile, Sealing};
use sage_engine::project::Project;
use sage_engine::vfs::{DiskFs, Vfs};
use serde_json::Value;

use super::Canned;
use super::canned::START_MS;
use crate::display::{Display, Mode, Options};

const WORK: &str = "
name: work
phases:
  - id: research
    join: { atLeast: 1 }
    operations:
      - { id: market, type: agent, prompt: look, agent: fake }
      - { id: rivals, type: shell, params: { run: 'true' } }
  - id: gate
    dependencies: [research]
    operations: { id: ok, type: approval, params: { message: Ship it? } }
";

/// Where stdout would be.
#[derive(Clone, Default)]
struct Out(Arc<Mutex<Vec<u8>>>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Out {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Waits for the display's thread; it looks ten times a second.
    fn wait_for(&self, part: &str) {
        let start = Instant::now();
        while !self.text().contains(part) {
            assert!(start.elapsed() < Duration::from_secs(20), "no {part:?} in {:?}", self.text());
            std::thread::yield_now();
        }
    }
}

struct Written {
    dir: tempfile::TempDir,
    vfs: Arc<dyn Vfs>,
    journal: Journal,
    file: JournalFile,
}

impl Written {
    fn new() -> Written {
        let dir = tempfile::tempdir().unwrap();
        let vfs: Arc<dyn Vfs> = Arc::new(DiskFs::default());
        let file = JournalFile::create(&vfs, &dir.path().join("run")).unwrap();
        Written { dir, vfs, journal: Journal::new(&Sealing::new(None, "run")), file }
    }

    fn write(&mut self, events: &[(Event, u64)]) {
        for (event, ts) in events {
            self.journal.append(event.kind(), *ts, event).unwrap();
        }
        if let Some(batch) = self.journal.take_batch() {
            self.file.commit(&batch).unwrap();
        }
    }

    fn show(&self, mode: Mode, options: Options) -> (Display, Out) {
        let out = Out::default();
        let dir = self.dir.path().join("run");
        (Display::start_with(self.vfs.clone(), &dir, mode, options, Box::new(out.clone())), out)
    }
}

fn shown(canned: &Canned, mode: Mode, from_seq: u64) -> String {
    let mut written = Written::new();
    written.write(&canned.events);
    let (display, out) = written.show(mode, Options { from_seq, ..Options::default() });
    display.finish();
    out.text()
}

/// `sage.log` and a missing `await`: above the tree, whole, and not painted over.
// covers: R8, R21
#[test]
fn what_a_script_says_stands_above_the_tree() {
    let say = |text: &str| StepNoted { step: "research/market".into(), text: text.into() };
    let long = "main/slow had not ended when the script returned, and is stopped: is an `await` missing at a.ts:2:8?";
    let canned = Canned::new(WORK)
        .start("research/market")
        .event(say("3 of 9 files\nare read"))
        .event(say(long))
        .at(500);
    let mut written = Written::new();
    written.write(&canned.events);
    let (out, dir) = (Out::default(), written.dir.path().join("run"));
    let options = Options { width: Some(60), ..Options::default() };
    let display = Display::start_tree(written.vfs.clone(), &dir, options, Box::new(out.clone()));
    out.wait_for("research");
    display.finish();
    let text = crate::display::text::clean(&out.text().replace("\r\n", "|"));
    let said = "3 of 9 files|are read|main/slow had not ended when the script returned, and is|stopped: is an `await` missing at a.ts:2:8?|Payment";
    assert!(text.contains(said), "{text}");
    assert_eq!(text.matches("3 of 9 files").count(), 1, "{text}");
    assert!(shown(&canned, Mode::Lines, 0).contains("\n3 of 9 files\nare read\nmain/slow had"));
    let known = canned.events.len() as u64;
    assert!(
        !shown(&canned, Mode::Lines, known).contains("3 of 9 files"),
        "a resumed run says only what is new"
    );
}

/// An attempt may begin and end between two looks: its activity comes before its end all the same.
// covers: R8
#[test]
fn the_activity_of_a_short_attempt_is_told_before_its_end() {
    let canned = Canned::new(WORK).start("research/market").at(20).done("research/market", 20);
    let mut written = Written::new();
    written.write(&canned.events);
    let scratch = Project::scratch(&written.dir.path().join("run"), "research/market", 1);
    std::fs::create_dir_all(&scratch).unwrap();
    Writer::open(&scratch).write(What::Message { text: "I look.".into() });
    let told = |mode, since_seq| {
        let (display, out) = written.show(mode, Options { activity: since_seq, ..Options::default() });
        display.finish();
        out.text()
    };
    let text = told(Mode::Lines, Some(0));
    assert!(text.contains("market started\nresearch/market | I look.\nresearch/market finished"), "{text}");
    let known = canned.events.len() as u64;
    for text in [told(Mode::Lines, Some(known)), told(Mode::Lines, None), told(Mode::Json, None)] {
        assert!(!text.contains("I look."), "{text}");
    }
    let lines = told(Mode::Json, Some(0));
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = lines.iter().position(|line| line["type"] == "activity").unwrap();
    let ended = lines.iter().position(|line| line["type"] == "step.finished").unwrap();
    assert!(told < ended && lines[told]["step"] == "research/market", "{lines:?}");
    assert_eq!((&lines[told]["kind"], &lines[told]["text"]), (&"message".into(), &"I look.".into()));
}

/// Every few percent are in the journal; people are told at thresholds.
// covers: R18, R8
#[test]
fn an_account_that_is_nearly_used_up_is_told_once_per_threshold() {
    let used = |used_percent| {
        let reset_at_ms = Some(START_MS + 3_600_000);
        let allowance = Allowance { window: "5-hour".into(), used_percent, reset_at_ms, warning: false };
        AccountUsed { agent: "claude".into(), allowance }
    };
    let percents = [60, 76, 82, 88, 91, 97, 100];
    let start = Canned::new(WORK).start("research/market").at(500);
    let mut written = Written::new();
    written.write(&start.events);
    let (out, dir) = (Out::default(), written.dir.path().join("run"));
    let options = Options { width: Some(100), ..Options::default() };
    let display = Display::start_tree(written.vfs.clone(), &dir, options, Box::new(out.clone()));
    out.wait_for("research");
    let mut canned = start;
    for percent in percents {
        let known = canned.events.len();
        canned = canned.event(used(percent));
        written.write(&canned.events[known..]);
        display.nudge();
        if [76, 91, 100].contains(&percent) {
            out.wait_for(&format!("note: claude has used {percent}% of its 5-hour limit"));
        }
    }
    display.finish();
    let told = |text: &str| {
        let lines =
            text.match_indices("claude has used ").map(|(at, _)| text[at + 16..].split('%').next().unwrap());
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(&out.text()), ["76", "91", "100"]);
    assert_eq!(told(&shown(&canned, Mode::Lines, 0)), ["76", "91", "100"]);
    let late = shown(&canned, Mode::Lines, canned.events.len() as u64);
    assert!(told(&late).is_empty(), "old news: {late}");
}

fn story() -> Canned {
    let usage = Usage { input: Some(1_500), cost_usd: Some(0.02), ..Usage::default() };
    Canned::new(WORK)
        .start("research/market")
        .start("research/rivals")
        .at(1_000)
        .retry("research/rivals", 1_000, 1_500, "connection reset\nby peer")
        .at(1_200)
        .done_with("research/market", 1_200, usage)
        .at(2_500)
        .start("research/rivals")
        .at(2_600)
        .fail("research/rivals", 100, FailureClass::Failed, "exit code 1: \x1b[31mboom\nmore")
        .ask("gate/ok", "Ship it?")
        .at(4_000)
}

// covers: R8
#[test]
fn piped_output_is_a_plain_line_per_event() {
    let canned = story();
    insta::assert_snapshot!(shown(&canned, Mode::Lines, 0), @"
    run started: Payment processing · work · run_01JCANNED0000000000000TEST · 3 steps
    research/market started
    research/rivals started
    research/rivals retry in 2s (attempt 1 failed: transient: connection reset)
    research/market finished (1.2s, 1.5k tokens, $0.02)
    research/rivals started (attempt 2)
    research/rivals failed: exit code 1: boom
    phase research completed with failures (2.6s, 1 of 2 succeeded)
    gate/ok waiting for approval: Ship it? (sage approve payment-processing gate/ok)
    ");
}

// covers: R3, R8
#[test]
fn a_resumed_run_tells_only_what_is_new() {
    let canned = story().pause(sage_core::event::PauseReason::Approval);
    let old = canned.events.len() as u64;
    let canned = canned.at(9_000).resume().finish(Verdict::Degraded);
    insta::assert_snapshot!(shown(&canned, Mode::Lines, old), @"
    run resumed: 1 of 3 steps done
    run degraded (4.0s)
    ");
}

// covers: R8, P11
#[test]
fn json_has_every_event_and_the_groups() {
    let text = shown(&story().finish(Verdict::Degraded), Mode::Json, 0);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let expected = "run.started run.opened step.started step.started step.retried step.finished step.started \
                    step.finished group.completed step.started run.finished workflow.performance";
    assert_eq!(kinds.join(" "), expected);
    assert_eq!(lines[2]["step"], "research/market");
    assert_eq!(lines[2]["seq"], 3);
    assert_eq!(lines[2]["ts"], "2027-01-15T08:00:00.000Z");
    let group = &lines[8];
    assert_eq!((&group["group"], &group["duration"]), (&"research".into(), &2_600.into()));
    assert_eq!((&group["stagesCompleted"], &group["status"]), (&1.into(), &"completed".into()));
    assert_eq!(lines[11]["metrics"]["totalTime"], 4_000);
}

// covers: R8
#[test]
fn a_large_fan_out_is_told_in_tenths() {
    let yaml = "
name: fan
phases:
  - id: p
    operations: { id: each, type: shell, foreach: '.inputs.x', params: { run: 'true' } }
";
    let mut canned = Canned::new(yaml).fan("p/each", 30);
    for n in 0..30 {
        let step = format!("p/each[{n}]");
        canned = canned.start(&step);
        canned = if n == 7 {
            canned.fail(&step, 5, FailureClass::Failed, "exit code 1")
        } else {
            canned.done(&step, 5)
        };
    }
    insta::assert_snapshot!(shown(&canned, Mode::Lines, 2), @"
    p/each has 30 items
    p/each 3/30
    p/each 6/30
    p/each[7] failed: exit code 1
    p/each 8/30, 1 failed
    p/each 11/30, 1 failed
    p/each 14/30, 1 failed
    p/each 17/30, 1 failed
    p/each 20/30, 1 failed
    p/each 23/30, 1 failed
    p/each 26/30, 1 failed
    p/each 29/30, 1 failed
    phase p failed (0.0s, 29 of 30 succeeded)
    ");
    let mut canned = Canned::new(yaml).fan("p/each", 2).start("p/each[0]").done("p/each[0]", 5);
    canned = canned.start("p/each[1]").done("p/each[1]", 5);
    insta::assert_snapshot!(shown(&canned, Mode::Lines, 2), @"
    p/each has 2 items
    p/each[0] started
    p/each[0] finished (0.0s)
    p/each[1] started
    p/each[1] finished (0.0s)
    phase p completed (0.0s)
    ");
}

// covers: R8
#[test]
fn a_growing_journal_is_followed_until_the_run_ends() {
    let canned = story().finish(Verdict::Degraded);
    let mut written = Written::new();
    let (display, out) = written.show(Mode::Lines, Options { until_closed: true, ..Options::default() });
    written.write(&canned.events[..3]);
    out.wait_for("research/market started");
    assert!(!display.ended());
    written.write(&canned.events[3..6]);
    display.nudge();
    out.wait_for("research/market finished");
    written.write(&canned.events[6..]);
    display.wait();
    assert!(out.text().ends_with("run degraded (4.0s)\n"), "{}", out.text());
}

// covers: R8
#[test]
fn a_tail_that_was_cut_off_and_written_again_is_no_trouble() {
    let canned = story();
    let mut written = Written::new();
    written.write(&canned.events[..4]);
    let path = written.dir.path().join("run").join("journal.jsonl");
    let whole = std::fs::read(&path).unwrap();
    // The beginning of a record that never became durable.
    append(&path, b"{\"v\":1,\"seq\":5,\"epoch\":1,\"torn");
    let (display, out) = written.show(Mode::Lines, Options::default());
    out.wait_for("research/rivals started");
    std::fs::write(&path, &whole).unwrap();
    let mut other = Written::new();
    other.write(&canned.events[..4]);
    other.write(&canned.events[4..]);
    let all = std::fs::read(other.dir.path().join("run").join("journal.jsonl")).unwrap();
    append(&path, &all[whole.len()..]);
    out.wait_for("gate/ok waiting");
    display.finish();
    assert_eq!(out.text().matches("research/market started").count(), 1, "nothing is told twice");
}

fn append(path: &Path, bytes: &[u8]) {
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

// covers: R8
#[test]
fn a_damaged_journal_ends_nothing_but_the_telling() {
    let mut written = Written::new();
    written.write(&story().events[..4]);
    let path = written.dir.path().join("run").join("journal.jsonl");
    append(&path, b"not a record\n");
    let (display, out) = written.show(Mode::Lines, Options::default());
    out.wait_for("research/rivals started");
    display.finish();
    assert_eq!(out.text().lines().count(), 3);
}

// covers: R8
#[test]
fn an_edited_run_judges_its_phases_anew() {
    let yaml = "{name: one, phases: [{id: p, operations: {id: a, type: shell, params: {run: 'true'}}}]}";
    let canned = Canned::new(yaml).start("p/a").at(900).done("p/a", 900).finish(Verdict::Succeeded);
    let old = canned.events.len() as u64;
    let template = canned.run.template.clone();
    let edited = RunEdited { template, templates: Vec::new(), inputs: Default::default() };
    let canned = canned.at(2_000).event(edited).resume().start("p/a").at(2_500).done("p/a", 500);
    insta::assert_snapshot!(shown(&canned, Mode::Lines, old), @"
    template replaced: one
    run resumed: 0 of 1 step done
    p/a started
    p/a finished (0.5s)
    phase p completed (0.5s)
    ");
}

#[test]
fn a_closed_pipe_ends_the_display_and_nothing_else() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut written = Written::new();
    written.write(&story().events);
    let dir = written.dir.path().join("run");
    let display =
        Display::start_with(written.vfs.clone(), &dir, Mode::Lines, Options::default(), Box::new(Closed));
    display.wait();
}

#[test]
fn the_mode_follows_flags_then_the_terminal() {
    assert_eq!(Mode::choose(true, true, true), Mode::Json);
    assert_eq!(Mode::choose(false, true, true), Mode::Quiet);
    assert_eq!(Mode::choose(false, false, true), Mode::Tree);
    assert_eq!(Mode::choose(false, false, false), Mode::Lines);
}
