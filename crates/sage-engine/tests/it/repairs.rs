//! Damaged journals: a record that cannot be read costs the step that it tells of, and nothing that is intact.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sage_core::event::{End, Event};
use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::checkpoint;
use sage_engine::journal::{Journal, Sealing};
use sage_engine::open::{Notice, OpenError, ResumeRequest, Resumed};
use sage_engine::repair::Repaired;
use sage_engine::sim::SimFs;
use sage_engine::vfs::Vfs;

use crate::crashes::{INNER, results};
use crate::world::{World, key};

const SUCCEEDED: Status = Status::Finished(Verdict::Succeeded);

/// Steps in all forms, then a question: an open run with much to keep.
const TEXT: &str = "
name: t
phases:
  - id: first
    operations:
      - { id: a, type: shell, params: { run: 'ms=2' } }
      - { id: big, type: shell, params: { run: 'big=80000' } }
      - { id: ok, type: approval, params: { message: 'sure?', deadline: 5, default: approve } }
      - { id: nap, type: sleep, params: { ms: 3 } }
  - id: fan
    dependencies: [first]
    operations: { id: each, type: workflow, foreach: '[1, 2]', params: { template: inner, inputs: { n: '{{ item }}' } } }
  - id: uses
    dependencies: [fan]
    operations:
      - { id: one, type: shell, params: { run: 'ms=1', env: { N: '{{ steps[\"first/big\"].result.stdout | length }}' } } }
      - { id: flaky, type: shell, retry: { attempts: 2, delay: 1, jitter: false }, params: { run: 'fail<2' } }
  - id: gate
    dependencies: [uses]
    operations: { id: ask, type: approval, params: { message: go } }
  - id: last
    dependencies: [gate]
    operations: { id: end, type: shell, params: { run: '', env: { N: '{{ steps[\"fan/each\"].result | length }}' } } }
";

struct Damaged {
    disk: SimFs,
    world: World,
    dir: PathBuf,
    begun: BTreeMap<String, u32>,
}

impl Damaged {
    fn new() -> Damaged {
        let disk = SimFs::new(1);
        let world = World::new(Arc::new(disk.clone())).with("inner", INNER);
        world.run(TEXT);
        let dir = world.live(async || {
            let engine = world.engine();
            engine.project.run_dir(&engine.latest("f").unwrap())
        });
        let begun = world.steps.begun.lock().unwrap().clone();
        Damaged { disk, world, dir, begun }
    }

    fn journal(&self) -> Vec<u8> {
        self.disk.read(&self.dir.join("journal.jsonl"), u64::MAX - 1).unwrap()
    }

    fn put(&self, bytes: &[u8]) {
        self.disk.plant(&self.dir.join("journal.jsonl"), bytes).unwrap();
    }

    fn checkpoint(&self) -> PathBuf {
        self.world.live(async || self.world.engine().project.checkpoint("f"))
    }

    fn without_checkpoint(&self) {
        let path = self.checkpoint();
        for path in [checkpoint::backup_path(&path), path] {
            let _ = self.disk.remove_file(&path);
        }
    }

    /// Resumes until the question is asked again, answers it, and drives the run to its end.
    fn go_on(&self) -> Result<(Run, Option<Repaired>), OpenError> {
        let (run, repaired) = self.resume()?;
        if run.status == SUCCEEDED {
            return Ok((run, repaired));
        }
        let signal = sage_engine::control::Signal::approve("gate/ask", "tester");
        self.world.live(async || self.world.engine().deliver("f", signal).await)?;
        Ok((self.resume()?.0, repaired))
    }

    fn resume(&self) -> Result<(Run, Option<Repaired>), OpenError> {
        self.world.live(async || match self.world.engine().resume("f", ResumeRequest::default())? {
            Resumed::Owned(owned) => {
                let repaired = owned.notices.iter().find_map(|notice| match notice {
                    Notice::Repaired(repaired) => Some((**repaired).clone()),
                    _ => None,
                });
                Ok((owned.drive().await.unwrap(), repaired))
            }
            Resumed::Complete { run, .. } => Ok((*run, None)),
        })
    }

    /// Of the template's own steps: what a checkpoint knows of a fan-out is its list.
    fn results(&self, run: &Run) -> BTreeMap<String, serde_json::Value> {
        let mut all = results(&self.world, run);
        all.retain(|path, _| path.matches('/').count() == 1 && !path.contains('['));
        all
    }

