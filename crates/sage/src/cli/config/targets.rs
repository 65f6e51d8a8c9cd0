//! `[targets]`: how wide and how fast each target may be used, and when its breaker opens.
//!
//! What an entry leaves open it inherits: an account from its provider, everything from `[targets.default]`.

use std::collections::{BTreeMap, BTreeSet};

use sage_core::diagnostic::did_you_mean;
use sage_core::policy::FailureClass;
use sage_core::target::{BreakerPolicy, QuotaPolicy, Ratio, Slow, TargetPolicy};

use super::file::{BreakerFile, File, RatioFile, SlowFile, TargetFile};
use super::values::{time, wrong};
use crate::cli::failure::Failure;

pub const KINDS: [&str; 6] = ["provider", "model", "agent", "server", "host", "command"];
pub const DEFAULT: &str = "default";
/// How the targets of providers begin: all projects of a user share them.
pub const PROVIDER: &str = "provider:";

/// Agents that everybody knows, and whose provider is therefore known, too.
const KNOWN_AGENTS: [(&str, &str); 3] = [("claude", "anthropic"), ("codex", "openai"), ("gemini", "google")];
/// R13: calls at once to a provider that nobody has said anything about.
pub const PROVIDER_CONCURRENT: u32 = 4;

/// Of a share where nobody says of how many calls.
const MINIMUM_CALLS: u32 = 10;
const SLOW_SHARE: f64 = 0.5;
const MAX_TARGET: usize = 200;

#[derive(Clone, Debug, Default)]
pub struct Targets {
    pub named: BTreeMap<String, TargetPolicy>,
    pub default: TargetPolicy,
}

impl Targets {
    pub fn of(file: &File, providers: &BTreeMap<String, String>) -> Result<Targets, Failure> {
        let none = TargetFile::default();
        let stated = |name: &str| file.targets.get(name).unwrap_or(&none);
        let default = overlay(DEFAULT, TargetPolicy::default(), stated(DEFAULT))?;
        let mut targets = Targets { named: BTreeMap::new(), default };
        let mut names: BTreeSet<String> = BTreeSet::new();
        for name in file.targets.keys().filter(|name| *name != DEFAULT) {
            check_name(name).map_err(|(why, hint)| wrong("targets", why).hint(hint))?;
            names.insert(name.clone());
        }
        names.extend(KNOWN_AGENTS.iter().map(|(_, provider)| format!("provider:{provider}")));
        names.extend(providers.values().map(|provider| format!("provider:{provider}")));
        // A provider sorts before its accounts, so that it is there when they inherit from it.
        for name in names {
            let policy = overlay(&name, targets.base(&name), stated(&name))?;
            targets.named.insert(name, policy);
        }
        Ok(targets)
    }

    /// The policy of any target.
    pub fn policy(&self, name: &str) -> &TargetPolicy {
        let provider = || self.named.get(account_of(name)?.0);
        self.named.get(name).or_else(provider).unwrap_or(&self.default)
    }

    fn base(&self, name: &str) -> TargetPolicy {
        let mut base = self.policy(name).clone();
        let provider = account_of(name).map_or(name, |(provider, _)| provider);
        if KNOWN_AGENTS.iter().any(|(_, known)| provider.strip_prefix("provider:") == Some(*known)) {
            base.quota.concurrent.get_or_insert(PROVIDER_CONCURRENT);
        }
        base
    }
}

/// `provider:anthropic/work` is an account of `provider:anthropic`.
fn account_of(name: &str) -> Option<(&str, &str)> {
    name.split_once('/').filter(|_| name.starts_with("provider:"))
}

/// The provider of an agent that everybody knows.
pub fn known_provider(agent: &str) -> Option<&'static str> {
    KNOWN_AGENTS.iter().find(|(name, _)| *name == agent).map(|(_, provider)| *provider)
}

pub fn known_agents() -> impl Iterator<Item = &'static str> {
    KNOWN_AGENTS.iter().map(|(agent, _)| *agent)
}

/// `<kind>:<name>`; else what is wrong with it, and what to write.
pub fn check_name(name: &str) -> Result<(), (String, String)> {
    let unfit = |c: char| c.is_whitespace() || c.is_control();
    let example = || "such as \"host:api.example.com\" or \"provider:anthropic\"".to_string();
    let shown = || name.escape_debug().take(80).collect::<String>();
    let kinds = KINDS.join(", ");
    match name.split_once(':') {
        _ if name.len() > MAX_TARGET || name.contains(unfit) => {
            Err((format!("a target has at most {MAX_TARGET} characters and no spaces"), example()))
        }
        Some((kind, rest)) if KINDS.contains(&kind) && !rest.is_empty() => Ok(()),
        Some((kind, _)) if KINDS.contains(&kind) => Err((format!("`{}` has no name", shown()), example())),
        Some((kind, _)) => Err((
            format!("`{}` is not a target: its kind is one of {kinds}", shown()),
            did_you_mean(kind, KINDS).unwrap_or_else(example),
        )),
        None => Err((
            format!("`{}` is not a target: it is written <kind>:<name>, the kind one of {kinds}", shown()),
            example(),
        )),
    }
}

