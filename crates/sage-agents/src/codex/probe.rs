//! Whether codex is there and may be used. Costs no tokens: nothing is asked of a model.

use std::path::Path;
use std::time::Duration;

use super::{PROGRAM, home};
use crate::agent::{AgentConfig, Auth, Probe, question};
use crate::process::ask_aside;

/// For each question to the program.
const PATIENCE: Duration = Duration::from_secs(4);

pub async fn probe(config: &AgentConfig) -> Probe {
    let Some(program) = config.program(PROGRAM, Path::new(".")) else {
        return Probe { hint: Some("npm install -g @openai/codex".into()), ..Probe::default() };
    };
    let version = ask(config, &program, &["--version"]).await;
    let version = version.and_then(|(_, said)| Some(said.split_whitespace().last()?.to_string()));
    let (auth, hint) = auth(config, &program).await;
    Probe { found: Some(program.display().to_string()), version, auth, hint }
}

async fn auth(config: &AgentConfig, program: &Path) -> (Auth, Option<String>) {
    let home = home(config, &[]);
    let has = |name: &str| home.as_ref().is_some_and(|home| home.join(name).is_file());
    if config.variable("CODEX_API_KEY").is_some() || has("auth.json") {
        return (Auth::Ready, None);
    }
    // A provider of the user's own has its own key, in a variable that only codex knows.
    if has("config.toml") || config.command.iter().any(|word| word.contains("model_provider")) {
        return (Auth::Unknown, None);
    }
    // The login may be in the system's keyring.
    match ask(config, program, &["login", "status"]).await {
        Some((true, _)) => (Auth::Ready, None),
        Some((false, _)) if config.variable("OPENAI_API_KEY").is_some() => {
            let hint = "codex login, or CODEX_API_KEY: codex does not look at OPENAI_API_KEY";
            (Auth::Missing, Some(hint.into()))
        }
        Some((false, _)) => (Auth::Missing, Some("codex login, or the key in CODEX_API_KEY".into())),
        None => (Auth::Unknown, None),
    }
}

/// Whether it succeeded, and what it printed.
async fn ask(config: &AgentConfig, program: &Path, words: &[&str]) -> Option<(bool, String)> {
    let said = ask_aside(question(config, program, words), PATIENCE).await?;
    Some((said.succeeded(), said.text()))
}
