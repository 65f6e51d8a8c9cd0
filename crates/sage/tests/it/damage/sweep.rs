//! Every byte and every bit of a finished reference run, in process, on copies in memory-backed storage.
//!
//! What comes out of a damaged copy is the run as it was, or an error, or a notice: anything else is silent.

use std::path::{Path, PathBuf};

use sage_core::run::Run;
use sage_core::wire::StatusView;
use sage_engine::open::{Engine, Notice, OpenError, ResumeRequest, Resumed};
use sage_engine::run_loop::CommitMode;

use crate::dsl::{Random, Sage, engine, long};

const REFERENCE: &str = "name: t
phases:
- {id: a, operations: {id: x, type: shell, params: {run: echo 1}}}
- {id: b, dependencies: [a], operations: {id: y, type: shell, params: {run: echo 2}}}
";

/// The files of a finished run and what it folds to.
struct Reference {
    sage: Sage,
    /// Copies lie here; in memory where the system has such a place, because every copy is synced.
    scratch: tempfile::TempDir,
    run_id: String,
    journal: Vec<u8>,
    checkpoint: Vec<u8>,
    backup: Vec<u8>,
    truth: String,
}

/// What a damaged copy gave.
#[derive(Debug)]
enum Told {
    Same,
    Error(#[expect(dead_code, reason = "shown when a test fails")] String),
    /// Another state than before, and it is said.
    Notice(#[expect(dead_code, reason = "shown when a test fails")] Vec<Notice>),
    Silent(String),
}

impl Reference {
    fn new() -> Reference {
        let sage = Sage::new().template("t", REFERENCE);
        sage.sage("run x -t t").exit(0);
        let dir = sage.latest_dir("x");
        let memory = Path::new("/dev/shm");
        let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let read = |path: PathBuf| std::fs::read(path).unwrap();
        let state = sage.path(".sage/state");
        let truth = picture(&sage.engine().read("x").unwrap().run);
        let reference = Reference {
            scratch: scratch.unwrap(),
            run_id: dir.file_name().unwrap().to_str().unwrap().to_owned(),
            journal: read(dir.join("journal.jsonl")),
            checkpoint: read(state.join("workflow-x.json")),
            backup: read(state.join("workflow-x.json.bak")),
            truth,
            sage,
        };
        assert!(matches!(reference.resume(&reference.copy(Damage::None)), Told::Same));
        reference
    }

    fn copy(&self, damage: Damage<'_>) -> PathBuf {
        let root = self.scratch.path().join("copy");
        let _ = std::fs::remove_dir_all(&root);
        let state = root.join(".sage/state");
        let dir = state.join("runs").join(&self.run_id);
        std::fs::create_dir_all(&dir).unwrap();
        let write = |path: PathBuf, bytes: &[u8]| std::fs::write(path, bytes).unwrap();
        let (mut journal, mut checkpoint, mut backup) =
            (Some(&*self.journal), Some(&*self.checkpoint), Some(&*self.backup));
        match damage {
            Damage::None => {}
            Damage::Journal(bytes) => journal = Some(bytes),
            Damage::JournalAlone(bytes) => (journal, checkpoint, backup) = (Some(bytes), None, None),
            Damage::CheckpointAlone(bytes) => (journal, checkpoint, backup) = (None, Some(bytes), None),
        }
        journal.inspect(|bytes| write(dir.join("journal.jsonl"), bytes));
        checkpoint.inspect(|bytes| write(state.join("workflow-x.json"), bytes));
        backup.inspect(|bytes| write(state.join("workflow-x.json.bak"), bytes));
        root
    }

    fn engine(&self, root: &Path) -> Engine {
        Engine { commit: CommitMode::Inline, key: self.sage.key(), ..engine(root) }
    }

    /// What `sage resume` would do with it.
    fn resume(&self, root: &Path) -> Told {
        match self.engine(root).resume("x", ResumeRequest::default()) {
            Ok(Resumed::Complete { run, notices }) if notices.iter().all(about_the_checkpoint) => {
                self.compare(&run)
            }
            Ok(Resumed::Complete { notices, .. }) => Told::Notice(notices),
            Ok(Resumed::Owned(owned)) if owned.notices.is_empty() => {
                Told::Silent(picture(owned.run_loop.run()))
            }
            Ok(Resumed::Owned(owned)) => Told::Notice(owned.notices),
            Err(error) => Told::Error(error.to_string()),
        }
    }

    /// What `sage status` would show.
    fn read(&self, root: &Path) -> Told {
        match self.engine(root).read("x") {
            Ok(snapshot) => self.compare(&snapshot.run),
            Err(error) => Told::Error(error.to_string()),
        }
    }

    fn compare(&self, run: &Run) -> Told {
        let found = picture(run);
        if found == self.truth { Told::Same } else { Told::Silent(found) }
    }

    /// As `copy(Damage::Journal(..))`, on the copy that is there: reading changes nothing else.
    fn damage_journal(&self, root: &Path, bytes: &[u8]) {
        let path = root.join(".sage/state/runs").join(&self.run_id).join("journal.jsonl");
        std::fs::write(path, bytes).unwrap();
    }

    fn damage_checkpoint(&self, root: &Path, bytes: &[u8]) {
        std::fs::write(root.join(".sage/state/workflow-x.json"), bytes).unwrap();
    }
}

/// Each bit of each byte.
fn flips(bytes: &[u8]) -> impl Iterator<Item = (usize, u8, Vec<u8>)> {
    let bytes = bytes.to_vec();
    (0..bytes.len() * 8).map(move |n| {
        let mut flipped = bytes.clone();
        flipped[n / 8] ^= 1 << (n % 8);
        (n / 8, 1 << (n % 8), flipped)
    })
}

/// Each byte, with another bit for each; each bit of each byte if there is time.
fn some_flips(bytes: &[u8]) -> impl Iterator<Item = (usize, u8, Vec<u8>)> {
    flips(bytes).filter(|(at, bit, _)| long() || *bit == 1 << ((at * 3 + 1) % 8))
}

#[derive(Clone, Copy)]
enum Damage<'b> {
    None,
    Journal(&'b [u8]),
    /// Without checkpoints: nothing says how far the journal went.
    JournalAlone(&'b [u8]),
    CheckpointAlone(&'b [u8]),
}

/// All that people see of a run, with its results.
fn picture(run: &Run) -> String {
    let results: Vec<String> = run
        .steps
        .iter()
        .map(|step| format!("{} {:?}", step.path, step.output.as_ref().map(|output| output.sha())))
        .collect();
    format!("{} {results:?}", serde_json::to_string(&StatusView::of(run, 0)).unwrap())
}

/// Counts, and fails with the first of what was silent.
#[derive(Default)]
struct Tally {
    same: usize,
    errors: usize,
    notices: usize,
    silent: Vec<String>,
}

impl Tally {
    fn add(&mut self, what: impl FnOnce() -> String, told: Told) {
        match told {
            Told::Same => self.same += 1,
            Told::Error(_) => self.errors += 1,
            Told::Notice(_) => self.notices += 1,
            Told::Silent(found) => self.silent.push(format!("{}: {found}", what())),
        }
    }

    #[track_caller]
    fn done(self, what: &str) {
        let Tally { same, errors, notices, silent } = self;
        let all = same + errors + notices + silent.len();
        println!(
            "{what}: {all} copies, {same} same, {errors} errors, {notices} notices, {} silent",
            silent.len()
        );
        assert!(silent.is_empty(), "{what}: {} of {all} are silent, the first: {}", silent.len(), silent[0]);
    }
}

// covers: R5, RELIABILITY 1
#[test]
fn a_journal_cut_at_any_byte_is_never_resumed_silently() {
    let reference = Reference::new();
    let mut tally = Tally::default();
    for cut in 0..reference.journal.len() {
        let told = reference.resume(&reference.copy(Damage::Journal(&reference.journal[..cut])));
        tally.add(|| format!("cut at {cut}"), told);
    }
    tally.done("journal cut at each byte, resumed");
}

// covers: R5, RELIABILITY 1
#[test]
fn a_journal_cut_at_any_byte_is_never_shown_silently() {
    let reference = Reference::new();
    let mut tally = Tally::default();
    let root = reference.copy(Damage::None);
    for cut in 0..reference.journal.len() {
        reference.damage_journal(&root, &reference.journal[..cut]);
        tally.add(|| format!("cut at {cut}"), reference.read(&root));
    }
    tally.done("journal cut at each byte, read");
}

/// Nothing but the journal is left: what was cut off in the middle of a record is a torn tail.
// covers: R5, RELIABILITY 1, 9
#[test]
fn a_cut_journal_without_checkpoint_reports_its_torn_tail() {
    let reference = Reference::new();
    let mut tally = Tally::default();
    for cut in 0..reference.journal.len() {
        let bytes = &reference.journal[..cut];
        // At the end of a record nothing is torn: this is a run that was killed there.
        let whole = bytes.is_empty() || bytes.ends_with(b"\n");
        let told = reference.resume(&reference.copy(Damage::JournalAlone(bytes)));
        match told {
            Told::Silent(_) if whole => tally.same += 1,
            told => tally.add(|| format!("cut at {cut}"), told),
        }
    }
    tally.done("journal cut at each byte without checkpoint, resumed");
}

// covers: R5, RELIABILITY 2, 5, 6
#[test]
fn a_journal_with_any_bit_flipped_is_never_resumed_silently() {
    let reference = Reference::new();
    let mut tally = Tally::default();
    for (at, bit, flipped) in some_flips(&reference.journal) {
        let told = reference.resume(&reference.copy(Damage::Journal(&flipped)));
        tally.add(|| format!("bit {bit:#04x} of byte {at}"), told);
    }
    tally.done("journal with each bit flipped, resumed");
}

// covers: R5, RELIABILITY 2
#[test]
fn a_journal_with_any_bit_flipped_is_never_shown_silently() {
    let reference = Reference::new();
    let mut tally = Tally::default();
    let root = reference.copy(Damage::None);
    for (at, bit, flipped) in flips(&reference.journal) {
        reference.damage_journal(&root, &flipped);
        tally.add(|| format!("bit {bit:#04x} of byte {at}"), reference.read(&root));
    }
    tally.done("journal with each bit flipped, read");
}

// covers: R4, RELIABILITY 1, 2
#[test]
fn a_damaged_checkpoint_never_changes_what_the_journal_says() {
    let reference = Reference::new();
    let mut tally = Tally::default();
    let root = reference.copy(Damage::None);
    for cut in 0..reference.checkpoint.len() {
        reference.damage_checkpoint(&root, &reference.checkpoint[..cut]);
        tally.add(|| format!("read, cut at {cut}"), reference.read(&root));
        tally.add(|| format!("resumed, cut at {cut}"), reference.resume(&root));
    }
    for (at, bit, flipped) in some_flips(&reference.checkpoint) {
        reference.damage_checkpoint(&root, &flipped);
        tally.add(|| format!("bit {bit:#04x} of byte {at}, read"), reference.read(&root));
        tally.add(|| format!("bit {bit:#04x} of byte {at}, resumed"), reference.resume(&root));
    }
    assert_eq!((tally.errors, tally.notices), (0, 0), "the journal is whole");
    tally.done("checkpoint cut at each byte and with each bit flipped");
}

/// Without a journal the checkpoint is all there is: it is whole, or it is refused.
// covers: R4, RELIABILITY 2
#[test]
fn a_damaged_checkpoint_is_never_imported() {
    let reference = Reference::new();
    let whole = sage_engine::checkpoint::open(&reference.checkpoint).unwrap();
    let mut refused = 0;
    let mut same = 0;
    let cuts = (0..reference.checkpoint.len()).map(|cut| (cut, 0, reference.checkpoint[..cut].to_vec()));
    for (at, bit, bytes) in cuts.chain(flips(&reference.checkpoint)) {
        match sage_engine::checkpoint::open(&bytes) {
            Ok(doc) => {
                assert_eq!(doc, whole, "bit {bit:#04x} of byte {at}");
                same += 1;
            }
            Err(_) => refused += 1,
        }
    }
    // And a few all the way: what is refused is not gone on from.
    let mut random = Random::new(3);
    for _ in 0..40 {
        let mut bytes = reference.checkpoint.clone();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        let root = reference.copy(Damage::CheckpointAlone(&bytes));
        match reference.engine(&root).resume("x", ResumeRequest::default()) {
            Err(OpenError::Lost { .. } | OpenError::Garbled { .. }) => {}
            Ok(Resumed::Owned(owned)) => {
                assert!(matches!(owned.notices[..], [.., Notice::Repaired(_)]), "byte {at}")
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
    println!("checkpoint alone: {refused} damaged copies refused, {same} with the same content");
}

// covers: R5, RELIABILITY 4
#[test]
fn records_that_are_deleted_doubled_or_swapped_are_noticed() {
    let reference = Reference::new();
    let lines: Vec<&[u8]> = reference.journal.split_inclusive(|&byte| byte == b'\n').collect();
    let mut tally = Tally::default();
    let mut add = |what: String, lines: &[&[u8]]| {
        let root = reference.copy(Damage::Journal(&lines.concat()));
        tally.add(|| format!("{what}, read"), reference.read(&root));
        tally.add(|| format!("{what}, resumed"), reference.resume(&root));
    };
    for n in 0..lines.len() {
        let mut changed = lines.clone();
        let line = changed.remove(n);
        if n + 1 < lines.len() {
            add(format!("record {n} deleted"), &changed);
        }
        changed.insert(n, line);
        changed.insert(n, line);
        add(format!("record {n} doubled"), &changed);
        for other in 0..n {
            let mut swapped = lines.clone();
            swapped.swap(n, other);
            add(format!("records {other} and {n} swapped"), &swapped);
        }
    }
    tally.done("records deleted, doubled, swapped");
}

// covers: R5, RELIABILITY 1
#[test]
fn a_sample_of_cuts_through_the_binary() {
    let reference = Reference::new();
    let mut random = Random::new(40);
    let path = reference.sage.latest_dir("x").join("journal.jsonl");
    let state = reference.sage.path(".sage/state");
    for _ in 0..40 {
        let cut = random.below(reference.journal.len() as u64) as usize;
        std::fs::write(&path, &reference.journal[..cut]).unwrap();
        std::fs::write(state.join("workflow-x.json"), &reference.checkpoint).unwrap();
        std::fs::write(state.join("workflow-x.json.bak"), &reference.backup).unwrap();
        let outcome = reference.sage.sage("resume x --quiet");
        assert!(matches!(outcome.code, 0 | 1), "cut at {cut}: {} {}", outcome.code, outcome.stderr);
        assert!(
            outcome.stderr.contains("warning: ") || outcome.stderr.contains("error: "),
            "cut at {cut}: silent"
        );
        // What was imported lies beside; it would be newer than the copy that comes next.
        for entry in std::fs::read_dir(state.join("runs")).unwrap().flatten() {
            if entry.file_name() != reference.run_id.as_str() {
                std::fs::remove_dir_all(entry.path()).unwrap();
            }
        }
    }
}

/// That the checkpoint's backup was used says nothing against the run.
fn about_the_checkpoint(notice: &Notice) -> bool {
    matches!(notice, Notice::CheckpointFromBackup(_) | Notice::CheckpointWritten(_))
}
