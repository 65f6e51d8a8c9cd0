//! `[gc]`: what is old, how many runs stay whatever their age, and how large all may be together.

use super::Setting;
use super::file::{File, GcFile, Size, Time};
use super::picked::pick;
use super::values::{bytes, time, wrong};
use crate::cli::failure::Failure;

const OLDER_THAN: &str = "30d";
const KEEP: usize = 20;
const MAX_SIZE: &str = "1GB";

#[derive(Clone, Copy, Debug)]
pub struct GcConfig {
    /// After a run that succeeded, at most once a day.
    pub auto: bool,
    pub older_than_ms: u64,
    pub keep: usize,
    /// `None` does not look.
    pub max_bytes: Option<u64>,
}

/// Deletes nothing that the defaults would keep.
pub(super) fn keep_at_least_the_defaults(given: &mut GcFile) {
    let ms = |time: &Time| time_ms(time).unwrap_or(u64::MAX);
    let usual = ms(&Time::Text(OLDER_THAN.into()));
    given.older_than = given.older_than.take().filter(|time| ms(time) >= usual);
    given.keep = given.keep.filter(|keep| *keep >= KEEP);
    let size = |text: &str| bytes(text).ok().filter(|bytes| *bytes > 0).unwrap_or(u64::MAX);
    given.max_size = given.max_size.take().filter(|most| size(&most.text()) >= size(MAX_SIZE));
}

fn time_ms(given: &Time) -> Option<u64> {
    time("gc.olderThan", given).ok()
}

pub(super) fn of(settings: &mut Vec<Setting>, file: &File) -> Result<GcConfig, Failure> {
    let given = &file.gc;
    pick(settings, "gc.auto", &[], given.auto.map(|on| on.to_string()), "true".into());
    let older_than = given.older_than.clone().unwrap_or_else(|| Time::Text(OLDER_THAN.into()));
    pick(settings, "gc.olderThan", &[], given.older_than.as_ref().map(Time::text), OLDER_THAN.into());
    pick(settings, "gc.keep", &[], given.keep.map(|keep| keep.to_string()), KEEP.to_string());
    let max_size =
        pick(settings, "gc.maxSize", &[], given.max_size.as_ref().map(Size::text), MAX_SIZE.into());
    let max_bytes = bytes(&max_size.value)
        .map_err(|why| wrong("gc.maxSize", why).hint("maxSize = \"1GB\", or \"0\" to not look"))?;
    Ok(GcConfig {
        auto: given.auto.unwrap_or(true),
        older_than_ms: time("gc.olderThan", &older_than)?,
        keep: given.keep.unwrap_or(KEEP),
        max_bytes: Some(max_bytes).filter(|bytes| *bytes > 0),
    })
}
