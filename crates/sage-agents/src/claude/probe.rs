//! Is Claude Code there, which one, and is it logged in? Nothing is asked of any model.

use std::path::Path;
use std::time::Duration;

use super::home::home;
use crate::agent::{AgentConfig, Auth, Probe, question};
use crate::process::ask_aside;

const VERSION_PATIENCE: Duration = Duration::from_secs(10);
const KEYS: &[&str] = &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
/// Other providers bring their own credentials.
const PROVIDERS: &[&str] = &["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

pub async fn probe(config: &AgentConfig) -> Probe {
    let argv = config.argv("claude");
    let Some(program) = config.program("claude", Path::new(".")) else {
        let hint = "install it: `npm install -g @anthropic-ai/claude-code`";
        return Probe { hint: Some(hint.into()), ..Probe::default() };
    };
    let version = version(config, &program, &argv[1..]).await;
    let auth = auth(config);
    let hint = match (&version, auth) {
        (None, _) => Some(format!("`{} --version` does not answer", program.display())),
        (_, Auth::Missing) => Some("run `claude` and type `/login`, or set ANTHROPIC_API_KEY".into()),
        _ => None,
    };
    Probe { found: Some(program.display().to_string()), version, auth, hint }
}

async fn version(config: &AgentConfig, program: &Path, args: &[std::ffi::OsString]) -> Option<String> {
    let words = args.iter().map(|arg| arg.as_os_str()).chain(["--version".as_ref()]);
    let said = ask_aside(question(config, program, words), VERSION_PATIENCE).await?;
    said.text().split_whitespace().next().map(str::to_string)
}

fn auth(config: &AgentConfig) -> Auth {
    let any = |names: &[&str]| names.iter().any(|name| config.variable(name).is_some());
    if any(KEYS) {
        return Auth::Ready;
    }
    let logged_in = home(config).is_some_and(|home| home.join(".credentials.json").is_file());
    match logged_in {
        true => Auth::Ready,
        // A Mac keeps the login where nobody else looks.
        false if any(PROVIDERS) || cfg!(target_os = "macos") => Auth::Unknown,
        false => Auth::Missing,
    }
}
