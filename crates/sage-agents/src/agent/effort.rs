//! How much an agent thinks, in the words of all of them: each knows some of these levels.

use sage_core::read::EFFORTS;

/// Levels of Claude Code and of Anthropic's models.
pub const ANTHROPIC: &[&str] = &["low", "medium", "high", "xhigh", "max"];
/// Levels of Codex and of OpenAI's models.
pub const OPENAI: &[&str] = &["minimal", "low", "medium", "high", "xhigh"];

/// The level that is wanted, or the nearest that is known; of two, the lower one. Other words are passed on.
pub fn nearest<'a>(wanted: &'a str, known: &[&'a str]) -> Option<&'a str> {
    let rank = |level: &str| EFFORTS.iter().position(|it| *it == level);
    let Some(at) = rank(wanted).filter(|_| !known.contains(&wanted)) else { return Some(wanted) };
    let ranked = known.iter().filter_map(|level| Some((rank(level)?.abs_diff(at), rank(level)?, *level)));
    ranked.min().map(|(_, _, level)| level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_is_not_known_is_the_nearest_that_is() {
        assert_eq!(nearest("max", OPENAI), Some("xhigh"));
        assert_eq!(nearest("minimal", ANTHROPIC), Some("low"));
        assert_eq!(nearest("medium", ANTHROPIC), Some("medium"));
        assert_eq!(nearest("medium", &["low", "high"]), Some("low"));
        assert_eq!(nearest("medium", &["on", "off"]), None);
        assert_eq!(nearest("ultra", OPENAI), Some("ultra"));
    }
}
