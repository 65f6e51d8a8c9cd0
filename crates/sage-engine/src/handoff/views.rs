//! `index.json` and the chains: written after the handoffs, compared with them, made anew where they differ.

use std::path::{Path, PathBuf};

use sage_core::handoff::{Chain, Index, chain_file};
use serde::de::DeserializeOwned;

use super::{HandoffError, Store, io_error, pretty};
use crate::vfs;

const MAX_VIEW_BYTES: u64 = 256 << 20;

impl Store {
    fn index_path(&self) -> PathBuf {
        self.dir.join("index.json")
    }

    /// Where a chain is, and where it is not.
    fn chain_paths(&self, chain: &Chain) -> (PathBuf, PathBuf) {
        let name = chain_file(&chain.task_id);
        let (open, ended) = (self.dir.join(&name), self.dir.join("archive").join(&name));
        if chain.archived { (ended, open) } else { (open, ended) }
    }

    /// What is wrong with the views, if they do not say what the handoffs say.
    pub(super) fn mismatch(&self, wanted: &Index) -> Option<String> {
        if self.load_view(&self.index_path()).as_ref() != Some(wanted) {
            return Some(format!("`{}` did not match its handoffs", self.index_path().display()));
        }
        let wrong = wanted.chains().into_iter().find(|chain| {
            let (here, not_here) = self.chain_paths(chain);
            self.load_view(&here).as_ref() != Some(chain) || self.vfs.exists(&not_here).unwrap_or(true)
        })?;
        Some(format!("`{}` did not match its handoffs", self.chain_paths(&wrong).0.display()))
    }

    fn load_view<T: DeserializeOwned>(&self, path: &Path) -> Option<T> {
        let bytes = self.vfs.read(path, MAX_VIEW_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The index, and the chain of one taskId or of all.
    pub(super) fn write_views(&self, index: &Index, task_id: Option<&str>) -> Result<(), HandoffError> {
        for chain in index.chains().iter().filter(|chain| task_id.is_none_or(|id| id == chain.task_id)) {
            self.write_chain(chain)?;
        }
        self.write_view(&self.index_path(), index)
    }

    fn write_chain(&self, chain: &Chain) -> Result<(), HandoffError> {
        let (here, not_here) = self.chain_paths(chain);
        self.write_view(&here, chain)?;
        match self.vfs.remove_file(&not_here) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io_error("remove", &not_here, error))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn remove_view(&self, chain: &Chain) -> Result<(), HandoffError> {
        let (here, _) = self.chain_paths(chain);
        match self.vfs.remove_file(&here) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io_error("remove", &here, error))
            }
            _ => Ok(()),
        }
    }

    fn write_view(&self, path: &Path, view: &impl serde::Serialize) -> Result<(), HandoffError> {
        let vfs = self.vfs.as_ref();
        let text = pretty(view).map_err(|source| io_error("write", path, source))?;
        let written =
            vfs.create_dir_all(vfs::parent(path)).and_then(|()| vfs::write_atomic(vfs, path, &text));
        written.map_err(|source| io_error("write", path, source))
    }
}
