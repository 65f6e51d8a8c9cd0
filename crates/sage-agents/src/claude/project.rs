//! The project's own settings, skills and agents for Claude Code, as far as a step switches them on.
//!
//! | part       | how                                                                             |
//! |------------|---------------------------------------------------------------------------------|
//! | `settings` | `--setting-sources user,project,local`: also brings skills, agents and commands   |
//! | `skills`   | a plugin for this attempt whose skills are the project's: `project:<name>`        |
//! | `agents`   | given by value                                                                   |

use std::ffi::OsString;
use std::path::Path;

use sage_fence::{Fence, private};
use serde_json::{Map, Value};

use super::agent_type;
use crate::agent::{Order, ProjectPart};
use crate::attempt::Attempt;
use crate::outcome::Miss;

const SKILLS: &str = ".claude/skills";
/// The name of the plugin: what its skills are called by.
const PLUGIN: &str = "project";

/// The settings that count.
pub fn sources(order: &Order) -> &'static str {
    if order.project.contains(&ProjectPart::Settings) { "user,project,local" } else { "user" }
}

/// A plugin with the project's skills, if the step wants only them.
pub fn plugin(attempt: &Attempt<'_>, order: &Order) -> Result<Option<OsString>, Miss> {
    let wanted = order.project.contains(&ProjectPart::Skills) && sources(order) == "user";
    // A link could lead out of the project.
    let skills = Fence::new(&attempt.cx.project).locate(Path::new(SKILLS)).ok();
    let skills =
        skills.map(|inside| attempt.cx.project.join(inside)).filter(|skills| wanted && skills.is_dir());
    let Some(skills) = skills else { return Ok(None) };
    let folder = attempt.cx.scratch.join(PLUGIN);
    let link = folder.join("skills");
    let made = private::create_dir_all(&folder).and_then(|()| match std::fs::read_link(&link) {
        Ok(_) => Ok(()),
        Err(_) => std::os::unix::fs::symlink(&skills, &link),
    });
    made.map_err(|error| Miss::of_io(&error, format!("cannot write `{}`: {error}", link.display())))?;
    Ok(Some(folder.into()))
}

/// Agents of the project that are given by value: the one that the step is done by, or all.
pub fn agents(attempt: &Attempt<'_>, order: &Order) -> Option<String> {
    let project = &attempt.cx.project;
    let mut agents = Map::new();
    if order.project.contains(&ProjectPart::Agents) && sources(order) == "user" {
        for name in agent_type::names(project) {
            agents.extend(agent_type::of_project(&name, project).map(|agent| (name, agent)));
        }
    }
    if let Some(name) = &order.agent_type {
        agents.extend(agent_type::of_project(name, project).map(|agent| (name.clone(), agent)));
    }
    (!agents.is_empty()).then(|| Value::Object(agents).to_string())
}
