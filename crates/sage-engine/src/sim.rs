//! A disk in memory that forgets what a real one may forget when the power goes.
//!
//! Until a sync, a file's 512-byte sectors, its length and each directory entry survive or not independently of
//! each other; a rename is one thing and survives or not as a whole. A failed sync drops data for good while it
//! stays readable, as Linux does. Faults can be put at any mutating operation, by its number.
//! Everything follows from the seeds: the same calls give the same losses. Public and always compiled, so that
//! the engine's own simulation can stand on it.

mod node;
mod rng;

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::vfs::{Meta, Vfs, VfsFile};
use node::{DirOp, FileNode, Ino, Loss, Node};
pub use rng::Rng;

const ROOT: Ino = 0;

/// What goes wrong at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails. A sync that fails has lost what it was to save.
    Eio,
    /// The operation fails for lack of space.
    Enospc,
    /// A write takes only so many bytes; other operations are not affected.
    ShortWrite(usize),
    /// A write claims success and stores nothing; other operations are not affected.
    LyingWrite,
    /// The power goes before the operation.
    Crash,
}

/// A simulated file system. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct SimFs {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    nodes: BTreeMap<Ino, Node>,
    next_ino: Ino,
    /// Changes of directories that no sync has covered, in order.
    unsynced: Vec<DirOp>,
    ops: u64,
    faults: BTreeMap<u64, Fault>,
    capacity_bytes: Option<u64>,
    off: bool,
    /// Files opened before a crash are dead after it.
    boot: u64,
}

impl SimFs {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            rng: Rng::new(seed),
            nodes: BTreeMap::from([(ROOT, Node::new_dir())]),
            next_ino: ROOT + 1,
            unsynced: Vec::new(),
            ops: 0,
            faults: BTreeMap::new(),
            capacity_bytes: None,
            off: false,
            boot: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Cuts the power now. `seed` decides what survives.
    pub fn crash(&self, seed: u64) {
        self.lock().cut(&mut Rng::new(seed));
    }

    /// The power is back. Open files of before stay dead.
    pub fn restart(&self) {
        self.lock().off = false;
    }

    /// Puts a fault at the mutating operation with this number, counted from 0 since the disk was made.
    pub fn fail_at(&self, op_index: u64, fault: Fault) {
        self.lock().faults.insert(op_index, fault);
    }

    /// Takes away all faults that have not struck yet.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Mutating operations so far, syncs and failed ones included: the number of the next one.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.lock().ops
    }

    /// How many bytes all files together may have.
    pub fn set_capacity(&self, capacity_bytes: Option<u64>) {
        self.lock().capacity_bytes = capacity_bytes;
    }

    /// Puts a file in place, durably and with its directories: a test's way to damage or prepare a disk.
    pub fn plant(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        let (dir, name) = state.make_parents(path)?;
        let ino = state.add_node(Node::File(FileNode::durable(bytes)));
        state.record(DirOp::Link { dir, name, ino });
        state.sync_everything();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, ino: Ino, boot: u64) -> Box<dyn VfsFile> {
        Box::new(SimFile { fs: self.clone(), ino, boot })
    }
}

