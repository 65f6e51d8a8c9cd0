//! `cache`: whether a later run may take the result of this one.

use super::fields::{Fields, expected};
use crate::diagnostic::Diagnostics;
use crate::policy::CachePolicy;
use crate::source::Data;

pub const CACHE_FIELDS: &[&str] = &["ttl", "files"];

pub fn read(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<CachePolicy> {
    let node = fields.get("cache")?;
    let place = fields.place.field("cache");
    match &node.data {
        Data::Bool(wanted) => wanted.then(CachePolicy::default),
        Data::Map(_) => {
            let cache = Fields::new(node, &place, CACHE_FIELDS, problems)?;
            let ttl_ms = cache.timeout_ms("ttl", problems);
            let files = cache.names("files", problems).into_iter().map(|named| named.name).collect();
            Some(CachePolicy { ttl_ms, files })
        }
        _ => {
            problems.push(expected("an object such as {ttl: 30d}, or true", node, &place));
            None
        }
    }
}
