//! Why a feature has no run that could be found: there is none, or what there was cannot be read.

use std::io;
use std::path::Path;

use super::{Engine, OpenError};
use crate::checkpoint::{self, CheckpointError};
use crate::vfs;

/// Damaged checkpoints of one feature that are kept; more say no more.
const MAX_KEPT: usize = 100;

impl Engine {
    /// The error for a feature that [`Engine::latest`] finds no run of.
    pub fn unknown(&self, feature: &str) -> OpenError {
        if let Err(error) = self.refuse_unreadable() {
            return error;
        }
        match self.garbled(feature) {
            Some(what) => OpenError::Garbled { feature: feature.into(), what },
            None => OpenError::Unknown(feature.into()),
        }
    }

    /// Fails if the state is there and cannot be listed: then nobody can say which runs there are.
    pub fn refuse_unreadable(&self) -> Result<(), OpenError> {
        for dir in [self.project.dir.clone(), self.project.state(), self.project.runs()] {
            match self.vfs.list(&dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(source) => {
                    return Err(OpenError::Unreadable { path: dir, source });
                }
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// What shows that there was a run, although nothing of it can be read.
    pub(super) fn garbled(&self, feature: &str) -> Option<String> {
        let path = self.project.checkpoint(feature);
        let unreadable = match checkpoint::load(self.vfs.as_ref(), &path) {
            Err(CheckpointError::Missing { .. }) | Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let named =
            || self.listed(feature).map(|run| format!("its run was `{run}`, whose journal cannot be read"));
        unreadable.or_else(named)
    }

    /// A checkpoint that cannot be read is kept under another name before a new run takes its place.
    pub(super) fn keep_garbled(&self, feature: &str) -> io::Result<()> {
        let path = self.project.checkpoint(feature);
        match checkpoint::load(self.vfs.as_ref(), &path) {
            Ok(_) | Err(CheckpointError::Missing { .. } | CheckpointError::NewerVersion { .. }) => {
                return Ok(());
            }
            Err(error) => {
                // Nobody can say what is in it: it may be as good as ever.
                if let Some(errno) = error.io().and_then(io::Error::raw_os_error) {
                    return Err(io::Error::from_raw_os_error(errno));
                }
            }
        }
        for path in [path.clone(), checkpoint::backup_path(&path)] {
            if self.vfs.exists(&path)? {
                self.set_aside(&path)?;
            }
        }
        self.vfs.sync_dir(&self.project.state())
    }

    /// Something else than a file in the place of a checkpoint gets another name.
    pub(super) fn clear_place(&self, path: &Path) {
        if self.vfs.metadata(path).is_ok_and(|meta| !meta.is_file) {
            // What cannot be moved keeps the checkpoint from being written, and `sage verify` says so.
            let _ = self.set_aside(path);
        }
    }

    fn set_aside(&self, path: &Path) -> io::Result<()> {
        let aside = (1..).map(|number: u32| vfs::with_suffix(path, &format!(".damaged-{number}")));
        let free = aside.take(MAX_KEPT).find(|aside| !self.vfs.exists(aside).unwrap_or(true));
        free.map_or(Ok(()), |aside| self.vfs.rename(path, &aside))
    }
}
