//! `sage skills`: list, search, show, save, approve, run.

mod approve;
pub mod count;
mod draft;
mod facts;
pub(crate) mod list;
mod run;
pub(crate) mod save;
pub(crate) mod search;
pub(crate) mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use sage_core::seal::Key;
use sage_core::secret::{Known, of_variable};
use sage_engine::clock::Clock;
use sage_engine::project::Project;
use sage_engine::skills::{Index, Listed, Place, PlacedFinding, SkillError, Store};
use sage_engine::vfs::Vfs;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use crate::command_line::sage;
use crate::display::text::clean;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all skills: version, approval, how often each was reused and how well that went
    List,
    /// Show which skills fit what you are about to do
    Search(search::Args),
    /// Show one skill
    Show {
        /// The skill's name
        name: String,
    },
    /// Make a skill of a run that succeeded; nobody uses it before it is approved
    Save(save::Args),
    /// Approve a skill as it is now; a changed one has to be approved again
    Approve(approve::Args),
    /// Run an approved skill that has code (skill.ts) or a program (run.sh)
    Run(run::Args),
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        matches!(self.action, Action::List | Action::Search(_) | Action::Show { .. })
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let store = store(&context.project, context.disk.clone(), context.key.as_ref());
    let json = args.json;
    match args.action {
        Action::List => list::execute(&store.index(), json),
        Action::Search(args) => search::execute(context, &store.index(), args, json),
        Action::Show { name } => show::execute(&store.index(), &name, json),
        Action::Save(args) => save::execute(context, &store, args, json),
        Action::Approve(args) => approve::execute(&store, args, json),
        Action::Run(args) => run::execute(context, &store, args, json),
    }
}

/// The skills that can be found from a project, with those of its user.
pub fn store(project: &Project, vfs: Arc<dyn Vfs>, key: Option<&Key>) -> Store {
    let dir = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let places = Place::all(project, dir("HOME").as_deref(), dir("XDG_CONFIG_HOME").as_deref());
    Store::new(project, places, vfs, Clock::System, key)
}

/// Values of variables whose names say that they are secret.
pub fn known_secrets() -> Vec<Known> {
    let text = |text: std::ffi::OsString| text.into_string().ok();
    let all = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
    all.filter_map(|(name, value)| of_variable(&name, &value)).collect()
}

/// `SKILL.md:12: secret: a GitHub token`
fn finding_lines(findings: &[PlacedFinding]) -> String {
    let line = |placed: &PlacedFinding| {
        let finding = &placed.finding;
        format!(
            "\n  {}:{}: {}: {}",
            clean(&placed.file),
            finding.line,
            finding.kind.name(),
            clean(&finding.why)
        )
    };
    findings.iter().map(line).collect()
}

pub(crate) fn failure(error: SkillError) -> Failure {
    let message = error.to_string();
    match error {
        SkillError::Unknown { near, .. } => {
            Failure::usage(message).hint(near.unwrap_or_else(|| "sage skills list".into()))
        }
        SkillError::Name(_) => Failure::usage(message).hint("--name <name>"),
        SkillError::Changed { name } => Failure::failed(message).hint(sage("skills approve").arg(&name)),
        SkillError::Damaged { .. } => {
            Failure::failed(message).hint("move the file away; sage writes a new one")
        }
        SkillError::NoKey => Failure::failed(message).hint("XDG_STATE_HOME=<a directory of yours>"),
        SkillError::Content { .. } | SkillError::Io { .. } | SkillError::Project(_) => {
            Failure::failed(message)
        }
    }
}

/// What all commands tell of a skill.
fn row(index: &Index, listed: &Listed) -> Value {
    let (skill, times) = (&listed.skill, listed.times);
    let shadows: Vec<String> = listed.shadows.iter().map(|path| index.shown(path)).collect();
    json!({
        "name": skill.name,
        "description": skill.description,
        "version": listed.version(),
        "approved": listed.approved(),
        "approval": listed.approval,
        "changedSinceApproval": listed.outdated,
        "tags": skill.tags,
        "license": skill.license,
        "place": listed.place,
        "path": index.shown(&listed.file()),
        "shadows": shadows,
        "created": listed.meta.as_ref().map(|meta| &meta.created),
        "origin": listed.meta.as_ref().map(|meta| &meta.origin),
        "timesOffered": times.offered,
        "timesUsed": times.used,
        "timesSucceeded": times.succeeded,
        "successRate": times.success_rate(),
    })
}

/// `yes`, `no`, or that it was.
fn approved_text(listed: &Listed) -> &'static str {
    match (listed.approved(), listed.outdated) {
        (true, _) => "yes",
        (false, true) => "changed",
        (false, false) => "no",
    }
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".into(), |rate| format!("{:.0}%", rate * 100.0))
}

fn tell_problems(index: &Index) {
    for problem in &index.problems {
        let what = if problem.fatal { "cannot be used: " } else { "" };
        eprintln!("note: {}: {what}{}", clean(&index.shown(&problem.path)), clean(&problem.message));
    }
}

fn is_file(dir: &Path, name: &str) -> bool {
    dir.join(name).is_file()
}
