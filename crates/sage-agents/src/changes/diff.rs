//! A change of a step, to be shown: two trees or commits, and where git finds them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sage_core::seal::Key;
use serde::Serialize;

use super::aside::{Aside, LIST, PLACES, add_args, objects_variables, write_args};
use super::trees::Trees;
use crate::worktree::{self, LeaseState, Record, git_dir_of, git_reading, git_with};

/// Programs of the repository's configuration are not run, and names are shown as they are.
const DIFF: [&str; 6] =
    ["-c", "core.quotePath=false", "diff", "--no-ext-diff", "--no-textconv", "--relative"];

/// What a step changed.
#[derive(Debug)]
pub struct Change {
    pub from: String,
    pub to: String,
    /// The branch that has it.
    pub branch: Option<String>,
    /// The step has not ended, or nobody knows how: it is compared with the files of now.
    pub live: bool,
    project: PathBuf,
    /// Only these files; all if there are none.
    paths: Vec<String>,
    variables: Vec<(OsString, OsString)>,
    /// Objects that were made for this look.
    _made: Option<Made>,
}

/// One file of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    pub path: String,
    /// Lines; `None` for binary files.
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

impl Change {
    /// As git prints it, to be applied elsewhere; empty if nothing changed.
    pub fn patch(&self) -> Result<Vec<u8>, String> {
        self.diff(&["--color=never"])
    }

    pub fn stat(&self, columns: usize) -> Result<Vec<u8>, String> {
        let columns = format!("--stat={}", columns.clamp(20, 200));
        self.diff(&["--color=never", &columns])
    }

    pub fn files(&self) -> Result<Vec<FileChange>, String> {
        let text = self.diff(&["--numstat", "--no-renames", "-z"])?;
        let text = String::from_utf8_lossy(&text);
        let file = |line: &str| {
            let mut fields = line.splitn(3, '\t');
            let (added, removed, path) = (fields.next()?, fields.next()?, fields.next()?);
            Some(FileChange { path: path.into(), added: added.parse().ok(), removed: removed.parse().ok() })
        };
        Ok(text.split('\0').filter_map(file).collect())
    }

    fn diff(&self, options: &[&str]) -> Result<Vec<u8>, String> {
        // They come from files: whatever else is there would be an option.
        if ![&self.from, &self.to]
            .iter()
            .all(|id| id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            return Err("the record of its changes is damaged".into());
        }
        let ends = [self.from.as_str(), &self.to, "--"];
        let paths = self.paths.iter().map(String::as_str);
        let args = DIFF.iter().chain(options).chain(&ends).copied().chain(paths);
        git_with(&self.project, args, &self.variables)
    }
}

/// Of a step with a worktree of its own. `project` is the user's.
pub fn of_lease(
    project: &Path,
    worktrees: &Path,
    run: &str,
    step: &str,
    key: Option<&Key>,
) -> Result<Option<Change>, String> {
    let leases = worktree::list_of(worktrees, run, key).map_err(|error| error.to_string())?;
    let Some(record) = leases.found.into_iter().find(|record| record.step == step) else { return Ok(None) };
    match record.state {
        LeaseState::Creating => Ok(None),
        LeaseState::Committed => Ok(Some(of_branch(project, &record))),
        LeaseState::Active | LeaseState::Failed => of_worktree(project, &record).map(Some),
    }
}

fn of_branch(project: &Path, record: &Record) -> Change {
    Change {
        from: record.base.clone(),
        to: record.commit.clone().unwrap_or_else(|| record.base.clone()),
        branch: Some(record.branch.clone()),
        live: false,
        project: project.to_path_buf(),
        paths: Vec::new(),
        variables: Vec::new(),
        _made: None,
    }
}

