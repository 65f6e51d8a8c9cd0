//! Power cuts at random operations, recoveries that are cut themselves, and killed processes, over and over.
//! The same harness must find two classic bugs when they are put in: else it would prove nothing.

use std::io;

use super::*;
use crate::blobs::Blobs;
use crate::digest::Digest;
use crate::sim::{Fault, Rng};
use crate::vfs::{self, Meta, VfsFile};

/// Recoveries in a row that are cut.
const MAX_DEPTH: u64 = 5;
/// Cuts that one journal lives through.
const CUTS_PER_LIFE: u64 = 6;

/// A disk below code that forgets to sync.
#[derive(Debug, Clone)]
struct Forgetful {
    sim: SimFs,
    data: bool,
    dirs: bool,
}

#[derive(Debug)]
struct ForgetfulFile(Box<dyn VfsFile>);

impl VfsFile for ForgetfulFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.0.is_at(path)
    }

    fn content(&self) -> io::Result<Vec<u8>> {
        self.0.content()
    }
}

impl Forgetful {
    fn wrap(&self, file: Box<dyn VfsFile>) -> Box<dyn VfsFile> {
        if self.data { Box::new(ForgetfulFile(file)) } else { file }
    }
}

impl Vfs for Forgetful {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.sim.create_dir_all(dir)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Ok(self.wrap(self.sim.create_new(path)?))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Ok(self.wrap(self.sim.open_append(path)?))
    }

    fn read(&self, path: &Path, cap_bytes: u64) -> io::Result<Vec<u8>> {
        self.sim.read(path, cap_bytes)
    }

    fn read_from(&self, path: &Path, offset: u64, max_bytes: u64) -> io::Result<Vec<u8>> {
        self.sim.read_from(path, offset, max_bytes)
    }

    fn metadata(&self, path: &Path) -> io::Result<Meta> {
        self.sim.metadata(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.sim.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.sim.rename(from, to)
    }

    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()> {
        self.sim.hard_link(original, link)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.sim.remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if self.dirs { Ok(()) } else { self.sim.sync_dir(dir) }
    }
}

/// One journal's life.
struct Life {
    sim: SimFs,
    vfs: Arc<dyn Vfs>,
    rng: Rng,
    /// Payload and blob of each record that must be there.
    acked: Vec<(u64, Option<Digest>)>,
    /// The payload of every record that was ever handed to a commit: what else may be there.
    sent: Vec<(u64, Option<Digest>)>,
    head: Option<Head>,
    /// Torn tails that were reported, with their sizes.
    torn: Vec<(PathBuf, u64)>,
    tally: Tally,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    cuts: u64,
    acked: u64,
    torn: u64,
    cut_recoveries: u64,
    /// Most cuts in a row that hit a recovery.
    deepest: u64,
}

