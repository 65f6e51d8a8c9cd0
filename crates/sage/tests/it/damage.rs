//! Lost and damaged journals and checkpoints: the run goes on from what is left and says so, never silently.
//!
//! Through the binary where a person would see it; in process, over copies of a reference run, where every
//! byte and every bit has its turn.

mod asks;
mod sweep;

use std::path::{Path, PathBuf};

use sage_core::event::Event;

use crate::dsl::Sage;

/// Two phases that are finished, and one that waits for a person: an open run with something to import.
const OPEN: &str = r#"
name: t
phases:
  - id: a
    operations: { id: one, type: shell, params: { run: "echo one >> ran; echo one" } }
  - id: b
    dependencies: [a]
    operations: { id: two, type: shell, params: { run: "echo two >> ran; head -c 100000 /dev/zero | tr '\\0' y" } }
  - id: c
    dependencies: [b]
    operations: { id: ask, type: approval, params: { message: "go on?" } }
  - id: d
    dependencies: [c]
    operations: { id: end, type: shell, params: { argv: [echo, '{{ steps["a/one"].result.stdout }}{{ steps["b/two"].result.stdout | length }}'] } }
"#;

struct Open {
    sage: Sage,
    dir: PathBuf,
}

impl Open {
    fn new() -> Open {
        let sage = Sage::new().template("t", OPEN);
        sage.sage("run x -t t").exit(4);
        let dir = sage.latest_dir("x");
        Open { sage, dir }
    }

    fn journal(&self) -> PathBuf {
        self.dir.join("journal.jsonl")
    }

    fn checkpoint(&self) -> PathBuf {
        self.sage.path(".sage/state/workflow-x.json")
    }

    fn backup(&self) -> PathBuf {
        self.sage.path(".sage/state/workflow-x.json.bak")
    }

