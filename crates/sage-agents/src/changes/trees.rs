//! The project before and after a step that works in the user's checkout: `trees.json`, beside the folders of the
//! step's attempts. The first attempt notes how it was, each one how it left it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sage_core::port::{StepCall, StepCx};
use sage_core::role::Role;
use sage_core::template::{Isolation, Kind};
use serde::{Deserialize, Serialize};

use super::aside::{Aside, LIST, PLACES, add_args, too_much, write_args};
use crate::executor::ExecutorConfig;
use crate::outcome::Miss;
use crate::worktree::Git;

const FILE: &str = "trees.json";
/// A repository that takes longer is not worth it.
const PATIENCE: Duration = Duration::from_secs(15);
/// Git's answer is a path or an id; a list may be long and is then cut, which counts as too much.
const LIST_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trees {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Missing while an attempt works, and after one that was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why there is no `before`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl Trees {
    /// `None` if nothing was noted.
    pub fn read(step_dir: &Path) -> Option<Trees> {
        serde_json::from_slice(&std::fs::read(step_dir.join(FILE)).ok()?).ok()
    }

    fn write(&self, step_dir: &Path) {
        let _ = serde_json::to_vec(self).map(|text| sage_fence::private::write(&step_dir.join(FILE), &text));
    }
}

/// Before an attempt.
pub async fn before(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) {
    let Some(step_dir) = noted(config, cx, call) else { return };
    let known = Trees::read(&step_dir).filter(|_| call.attempt > 1 && !call.fresh);
    let trees = match known {
        Some(known) => Trees { after: None, ..known },
        None => match tree(config, cx, call, &step_dir).await {
            Ok(None) => return,
            Ok(before) => Trees { before, ..Trees::default() },
            Err(why) => Trees { skipped: Some(why), ..Trees::default() },
        },
    };
    trees.write(&step_dir);
}

/// After an attempt, and after what was written of its result.
pub async fn after(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) {
    let Some(step_dir) = noted(config, cx, call) else { return };
    let Some(trees) = Trees::read(&step_dir).filter(|trees| trees.before.is_some()) else { return };
    if let Ok(after) = tree(config, cx, call, &step_dir).await {
        Trees { after, ..trees }.write(&step_dir);
    }
}

/// Where the trees of a step are noted: of agents that may write in the checkout of a repository.
fn noted(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) -> Option<PathBuf> {
    let writes = call.role.unwrap_or(Role::Implementer).access().write;
    let agent = call.agent.as_deref().filter(|_| call.kind == Kind::Agent && writes)?;
    let configured = config.agents.get(agent).map_or(agent, |agent| agent.adapter.as_str());
    let wanted = call.isolation == Isolation::None && configured != "offline";
    let in_repository = || cx.project.ancestors().any(|dir| dir.join(".git").exists());
    if wanted && in_repository() { Some(cx.scratch.parent()?.to_path_buf()) } else { None }
}

/// The files of the project as a git tree, or why there is none; `None` without a repository.
async fn tree(
    config: &ExecutorConfig,
    cx: &StepCx,
    call: &StepCall,
    step_dir: &Path,
) -> Result<Option<String>, String> {
    let taking = async {
        let git = Git::new(config, cx, call).map_err(why)?;
        let git = git.unfiltered(&cx.project).await.map_err(why)?;
        let Ok(places) = git.ask(&cx.project, PLACES).await.map_err(why)? else { return Ok(None) };
        let (index, objects) = places.split_once('\n').ok_or("git did not say where its index is")?;
        let listed = ask(&git, cx, LIST).await?;
        if listed.len() >= LIST_BYTES {
            return Err("too many files of the project are not committed".to_string());
        }
        if let Some(why) = too_much(&cx.project, &listed) {
            return Err(why);
        }
        let aside = Aside::new(step_dir, Path::new(index), Path::new(objects), &listed)
            .map_err(|error| error.to_string())?;
        let git = git.with_variables(aside.variables());
        ask(&git.clone().with_stdin(aside.names()), cx, add_args()).await?;
        ask(&git, cx, write_args()).await.map(Some)
    };
    tokio::time::timeout(PATIENCE, taking).await.unwrap_or_else(|_| Err("git took too long".into()))
}

async fn ask(git: &Git, cx: &StepCx, args: impl IntoIterator<Item = &str>) -> Result<String, String> {
    let answer = git.ask(&cx.project, args).await.map_err(why)?;
    answer.map_err(|refused| refused.message)
}

fn why(miss: Miss) -> String {
    match miss {
        Miss::Failed { message, .. } => message,
        Miss::Stopped => "the step was stopped".into(),
    }
}