impl State {
    fn powered(&self) -> io::Result<()> {
        if self.off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    /// Counts a mutating operation and lets its fault strike. What is left for the caller are odd writes.
    fn step(&mut self) -> io::Result<Option<Fault>> {
        self.powered()?;
        let fault = self.faults.remove(&self.ops);
        self.ops += 1;
        match fault {
            Some(Fault::Eio) => Err(Errno::IO.into()),
            Some(Fault::Enospc) => Err(Errno::NOSPC.into()),
            Some(Fault::Crash) => {
                let mut rng = Rng::new(self.rng.next());
                self.cut(&mut rng);
                self.powered().map(|()| None)
            }
            odd => Ok(odd),
        }
    }

    fn cut(&mut self, rng: &mut Rng) {
        let loss = Loss::pick(rng);
        for op in std::mem::take(&mut self.unsynced) {
            if loss.survives(rng) {
                op.apply(&mut self.nodes, true);
            }
        }
        for node in self.nodes.values_mut() {
            node.lose(loss, rng);
        }
        self.off = true;
        self.boot += 1;
    }

    fn sync_everything(&mut self) {
        for op in std::mem::take(&mut self.unsynced) {
            op.apply(&mut self.nodes, true);
        }
    }

    fn record(&mut self, op: DirOp) {
        op.apply(&mut self.nodes, false);
        self.unsynced.push(op);
    }

    fn add_node(&mut self, node: Node) -> Ino {
        let ino = self.next_ino;
        self.next_ino += 1;
        self.nodes.insert(ino, node);
        ino
    }

    fn find(&self, path: &Path) -> io::Result<Ino> {
        names(path)?.try_fold(ROOT, |ino, name| self.child(ino, name).ok_or(not_found(path)))
    }

    fn child(&self, dir: Ino, name: &str) -> Option<Ino> {
        self.nodes.get(&dir)?.entries()?.get(name).copied()
    }

    /// The directory and the last name of `path`.
    fn place(&self, path: &Path) -> io::Result<(Ino, String)> {
        let name = names(path)?.next_back().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let dir = self.find(path.parent().unwrap_or(Path::new("")))?;
        match self.nodes.get(&dir) {
            Some(Node::Dir { .. }) => Ok((dir, name)),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn make_parents(&mut self, path: &Path) -> io::Result<(Ino, String)> {
        let name = names(path)?.next_back().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let mut dir = ROOT;
        for parent in names(path.parent().unwrap_or(Path::new("")))? {
            dir = match self.child(dir, parent) {
                Some(ino) => ino,
                None => self.make_dir(dir, parent),
            };
        }
        Ok((dir, name))
    }

    fn make_dir(&mut self, dir: Ino, name: &str) -> Ino {
        let ino = self.add_node(Node::new_dir());
        self.record(DirOp::Link { dir, name: name.to_owned(), ino });
        ino
    }

    fn file(&mut self, ino: Ino) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&ino) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir { .. }) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn file_at(&mut self, path: &Path) -> io::Result<&mut FileNode> {
        let ino = self.find(path)?;
        self.file(ino)
    }

    /// How many of `wanted` more bytes fit.
    fn room_for(&self, wanted: usize) -> usize {
        let Some(capacity) = self.capacity_bytes else {
            return wanted;
        };
        // A file with several names counts several times: near enough for running out of space.
        let used: u64 = self
            .nodes
            .values()
            .filter_map(Node::entries)
            .flat_map(BTreeMap::values)
            .filter_map(|ino| self.nodes.get(ino)?.len())
            .sum();
        wanted.min(usize::try_from(capacity.saturating_sub(used)).unwrap_or(usize::MAX))
    }
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no `{}` on the simulated disk", path.display()))
}

/// The names that make up a path; a simulated disk has no current directory, so relative paths start at its root.
fn names(path: &Path) -> io::Result<impl DoubleEndedIterator<Item = &str>> {
    let odd = |part: &Component<'_>| match part {
        Component::Normal(name) => name.to_str().is_none(),
        Component::RootDir | Component::CurDir => false,
        Component::ParentDir | Component::Prefix(_) => true,
    };
    if path.components().any(|part| odd(&part)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    }))
}

