//! Limits in a directory that processes share: `board`, `live/<member>`, `targets/<name>.json`, their locks.
//!
//! What must stay true: files are replaced under an OS lock that death frees; a lock is tried for a few ms,
//! never waited for; lock files are only removed by somebody who removes the directory, and that is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use sage_core::target::Target;
use sage_fence::own;
use serde::{Deserialize, Serialize};

use super::board::Board;
use super::kept::Kept;
use super::memory::Memory;
use super::name;
use super::store::{Fault, Patience, Probe, Store};
use super::text::{self, Content};
use crate::vfs::{DiskFs, Vfs, make_private, open_regular};

const POLL: Duration = Duration::from_micros(200);

/// Who has just waited in vain for a lock does not wait again: a loop asks for many steps.
const BUSY_MEMORY: Duration = Duration::from_millis(50);

const TARGET_VERSION: u32 = 1;

#[derive(Debug)]
pub(super) struct Disk {
    dir: PathBuf,
    board_path: PathBuf,
    board: Kept<Board>,
    lock: Lock,
    /// Of the members that use this store.
    proofs: BTreeMap<String, Arc<File>>,
    targets: BTreeMap<String, Slot>,
}

#[derive(Debug)]
struct Slot {
    path: PathBuf,
    state: Kept<Target>,
    lock: Lock,
}

/// A target's file.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    version: u32,
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    state: Target,
}

impl Disk {
    pub fn new(dir: PathBuf) -> Self {
        Self {
            board_path: dir.join("board"),
            lock: Lock::new(dir.join("board.lock")),
            dir,
            board: Kept::default(),
            proofs: BTreeMap::new(),
            targets: BTreeMap::new(),
        }
    }

    fn make_dirs(&self) -> io::Result<()> {
        let disk = DiskFs::default();
        disk.create_dir_all(&self.dir.join("live"))?;
        disk.create_dir_all(&self.dir.join("targets"))
    }

    fn proof_path(&self, member: &str) -> PathBuf {
        // Ids are from the board, where anybody may have written anything.
        self.dir.join("live").join(name::safe(&member.to_ascii_lowercase()))
    }

    fn slot(&mut self, name: &str) -> &mut Slot {
        let dir = &self.dir;
        self.targets.entry(name.to_owned()).or_insert_with(|| {
            let path = dir.join("targets").join(format!("{}.json", name::safe(name)));
            let lock = Lock::new(path.with_extension("lock"));
            Slot { path, state: Kept::default(), lock }
        })
    }

    /// Somebody has removed the directory. What runs here still runs, and says so again.
    fn prove_again(&mut self) -> io::Result<()> {
        for (member, file) in std::mem::take(&mut self.proofs) {
            let file = if is_gone(&file)? { new_proof(&self.proof_path(&member))?.into() } else { file };
            self.proofs.insert(member, file);
        }
        Ok(())
    }
}

/// Of a board that is lost, what we know to be true: our own rows.
fn own_rows(board: &Board, proofs: &BTreeMap<String, Arc<File>>) -> Board {
    let own = board.members.iter().filter(|(member, _)| proofs.contains_key(*member));
    Board { members: own.map(|(member, row)| (member.clone(), row.clone())).collect(), ..Board::default() }
}

fn new_proof(path: &Path) -> io::Result<File> {
    let file = open_shared_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(error),
        // Somebody looks whether we live, which takes an instant.
        Err(TryLockError::WouldBlock) => Err(rustix::io::Errno::AGAIN.into()),
    }
}

