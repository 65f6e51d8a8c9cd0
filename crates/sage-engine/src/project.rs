//! The project's own directory: `.sage` and what lies where in it (DESIGN §7).
//!
//! Nothing outside of `.sage` is ever written by the engine itself. A `.sage` that is a symlink or belongs to
//! somebody else is refused: state is never read from a place that others can swap.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::vfs::{self, Vfs};

const GITIGNORE: &str = "/state/\n/cache/\n/sessions/\n/inbox/\n/handoffs/\n/worktrees/\n/logs/\n/history.db*\n/types/\n/tsconfig.json\n";

/// What Sage writes in `.sage`, beside its state.
const OURS: [&str; 10] = [
    "sessions",
    "inbox",
    "handoffs",
    "worktrees",
    "logs",
    "cache",
    "tickets",
    "types",
    "tsconfig.json",
    ".gitignore",
];

/// What people write there, and Sage for them.
const DEFINITIONS: [&str; 3] = ["templates", "operations", "skills"];

/// In `state`: its directories have been synced.
const DURABLE: &str = ".durable";

#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
    /// `.sage`, or what `SAGE_DIR` says.
    pub dir: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("`{}` is a symlink or not a directory; sage writes its state only to a real directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("`{}` is a symlink; sage writes its state only to a real directory", path.display())]
    Link { path: PathBuf },
    #[error("`{}` belongs to another user", path.display())]
    Foreign { path: PathBuf },
    #[error("cannot write in `{}`: {source}; nothing was started, because it could not be saved", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

impl Project {
    pub fn new(root: PathBuf, dir: PathBuf) -> Project {
        Project { root, dir }
    }

    pub fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    pub fn runs(&self) -> PathBuf {
        self.state().join("runs")
    }

    /// Runs that are being made of others; each moves to `runs` as a whole.
    pub fn forks(&self) -> PathBuf {
        self.state().join("forks")
    }

    /// Always in `runs`: an id that is no name, but a path, leads to nothing.
    pub fn run_dir(&self, run: &str) -> PathBuf {
        let name = || format!("not-a-run-{}", Digest::of(run.as_bytes()));
        if is_run_name(run) { self.runs().join(run) } else { self.runs().join(name()) }
    }

    pub fn checkpoint(&self, feature: &str) -> PathBuf {
        self.state().join(format!("workflow-{feature}.json"))
    }

    pub fn lock(&self, feature: &str) -> PathBuf {
        self.state().join(format!("workflow-{feature}.lock"))
    }

    /// Held by the one process that looks after runs in the background.
    pub fn supervisor(&self) -> PathBuf {
        self.state().join("supervisor.lock")
    }

    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// Slots, breakers and quotas that the runs of the project share.
    pub fn limits(&self) -> PathBuf {
        self.state().join("limits")
    }

    pub fn sessions(&self) -> PathBuf {
        self.dir.join("sessions")
    }

    /// Wakes (`inbox`).
    pub fn inbox(&self) -> PathBuf {
        self.dir.join("inbox")
    }

    /// Results that later runs may take.
    pub fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }

    /// `.sage` of a run's directory.
    pub(crate) fn dir_of(run_dir: &Path) -> PathBuf {
        run_dir.ancestors().nth(3).unwrap_or(run_dir).to_path_buf()
    }

    pub fn operations(&self) -> PathBuf {
        self.dir.join("operations")
    }

    pub fn templates(&self) -> PathBuf {
        self.dir.join("templates")
    }

    /// Makes sure that state can be saved here, before anything runs (R15).
    pub fn prepare(&self, vfs: &dyn Vfs) -> Result<(), ProjectError> {
        self.refuse_strange()?;
        let unwritable = |source| ProjectError::Unwritable { path: self.dir.clone(), source };
        self.refuse_links()?;
        self.make_durable(vfs).map_err(unwritable)?;
        self.refuse_strange()?;
        // One that came with a clone has the modes of the clone.
        match sage_fence::own::close_to_others(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error)),
            _ => {}
        }
        self.ignore_state(vfs).map_err(unwritable)?;
        // A name of its own: a probe that a crash left behind must not look like an unwritable directory.
        let probe = self.state().join(format!(".probe-{}", ulid::Ulid::generate()));
        vfs.create_new(&probe)
            .and_then(|mut file| vfs::write_all(file.as_mut(), b"ok"))
            .map_err(unwritable)?;
        vfs.remove_file(&probe).map_err(unwritable)
    }

    /// Creates the directories of runs. They are synced once: the mark is made after that, so where it is, they are
    /// durable.
    fn make_durable(&self, vfs: &dyn Vfs) -> io::Result<()> {
        let (runs, mark) = (self.runs(), self.state().join(DURABLE));
        if vfs.exists(&mark)? && vfs.exists(&runs)? {
            return Ok(());
        }
        // The project itself was there before, unless it is a simulated one.
        let known = vfs.exists(&self.root)? && self.dir.starts_with(&self.root);
        vfs.create_dir_all(&runs)?;
        match known {
            true => vfs::sync_between(vfs, &self.root, &self.state())?,
            false => vfs::sync_ancestors(vfs, &self.state())?,
        }
        match vfs.create_new(&mark) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn ignore_state(&self, vfs: &dyn Vfs) -> io::Result<()> {
        let path = self.dir.join(".gitignore");
        if vfs.exists(&path)? {
            return Ok(());
        }
        match vfs.create_new(&path) {
            Ok(mut file) => vfs::write_all(file.as_mut(), GITIGNORE.as_bytes()),
            // Another sage was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// State is never written through a link that others, or a clone, may have put there, nor into a directory of
    /// another user, who could swap it.
    pub fn refuse_strange(&self) -> Result<(), ProjectError> {
        use std::os::unix::fs::MetadataExt;
        let me = rustix::process::geteuid().as_raw();
        // As in git: root by sudo may work on the project of the user who called sudo.
        let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok()).filter(|_| me == 0);
        for path in [self.dir.clone(), self.state(), self.runs()] {
            let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
            if !meta.is_dir() {
                return Err(ProjectError::NotADirectory { path });
            }
            if meta.uid() != me && Some(meta.uid()) != caller {
                return Err(ProjectError::Foreign { path });
            }
        }
        Ok(())
    }

    /// The same for what lies in it. The clean-up looks for itself, and does without.
    ///
    /// Nothing that Sage writes is a link; definitions may be one that stays in the project.
    pub fn refuse_links(&self) -> Result<(), ProjectError> {
        let entries = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let all = entries(self.dir.clone()).chain(entries(self.state())).chain(entries(self.runs()));
        let mut links = all.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let refused = links.find(|link| {
            let path = link.path();
            let is = |names: &[&str]| names.iter().any(|name| link.file_name() == *name);
            path.starts_with(self.state()) || is(&OURS) || (is(&DEFINITIONS) && !self.is_within(&path))
        });
        match refused {
            Some(link) => Err(ProjectError::Link { path: link.path() }),
            None => Ok(()),
        }
    }

    fn is_within(&self, path: &Path) -> bool {
        matches!((path.canonicalize(), self.root.canonicalize()), (Ok(path), Ok(root)) if path.starts_with(&root))
    }

    /// Where an attempt keeps its input and its output; names of steps are made safe and short.
    pub fn scratch(run_dir: &Path, step: &str, attempt: u32) -> PathBuf {
        run_dir.join("steps").join(step_file(step)).join(attempt.to_string())
    }
}

/// Whether an id of a run can be a directory's name. Files of others name runs, too.
pub fn is_run_name(run: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !run.is_empty() && run.len() <= 128 && run.chars().all(plain)
}

/// A step's path as one file name: readable, and unique by a piece of its hash when it had to be changed.
pub fn step_file(step: &str) -> String {
    const READABLE: usize = 80;
    let name: String =
        step.chars().map(|c| if c.is_ascii_alphanumeric() || "-@[]".contains(c) { c } else { '.' }).collect();
    let short: String = name.chars().take(READABLE).collect();
    if name.len() <= READABLE { short } else { format!("{short}-{}", Digest::of(step.as_bytes()).short()) }
}