    /// Goes on after the question, whatever was imported.
    #[track_caller]
    fn finish(&self) {
        self.sage.sage("approve x").exit(0);
        self.sage.sage("resume x").exit(0);
        assert_eq!(self.sage.lines("ran"), ["one", "two"], "finished phases did not run again");
        let end = self.sage.sage("result x d/end").exit(0).json();
        assert_eq!(end["stdout"], "one\n100000\n", "what was taken over is whole");
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x01;
    std::fs::write(path, bytes).unwrap();
}

// covers: R4, R5
#[test]
fn a_lost_journal_is_replaced_by_the_checkpoints_finished_phases() {
    let open = Open::new();
    std::fs::remove_file(open.journal()).unwrap();
    open.sage.sage("verify").exit(1);
    let told = open.sage.sage("resume x").exit(4);
    told.stderr_has("no journal").stderr_has("finished phases: a, b");
    let imported =
        open.sage.journal("x").records.iter().any(|entry| matches!(entry.event, Event::RunImported(_)));
    assert!(imported);
    open.finish();
}

// covers: R5, RELIABILITY 2
#[test]
fn a_journal_damaged_in_the_middle_is_kept_and_what_is_left_is_used() {
    let open = Open::new();
    let middle = std::fs::read(open.journal()).unwrap().len() / 2;
    flip(&open.journal(), middle);
    let damaged = std::fs::read(open.journal()).unwrap();
    open.sage.sage("status x").exit(1).stderr_has("damaged").stderr_has("sage repair x --dry-run");
    open.sage.sage("verify").exit(1).stdout_has("damaged");
    let told = open.sage.sage("resume x").exit(4);
    let kept = open.dir.join("quarantine/damaged-1.jsonl");
    told.stderr_has("damaged at line").stderr_has("kept: ").stderr_has(&kept.display().to_string());
    assert_eq!(std::fs::read(kept).unwrap(), damaged, "the damaged journal is as it was");
    open.finish();
}

// covers: R4, R5
#[test]
fn a_lost_checkpoint_is_painted_again_from_the_journal() {
    for with_backup in [true, false] {
        let open = Open::new();
        std::fs::remove_file(open.checkpoint()).unwrap();
        if !with_backup {
            std::fs::remove_file(open.backup()).unwrap();
        }
        open.sage.sage("status x").exit(0);
        open.sage.sage("list").exit(0).stdout_has("x ");
        open.finish();
        assert!(open.checkpoint().is_file());
        open.sage.sage("verify").exit(0);
    }
}

// covers: R4, RELIABILITY 2
#[test]
fn damaged_checkpoints_do_not_matter_while_the_journal_is_good() {
    let open = Open::new();
    flip(&open.checkpoint(), 40);
    open.sage.sage("verify").exit(1).stdout_has("checkpoint");
    open.sage.sage("resume x").exit(4).stderr_has("backup of the checkpoint");
    let both = Open::new();
    flip(&both.checkpoint(), 40);
    flip(&both.backup(), 40);
    both.sage.sage("verify").exit(1).stdout_has("checkpoint");
    both.sage.sage("resume x").exit(4);
    open.finish();
    both.finish();
    both.sage.sage("verify").exit(0);
}

// covers: R4, R5
#[test]
fn a_lost_journal_and_a_damaged_checkpoint_leave_the_backup() {
    let open = Open::new();
    std::fs::remove_file(open.journal()).unwrap();
    flip(&open.checkpoint(), 40);
    // How many phases the backup shows depends on when it was made.
    open.sage.sage("resume x").exit(4).stderr_has("backup").stderr_has("kept: ");
}

// covers: R4, R5
#[test]
fn with_everything_lost_it_says_so_and_runs_nothing() {
    let open = Open::new();
    std::fs::remove_file(open.journal()).unwrap();
    flip(&open.checkpoint(), 40);
    flip(&open.backup(), 40);
    let ran = open.sage.lines("ran");
    let outcome = open.sage.sage("resume x");
    assert!(matches!(outcome.code, 1 | 2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("error: "), "{}", outcome.stderr);
    assert_eq!(open.sage.lines("ran"), ran);
}

// covers: R5, RELIABILITY 1
#[test]
fn acknowledged_records_that_are_gone_are_noticed() {
    let open = Open::new();
    let bytes = std::fs::read(open.journal()).unwrap();
    let last_line = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    for cut in [last_line, last_line + 7] {
        std::fs::write(open.journal(), &bytes[..cut]).unwrap();
        open.sage.sage("verify").exit(1).stdout_has("acknowledged");
    }
    let told = open.sage.sage("resume x").exit(4);
    told.stderr_has("lost acknowledged records").stderr_has("kept: 2 finished steps");
    open.finish();
}

/// Looking is not resuming, but must not tell old news as if nothing were missing.
// covers: R5, RELIABILITY 1
#[test]
fn status_notices_that_acknowledged_records_are_gone() {
    let sage = Sage::new().template(
        "t",
        &OPEN.replace("type: approval, params: { message: \"go on?\" }", "type: sleep, params: { ms: 0 }"),
    );
    sage.sage("run x -t t").exit(0);
    let path = sage.latest_dir("x").join("journal.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    let half = bytes[..bytes.len() / 2].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    std::fs::write(&path, &bytes[..half]).unwrap();
    for command in ["status x", "result x", "explain x"] {
        let outcome = sage.sage(command);
        let told =
            outcome.code != 0 || outcome.stderr.contains("acknowledged") || outcome.stderr.contains("lost");
        assert!(
            told,
            "`sage {command}` shows an old state without a word:\n{}{}",
            outcome.stdout, outcome.stderr
        );
    }
}

// covers: R5, RELIABILITY 1
#[test]
fn a_torn_tail_is_kept_aside_and_reported() {
    let open = Open::new();
    let mut bytes = std::fs::read(open.journal()).unwrap();
    let whole = bytes.clone();
    bytes.extend_from_slice(b"{\"v\":1,\"seq\":99,\"epo");
    std::fs::write(open.journal(), &bytes).unwrap();
    open.sage.sage("status x").exit(0);
    open.sage.sage("verify").exit(0).stdout_has("unfinished write");
    open.sage.sage("resume x").exit(4).stderr_has("20 bytes").stderr_has("quarantine");
    let kept = std::fs::read_dir(open.dir.join("quarantine")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read(kept).unwrap(), b"{\"v\":1,\"seq\":99,\"epo");
    assert!(std::fs::read(open.journal()).unwrap().starts_with(&whole));
    open.finish();
    open.sage.sage("verify").exit(0);
}

// covers: R5, RELIABILITY 1
#[test]
fn a_torn_tail_of_a_finished_run_is_reported_too() {
    let sage =
        Sage::new().template("t", "name: t\nphases: [{id: a, operations: {type: sleep, params: {ms: 0}}}]\n");
    sage.sage("run x -t t").exit(0);
    let path = sage.latest_dir("x").join("journal.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"v\":1,\"se");
    std::fs::write(&path, bytes).unwrap();
    let outcome = sage.sage("resume x").exit(0);
    let cut = sage.latest_dir("x").join("quarantine").exists();
    assert!(
        !cut || outcome.stderr.contains("bytes"),
        "the tail was cut off without a word: {}",
        outcome.stderr
    );
}

// covers: R4, RELIABILITY 23
#[test]
fn a_checkpoint_of_a_newer_major_version_is_refused_clearly() {
    let open = Open::new();
    std::fs::remove_file(open.journal()).unwrap();
    let text = std::fs::read_to_string(open.checkpoint()).unwrap();
    let mut doc: serde_json::Value = serde_json::from_str(&text).unwrap();
    doc["version"] = "2.0".into();
    doc.as_object_mut().unwrap().remove("checksum");
    // A checksum that is right, so that the version is what is wrong.
    let sum = sage_core::digest::Digest::of(sage_core::digest::canonical(&doc).as_bytes());
    doc["checksum"] = sum.to_string().into();
    std::fs::write(open.checkpoint(), serde_json::to_vec_pretty(&doc).unwrap()).unwrap();
    let outcome = open.sage.sage("resume x");
    assert!(matches!(outcome.code, 1 | 2), "{}", outcome.stderr);
    outcome.stderr_has("newer");
}

// covers: R4, RELIABILITY 7
#[test]
fn an_old_but_valid_checkpoint_loses_nothing() {
    let open = Open::new();
    let old = std::fs::read(open.checkpoint()).unwrap();
    open.sage.sage("approve x").exit(0);
    open.sage.sage("resume x").exit(0);
    std::fs::write(open.checkpoint(), old).unwrap();
    open.sage.sage("resume x").exit(0);
    assert_eq!(open.sage.status("x")["status"], "completed");
    open.sage.journal("x").assert_nothing_repeated();
}

// covers: R4
#[test]
fn a_missing_or_damaged_blob_is_told() {
    for remove in [true, false] {
        let open = Open::new();
        let blobs = std::fs::read_dir(open.dir.join("blobs")).unwrap().map(|entry| entry.unwrap().path());
        let large: Vec<PathBuf> = blobs.filter(|path| path.metadata().unwrap().len() > 90_000).collect();
        assert!(!large.is_empty());
        for path in large {
            if remove { std::fs::remove_file(&path).unwrap() } else { flip(&path, 5000) }
        }
        open.sage.sage("verify").exit(1);
        open.sage.sage("result x b/two").exit(1).stderr_has("error: ");
    }
}
