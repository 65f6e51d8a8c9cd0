//! Reading past damage, and journals whose name is taken away while they are written.

use super::*;
use crate::lock::{FeatureLock, Owner};
use crate::project::Project;
use crate::vfs::DiskFs;

fn salvaged(bytes: &[u8], watermark: Option<Head>) -> Salvage {
    let sim = SimFs::new(0);
    sim.plant(&file(), bytes).unwrap();
    salvage(&sim, dir(), watermark, &sealing()).unwrap()
}

/// Numbers of the records that still chain, and of those after a gap. None of them was never written.
fn numbers(reference: &Reference, salvage: &Salvage) -> (Vec<u64>, Vec<u64>) {
    let mut chained = Vec::new();
    let check = |record: &Record<'_>| {
        let value: Value = serde_json::from_str(record.data).unwrap();
        assert_eq!(value, reference.values[record.seq as usize - 1], "a record that was never written");
        record.seq
    };
    let each = salvage.each_chained(|record| -> Result<(), JournalError> {
        chained.push(check(&record));
        Ok(())
    });
    each.unwrap();
    let loose = salvage.loose.iter().map(|piece| check(&piece.record().unwrap())).collect();
    (chained, loose)
}

// covers: R4, RELIABILITY 2
#[test]
fn a_flipped_bit_costs_one_record_at_most() {
    let reference = Reference::new(&[1, 3, 1, 2, 1], 3);
    for at in 0..reference.bytes.len() {
        for bit in [0, 3, 5] {
            let mut bytes = reference.bytes.clone();
            bytes[at] ^= 1 << bit;
            let (chained, loose) = numbers(&reference, &salvaged(&bytes, None));
            let found = chained.len() + loose.len();
            assert!(found >= reference.len() - 1, "bit {bit} of byte {at}: {chained:?}, {loose:?}");
            // A line end or a mark between two records is part of neither.
            let between = reference.starts.contains(&(at + 1))
                || (reference.starts.contains(&at) && reference.bytes[at] == b' ');
            assert!(!between || found == reference.len(), "bit {bit} of byte {at}: {chained:?}, {loose:?}");
        }
    }
}