fn open_shared_file(path: &Path) -> io::Result<File> {
    match open_regular(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
        Ok(file) => make_private(&file).map(|()| file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open_regular(path, OFlags::RDWR),
        Err(error) => Err(error),
    }
}

fn is_gone(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}

impl Store for Disk {
    fn lock(&mut self, patience: Patience) -> Result<(), Fault> {
        if !self.lock.is_open() {
            self.make_dirs()?;
        }
        if self.lock.acquire(patience)? == Acquired::Anew {
            self.make_dirs()?;
            self.lock.acquire(patience)?.held()?;
            self.prove_again()?;
        }
        Ok(())
    }

    fn unlock(&mut self) {
        self.lock.release();
    }

    fn has_board(&self) -> bool {
        self.board_path.symlink_metadata().is_ok()
    }

    fn board(&mut self) -> io::Result<&Board> {
        let proofs = &self.proofs;
        self.board.refresh(&self.board_path, |bytes, last| match bytes.map(text::read) {
            Some(Content::Board(board)) => Ok(board),
            Some(Content::Newer) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a newer sage keeps its limits here; they are not counted together",
            )),
            Some(Content::Foreign) | None => Ok(own_rows(last, proofs)),
        })
    }

    fn put_board(&mut self, board: Board) -> io::Result<()> {
        let text = text::write(&board);
        self.board.replace(&self.board_path, text.as_bytes(), board)
    }

    fn prove(&mut self, member: &str) -> io::Result<()> {
        if !self.proofs.contains_key(member) {
            let proof = new_proof(&self.proof_path(member))?;
            self.proofs.insert(member.to_owned(), proof.into());
        }
        Ok(())
    }

    fn proof(&self, member: &str) -> Option<Arc<File>> {
        self.proofs.get(member).cloned()
    }

    fn is_proved(&self, member: &str) -> bool {
        self.proofs.contains_key(member)
    }

    fn is_alive(&mut self, member: &str) -> bool {
        if self.proofs.contains_key(member) {
            return true;
        }
        match open_regular(&self.proof_path(member), OFlags::RDONLY) {
            // Shared: two who look at the same time must not take each other for the living.
            Ok(file) => file.try_lock_shared().is_err(),
            // Whom we can't show to be dead is alive.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    fn forget(&mut self, member: &str) {
        if let Some(file) = self.proofs.remove(member) {
            let _ = own::remove_file(&self.proof_path(member));
            let _ = file.unlock();
        }
    }

    fn sweep_proofs(&mut self) {
        let live = self.dir.join("live");
        let living: BTreeSet<PathBuf> = self.proofs.keys().map(|member| self.proof_path(member)).collect();
        for entry in own::list(&live).unwrap_or_default() {
            let path = live.join(entry.name);
            let dead =
                || open_regular(&path, OFlags::RDONLY).is_ok_and(|file| file.try_lock_shared().is_ok());
            if !living.contains(&path) && dead() {
                let _ = own::remove_file(&path);
            }
        }
    }

    fn target(&mut self, name: &str) -> Target {
        let slot = self.slot(name);
        let read = |bytes: Option<&[u8]>, _: &Target| {
            let record = bytes.and_then(|bytes| serde_json::from_slice::<Record<'_>>(bytes).ok());
            let ours = record.filter(|record| record.version == TARGET_VERSION && record.name == name);
            Ok::<_, Infallible>(ours.map(|record| record.state).unwrap_or_default())
        };
        let Ok(target) = slot.state.refresh(&slot.path, read);
        target.clone()
    }

    fn lock_target(&mut self, name: &str, patience: Patience) -> Result<(), Fault> {
        let lock = &mut self.slot(name).lock;
        if lock.is_open() && lock.acquire(patience)? == Acquired::Held {
            return Ok(());
        }
        self.make_dirs()?;
        self.slot(name).lock.acquire(patience)?.held()
    }

    fn unlock_target(&mut self, name: &str) {
        self.slot(name).lock.release();
    }

    fn put_target(&mut self, name: &str, target: &Target) -> io::Result<()> {
        let record = Record { version: TARGET_VERSION, name: name.into(), state: target.clone() };
        let mut text = serde_json::to_vec(&record)?;
        text.push(b'\n');
        let slot = self.slot(name);
        slot.state.replace(&slot.path, &text, target.clone())
    }

    fn probe(&mut self, name: &str) -> io::Result<Option<Probe>> {
        let file = open_shared_file(&self.slot(name).path.with_extension("probe"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Probe::File(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn targets(&mut self) -> Vec<(String, Target)> {
        let mut found = Vec::new();
        let dir = self.dir.join("targets");
        for path in own::list(&dir).unwrap_or_default().into_iter().map(|entry| dir.join(entry.name)) {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let bytes = DiskFs::default().read(&path, 1 << 20).unwrap_or_default();
            if let Ok(record) = serde_json::from_slice::<Record<'_>>(&bytes) {
                found.push((record.name.into_owned(), record.state));
            }
        }
        found
    }

    fn take_memory(&mut self) -> Memory {
        let kept = |(name, slot): (String, Slot)| (name, slot.state.value);
        Memory {
            board: Board {
                overrides: self.board.value.overrides.clone(),
                ..own_rows(&self.board.value, &self.proofs)
            },
            alive: self.proofs.keys().cloned().collect(),
            targets: std::mem::take(&mut self.targets).into_iter().map(kept).collect(),
            probes: BTreeMap::new(),
            proofs: std::mem::take(&mut self.proofs),
        }
    }

    #[cfg(test)]
    fn die(&mut self, member: &str) {
        self.proofs.remove(member);
    }
}

/// An OS lock on a file that is opened once.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    file: Option<File>,
    busy_until: Option<Instant>,
}

#[derive(Debug, PartialEq)]
enum Acquired {
    Held,
    /// The file was removed since it was opened, so it protected nothing. Nothing is held; ask again.
    Anew,
}

impl Acquired {
    /// Removed twice while we look: whoever does that is not done.
    fn held(self) -> Result<(), Fault> {
        if self == Acquired::Held { Ok(()) } else { Err(Fault::Busy) }
    }
}

impl Lock {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, busy_until: None }
    }

    fn is_open(&self) -> bool {
        self.file.is_some()
    }

    fn acquire(&mut self, patience: Patience) -> Result<Acquired, Fault> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open_shared_file(&self.path)?,
        };
        let result = self.try_for(&mut file, patience);
        if !matches!(result, Ok(Acquired::Anew)) {
            self.file = Some(file);
        }
        result
    }

    fn try_for(&mut self, file: &mut File, patience: Patience) -> Result<Acquired, Fault> {
        let mut deadline = None;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    self.busy_until = None;
                    return Ok(if is_gone(file)? { Acquired::Anew } else { Acquired::Held });
                }
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) => {}
            }
            // The clock is only read if somebody has it.
            let now = Instant::now();
            let deadline = *deadline.get_or_insert(now + patience.duration());
            let just_waited = patience == Patience::Loop && self.busy_until.is_some_and(|until| now < until);
            if just_waited || now >= deadline {
                if !just_waited {
                    self.busy_until = Some(now + BUSY_MEMORY);
                }
                return Err(Fault::Busy);
            }
            thread::sleep(POLL);
        }
    }

    fn release(&mut self) {
        if let Some(file) = &self.file {
            // Not by closing: a child that was just forked may still have the descriptor.
            let _ = file.unlock();
        }
    }
}