    /// Steps that were begun again since the damage.
    fn again(&self) -> Vec<String> {
        let now = self.world.steps.begun.lock().unwrap().clone();
        let more =
            |(path, times): &(&String, &u32)| self.begun.get(*path).is_some_and(|before| *times > before);
        now.iter().filter(more).map(|(path, _)| path.clone()).collect()
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

fn event_of(line: &[u8]) -> Event {
    let text = std::str::from_utf8(line).unwrap();
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    Event::parse(value["kind"].as_str().unwrap(), &value["data"].to_string()).unwrap()
}

/// The step that a record tells of.
fn step_of(event: &Event) -> Option<String> {
    match event {
        Event::StepStarted(e) => Some(e.step.to_string()),
        Event::StepFinished(e) => Some(e.step.to_string()),
        Event::StepRetried(e) => Some(e.step.to_string()),
        Event::StepAnswered(e) => Some(e.step.to_string()),
        _ => None,
    }
}

fn reference() -> BTreeMap<String, serde_json::Value> {
    let whole = Damaged::new();
    let (run, repaired) = whole.go_on().unwrap();
    assert_eq!((run.status, repaired), (SUCCEEDED, None));
    whole.results(&run)
}

/// Each record in turn, with and without a checkpoint beside it.
// covers: R4, R5, RELIABILITY 2
#[test]
fn a_damaged_record_costs_its_own_step_and_nothing_else() {
    let expected = reference();
    let records = lines(&Damaged::new().journal()).len();
    for with_checkpoint in [true, false] {
        for at in 0..records {
            let damaged = Damaged::new();
            let journal = damaged.journal();
            let all = lines(&journal);
            let hit = event_of(all[at]);
            let mut bytes = journal.clone();
            let offset: usize = all[..at].iter().map(|line| line.len()).sum();
            bytes[offset + all[at].len() / 2] ^= 0x01;
            damaged.put(&bytes);
            if !with_checkpoint {
                damaged.without_checkpoint();
            }
            let what = format!("record {} ({}), checkpoint: {with_checkpoint}", at + 1, hit.kind());
            let (run, repaired) = match damaged.go_on() {
                Err(error) if at == 0 && !with_checkpoint => {
                    // Nothing says with which template it began.
                    assert!(
                        matches!(
                            error,
                            OpenError::Garbled { .. } | OpenError::Unknown(_) | OpenError::Lost { .. }
                        ),
                        "{what}: {error}"
                    );
                    continue;
                }
                result => result.unwrap_or_else(|error| panic!("{what}: {error}")),
            };
            assert_eq!(run.status, SUCCEEDED, "{what}: {:?}", sage_core::wire::errors(&run));
            assert_eq!(damaged.results(&run), expected, "{what}");
            let last = at + 1 == records;
            assert!(repaired.is_some() || (last && !with_checkpoint), "{what}: the repair is told");
            let own = step_of(&hit);
            let again = damaged.again();
            assert!(again.iter().all(|path| Some(path) == own.as_ref()), "{what}: {again:?} ran again");
            let verified = damaged.world.live(async || damaged.world.engine().verify(None).unwrap());
            assert!(verified.iter().all(|run| run.problems.is_empty()), "{what}: {verified:?}");
        }
    }
}

/// Nothing of these is lost at all: every record is there, somewhere.
// covers: R4, R5
#[test]
fn a_journal_that_was_only_rewritten_loses_nothing() {
    let expected = reference();
    type Change = fn(&[u8]) -> Vec<u8>;
    let changes: [(&str, Change); 8] = [
        ("CRLF", |bytes| String::from_utf8_lossy(bytes).replace('\n', "\r\n").into_bytes()),
        ("BOM", |bytes| [b"\xef\xbb\xbf".as_slice(), bytes].concat()),
        ("garbage lines", |bytes| lines(bytes).join(b"garbage\n".as_slice())),
        ("blank lines", |bytes| lines(bytes).join(b"\n".as_slice())),
        ("two lines swapped", |bytes| {
            let mut all = lines(bytes);
            all.swap(5, 9);
            all.concat()
        }),
        ("a line twice", |bytes| {
            let mut all = lines(bytes);
            all.insert(7, all[6]);
            all.concat()
        }),
        ("lines joined", |bytes| {
            let at = lines(bytes)[..8].concat().len() - 1;
            let mut bytes = bytes.to_vec();
            bytes[at] = b'#';
            bytes
        }),
        ("reversed", |bytes| {
            let mut all = lines(bytes);
            all.reverse();
            all.concat()
        }),
    ];
    for (what, change) in changes {
        for with_checkpoint in [true, false] {
            let damaged = Damaged::new();
            damaged.put(&change(&damaged.journal()));
            if !with_checkpoint {
                damaged.without_checkpoint();
            }
            let verified = damaged.world.live(async || damaged.world.engine().verify(None).unwrap());
            assert!(verified.iter().any(|run| !run.problems.is_empty()), "{what}: {verified:?}");
            // A run whose first record is not where it should be is found by its checkpoint only.
            let (run, repaired) = match damaged.go_on() {
                Err(OpenError::Unknown(_) | OpenError::Garbled { .. }) if !with_checkpoint => continue,
                result => result.unwrap_or_else(|error| panic!("{what}: {error}")),
            };
            assert_eq!(run.status, SUCCEEDED, "{what}");
            assert_eq!(damaged.results(&run), expected, "{what}");
            assert_eq!(damaged.again(), [""; 0], "{what}");
            assert!(repaired.unwrap().aside.is_some(), "{what}: the damaged file is kept");
        }
    }
}

/// What was acknowledged is another record now: none of the journal is believed, the checkpoint is.
// covers: R4
#[test]
fn a_journal_that_contradicts_what_was_acknowledged_is_not_believed() {
    let damaged = Damaged::new();
    let journal = damaged.journal();
    // Sealed as ours: only the acknowledged record tells.
    let Event::RunStarted(started) = event_of(lines(&journal)[0]) else { panic!("no start") };
    let mut forged = Journal::new(&Sealing::new(Some(&key()), &started.run));
    let mut bytes = Vec::new();
    for line in lines(&journal) {
        let mut event = event_of(line);
        if let Event::StepFinished(finished) = &mut event
            && &*finished.step == "first/a"
            && let End::Succeeded { artifacts, .. } = &mut finished.end
        {
            artifacts.push("forged".into());
        }
        forged.append(event.kind(), 1_000_000, &event).unwrap();
        bytes.extend(forged.take_batch().unwrap().bytes);
    }
    damaged.put(&bytes);
    let verified = damaged.world.live(async || damaged.world.engine().verify(None).unwrap());
    assert!(verified[0].problems[0].to_string().contains("acknowledged"), "{verified:?}");
    let (run, repaired) = damaged.go_on().unwrap();
    assert_eq!(run.status, SUCCEEDED);
    let repaired = repaired.unwrap();
    assert_eq!((repaired.steps, repaired.phases.len()), (0, 3), "{repaired:?}");
    let forged = run.live_steps().any(|step| format!("{:?}", step.output).contains("forged"));
    assert!(!forged, "nothing of the forged journal was taken over");
}

/// Killed at any moment, a repair is finished by the next one.
// covers: R5
#[test]
fn a_power_cut_in_a_repair_loses_nothing() {
    let expected = reference();
    for at in 0..60 {
        let damaged = Damaged::new();
        let mut bytes = damaged.journal();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        damaged.put(&bytes);
        damaged.disk.fail_at(damaged.disk.ops() + at, sage_engine::sim::Fault::Crash);
        let first = damaged
            .world
            .live(async || damaged.world.engine().resume("f", ResumeRequest::default()).map(drop));
        damaged.disk.restart();
        damaged.disk.clear_faults();
        let (run, _) = damaged.go_on().unwrap_or_else(|error| panic!("cut at {at} ({first:?}): {error}"));
        assert_eq!(run.status, SUCCEEDED, "cut at {at}");
        assert_eq!(damaged.results(&run), expected, "cut at {at}");
        assert!(damaged.again().len() <= 1, "cut at {at}: {:?}", damaged.again());
    }
}

/// What people decided after the damage is kept: another template, what shall run again.
// covers: R5
#[test]
fn edits_and_rewinds_after_the_damage_are_kept() {
    let disk = SimFs::new(1);
    let world = World::new(Arc::new(disk.clone()));
    let text = |last: &str| {
        format!(
            "
name: t
phases:
  - id: a
    operations:
      - {{ id: one, type: shell, params: {{ run: 'ms=1' }} }}
      - {{ id: two, type: shell, params: {{ run: 'ms=2' }} }}
  - id: b
    dependencies: [a]
    operations: {{ id: three, type: shell, params: {{ run: '{last}' }} }}
  - id: gate
    dependencies: [b]
    operations: {{ id: ask, type: approval, params: {{ message: go }} }}
"
        )
    };
    world.run(&text("old"));
    let edit = world.edit(&text("new"));
    world.live(async || world.resume_with(edit).unwrap().unwrap().drive().await.unwrap());
    let rewind = ResumeRequest { from: Some("b/three".into()), ..ResumeRequest::default() };
    world.live(async || world.resume_with(rewind).unwrap().unwrap().drive().await.unwrap());
    assert_eq!((world.begun("a/one"), world.begun("b/three")), (1, 3));
    let dir = world.live(async || {
        let engine = world.engine();
        engine.project.run_dir(&engine.latest("f").unwrap())
    });
    let path = dir.join("journal.jsonl");
    let journal = disk.read(&path, u64::MAX - 1).unwrap();
    let all = lines(&journal);
    // The end of `a/one`, long before the edit.
    let hit = all.iter().position(
        |line| matches!(event_of(line), Event::StepFinished(finished) if &*finished.step == "a/one"),
    );
    let offset: usize = all[..hit.unwrap()].iter().map(|line| line.len()).sum();
    let mut bytes = journal.clone();
    bytes[offset + 200] ^= 0x04;
    disk.plant(&path, &bytes).unwrap();
    let run = world.go_on();
    assert!(run.template.text.contains("new"), "the edit is kept");
    assert_eq!((world.begun("a/two"), world.begun("b/three")), (1, 3), "what is intact is not run again");
    let stdout = run.find("b/three").and_then(|id| run.step(id).output.clone());
    assert!(format!("{stdout:?}").contains("new"), "{stdout:?}");
}
