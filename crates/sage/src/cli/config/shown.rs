//! Targets, agents and servers as `sage config` shows them.

use sage_core::target::{BreakerPolicy, QuotaPolicy};

use super::file::File;
use super::{FROM_FILE, FROM_NOWHERE, Servers, Setting, Targets, tell};
use crate::display::text::{argument, clock_text, plural};

pub(super) fn targets(settings: &mut Vec<Setting>, file: &File, targets: &Targets) {
    let source = |name: &str| if file.targets.contains_key(name) { FROM_FILE } else { FROM_NOWHERE };
    let breaker = breaker_text(&targets.default.breaker);
    tell(settings, "targets.default.breaker".into(), breaker, source("default"));
    for (name, policy) in &targets.named {
        let width = policy.quota.concurrent.map_or("any number at once".into(), |n| format!("{n} at once"));
        tell(settings, format!("targets.{name}"), width, source(name));
        let rates = rates_text(&policy.quota);
        if !rates.is_empty() {
            tell(settings, format!("targets.{name}.perMinute"), rates, source(name));
        }
        if policy.breaker != targets.default.breaker {
            let breaker = breaker_text(&policy.breaker);
            tell(settings, format!("targets.{name}.breaker"), breaker, source(name));
        }
    }
}

pub(super) fn agents(settings: &mut Vec<Setting>, file: &File) {
    for (name, agent) in &file.agents {
        if let Some(command) = &agent.command {
            let words: Vec<String> = command.iter().map(|word| argument(word)).collect();
            tell(settings, format!("agents.{name}.command"), words.join(" "), FROM_FILE);
        }
        if let Some(file) = agent.script.as_ref().and_then(serde_json::Value::as_str) {
            tell(settings, format!("agents.{name}.script"), argument(file), FROM_FILE);
        }
        if let Some(budget) = &agent.budget {
            tell(settings, format!("agents.{name}.budget"), budget.clone(), FROM_FILE);
        }
    }
}

pub(super) fn servers(settings: &mut Vec<Setting>, file: &File, servers: &Servers) {
    for (name, server) in &servers.known {
        let source = if file.mcp.contains_key(name) { FROM_FILE } else { super::servers::FILE };
        match &server.url {
            Some(url) => tell(settings, format!("mcp.{name}.url"), url.clone(), source),
            None => {
                let words = [&server.command].into_iter().chain(&server.args).map(|word| argument(word));
                let words: Vec<String> = words.collect();
                tell(settings, format!("mcp.{name}.command"), words.join(" "), source);
            }
        }
    }
    for (name, bound) in &file.operations {
        let value = format!("{} of {}", bound.tool, bound.server);
        tell(settings, format!("operations.{name}"), value, FROM_FILE);
    }
}

/// `50 requests, 30000 input tokens`
pub fn rates_text(limits: &QuotaPolicy) -> String {
    let rates = [
        (limits.requests_per_minute, "request"),
        (limits.input_tokens_per_minute, "input token"),
        (limits.output_tokens_per_minute, "output token"),
    ];
    let stated = rates.iter().filter_map(|(rate, what)| rate.map(|rate| plural(rate, what)));
    stated.collect::<Vec<_>>().join(", ")
}

/// `opens after 5 failures for 60s, closes after 2 successes`
fn breaker_text(policy: &BreakerPolicy) -> String {
    let mut opens = Vec::new();
    if policy.failures > 0 {
        opens.push(format!("after {}", plural(policy.failures.into(), "failure")));
    }
    let percent = |share: f64| (share * 100.0).round();
    if let Some(ratio) = policy.ratio {
        opens.push(format!("when {}% of {} calls fail", percent(ratio.share), ratio.minimum));
    }
    if let Some(slow) = policy.slow {
        let time = span_text(slow.ms);
        opens.push(format!("when {}% of {} calls take {time}", percent(slow.share), slow.minimum));
    }
    if opens.is_empty() {
        return "never opens".into();
    }
    let window = match policy.ratio.is_some() || policy.slow.is_some() {
        true => format!(" within {}", span_text(policy.window_ms)),
        false => String::new(),
    };
    let closes =
        if policy.successes == 1 { "1 success".into() } else { format!("{} successes", policy.successes) };
    let mut text = format!("opens {}{window}", opens.join(" or "));
    text.push_str(&format!(", for {}; closes after {closes}", span_text(policy.open_ms)));
    if policy.on != BreakerPolicy::default().on {
        let classes: Vec<&str> = policy.on.iter().map(|class| class.name()).collect();
        text.push_str(&format!("; counts {}", classes.join(", ")));
    }
    text
}

fn span_text(ms: u64) -> String {
    if ms.is_multiple_of(1_000) { clock_text(ms) } else { format!("{ms}ms") }
}