// covers: R4
#[test]
fn records_are_found_whatever_became_of_the_lines_around_them() {
    let reference = Reference::new(&[1, 2, 1, 1], 3);
    let all: Vec<u64> = (1..=reference.len() as u64).collect();
    let text = String::from_utf8(reference.bytes.clone()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut reversed = lines.clone();
    reversed.reverse();
    let cases = [
        text.replace('\n', "\r\n"),
        format!("\u{feff}{text}"),
        reversed.concat(),
        lines.iter().map(|line| line.repeat(2)).collect(),
        lines.join("not a record\n"),
        text.replace('\n', "\n\n"),
        text.trim_end().to_string(),
    ];
    for case in cases {
        assert_eq!(numbers(&reference, &salvaged(case.as_bytes(), None)), (all.clone(), vec![]), "{case}");
    }
    let without_second = [lines[0], lines[2], lines[3], lines[4]].concat();
    assert_eq!(numbers(&reference, &salvaged(without_second.as_bytes(), None)), (vec![1], vec![3, 4, 5]));
}

// covers: R4
#[test]
fn of_two_records_with_one_number_the_one_that_chains_is_taken() {
    let reference = Reference::new(&[1, 1, 1], 3);
    let mut other = Journal::new(&sealing());
    other.append("step.done", 7, &json!({"step": "other"})).unwrap();
    other.append("step.done", 7, &json!({"step": "other"})).unwrap();
    let text = String::from_utf8(other.take_batch().unwrap().bytes).unwrap();
    let foreign = text.lines().nth(1).unwrap().trim_start();
    let mut bytes = reference.line(0).to_vec();
    bytes.extend_from_slice(format!("{foreign}\n").as_bytes());
    bytes.extend_from_slice(reference.line(1));
    bytes.extend_from_slice(reference.line(2));
    assert_eq!(numbers(&reference, &salvaged(&bytes, None)), (vec![1, 2, 3], vec![]));
}

// covers: R4
#[test]
fn what_contradicts_an_acknowledged_record_is_not_believed() {
    let reference = Reference::new(&[1, 1, 1, 1], 3);
    let other = Reference::new(&[1, 1, 1, 1], 4);
    for seq in 1..=4 {
        let watermark = Some(reference.heads[seq - 1]);
        assert_eq!(salvaged(&reference.bytes, watermark).head(), reference.head());
        let forged = salvaged(&other.bytes, watermark);
        assert_eq!((forged.head(), forged.loose.len()), (Head::EMPTY, 0));
        assert_eq!(judge(&other, &other.bytes, watermark), Outcome::LostAcked);
    }
}

/// A repair says what it stands for: then the old watermark is met.
// covers: R4
#[test]
fn a_record_that_replaces_the_acknowledged_one_meets_the_watermark() {
    let reference = Reference::new(&[1, 1, 1, 1], 3);
    let lost = reference.head();
    let mut bytes =
        Draft::after(&sealing(), reference.heads[1], 2, reference.bytes[..reference.starts[2]].to_vec());
    let replaces = json!({"from": "checkpoint", "phases": {}, "replaces": lost});
    bytes.add("run.imported", 9, &replaces).unwrap();
    let sim = SimFs::new(0);
    sim.plant(&file(), &bytes.bytes).unwrap();
    let looked = |watermark| check(&sim, dir(), watermark, |_| Ok::<_, JournalError>(())).map(|c| c.head.seq);
    assert_eq!(looked(Some(lost)).unwrap(), 3);
    assert!(matches!(looked(Some(reference.heads[2])), Err(JournalError::LostAcked { .. })));
}

// covers: R4
#[test]
fn an_empty_journal_is_damage_once_the_run_has_begun() {
    for begun in [false, true] {
        for bytes in [&b""[..], b"garbage", b"{\"v\":1,\"seq\":1,\"epoch"] {
            let sim = SimFs::new(0);
            sim.plant(&file(), bytes).unwrap();
            if begun {
                sim.plant(&dir().join("steps/a/1/stdout.log"), b"").unwrap();
            }
            let looked = check(&sim, dir(), None, |_| Ok::<_, JournalError>(()));
            assert_eq!(matches!(looked, Err(JournalError::Corrupt { .. })), begun, "{looked:?}");
        }
    }
}

struct Place {
    home: tempfile::TempDir,
    file: JournalFile,
    journal: Journal,
    lock: Arc<FeatureLock>,
}

impl Place {
    fn new() -> Place {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("project");
        let project = Project::new(root.clone(), root.join(".sage"));
        let vfs: Arc<dyn Vfs> = DiskFs::new();
        vfs.create_dir_all(&project.runs()).unwrap();
        let owner = Owner::current("run_1", 1);
        let lock = Arc::new(FeatureLock::acquire(&project.lock("x"), owner).unwrap().lock);
        let file = JournalFile::create(&vfs, &project.run_dir("run_1")).unwrap();
        let file = file.at_home(Home::new(vfs, project, lock.clone()));
        Place { home, file, journal: Journal::new(&sealing()), lock }
    }

    fn state(&self) -> PathBuf {
        self.home.path().join("project/.sage/state")
    }

    fn commit(&mut self) -> Result<(), JournalError> {
        self.journal.append("tick", 1, &1).unwrap();
        self.file.commit(&self.journal.take_batch().unwrap())
    }

    fn records(&self) -> u64 {
        let looked =
            check(
                &DiskFs::default(),
                self.file.path().parent().unwrap(),
                None,
                |_| Ok::<_, JournalError>(()),
            );
        looked.unwrap().head.seq
    }
}

// covers: R4, R9
#[test]
fn a_journal_that_lost_its_name_is_written_anew_as_a_whole() {
    let thefts: [fn(&Place); 5] = [
        |place| std::fs::remove_file(place.file.path()).unwrap(),
        |place| std::fs::remove_dir_all(place.state()).unwrap(),
        |place| std::fs::rename(place.state(), place.home.path().join("elsewhere")).unwrap(),
        |place| {
            // A copy in its place, as `cp` and `mv` leave it.
            let copy = place.state().join("copy");
            std::fs::copy(place.file.path(), &copy).unwrap();
            std::fs::rename(copy, place.file.path()).unwrap();
        },
        |place| std::fs::remove_file(place.lock.path()).unwrap(),
    ];
    for (number, theft) in thefts.iter().enumerate() {
        let mut place = Place::new();
        place.commit().unwrap();
        place.commit().unwrap();
        theft(&place);
        place.commit().unwrap();
        place.commit().unwrap();
        assert_eq!(place.records(), 4, "theft {number}");
        assert_eq!(place.file.times_put_back(), u32::from(number != 4), "theft {number}");
        let held = FeatureLock::acquire(place.lock.path(), Owner::current("run_2", 1));
        assert!(held.is_err(), "theft {number}: nobody else can have the run");
    }
}

// covers: R4, R9
#[test]
fn what_is_not_ours_is_not_overwritten() {
    let mut other = Place::new();
    other.commit().unwrap();
    std::fs::write(other.state().join("j"), "somebody's\n").unwrap();
    std::fs::rename(other.state().join("j"), other.file.path()).unwrap();
    assert!(matches!(other.commit(), Err(JournalError::Displaced { .. })));
    assert_eq!(std::fs::read_to_string(other.file.path()).unwrap(), "somebody's\n");

    let mut moved = Place::new();
    moved.commit().unwrap();
    let project = moved.home.path().join("project");
    std::fs::rename(&project, moved.home.path().join("moved")).unwrap();
    assert!(matches!(moved.commit(), Err(JournalError::Displaced { .. })));
    assert!(!project.exists(), "a project that was moved does not come back");

    let mut taken = Place::new();
    taken.commit().unwrap();
    std::fs::remove_file(taken.lock.path()).unwrap();
    let theirs = FeatureLock::acquire(taken.lock.path(), Owner::current("run_2", 1)).unwrap();
    let before = std::fs::read(taken.file.path()).unwrap();
    assert!(matches!(taken.commit(), Err(JournalError::Taken { .. })));
    assert_eq!(std::fs::read(taken.file.path()).unwrap(), before, "nothing is written for another's run");
    drop(theirs);

    let mut longer = Place::new();
    longer.commit().unwrap();
    let mut bytes = std::fs::read(longer.file.path()).unwrap();
    bytes.extend_from_slice(b"more\n");
    std::fs::write(longer.file.path(), &bytes).unwrap();
    assert!(matches!(longer.commit(), Err(JournalError::Io { .. })));
    assert_eq!(std::fs::read(longer.file.path()).unwrap(), bytes, "a second writer's bytes stay as they are");
}
