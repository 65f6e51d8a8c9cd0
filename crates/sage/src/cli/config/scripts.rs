//! `[scripts]`: what a workflow in code may use.

use sage_core::port::script::ScriptLimits;

use super::Setting;
use super::file::{File, Size, Time};
use super::picked::pick;
use super::values::{bytes, time, wrong};
use crate::cli::failure::Failure;

const MEMORY: &str = "50MB";
const CPU: &str = "10s";
/// An engine needs about one.
const LEAST_MEMORY: u64 = 4 << 20;

pub(super) fn of(settings: &mut Vec<Setting>, file: &File) -> Result<ScriptLimits, Failure> {
    let (given, usual) = (&file.scripts, ScriptLimits::default());
    let memory = pick(settings, "scripts.memory", &[], given.memory.as_ref().map(Size::text), MEMORY.into());
    let memory_bytes = bytes(&memory.value)
        .and_then(
            |bytes| if bytes < LEAST_MEMORY { Err("it must be at least 4MB".into()) } else { Ok(bytes) },
        )
        .map_err(|why| wrong("scripts.memory", why).hint("memory = \"50MB\""))?;
    let cpu = given.cpu.clone().unwrap_or_else(|| Time::Text(CPU.into()));
    pick(settings, "scripts.cpu", &[], given.cpu.as_ref().map(Time::text), CPU.into());
    let mut count = |name: &str, given: Option<u32>, usual: u32| {
        pick(settings, name, &[], given.map(|n| n.to_string()), usual.to_string());
        given.unwrap_or(usual)
    };
    Ok(ScriptLimits {
        memory_bytes,
        cpu_ms: time("scripts.cpu", &cpu)?,
        max_calls: count("scripts.maxCalls", given.max_calls, usual.max_calls),
        max_agents: count("scripts.maxAgents", given.max_agents, usual.max_agents),
        max_items: count("scripts.maxItems", given.max_items, usual.max_items),
        max_living: count("scripts.maxLiving", given.max_living, usual.max_living).max(1),
        ..usual
    })
}