fn overlay(name: &str, base: TargetPolicy, file: &TargetFile) -> Result<TargetPolicy, Failure> {
    let key = |field: &str| format!("targets.\"{name}\".{field}");
    let least = |field: &str, value: Option<u64>| match value {
        Some(0) => Err(wrong(&key(field), "it must be at least 1; leave it out for no limit")),
        value => Ok(value),
    };
    let concurrent = least("concurrent", file.concurrent.map(u64::from))?.and_then(|n| u32::try_from(n).ok());
    let requests = least("requestsPerMinute", file.requests_per_minute)?;
    let input = least("inputTokensPerMinute", file.input_tokens_per_minute)?;
    let output = least("outputTokensPerMinute", file.output_tokens_per_minute)?;
    let quota = QuotaPolicy {
        concurrent: concurrent.or(base.quota.concurrent),
        requests_per_minute: requests.or(base.quota.requests_per_minute),
        input_tokens_per_minute: input.or(base.quota.input_tokens_per_minute),
        output_tokens_per_minute: output.or(base.quota.output_tokens_per_minute),
    };
    Ok(TargetPolicy { breaker: breaker(&key("breaker"), base.breaker, &file.breaker)?, quota })
}

fn breaker(key: &str, base: BreakerPolicy, file: &BreakerFile) -> Result<BreakerPolicy, Failure> {
    let field = |name: &str| format!("{key}.{name}");
    if file.successes == Some(0) {
        return Err(wrong(&field("successes"), "it must be at least 1, else it would never close"));
    }
    let ratio = file.ratio.as_ref().map(|file| ratio(&field("ratio"), file)).transpose()?;
    let slow = file.slow.as_ref().map(|file| slow(&field("slow"), file)).transpose()?;
    let ms = |name: &str, given: &Option<super::file::Time>, base: u64| {
        given.as_ref().map_or(Ok(base), |given| time(&field(name), given))
    };
    let policy = BreakerPolicy {
        failures: file.failures.unwrap_or(base.failures),
        ratio: ratio.or(base.ratio),
        slow: slow.or(base.slow),
        window_ms: ms("window", &file.window, base.window_ms)?,
        open_ms: ms("openFor", &file.open_for, base.open_ms)?,
        successes: file.successes.unwrap_or(base.successes),
        on: file.on.as_ref().map_or(Ok(base.on), |names| classes(&field("on"), names))?,
    };
    Ok(policy)
}

fn ratio(key: &str, file: &RatioFile) -> Result<Ratio, Failure> {
    Ok(Ratio { share: share(key, file.share)?, minimum: minimum(key, file.minimum)? })
}

fn slow(key: &str, file: &SlowFile) -> Result<Slow, Failure> {
    Ok(Slow {
        ms: time(&format!("{key}.after"), &file.after)?,
        share: share(key, file.share.unwrap_or(SLOW_SHARE))?,
        minimum: minimum(key, file.minimum)?,
    })
}

fn share(key: &str, share: f64) -> Result<f64, Failure> {
    if share > 0.0 && share <= 1.0 {
        return Ok(share);
    }
    Err(wrong(&format!("{key}.share"), format!("{share} is not a share: more than 0, at most 1"))
        .hint(format!("{key} = {{ share = 0.5, minimum = 10 }}")))
}

fn minimum(key: &str, given: Option<u32>) -> Result<u32, Failure> {
    match given.unwrap_or(MINIMUM_CALLS) {
        0 => Err(wrong(&format!("{key}.minimum"), "it must be at least 1 call")),
        minimum => Ok(minimum),
    }
}

fn classes(key: &str, names: &[String]) -> Result<Vec<FailureClass>, Failure> {
    let all = || FailureClass::ALL.iter().map(|class| class.name());
    if names.is_empty() {
        return Err(wrong(key, "it names no failure, so that it would never open")
            .hint("breaker = { failures = 0 } switches counting off"));
    }
    let class = |name: &String| {
        FailureClass::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| {
            wrong(key, format!("`{name}` is not a class of failures"))
                .hint(did_you_mean(name, all()).unwrap_or_else(|| all().collect::<Vec<_>>().join(", ")))
        })
    };
    names.iter().map(class).collect()
}
