//! Limits in memory: of a simulation, or of a process whose directory can't be used. Same rules, no files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::{Arc, Weak};

use sage_core::target::Target;

use super::board::Board;
use super::store::{Fault, Patience, Probe, Store};

#[derive(Debug, Default)]
pub(super) struct Memory {
    pub board: Board,
    pub alive: BTreeSet<String>,
    pub targets: BTreeMap<String, Target>,
    pub probes: BTreeMap<String, Weak<()>>,
    /// Proofs from before the directory could no longer be used: what is on its board still runs.
    pub proofs: BTreeMap<String, Arc<File>>,
}

impl Store for Memory {
    fn lock(&mut self, _: Patience) -> Result<(), Fault> {
        Ok(())
    }

    fn unlock(&mut self) {}

    fn has_board(&self) -> bool {
        true
    }

    fn board(&mut self) -> io::Result<&Board> {
        Ok(&self.board)
    }

    fn put_board(&mut self, board: Board) -> io::Result<()> {
        self.board = board;
        Ok(())
    }

    fn prove(&mut self, member: &str) -> io::Result<()> {
        if !self.alive.contains(member) {
            self.alive.insert(member.to_owned());
        }
        Ok(())
    }

    fn proof(&self, member: &str) -> Option<Arc<File>> {
        self.proofs.get(member).cloned()
    }

    fn is_proved(&self, member: &str) -> bool {
        self.alive.contains(member)
    }

    fn is_alive(&mut self, member: &str) -> bool {
        self.alive.contains(member)
    }

    fn forget(&mut self, member: &str) {
        self.alive.remove(member);
        self.proofs.remove(member);
    }

    fn sweep_proofs(&mut self) {}

    fn target(&mut self, name: &str) -> Target {
        self.targets.get(name).cloned().unwrap_or_default()
    }

    fn lock_target(&mut self, _: &str, _: Patience) -> Result<(), Fault> {
        Ok(())
    }

    fn unlock_target(&mut self, _: &str) {}

    fn put_target(&mut self, name: &str, target: &Target) -> io::Result<()> {
        self.targets.insert(name.to_owned(), target.clone());
        Ok(())
    }

    fn probe(&mut self, name: &str) -> io::Result<Option<Probe>> {
        if self.probes.get(name).is_some_and(|held| held.strong_count() > 0) {
            return Ok(None);
        }
        let token = Arc::new(());
        self.probes.insert(name.to_owned(), Arc::downgrade(&token));
        Ok(Some(Probe::Token(token)))
    }

    fn targets(&mut self) -> Vec<(String, Target)> {
        self.targets.iter().map(|(name, target)| (name.clone(), target.clone())).collect()
    }

    fn take_memory(&mut self) -> Memory {
        std::mem::take(self)
    }

    #[cfg(test)]
    fn die(&mut self, member: &str) {
        self.forget(member);
    }
}
