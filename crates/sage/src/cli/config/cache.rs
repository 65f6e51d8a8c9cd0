//! `[cache]`: whether results are kept for later runs, how long and how much of them.

use sage_engine::cache::CacheConfig;

use super::file::{File, Size, Time};
use super::values::{bytes, check_unit, duration, switch, wrong};
use super::{FROM_FILE, Setting, pick};
use crate::cli::failure::Failure;

const DEFAULT_TTL: &str = "30d";
const DEFAULT_SIZE: &str = "100MB";

/// `None` if it is switched off.
pub(super) fn read(settings: &mut Vec<Setting>, file: &File) -> Result<Option<CacheConfig>, Failure> {
    let given = &file.cache;
    let enabled = pick(settings, "cache.enabled", &[], given.enabled.map(|on| on.to_string()), "true".into());
    given.ttl.as_ref().map_or(Ok(()), |ttl| check_unit("cache.ttl", ttl))?;
    let ttl = given.ttl.as_ref().map(Time::text);
    let ttl = pick(settings, "cache.ttl", &["SAGE_CACHE_TTL"], ttl, DEFAULT_TTL.into());
    let from_file = settings.last().is_some_and(|setting| setting.source == FROM_FILE);
    let ttl_ms = match duration(&ttl) {
        Ok(0) => Err("it must be longer than 0".to_string()),
        Ok(ms) => Ok(ms),
        Err(failure) => Err(failure.message),
    };
    let ttl_ms = ttl_ms.map_err(|why| match from_file {
        true => wrong("cache.ttl", why).hint("[cache] ttl = \"30d\" in sage.toml"),
        false => Failure::usage(format!("`SAGE_CACHE_TTL`: {why}")).hint("SAGE_CACHE_TTL=30d"),
    })?;
    let size = given.max_size.as_ref().map(Size::text);
    let size = pick(settings, "cache.maxSize", &[], size, DEFAULT_SIZE.into());
    let max_bytes = bytes(&size)
        .map_err(|why| wrong("cache.maxSize", why).hint("[cache] maxSize = \"100MB\" in sage.toml"))?;
    let on = switch(&enabled, "cache.enabled")?;
    Ok(on.then_some(CacheConfig { ttl_ms, max_bytes }))
}
