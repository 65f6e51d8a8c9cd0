//! Where a model is, and what must be said to be let in.

use hyper::Uri;
use hyper::header::HeaderMap;
use sage_core::policy::FailureClass;

use super::wire::Api;
use crate::agent::{AgentConfig, Order};
use crate::https::is_local;
use crate::outcome::Miss;
use crate::params::Params;

/// As the configuration says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub api: Api,
    /// Of the requests.
    pub url: String,
    /// This machine: a key is not always needed, and nobody listens on the way.
    local: bool,
}

#[derive(Debug)]
pub struct Endpoint {
    pub api: Api,
    pub url: Uri,
    pub headers: HeaderMap,
    pub model: String,
    pub max_tokens: Option<u32>,
}

impl Endpoint {
    pub fn new(order: &Order, params: Params<'_>) -> Result<Endpoint, Miss> {
        let config = &order.config;
        let place = locate(config).map_err(Miss::invalid)?;
        let name = key_name(config, place.api);
        let own = order.env.iter().rev().find(|(variable, _)| variable == name);
        let own = own.and_then(|(_, value)| value.to_str().map(str::to_string));
        let key = own.or_else(|| config.variable(name));
        if key.is_none()
            && let Some(hint) = place.missing_key(config)
        {
            return Err(Miss::failed(FailureClass::Auth, hint));
        }
        let model = order.model.clone().filter(|model| !model.is_empty()).ok_or_else(|| {
            Miss::invalid(format!(
                "agent `{}` needs a `model`, in the step or in the configuration",
                config.name
            ))
        })?;
        let headers = place.api.headers(key.as_deref()).ok_or_else(|| {
            let message = format!("the key in `{name}` has characters that no key has");
            Miss::failed(FailureClass::Auth, message)
        })?;
        let url = place.url.parse().map_err(|error| Miss::invalid(format!("`{}`: {error}", place.url)))?;
        Ok(Endpoint { api: place.api, url, headers, model, max_tokens: params.count("maxTokens")? })
    }
}

impl Place {
    /// What to do about a key that is not there.
    pub fn missing_key(&self, config: &AgentConfig) -> Option<String> {
        let name = key_name(config, self.api);
        let needed = !self.local || config.api_key_env.is_some();
        (needed && config.variable(name).is_none()).then(|| {
            format!("no key: the variable `{name}` is not set; export it, or name another with `apiKeyEnv`")
        })
    }
}

fn key_name(config: &AgentConfig, api: Api) -> &str {
    let own = match api {
        Api::Anthropic => "ANTHROPIC_API_KEY",
        Api::Responses | Api::Chat => "OPENAI_API_KEY",
    };
    config.api_key_env.as_deref().unwrap_or(own)
}

/// Checks the configuration without asking anybody.
pub fn locate(config: &AgentConfig) -> Result<Place, String> {
    let name = &config.name;
    let api = config.api.as_deref().unwrap_or_default();
    let api = Api::named(api)
        .ok_or_else(|| format!("agent `{name}`: `api` must be anthropic, responses or chat, not `{api}`"))?;
    let own = match api {
        Api::Anthropic => "https://api.anthropic.com",
        Api::Responses | Api::Chat => "https://api.openai.com",
    };
    let given = config.url.as_deref().unwrap_or(own);
    let wrong = |why: &str| format!("agent `{name}`: `url` `{given}` {why}");
    let uri: Uri = given.parse().map_err(|error| wrong(&format!("is no address: {error}")))?;
    let host = uri.host().ok_or_else(|| wrong("is no address: it needs https:// and a host"))?;
    let local = is_local(host);
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if local => {}
        Some("http") => {
            return Err(wrong("must begin with https: prompts and keys would be open to everybody"));
        }
        _ => return Err(wrong("must begin with https")),
    }
    if uri.query().is_some() {
        return Err(wrong("must have no `?`"));
    }
    // Who gives a path has given the version with it.
    let version = if uri.path().trim_matches('/').is_empty() { "/v1" } else { "" };
    let base = given.trim_end_matches('/');
    Ok(Place { api, url: format!("{base}{version}{}", api.path()), local })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(api: &str, url: Option<&str>) -> AgentConfig {
        AgentConfig {
            name: "m".into(),
            api: Some(api.into()),
            url: url.map(str::to_string),
            api_key_env: Some("SAGE_TEST_NO_SUCH_KEY".into()),
            ..AgentConfig::default()
        }
    }

    // covers: S12
    #[test]
    fn addresses_are_completed_and_open_ones_refused() {
        let url = |api: &str, url: Option<&str>| locate(&config(api, url)).map(|place| place.url);
        assert_eq!(url("anthropic", None).unwrap(), "https://api.anthropic.com/v1/messages");
        assert_eq!(url("responses", None).unwrap(), "https://api.openai.com/v1/responses");
        let local = url("chat", Some("http://127.0.0.1:9/")).unwrap();
        assert_eq!(local, "http://127.0.0.1:9/v1/chat/completions");
        assert_eq!(url("chat", Some("https://x.y/api/v4")).unwrap(), "https://x.y/api/v4/chat/completions");
        for place in ["http://localhost:1", "http://[::1]:1", "http://127.8.8.8:1"] {
            url("chat", Some(place)).unwrap();
        }
        for (place, why) in [
            ("http://example.com", "must begin with https"),
            ("http://127.0.0.1.example.com", "must begin with https"),
            ("http://localhost.example.com", "must begin with https"),
            ("ftp://x", "must begin with https"),
            ("/v1", "is no address"),
            ("https://", "is no address"),
            ("https://x/v1?a=b", "must have no"),
        ] {
            let told = url("chat", Some(place)).unwrap_err();
            assert!(told.contains(why), "{place}: {told}");
        }
        assert!(url("other", None).unwrap_err().contains("anthropic, responses or chat, not `other`"));
    }

    #[test]
    fn a_key_is_needed_except_on_this_machine() {
        let missing = |config: &AgentConfig| locate(config).unwrap().missing_key(config);
        let named = config("chat", Some("http://localhost:1"));
        assert!(missing(&named).unwrap().contains("`SAGE_TEST_NO_SUCH_KEY` is not set"));
        assert_eq!(missing(&AgentConfig { api_key_env: None, ..named }), None);
        assert!(missing(&config("anthropic", None)).is_some());
        let mut given = config("anthropic", None);
        given.env.insert("SAGE_TEST_NO_SUCH_KEY".into(), "k".into());
        assert_eq!(missing(&given), None);
    }
}
