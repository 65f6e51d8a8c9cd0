//! A conversation with a model, as its API charges it.
//!
//! ```text
//!  request 1   definitions | question                                        -> call      (output)
//!  request 2   definitions | question | call | result                        -> call
//!  request 3   definitions | question | call | result | call | result        -> answer
//!              \_________ sent before: cacheRead _____/ \__ new: input __/
//! ```
//! Every request carries all that was said before. What an earlier request already carried is read from the cache
//! (the best case: nothing expires, nothing is too short), what is new is input.

use sage_core::port::Usage;
use sage_engine::tokens;

/// What tokens were spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Definitions,
    Question,
    Results,
    /// Calls, code and answers of the model: once as output, then as history.
    Written,
}

/// Tokens by what they are and by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub definitions: u64,
    pub question: u64,
    pub results: u64,
    pub written: u64,
    pub input: u64,
    pub cache_read: u64,
    pub output: u64,
    pub requests: u64,
}

impl Spent {
    pub fn total(&self) -> u64 {
        self.input + self.cache_read + self.output
    }

    /// With a cache, new input is written to it.
    pub fn cached(&self) -> Usage {
        let (cache_write, cache_read) = (Some(self.input), Some(self.cache_read));
        Usage { cache_write, cache_read, output: Some(self.output), ..Usage::default() }
    }

    pub fn uncached(&self) -> Usage {
        Usage { input: Some(self.input + self.cache_read), output: Some(self.output), ..Usage::default() }
    }

    fn charge(&mut self, part: Part, tokens: u64) {
        match part {
            Part::Definitions => self.definitions += tokens,
            Part::Question => self.question += tokens,
            Part::Results => self.results += tokens,
            Part::Written => self.written += tokens,
        }
    }
}

#[derive(Debug, Default)]
pub struct Talk {
    said: Vec<(Part, u64)>,
    /// How much of `said` an earlier request carried.
    sent: usize,
    /// Texts that the model got to read as results.
    pub seen: Vec<String>,
    pub spent: Spent,
}

impl Talk {
    pub fn new(definitions: u64, question: &str) -> Talk {
        let said = vec![(Part::Definitions, definitions), (Part::Question, tokens::count(question))];
        Talk { said, ..Talk::default() }
    }

    /// One request: the model reads everything and writes `text`.
    pub fn request(&mut self, text: &str) {
        for (at, (part, tokens)) in self.said.iter().enumerate() {
            self.spent.charge(*part, *tokens);
            let class = if at < self.sent { &mut self.spent.cache_read } else { &mut self.spent.input };
            *class += tokens;
        }
        self.sent = self.said.len();
        let output = tokens::count(text);
        self.spent.charge(Part::Written, output);
        self.spent.output += output;
        self.spent.requests += 1;
        self.said.push((Part::Written, output));
    }

    /// A result that the next request carries.
    pub fn result(&mut self, text: &str) {
        self.trouble(text);
        self.seen.push(text.to_string());
    }

    /// What went wrong: read and paid like a result, but nothing to answer from.
    pub fn trouble(&mut self, text: &str) {
        self.said.push((Part::Results, tokens::count(text)));
    }

    /// Definitions that were found on the way.
    pub fn learn(&mut self, tokens: u64) {
        self.said.push((Part::Definitions, tokens));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R19
    #[test]
    fn history_is_paid_again_with_every_request() {
        let mut talk = Talk::new(100, "hello world");
        talk.request("hello world");
        talk.result("hello world");
        talk.request("hello world");
        let spent = talk.spent;
        assert_eq!((spent.definitions, spent.question, spent.results, spent.written), (200, 4, 2, 6));
        assert_eq!((spent.input, spent.cache_read, spent.output), (102 + 4, 102, 4));
        assert_eq!(spent.total(), 212);
        assert_eq!(spent.requests, 2);
    }
}
