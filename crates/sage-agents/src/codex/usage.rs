//! What codex counts, in classes that do not overlap, and how much of it is this turn's.
//!
//! Codex counts over the whole thread, over all its processes; a fork goes on from its origin's counters. What
//! came from or went to the cache is part of `input_tokens`, reasoning is part of `output_tokens`.

use sage_core::port::Usage;
use serde::Deserialize;

/// As codex tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Counts {
    pub input_tokens: u64,
    pub cached_input_tokens: u64,
    pub cache_write_input_tokens: u64,
    pub output_tokens: u64,
    pub reasoning_output_tokens: u64,
}

impl Counts {
    pub fn classes(&self) -> Usage {
        let input = self.input_tokens.saturating_sub(self.cached_input_tokens);
        Usage {
            input: Some(input.saturating_sub(self.cache_write_input_tokens)),
            cache_read: Some(self.cached_input_tokens),
            cache_write: Some(self.cache_write_input_tokens),
            output: Some(self.output_tokens.saturating_sub(self.reasoning_output_tokens)),
            reasoning: Some(self.reasoning_output_tokens),
            ..Usage::default()
        }
    }

    /// What the next request carries along: all that the last one did, and its answer.
    pub fn context(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// What is new in `now`. Counters that went down began anew: all of them is new.
pub fn since(now: &Usage, before: Option<&Usage>) -> Usage {
    let Some(before) = before else { return now.clone() };
    let classes = |usage: &Usage| {
        [usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning]
            .map(Option::unwrap_or_default)
    };
    let (new, old) = (classes(now), classes(before));
    if new.iter().zip(old).any(|(new, old)| *new < old) {
        return now.clone();
    }
    let at = |index: usize| Some(new[index] - old[index]);
    Usage {
        input: at(0),
        cache_read: at(1),
        cache_write: at(2),
        output: at(3),
        reasoning: at(4),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(input: u64, cached: u64, written: u64, output: u64, reasoning: u64) -> Counts {
        Counts {
            input_tokens: input,
            cached_input_tokens: cached,
            cache_write_input_tokens: written,
            output_tokens: output,
            reasoning_output_tokens: reasoning,
        }
    }

    fn usage(classes: [u64; 5]) -> Usage {
        let [input, cache_read, cache_write, output, reasoning] = classes.map(Some);
        Usage { input, cache_read, cache_write, output, reasoning, ..Usage::default() }
    }

    // covers: R18
    #[test]
    fn classes_do_not_overlap_and_add_up() {
        let all = counts(100, 30, 7, 20, 5);
        assert_eq!(all.classes(), usage([63, 30, 7, 15, 5]));
        assert_eq!(all.classes().total(), 120);
        assert_eq!(counts(5, 9, 9, 1, 3).classes(), usage([0, 9, 9, 0, 3]), "nonsense does not wrap around");
    }

    // covers: R18
    #[test]
    fn a_turn_is_charged_with_what_is_new() {
        let first = counts(100, 30, 7, 20, 5).classes();
        let second = counts(300, 120, 18, 50, 11).classes();
        assert_eq!(since(&first, None), first);
        assert_eq!(since(&second, Some(&first)), usage([99, 90, 11, 24, 6]));
        assert_eq!(since(&first, Some(&first)), usage([0; 5]));
        assert_eq!(since(&first, Some(&second)), first, "counters that began anew");
    }
}