/// Something acknowledged is gone, or the journal can't go on.
#[derive(Debug)]
struct Lost(#[expect(dead_code, reason = "printed by unwrap")] String);

impl Life {
    fn new(seed: u64, data: bool, dirs: bool) -> Self {
        let sim = SimFs::new(seed);
        let vfs: Arc<dyn Vfs> = if data || dirs {
            Arc::new(Forgetful { sim: sim.clone(), data, dirs })
        } else {
            Arc::new(sim.clone())
        };
        Self {
            sim,
            vfs,
            rng: Rng::new(seed ^ 0xdead),
            acked: Vec::new(),
            sent: Vec::new(),
            head: None,
            torn: Vec::new(),
            tally: Tally::default(),
        }
    }

    fn live(mut self) -> Result<Tally, Lost> {
        while self.tally.cuts < CUTS_PER_LIFE {
            let Some((journal, file)) = self.open()? else {
                continue;
            };
            // Mostly a power cut in the middle of work; at times the process is killed and the machine goes on.
            if self.rng.one_in(4) {
                self.killed_at_work(journal, file);
            } else {
                self.arm(14);
                self.produce(journal, file);
                self.power_back();
            }
        }
        self.sim.clear_faults();
        self.open().map(|_| self.tally)
    }

    fn arm(&mut self, within: u64) {
        self.sim.fail_at(self.sim.ops() + self.rng.below(within), Fault::Crash);
    }

    fn power_back(&mut self) {
        self.tally.cuts += 1;
        self.sim.restart();
    }

    /// Opens the journal, through cuts of its own; none if it has to be tried again.
    fn open(&mut self) -> Result<Option<(Journal, JournalFile)>, Lost> {
        for depth in 0.. {
            let ops = self.sim.ops();
            if depth < MAX_DEPTH && self.rng.one_in(2) && self.tally.cuts < CUTS_PER_LIFE {
                self.arm(5);
            }
            let result = self.try_open();
            self.sim.clear_faults();
            match result {
                Ok(opened) => return Ok(Some(opened)),
                Err(OpenError::Lost(lost)) => return Err(lost),
                Err(OpenError::Killed) => {}
                Err(OpenError::Power) => {
                    self.power_back();
                    self.tally.cut_recoveries += 1;
                    self.tally.deepest = self.tally.deepest.max(depth + 1);
                }
            }
            assert!(self.sim.ops() > ops, "a cut strikes at an operation");
        }
        Ok(None)
    }

    fn try_open(&mut self) -> Result<(Journal, JournalFile), OpenError> {
        let mut found = Vec::new();
        let watermark = self.head.filter(|_| self.rng.one_in(2));
        let result = recover(&self.vfs, dir(), watermark, &sealing(), |record| {
            let (payload, blob, _): (u64, Option<Digest>, &str) = serde_json::from_str(record.data).unwrap();
            found.push((payload, blob));
            Ok::<_, JournalError>(())
        });
        let power_off = self.sim.exists(Path::new("/")).is_err();
        let recovered = match result {
            Err(_) if power_off => return Err(OpenError::Power),
            Err(JournalError::Missing { .. }) if self.acked.is_empty() => {
                return self.create();
            }
            result => result.map_err(|error| OpenError::Lost(Lost(error.to_string())))?,
        };
        self.tally.torn += u64::from(recovered.torn.is_some());
        self.torn.extend(recovered.torn.map(|torn| (torn.saved_to, torn.bytes)));
        self.verify(&found).map_err(OpenError::Lost)?;
        // What was handed on is acknowledged by that.
        self.sent.clone_from(&found);
        self.acked = found;
        self.head = Some(recovered.file.head());
        Ok((recovered.journal, recovered.file))
    }

    fn verify(&self, found: &[(u64, Option<Digest>)]) -> Result<(), Lost> {
        if !found.starts_with(&self.acked) {
            return Err(Lost(format!("{} acknowledged, {} found", self.acked.len(), found.len())));
        }
        assert!(self.sent.starts_with(found), "records that were never written");
        let blobs = Blobs::new(Arc::clone(&self.vfs), dir().join("blobs"));
        for digest in found.iter().filter_map(|record| record.1) {
            blobs.get(&digest).map_err(|error| Lost(error.to_string()))?;
        }
        for (path, bytes) in &self.torn {
            let kept = self.sim.metadata(path).is_ok_and(|meta| meta.len == *bytes);
            kept.then_some(()).ok_or_else(|| Lost("a torn tail that was kept aside".to_owned()))?;
        }
        Ok(())
    }

    /// The process dies between a write and its sync; the machine goes on.
    fn killed_at_work(&mut self, mut journal: Journal, file: JournalFile) {
        let payload = self.rng.next();
        self.sent.push((payload, None));
        journal.append("step.done", payload, &json!([payload, null, ""])).unwrap();
        let mut raw = self.vfs.open_append(file.path()).unwrap();
        vfs::write_all(raw.as_mut(), &journal.take_batch().unwrap().bytes).unwrap();
    }

    /// Creates the journal; at times the process dies before anything is synced.
    fn create(&mut self) -> Result<(Journal, JournalFile), OpenError> {
        self.sent.clear();
        let home = vfs::create_dir_durable(self.vfs.as_ref(), vfs::parent(dir()));
        home.map_err(|_| OpenError::Power)?;
        if self.rng.one_in(4) {
            let half = self.vfs.create_dir_all(dir()).and_then(|()| self.vfs.create_new(&super::file()));
            return Err(if half.is_ok() { OpenError::Killed } else { OpenError::Power });
        }
        let file = JournalFile::create(&self.vfs, dir()).map_err(|_| OpenError::Power)?;
        Ok((Journal::new(&sealing()), file))
    }

    /// Commits batches until the power goes.
    fn produce(&mut self, mut journal: Journal, mut file: JournalFile) {
        let blobs = Blobs::new(Arc::clone(&self.vfs), dir().join("blobs"));
        loop {
            for _ in 0..=self.rng.below(3) {
                let payload = self.rng.next();
                let blob = match self.rng.below(12) {
                    0 => match blobs.put(&payload.to_le_bytes().repeat(payload as usize % 100)) {
                        Ok(digest) => Some(digest),
                        Err(_) => return,
                    },
                    _ => None,
                };
                // Sizes that put several records in a sector, and records over several.
                let width = [0, 100, 900][self.rng.below(3) as usize];
                let data = json!([payload, blob, "x".repeat(width)]);
                journal.append("step.done", payload, &data).unwrap();
                self.sent.push((payload, blob));
            }
            if file.commit(&journal.take_batch().unwrap()).is_err() {
                return;
            }
            self.acked.clone_from(&self.sent);
            self.head = Some(file.head());
            self.tally.acked += 1;
        }
    }
}

enum OpenError {
    Power,
    Killed,
    Lost(Lost),
}

fn lives(seeds: std::ops::Range<u64>, data: bool, dirs: bool) -> (Tally, u64) {
    let (mut total, mut lost) = (Tally::default(), 0);
    for seed in seeds {
        match Life::new(seed, data, dirs).live() {
            Ok(tally) => {
                total.cuts += tally.cuts;
                total.acked += tally.acked;
                total.torn += tally.torn;
                total.cut_recoveries += tally.cut_recoveries;
                total.deepest = total.deepest.max(tally.deepest);
            }
            Err(_) if data || dirs => lost += 1,
            Err(error) => panic!("seed {seed}: {error:?}"),
        }
    }
    (total, lost)
}

// covers: R4, R5
#[test]
fn twenty_thousand_power_cuts_lose_nothing_acknowledged() {
    let (total, _) = lives(0..3400, false, false);
    println!("{total:?}");
    assert!(total.cuts >= 20_000 && total.acked > 20_000, "{total:?}");
    assert!(total.torn > 1000 && total.cut_recoveries > 1000, "{total:?}");
    assert_eq!(total.deepest, MAX_DEPTH);
}

// covers: R4
#[test]
fn the_harness_finds_acknowledging_before_the_sync() {
    let (_, lost) = lives(0..100, true, false);
    assert!(lost > 80, "{lost} of 100");
}

// covers: R4
#[test]
fn the_harness_finds_a_missing_sync_of_directories() {
    let (_, lost) = lives(0..100, false, true);
    assert!(lost > 80, "{lost} of 100");
}

// covers: R4
#[test]
fn the_same_seed_gives_the_same_life() {
    for seed in 0..20 {
        assert_eq!(
            Life::new(seed, false, false).live().unwrap(),
            Life::new(seed, false, false).live().unwrap()
        );
    }
}
