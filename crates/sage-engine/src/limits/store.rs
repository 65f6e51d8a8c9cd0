//! What limits need of a directory: a board and targets that are changed under locks, and proofs of life that
//! death takes back. `Disk` and `Memory` keep it.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sage_core::target::Target;

use super::board::Board;
use super::memory::Memory;

/// How long a lock is tried for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Patience {
    /// The run's loop asks: others take microseconds, so who takes longer is stopped.
    Loop,
    /// A person asks.
    Person,
}

impl Patience {
    pub fn duration(self) -> Duration {
        match self {
            Patience::Loop => Duration::from_millis(5),
            Patience::Person => Duration::from_secs(2),
        }
    }
}

#[derive(Debug)]
pub(super) enum Fault {
    /// Somebody else has the lock for longer than we wait.
    Busy,
    Io(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        use rustix::io::Errno;
        let passing = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR, Errno::AGAIN];
        match error.raw_os_error() {
            // The process has too much open just now; the directory is not to blame.
            Some(code) if passing.iter().any(|errno| errno.raw_os_error() == code) => Fault::Busy,
            _ => Fault::Io(error),
        }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Busy => io::Error::new(io::ErrorKind::TimedOut, "held by a process that does not go on"),
            Fault::Io(error) => error,
        }
    }
}

/// The right to be the one call that tries a target whose breaker is open.
#[derive(Debug)]
pub(super) enum Probe {
    File(File),
    Token(#[expect(dead_code, reason = "it is counted, not read")] Arc<()>),
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Probe::File(file) = self {
            // Closing would do, but a child that was just forked may still have the descriptor.
            let _ = file.unlock();
        }
    }
}

pub(super) trait Store: Debug + Send {
    /// Exclusive use of the board until `unlock`. Makes the directories.
    fn lock(&mut self, patience: Patience) -> Result<(), Fault>;

    fn unlock(&mut self);

    /// Whether there is anything to look at.
    fn has_board(&self) -> bool;

    /// The board as it is now, whole even without the lock. What can't be read is empty; an error means that
    /// it must not be written.
    fn board(&mut self) -> io::Result<&Board>;

    fn put_board(&mut self, board: Board) -> io::Result<()>;

    /// The member lives as long as this process does. Under the lock.
    fn prove(&mut self, member: &str) -> io::Result<()>;

    /// The proof, for others to hold on to: as long as one of them does, the member is not dead.
    fn proof(&self, member: &str) -> Option<Arc<File>>;

    /// Whether this store proved it.
    fn is_proved(&self, member: &str) -> bool;

    fn is_alive(&mut self, member: &str) -> bool;

    /// Takes back the proof.
    fn forget(&mut self, member: &str);

    /// Removes what the dead have left. Under the lock.
    fn sweep_proofs(&mut self);

    /// A target's state as it is now, whole even without its lock.
    fn target(&mut self, name: &str) -> Target;

    fn lock_target(&mut self, name: &str, patience: Patience) -> Result<(), Fault>;

    fn unlock_target(&mut self, name: &str);

    fn put_target(&mut self, name: &str, target: &Target) -> io::Result<()>;

    /// The probe right, if nobody who lives has it.
    fn probe(&mut self, name: &str) -> io::Result<Option<Probe>>;

    /// All that were ever written.
    fn targets(&mut self) -> Vec<(String, Target)>;

    /// What this process needs to go on without the directory.
    fn take_memory(&mut self) -> Memory;

    /// As if the member's process were killed.
    #[cfg(test)]
    fn die(&mut self, member: &str);
}
