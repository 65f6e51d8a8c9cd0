//! What is on its way out: renamed here at once, removed file by file after that. Whoever finds something in it
//! goes on with it.

use std::io;
use std::path::{Path, PathBuf};

use super::{Category, Gc};
use crate::vfs;

impl Gc<'_> {
    fn trash(&self) -> PathBuf {
        self.engine.project.state().join("trash")
    }

    /// Of a clean-up that was killed.
    pub(super) fn empty_trash(&mut self) {
        if self.policy.dry_run {
            return;
        }
        for name in self.names(&self.trash()) {
            let path = self.trash().join(name);
            if let Err(error) = self.vfs().remove_dir_all(&path) {
                let name = self.shown(&path);
                self.report.failed(Category::Leftovers, name, error);
            }
        }
    }

    /// Forks that nobody has finished making.
    pub(super) fn sweep_forks(&mut self) {
        let forks = self.engine.project.forks();
        for name in self.names(&forks) {
            let path = forks.join(name);
            if !self.is_abandoned(&path) {
                continue;
            }
            let (name, bytes) = (self.shown(&path), super::tree_bytes(self.vfs(), &path));
            let removed = if self.policy.dry_run { Ok(()) } else { self.vfs().remove_dir_all(&path) };
            let item =
                super::Item { category: Category::Leftovers, name, bytes, age_ms: None, feature: None };
            match removed {
                Ok(()) => self.report.removed(item),
                Err(error) => self.report.failed(Category::Leftovers, item.name, error),
            }
        }
    }

    /// From one moment to the next it is not where it was, also after a power cut. Gives its new place.
    pub(super) fn throw_away(&self, dir: &Path) -> io::Result<PathBuf> {
        let trash = self.trash();
        if !self.vfs().exists(&trash)? {
            vfs::create_dir_durable(self.vfs(), &trash)?;
        }
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = trash.join(format!("{name}-{}", ulid::Ulid::generate()));
        self.vfs().rename(dir, &place)?;
        self.vfs().sync_dir(vfs::parent(dir))?;
        self.vfs().sync_dir(&trash)?;
        Ok(place)
    }
}
