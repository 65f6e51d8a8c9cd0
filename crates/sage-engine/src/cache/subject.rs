//! What a step's cached result is the result of: everything that the step's own key leaves out because it stays
//! the same inside a run. Title, agent by default, who that agent is, and the files that the step declares.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_core::digest::Digest;
use sage_core::key::KeyParts;
use sage_core::policy::CachePolicy;
use sage_core::port::StepExecutor;
use sage_core::run::{Run, StepId};
use sage_core::template::{Kind, Operation};

use super::Cache;
use super::files::{self, Declared};
use crate::project::Project;

/// A step as the cache knows it, taken from the run at one moment.
#[derive(Clone)]
pub struct Subject {
    pub operation: String,
    pub step: String,
    pub feature: String,
    pub run: String,
    title: String,
    pub agent: Option<String>,
    pub model: Option<String>,
    /// Of a tool step: server and tool.
    tool: Option<(String, String)>,
    policy: CachePolicy,
    executor: Arc<dyn StepExecutor>,
    project: PathBuf,
    sage: PathBuf,
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject").field("step", &self.step).finish_non_exhaustive()
    }
}

/// Where a step's result is kept.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub key: Digest,
    pub parts: BTreeMap<String, String>,
    /// The step's own key: of a step that was prepared anew it may be another one.
    pub step_key: Digest,
    /// The declared files as they were then.
    files: Option<Declared>,
    pub ttl_ms: u64,
    pub subject: Subject,
}

impl Subject {
    /// `None` if the step has nothing to do with the cache.
    pub fn of(
        run: &Run,
        id: StepId,
        executor: &Arc<dyn StepExecutor>,
        project: &Path,
        run_dir: &Path,
    ) -> Option<Subject> {
        let operation = run.operation(id);
        let policy = operation.cache.clone().filter(|_| operation.caches() && !run.is_fan(id))?;
        Some(Subject {
            operation: operation.type_name.clone(),
            step: run.step(id).path.to_string(),
            feature: run.feature.clone(),
            run: run.id.clone(),
            title: run.title.clone(),
            agent: run.agent_of(id).map(str::to_string),
            model: run.model_of(id).map(str::to_string),
            tool: tool_of(operation),
            policy,
            executor: executor.clone(),
            project: project.to_owned(),
            sage: Project::dir_of(run_dir),
        })
    }

    /// Reads the declared files: not for the loop's own thread. `Err` if they cannot be told.
    pub fn ticket(&self, cache: &Cache, step: &KeyParts) -> Result<Ticket, String> {
        let mut parts = step.clone();
        // Programs see them whatever their prompt says.
        parts.text("title", Some(&self.title));
        parts.text("feature", Some(&self.feature));
        if let Some(agent) = &self.agent {
            parts.text("agent at work", Some(agent));
            parts.text("agent version", Some(&self.executor.fingerprint(agent, &self.project)));
            // A fallback may have brought another one.
            parts.text("model at work", self.model.as_deref());
        }
        if let Some(tool) =
            self.tool.as_ref().and_then(|(server, tool)| self.executor.known_tool(server, tool))
        {
            parts.text("tool definition", Some(&tool.definition));
        }
        let files = self.declared(cache)?;
        if let Some(found) = &files {
            let name = if found.by_time { "files, large ones by size and time" } else { "files" };
            parts.add(name, found.digest);
        }
        Ok(Ticket {
            key: parts.key(),
            parts: parts.shortened(),
            step_key: step.key(),
            files,
            ttl_ms: self.policy.ttl_ms.unwrap_or(cache.config.ttl_ms),
            subject: self.clone(),
        })
    }

    fn declared(&self, cache: &Cache) -> Result<Option<Declared>, String> {
        if self.policy.files.is_empty() {
            return Ok(None);
        }
        files::declared(&self.project, &self.sage, &self.policy.files, &cache.memo).map(Some)
    }
}

/// Names are not rendered: a step says in its template which tool it calls.
fn tool_of(operation: &Operation) -> Option<(String, String)> {
    let text = |name: &str| operation.params.get(name)?.as_str().map(str::to_string);
    (operation.kind == Kind::Tool).then(|| Some((text("server")?, text("tool")?))).flatten()
}

impl Ticket {
    /// Whether the declared files still are what the key says. If not, nobody knows which of them the step has seen.
    pub fn holds(&self, cache: &Cache) -> bool {
        self.subject.declared(cache).is_ok_and(|now| now == self.files)
    }
}
