//! The journal against damage, power cuts and failing disks.

mod basics;
mod damage;
mod faults;
mod on_disk;
mod power;
mod salvaged;
mod seals;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::sim::SimFs;
use crate::vfs::Vfs;

const DIR: &str = "/sage/runs/one";

fn dir() -> &'static Path {
    Path::new(DIR)
}

fn file() -> PathBuf {
    dir().join(FILE_NAME)
}

/// The key of this user.
fn key() -> Key {
    Key::new(&[7; 32])
}

fn sealing() -> Sealing {
    Sealing::new(Some(&key()), "one")
}

/// A journal with its content, so that any part that comes back can be compared.
struct Reference {
    bytes: Vec<u8>,
    /// Where each line starts, and the end.
    starts: Vec<usize>,
    values: Vec<Value>,
    heads: Vec<Head>,
}

impl Reference {
    /// One record per number, in batches of these sizes. `width` pads the records.
    fn new(batches: &[usize], width: usize) -> Self {
        let mut journal = Journal::new(&sealing());
        let mut reference =
            Self { bytes: Vec::new(), starts: vec![0], values: Vec::new(), heads: Vec::new() };
        for &count in batches {
            for _ in 0..count {
                let seq = reference.values.len() as u64 + 1;
                let value = json!({"step": seq, "text": "x@ y".repeat(width)});
                assert_eq!(journal.append("step.done", 1_700_000_000_000 + seq, &value).unwrap(), seq);
                reference.values.push(value);
                reference.heads.push(journal.head());
            }
            reference.bytes.extend(journal.take_batch().unwrap().bytes);
        }
        let breaks = reference.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        reference.starts.extend(breaks.map(|(at, _)| at + 1));
        reference
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn head(&self) -> Head {
        *self.heads.last().unwrap()
    }

    fn line(&self, index: usize) -> &[u8] {
        &self.bytes[self.starts[index]..self.starts[index + 1]]
    }

    /// How many lines are whole in the first `len` bytes.
    fn whole_before(&self, len: usize) -> usize {
        self.starts.iter().filter(|&&start| start <= len).count() - 1
    }
}

/// What recovery makes of a file, with the number of good records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Clean(usize),
    Torn(usize),
    Corrupt,
    LostAcked,
    Newer,
}

/// Recovers from `bytes` and asserts all that must hold whatever they are.
fn judge(reference: &Reference, bytes: &[u8], watermark: Option<Head>) -> Outcome {
    let sim = SimFs::new(0);
    sim.plant(&file(), bytes).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    let mut good = 0;
    let result = recover(&vfs, dir(), watermark, &sealing(), |record| {
        let value: Value = serde_json::from_str(record.data).unwrap();
        assert_eq!(value, reference.values[good], "a record that was never written");
        assert_eq!(record.seq, good as u64 + 1);
        good += 1;
        Ok::<_, JournalError>(())
    });
    let left = vfs.read(&file(), u64::MAX).unwrap();
    match result {
        Ok(recovered) => {
            assert_eq!(recovered.journal.head().seq, good as u64);
            assert_eq!(left, reference.bytes[..reference.starts[good]], "only good records are left");
            let Some(torn) = recovered.torn else {
                return Outcome::Clean(good);
            };
            assert_eq!(vfs.read(&torn.saved_to, u64::MAX).unwrap(), bytes[left.len()..]);
            Outcome::Torn(good)
        }
        Err(error) => {
            assert_eq!(left, bytes, "nothing changes after an error");
            assert!(!vfs.exists(&dir().join(QUARANTINE)).unwrap());
            match error {
                JournalError::Corrupt { .. } => Outcome::Corrupt,
                JournalError::LostAcked { .. } => Outcome::LostAcked,
                JournalError::NewerVersion { .. } => Outcome::Newer,
                other => panic!("{other}"),
            }
        }
    }
}

/// Recovers and gives what was read.
fn recover_values(
    vfs: &Arc<dyn Vfs>,
    watermark: Option<Head>,
) -> Result<(Recovered, Vec<Value>), JournalError> {
    let mut values = Vec::new();
    let recovered = recover(vfs, dir(), watermark, &sealing(), |record| {
        values.push(serde_json::from_str(record.data).unwrap());
        Ok::<_, JournalError>(())
    })?;
    Ok((recovered, values))
}
