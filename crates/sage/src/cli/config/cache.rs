//! `[cache]`: whether results are kept for later runs, how long and how much of them.

use sage_engine::cache::CacheConfig;

use super::Setting;
use super::file::{File, Size, Time};
use super::picked::pick;
use super::values::{bytes, check_unit, wrong};
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
    let ttl_ms = ttl.time_ms(DEFAULT_TTL)?;
    let size = given.max_size.as_ref().map(Size::text);
    let size = pick(settings, "cache.maxSize", &[], size, DEFAULT_SIZE.into());
    let max_bytes = bytes(&size.value)
        .map_err(|why| wrong("cache.maxSize", why).hint("[cache] maxSize = \"100MB\" in sage.toml"))?;
    Ok(enabled.switch()?.then_some(CacheConfig { ttl_ms, max_bytes }))
}
