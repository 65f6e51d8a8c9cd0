//! What a step asks of its agent beyond an answer: before a run it is said what the agent cannot do.
//!
//! Whatever would make the work another one is refused. What only makes it better or cheaper is a note.

use sage_agents::AgentConfig;
use sage_agents::agent::{Agent, Capabilities, adapter};
use serde_json::Value;

use super::Use;
use crate::cli::agent_choice::OFFLINE;
use crate::cli::failure::Failure;
use crate::cli::notes::Note;

/// Who reads all parameters of its step itself, in `$SAGE_INPUT`.
const READS_PARAMS: [&str; 2] = ["command", "foreign"];

pub fn check(it: &Use<'_>, agent: &AgentConfig) -> Result<(), Failure> {
    let can = abilities(agent);
    let wants = |name: &str| it.operation.params.get(name).is_some_and(is_wanted);
    let refused = [
        (wants("mode") && !can.plans, "has no plan mode (`mode: plan`)"),
        (wants("agentType") && !can.agent_types, "has no agents of its own (`agentType`)"),
        (wants("project") && !can.project, "has no settings of the project to switch on (`project`)"),
        (wants("mcp") && !can.mcp, "cannot be given MCP servers (`mcp`)"),
    ];
    match refused.iter().find(|(is_refused, _)| *is_refused) {
        Some((_, why)) => {
            let Use { path, role, name, .. } = it;
            let failure = Failure::usage(format!("step `{path}`: {role}agent `{name}` {why}"));
            let own = (*name == OFFLINE).then_some("--agent claude, or `agent = \"claude\"` in sage.toml");
            Err(failure.hint(own.unwrap_or("sage agents")))
        }
        None => Ok(()),
    }
}

/// What the agent does not heed, without harm to the result.
pub fn notes(it: &Use<'_>, agent: &AgentConfig) -> Vec<Note> {
    let can = abilities(agent);
    let wants = |name: &str| it.operation.params.get(name).is_some_and(is_wanted);
    let reads = READS_PARAMS.contains(&agent.adapter.as_str());
    let ignored = [
        (wants("effort") && !can.effort && !reads, "thinks as much as it always does: `effort` is not used"),
        (wants("questions") && !can.questions && !reads, "cannot ask a person: `questions` is not used"),
        (wants("files") && agent.adapter == OFFLINE, "looks at the project by itself: `files` is not used"),
    ];
    let note = |why: &str| Note::new(format!("step `{}`: {}agent `{}` {why}", it.path, it.role, it.name));
    ignored.iter().filter(|(is_ignored, _)| *is_ignored).map(|(_, why)| note(why)).collect()
}

/// `false`, nothing and an empty list ask for nothing.
fn is_wanted(value: &Value) -> bool {
    !(value.is_null() || *value == false || value.as_array().is_some_and(Vec::is_empty))
}

fn abilities(agent: &AgentConfig) -> Capabilities {
    match agent.adapter.as_str() {
        // It plays whatever its script says.
        "fake" => Capabilities {
            questions: true,
            plans: true,
            effort: true,
            agent_types: true,
            project: true,
            mcp: true,
            ..Capabilities::default()
        },
        // What an agent that speaks ACP can do is known when it is asked; of this one it is known before.
        "acp" if agent.runs("gemini") => Capabilities {
            effort: false,
            questions: false,
            ..adapter("acp").map(Agent::capabilities).unwrap_or_default()
        },
        other => adapter(other).map(Agent::capabilities).unwrap_or_default(),
    }
}
