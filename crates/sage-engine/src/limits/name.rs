//! File names of targets: readable, safe in every file system, and never the same for two targets.

use crate::digest::Digest;

/// Leaves room for suffixes in a component of 255 bytes.
const MAX_READABLE_BYTES: usize = 80;

/// `name` if it is one already; else what can be kept of it, and a part of its digest after a `~`, which no
/// name has that is kept as it is. Capitals are not kept: some file systems don't tell them apart.
pub(super) fn safe(name: &str) -> String {
    let keeps = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let plain = !name.is_empty() && !name.starts_with('.') && name.len() <= MAX_READABLE_BYTES;
    if plain && name.chars().all(keeps) {
        return name.to_owned();
    }
    let readable = name.chars().map(|c| c.to_ascii_lowercase()).map(|c| if keeps(c) { c } else { '-' });
    let readable: String = readable.take(MAX_READABLE_BYTES).collect();
    format!("{}~{}", readable.trim_start_matches('.'), Digest::of(name.as_bytes()).short())
}
