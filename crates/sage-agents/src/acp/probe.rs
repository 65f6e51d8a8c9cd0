//! What can be known about an agent without asking it anything.

use std::path::Path;
use std::time::Duration;

use crate::agent::{AgentConfig, Auth, Probe, question};
use crate::process::ask_aside;

/// Programs in scripting languages take their time to say even this.
const VERSION_PATIENCE: Duration = Duration::from_secs(20);

pub async fn probe(config: &AgentConfig) -> Probe {
    let Some(program) = config.command.first() else {
        let hint = format!("name its program in `command` of agent `{}`", config.name);
        return Probe { hint: Some(hint), ..Probe::default() };
    };
    let Some(found) = config.program(program, Path::new(".")) else {
        let hint =
            format!("install `{program}`, or give its whole path in `command` of agent `{}`", config.name);
        return Probe { hint: Some(hint), ..Probe::default() };
    };
    let version = version(&found, config).await;
    Probe { found: Some(found.display().to_string()), version, auth: Auth::Unknown, hint: None }
}

/// The first line that it prints; arguments that make it speak the protocol are left out.
async fn version(program: &Path, config: &AgentConfig) -> Option<String> {
    let script = config.command.get(1).filter(|word| Path::new(word).is_file());
    let words = script.map(String::as_str).into_iter().chain(["--version"]);
    let said = ask_aside(question(config, program, words), VERSION_PATIENCE).await?;
    let text = said.text();
    let line = text.lines().next().map(str::trim).filter(|line| !line.is_empty() && said.succeeded())?;
    Some(line.chars().take(100).collect())
}
