//! The targets that anything is known of, and what to say about a name that is none of them.

use std::collections::BTreeSet;

use sage_core::diagnostic::did_you_mean;
use sage_core::target::Target;
use sage_engine::limits::Limits;

use super::context::Context;
use super::failure::Failure;

/// What overrides and slots of a target are called among those of pools.
pub const TARGET_POOL: &str = "target:";

/// Configured, used, limited by hand or in use now; by name, with what all runs know of it.
pub fn known(context: &Context, limits: &Limits) -> Vec<(String, Target)> {
    let stored = limits.targets();
    let mut names: BTreeSet<String> = stored.iter().map(|(name, _)| name.clone()).collect();
    names.extend(context.config.targets.named.keys().cloned());
    let pools = limits.overrides().into_keys().chain(limits.board().into_iter().map(|entry| entry.pool));
    names.extend(pools.filter_map(|pool| pool.strip_prefix(TARGET_POOL).map(str::to_string)));
    let state = |name: &str| stored.iter().find(|(known, _)| known == name).map(|(_, state)| state.clone());
    names.into_iter().map(|name| (name.clone(), state(&name).unwrap_or_default())).collect()
}

/// An unknown name, with the nearest one.
pub fn unknown(name: &str, known: &[(String, Target)]) -> Failure {
    let near = did_you_mean(name, known.iter().map(|(name, _)| name.as_str()));
    Failure::usage(format!("no target `{}` is known", name.escape_debug()))
        .hint(near.unwrap_or_else(|| "sage breakers".into()))
}
