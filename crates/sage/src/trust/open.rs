//! What is open in a project: definitions that are not trusted, and state that this user did not write.

use sage_agents::agent::ProjectPart;
use sage_engine::open::Engine;
use serde::Serialize;

use super::programs::installed_tsc;
use super::{Definition, Door, agent_files, workflow};
use crate::cli::context::Context;
use crate::cli::failure::Failure;

/// Everything that waits for a person's word.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Open {
    pub definitions: Vec<Definition>,
    /// Features whose newest run is foreign.
    pub state: Vec<String>,
}

/// How state is named beside definitions.
pub const STATE: &str = "state.";

impl Open {
    /// Of templates and operations only what a run would ask for, unless others are named.
    pub fn of(context: &Context, names: &[String]) -> Result<Open, Failure> {
        let of_runs = if names.is_empty() { workflow::asked_for(context) } else { workflow::all(context) };
        let mut definitions = context.config.untrusted.clone();
        let tsc = installed_tsc(&context.project.root).map(|(_, definition)| definition);
        let files = ProjectPart::ALL.into_iter().filter(|_| !names.is_empty());
        let files = files.filter_map(|part| agent_files::definition(&context.project.root, part));
        let others =
            tsc.into_iter().chain(of_runs).chain(files).filter(|definition| !context.trust.holds(definition));
        definitions.extend(others);
        Open { definitions, state: foreign(&context.engine()) }.only(names)
    }

    pub fn is_empty(&self) -> bool {
        self.definitions.is_empty() && self.state.is_empty()
    }

    /// Only what is named; an error names what is not there.
    fn only(mut self, names: &[String]) -> Result<Open, Failure> {
        if names.is_empty() {
            return Ok(self);
        }
        let known = self.names();
        if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
            let failure = Failure::usage(format!("`{}` does not wait to be trusted", unknown.escape_debug()));
            let near = sage_core::diagnostic::did_you_mean(unknown, known.iter().map(String::as_str));
            return Err(failure.hint(near.unwrap_or_else(|| "sage trust --list".into())));
        }
        self.definitions.retain(|it| names.contains(&it.name));
        self.state.retain(|feature| names.contains(&format!("{STATE}{feature}")));
        Ok(self)
    }

    fn names(&self) -> Vec<String> {
        let state = self.state.iter().map(|feature| format!("{STATE}{feature}"));
        self.definitions.iter().map(|it| it.name.clone()).chain(state).collect()
    }

    /// Records that a person said yes.
    pub fn accept(&self, context: &mut Context, door: &Door) -> Result<(), Failure> {
        let at = sage_core::wire::rfc3339(sage_engine::clock::Clock::System.now_ms());
        if !self.definitions.is_empty() {
            context.trust.add(&self.definitions, &door.by(), &at).map_err(Failure::failed)?;
        }
        let engine = context.engine();
        for feature in &self.state {
            engine.adopt(feature, &door.by())?;
        }
        Ok(())
    }
}

/// Features whose newest run this user did not write.
pub fn foreign(engine: &Engine) -> Vec<String> {
    let is_foreign =
        |feature: &str, run: &Option<String>| run.as_ref().is_some_and(|run| engine.is_foreign(feature, run));
    let foreign = engine.index().into_iter().filter(|(feature, newest)| is_foreign(feature, &newest.run));
    foreign.map(|(feature, _)| feature).collect()
}
