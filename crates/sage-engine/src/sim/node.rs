//! What is on the simulated disk: for each file and directory what a process sees and what would survive.

use std::collections::{BTreeMap, BTreeSet};

use super::rng::Rng;

const SECTOR_BYTES: usize = 512;

pub(super) type Ino = u64;

#[derive(Debug)]
pub(super) enum Node {
    File(FileNode),
    Dir { seen: BTreeMap<String, Ino>, durable: BTreeMap<String, Ino> },
}

#[derive(Debug, Default)]
pub(super) struct FileNode {
    /// What a process reads.
    pub data: Vec<u8>,
    /// What is on the platter.
    durable: Vec<u8>,
    /// Sectors that were written since the last sync.
    dirty: BTreeSet<usize>,
}

/// How a power cut treats what was not synced. The extremes are worth more than their share of chance.
#[derive(Debug, Clone, Copy)]
pub(super) enum Loss {
    All,
    Nothing,
    Some,
}

impl Loss {
    pub fn pick(rng: &mut Rng) -> Self {
        match rng.below(4) {
            0 => Self::All,
            1 => Self::Nothing,
            _ => Self::Some,
        }
    }

    pub fn survives(self, rng: &mut Rng) -> bool {
        match self {
            Self::All => false,
            Self::Nothing => true,
            Self::Some => rng.one_in(2),
        }
    }
}

impl Node {
    pub fn new_dir() -> Self {
        Self::Dir { seen: BTreeMap::new(), durable: BTreeMap::new() }
    }

    /// The names in a directory.
    pub fn entries(&self) -> Option<&BTreeMap<String, Ino>> {
        match self {
            Self::Dir { seen, .. } => Some(seen),
            Self::File(_) => None,
        }
    }

    /// The length of a file.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::File(file) => Some(file.data.len() as u64),
            Self::Dir { .. } => None,
        }
    }

    /// Back to what survived.
    pub fn lose(&mut self, loss: Loss, rng: &mut Rng) {
        match self {
            Self::File(file) => file.lose(loss, rng),
            Self::Dir { seen, durable } => seen.clone_from(durable),
        }
    }
}

impl FileNode {
    pub fn durable(bytes: &[u8]) -> Self {
        Self { data: bytes.to_vec(), durable: bytes.to_vec(), dirty: BTreeSet::new() }
    }

    pub fn append(&mut self, bytes: &[u8]) {
        let start = self.data.len();
        self.data.extend_from_slice(bytes);
        self.mark(start);
    }

    pub fn set_len(&mut self, len: usize) {
        let start = len.min(self.data.len());
        self.data.resize(len, 0);
        self.dirty.retain(|sector| sector * SECTOR_BYTES < len);
        self.mark(start);
    }

    fn mark(&mut self, start: usize) {
        self.dirty.extend(start / SECTOR_BYTES..self.data.len().div_ceil(SECTOR_BYTES));
    }

    pub fn sync(&mut self) {
        self.durable.resize(self.data.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.write_sector(sector);
        }
    }

    /// As Linux does: pages that could not be written are clean again, still readable, and not on the disk.
    pub fn fail_sync(&mut self, rng: &mut Rng) {
        for sector in std::mem::take(&mut self.dirty) {
            if rng.one_in(2) && sector * SECTOR_BYTES < self.durable.len() {
                self.write_sector(sector);
            }
        }
    }

    fn write_sector(&mut self, sector: usize) {
        let start = sector * SECTOR_BYTES;
        let end = (start + SECTOR_BYTES).min(self.data.len()).min(self.durable.len());
        if start < end {
            self.durable[start..end].copy_from_slice(&self.data[start..end]);
        }
    }

    fn lose(&mut self, loss: Loss, rng: &mut Rng) {
        let len = match loss {
            Loss::All => self.durable.len(),
            Loss::Nothing => self.data.len(),
            Loss::Some => some_length(self.durable.len(), self.data.len(), rng),
        };
        self.durable.resize(len, 0);
        for sector in std::mem::take(&mut self.dirty) {
            if loss.survives(rng) {
                self.write_sector(sector);
            }
        }
        self.data.clone_from(&self.durable);
    }
}

/// The old length, the new one, or one that some sectors in between had reached.
fn some_length(old: usize, new: usize, rng: &mut Rng) -> usize {
    match rng.below(4) {
        0 => old,
        1 => new,
        _ if new <= old => new,
        _ => {
            let sectors = (new - old).div_ceil(SECTOR_BYTES) as u64;
            let grown = (old / SECTOR_BYTES + 1 + rng.below(sectors) as usize) * SECTOR_BYTES;
            grown.min(new)
        }
    }
}

/// A change to directories, undone by a power cut unless it was synced.
#[derive(Debug)]
pub(super) enum DirOp {
    Link { dir: Ino, name: String, ino: Ino },
    Unlink { dir: Ino, name: String },
    Rename { from: (Ino, String), to: (Ino, String), ino: Ino },
}

impl DirOp {
    pub fn touches(&self, wanted: Ino) -> bool {
        match self {
            Self::Link { dir, .. } | Self::Unlink { dir, .. } => *dir == wanted,
            Self::Rename { from, to, .. } => from.0 == wanted || to.0 == wanted,
        }
    }

    /// Changes what is seen, or what is durable.
    pub fn apply(&self, nodes: &mut BTreeMap<Ino, Node>, durably: bool) {
        let mut edit = |dir: &Ino, change: &mut dyn FnMut(&mut BTreeMap<String, Ino>)| {
            if let Some(Node::Dir { seen, durable }) = nodes.get_mut(dir) {
                change(if durably { durable } else { seen });
            }
        };
        match self {
            Self::Link { dir, name, ino } => edit(dir, &mut |names| {
                names.insert(name.clone(), *ino);
            }),
            Self::Unlink { dir, name } => edit(dir, &mut |names| {
                names.remove(name);
            }),
            Self::Rename { from, to, ino } => {
                edit(&from.0, &mut |names| {
                    // Unless the name was given to another file in the meantime.
                    if names.get(&from.1) == Some(ino) {
                        names.remove(&from.1);
                    }
                });
                edit(&to.0, &mut |names| {
                    names.insert(to.1.clone(), *ino);
                });
            }
        }
    }
}