impl Vfs for SimFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let mut at = ROOT;
        for name in names(dir)? {
            at = match state.child(at, name) {
                Some(ino) if state.nodes.get(&ino).is_some_and(|node| node.entries().is_some()) => ino,
                Some(_) => return Err(io::ErrorKind::NotADirectory.into()),
                None => {
                    state.step()?;
                    state.make_dir(at, name)
                }
            };
        }
        state.powered()
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let mut state = self.lock();
        state.step()?;
        let (dir, name) = state.place(path)?;
        if state.child(dir, &name).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let ino = state.add_node(Node::File(FileNode::default()));
        state.record(DirOp::Link { dir, name, ino });
        Ok(self.open(ino, state.boot))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let mut state = self.lock();
        state.powered()?;
        let ino = state.find(path)?;
        state.file(ino)?;
        Ok(self.open(ino, state.boot))
    }

    fn read(&self, path: &Path, cap_bytes: u64) -> io::Result<Vec<u8>> {
        let mut state = self.lock();
        state.powered()?;
        let data = &state.file_at(path)?.data;
        if data.len() as u64 > cap_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(data.clone())
    }

    fn read_from(&self, path: &Path, offset: u64, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut state = self.lock();
        state.powered()?;
        let data = &state.file_at(path)?.data;
        let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(data.len());
        Ok(data[clamp(offset)..clamp(offset.saturating_add(max_bytes))].to_vec())
    }

    fn metadata(&self, path: &Path) -> io::Result<Meta> {
        let state = self.lock();
        state.powered()?;
        let ino = state.find(path)?;
        let len = state.nodes.get(&ino).and_then(Node::len);
        Ok(Meta { len: len.unwrap_or(0), is_file: len.is_some(), modified: None })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.lock();
        state.powered()?;
        let ino = state.find(dir)?;
        let entries = state.nodes.get(&ino).and_then(Node::entries);
        Ok(entries.ok_or(io::ErrorKind::NotADirectory)?.keys().cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let ino = state.find(from)?;
        let (from, to) = (state.place(from)?, state.place(to)?);
        // POSIX: two names of the same file stay as they are.
        if state.child(to.0, &to.1) != Some(ino) {
            state.record(DirOp::Rename { from, to, ino });
        }
        Ok(())
    }

    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let ino = state.find(original)?;
        state.file(ino)?;
        let (dir, name) = state.place(link)?;
        if state.child(dir, &name).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.record(DirOp::Link { dir, name, ino });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let ino = state.find(path)?;
        state.file(ino)?;
        let (dir, name) = state.place(path)?;
        state.record(DirOp::Unlink { dir, name });
        Ok(())
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        state.find(dir)?;
        let (parent, name) = state.place(dir)?;
        state.record(DirOp::Unlink { dir: parent, name });
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let dir = state.find(dir)?;
        let unsynced = std::mem::take(&mut state.unsynced);
        let (synced, unsynced): (Vec<_>, _) = unsynced.into_iter().partition(|op| op.touches(dir));
        state.unsynced = unsynced;
        for op in synced {
            op.apply(&mut state.nodes, true);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct SimFile {
    fs: SimFs,
    ino: Ino,
    boot: u64,
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.fs.lock();
        state.powered()?;
        if state.boot == self.boot { Ok(state) } else { Err(io::Error::other("opened before a power cut")) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state()?;
        let step = state.step();
        if state.off {
            return step.map(|_| ());
        }
        if step.is_err() {
            let mut rng = Rng::new(state.rng.next());
            state.file(self.ino)?.fail_sync(&mut rng);
        }
        step?;
        state.file(self.ino)?.sync();
        Ok(())
    }
}

impl VfsFile for SimFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state()?;
        let len = match state.step()? {
            Some(Fault::LyingWrite) => return Ok(bytes.len()),
            Some(Fault::ShortWrite(len)) => len.min(bytes.len()),
            _ => bytes.len(),
        };
        let room = state.room_for(len);
        if room == 0 && len > 0 {
            return Err(Errno::NOSPC.into());
        }
        state.file(self.ino)?.append(&bytes[..room]);
        Ok(room)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.sync()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.step()?;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        state.file(self.ino)?.set_len(len);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.file(self.ino)?.data.len() as u64)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(self.state()?.find(path).is_ok_and(|ino| ino == self.ino))
    }

    fn content(&self) -> io::Result<Vec<u8>> {
        Ok(self.state()?.file(self.ino)?.data.clone())
    }
}

#[cfg(test)]
mod tests;