/// The files in it are the step's, committed or not. A worktree that is gone has left its branch.
fn of_worktree(project: &Path, record: &Record) -> Result<Change, String> {
    let common_dir = asked(project, ["rev-parse", "--path-format=absolute", "--git-common-dir"], &[])?;
    let Some(git_dir) = git_dir_of(Path::new(&common_dir), &record.path).filter(|_| record.path.is_dir())
    else {
        return Ok(of_branch(project, record));
    };
    // Named, because the step may have removed its `.git`, and the user's must not be found.
    let place =
        [("GIT_DIR".into(), git_dir.clone().into()), ("GIT_WORK_TREE".into(), record.path.clone().into())];
    let made = Made::new()?;
    let (to, variables) = tree(&record.path, &place, &made.0)?;
    let branch = Some(record.branch.clone());
    let (from, project) = (record.base.clone(), project.to_path_buf());
    let paths = Vec::new();
    Ok(Change { from, to, branch, live: true, project, paths, variables, _made: Some(made) })
}

/// Of an agent in the user's checkout; an error says why nothing was noted. `None` if the step is not of that sort.
pub fn of_step(project: &Path, step_dir: &Path) -> Option<Result<Change, String>> {
    let trees = Trees::read(step_dir)?;
    let from = match (trees.before, trees.skipped) {
        (Some(before), _) => before,
        (None, why) => return Some(Err(why.unwrap_or_else(|| "nothing was noted before it".into()))),
    };
    Some(of_trees(project, step_dir, from, trees.after))
}

fn of_trees(project: &Path, step_dir: &Path, from: String, after: Option<String>) -> Result<Change, String> {
    let live = after.is_none();
    let noted = step_dir.join("objects");
    let (to, made, mut variables) = match after {
        Some(after) => {
            let places = asked(project, PLACES, &[])?;
            let own = places.lines().nth(1).ok_or("git did not say where its objects are")?;
            (after, None, objects_variables(&noted, Path::new(own)).to_vec())
        }
        None => {
            let made = Made::new()?;
            let (to, variables) = tree(project, &[], &made.0)?;
            (to, Some(made), variables)
        }
    };
    if noted.is_dir()
        && live
        && let Some((_, list)) = variables.last_mut()
    {
        list.push(format!(":\"{}\"", noted.display()));
    }
    let project = project.to_path_buf();
    Ok(Change { from, to, branch: None, live, project, paths: Vec::new(), variables, _made: made })
}

/// Files that a step has written and nobody looked at before: against the last commit.
pub fn of_outputs(project: &Path, paths: &[String]) -> Result<Change, String> {
    let from = asked(project, ["rev-parse", "--verify", "HEAD"], &[])?;
    let change = of_trees(project, project, from, None)?;
    let literal = |path: &String| format!(":(literal){path}");
    Ok(Change { paths: paths.iter().map(literal).collect(), ..change })
}

/// A directory for the time of one look.
#[derive(Debug)]
struct Made(PathBuf);

impl Made {
    fn new() -> Result<Made, String> {
        let dir = std::env::temp_dir().join(format!("sage-diff-{}", ulid::Ulid::generate()));
        sage_fence::private::create_dir_all(&dir).map_err(|error| format!("`{}`: {error}", dir.display()))?;
        Ok(Made(dir))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What git prints, without the line break at its end.
fn asked<'a>(
    cwd: &Path,
    args: impl IntoIterator<Item = &'a str>,
    variables: &[(OsString, OsString)],
) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&git_with(cwd, args, variables)?).trim_end().to_string())
}

/// The files in `cwd` as a tree, and the variables with which git finds it.
fn tree(
    cwd: &Path,
    place: &[(OsString, OsString)],
    made: &Path,
) -> Result<(String, Vec<(OsString, OsString)>), String> {
    let places = asked(cwd, PLACES, place)?;
    let (index, objects) = places.split_once('\n').ok_or("git did not say where its index is")?;
    let listed = asked(cwd, LIST, place)?;
    let aside =
        Aside::new(made, Path::new(index), Path::new(objects), &listed).map_err(|error| error.to_string())?;
    let mut variables = place.to_vec();
    variables.extend(aside.variables());
    git_reading(cwd, add_args(), &variables, Some(aside.names()))?;
    let tree = asked(cwd, write_args(), &variables)?;
    Ok((tree, objects_variables(&made.join("objects"), Path::new(objects)).to_vec()))
}
