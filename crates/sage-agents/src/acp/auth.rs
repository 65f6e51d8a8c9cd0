//! Logging in, as far as that needs no person: with a key that is in the environment already.

use agent_client_protocol::v1::schema::{AuthMethod, AuthMethodId};
use sage_core::policy::FailureClass;

use crate::agent::AgentConfig;
use crate::outcome::Miss;

/// Ways to log in with a key, and where that key may be.
const KEYS: &[(&str, &[&str])] = &[
    ("gemini-api-key", &["GEMINI_API_KEY"]),
    ("vertex-ai", &["GOOGLE_API_KEY"]),
    ("codex-api-key", &["CODEX_API_KEY"]),
    ("openai-api-key", &["OPENAI_API_KEY"]),
    ("api-key", &["OPENAI_API_KEY", "CODEX_API_KEY"]),
];

/// The way that is open; all others would open a browser or a terminal.
pub fn method(methods: &[AuthMethod], config: &AgentConfig) -> Option<AuthMethodId> {
    let has_key = |id: &str| {
        let keys = KEYS.iter().find(|(known, _)| *known == id).map(|(_, keys)| *keys);
        keys.is_some_and(|keys| keys.iter().any(|key| config.variable(key).is_some()))
    };
    let agent = methods.iter().filter(|method| matches!(method, AuthMethod::Agent(_)));
    agent.map(AuthMethod::id).find(|id| has_key(&id.0)).cloned()
}

pub fn missing(methods: &[AuthMethod], config: &AgentConfig) -> Miss {
    let names: Vec<String> = methods.iter().map(|method| format!("`{}`", method.name())).collect();
    let ways = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let program = config.command.first().map_or("it", String::as_str);
    let hint = format!("start `{program}` once in a terminal and log in{ways}, or set its key in `env`");
    Miss::failed(FailureClass::Auth, format!("agent `{}` is not logged in; hint: {hint}", config.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_way_that_needs_nobody_is_taken() {
        let methods: Vec<AuthMethod> = serde_json::from_str(
            r#"[{"id":"oauth-personal","name":"Log in with Google"},{"id":"gemini-api-key","name":"Gemini API key"}]"#,
        )
        .unwrap();
        let mut config = AgentConfig::built_in("gemini").unwrap();
        // Empty is not set, wherever this runs.
        config.env.insert("GEMINI_API_KEY".into(), String::new());
        assert_eq!(method(&methods, &config), None);
        config.env.insert("GEMINI_API_KEY".into(), "k".into());
        assert_eq!(method(&methods, &config).unwrap().to_string(), "gemini-api-key");
        let Miss::Failed { class, message, .. } = missing(&methods, &config) else { panic!() };
        assert_eq!(class, FailureClass::Auth);
        assert!(
            message.contains("start `gemini` once") && message.contains("`Log in with Google`"),
            "{message}"
        );
    }
}
