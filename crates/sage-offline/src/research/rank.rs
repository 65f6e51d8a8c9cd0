//! Okapi BM25: which passages speak most about the words of a title.
//!
//! ```text
//!   score = sum over terms of  ln(1 + (N - n + 0.5) / (n + 0.5))  *  f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / mean))
//! ```
//! N passages, n of them with the term, f times in this one. Words are looked up, not stemmed again, so that the
//! documents of two hundred packages are read in the time of a blink.

use std::collections::HashMap;

use crate::words::terms;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Words of a request that say nothing about what it is about.
const GENERIC: &str = "fix fixes bug bugs issue issues problem implement implementation support feature features \
                       improve enhance enhancement change create update please need want";

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Query {
    /// Each once, in order.
    pub terms: Vec<String>,
}

impl Query {
    /// The terms of the first text that has any.
    pub fn new(texts: &[&str]) -> Query {
        let generic = terms(GENERIC);
        let mut found: Vec<String> = Vec::new();
        for text in texts {
            let mut all = terms(text);
            if all.iter().any(|term| !generic.contains(term)) {
                all.retain(|term| !generic.contains(term));
            }
            for term in all {
                if !found.contains(&term) {
                    found.push(term);
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        Query { terms: found }
    }

    /// Which share of the terms is in a text, 0 to 1.
    pub fn share(&self, text: &str) -> f64 {
        crate::words::share(&self.terms, &terms(text))
    }
}

/// What ranking needs to know of a passage.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    /// Of all terms.
    pub length: usize,
    /// Of each term of the query.
    pub counts: Vec<usize>,
}

impl Counted {
    /// The share of the query's terms that it has.
    pub fn share(&self) -> f64 {
        let has = self.counts.iter().filter(|count| **count > 0).count();
        if self.counts.is_empty() { 0.0 } else { has as f64 / self.counts.len() as f64 }
    }
}

impl Counted {
    /// Whether it has enough different terms not to be a chance: one of two, two of three or four, three of more.
    pub fn meets(&self) -> bool {
        let has = self.counts.iter().filter(|count| **count > 0).count();
        has >= self.counts.len().div_ceil(2).clamp(1, 3)
    }
}

impl std::ops::Add for Counted {
    type Output = Counted;

    fn add(mut self, other: Counted) -> Counted {
        self.length += other.length;
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self
    }
}

/// Counts terms, and remembers what each word came to.
#[derive(Debug)]
pub(crate) struct Counter<'q> {
    query: &'q Query,
    /// Of a word: how many terms it has, and which of them are asked for.
    words: HashMap<String, (usize, Vec<usize>)>,
}

impl<'q> Counter<'q> {
    pub fn new(query: &'q Query) -> Counter<'q> {
        Counter { query, words: HashMap::new() }
    }

    pub fn count(&mut self, texts: &[&str]) -> Counted {
        let mut counted = Counted { length: 0, counts: vec![0; self.query.terms.len()] };
        for text in texts {
            for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
                if !self.words.contains_key(word) {
                    self.words.insert(word.to_string(), meaning(self.query, word));
                }
                let (length, asked) = &self.words[word];
                counted.length += length;
                for term in asked {
                    counted.counts[*term] += 1;
                }
            }
        }
        counted
    }
}

fn meaning(query: &Query, word: &str) -> (usize, Vec<usize>) {
    let found = terms(word);
    let place = |term: &String| query.terms.iter().position(|wanted| wanted == term);
    (found.len(), found.iter().filter_map(place).collect())
}

/// The score of each passage, in their order; 0 without any of the terms.
pub(crate) fn scores(passages: &[Counted]) -> Vec<f64> {
    let total = passages.len() as f64;
    let mean = passages.iter().map(|passage| passage.length).sum::<usize>() as f64 / total.max(1.0);
    let width = passages.first().map_or(0, |passage| passage.counts.len());
    let rarity = |term: usize| {
        let with = passages.iter().filter(|passage| passage.counts[term] > 0).count() as f64;
        (1.0 + (total - with + 0.5) / (with + 0.5)).ln()
    };
    let rarities: Vec<f64> = (0..width).map(rarity).collect();
    let score = |passage: &Counted| {
        let length = 1.0 - B + B * passage.length as f64 / mean.max(1.0);
        let part = |(count, rarity): (&usize, &f64)| {
            let count = *count as f64;
            rarity * count * (K1 + 1.0) / (count + K1 * length)
        };
        passage.counts.iter().zip(&rarities).map(part).sum()
    };
    passages.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(title: &str, passages: &[&str]) -> Vec<f64> {
        let query = Query::new(&[title]);
        let mut counter = Counter::new(&query);
        let counted: Vec<Counted> = passages.iter().map(|text| counter.count(&[text])).collect();
        scores(&counted)
    }

    // covers: R6
    #[test]
    fn the_formula_by_hand() {
        // N = 2, n = 1, f = 1, both of mean length: ln(1 + 1.5 / 1.5) * 2.2 / 2.2.
        let found = scored("payments", &["payment gateway", "orders archive"]);
        assert!((found[0] - 2f64.ln()).abs() < 1e-12, "{found:?}");
        assert_eq!(found[1], 0.0);
        // f = 2, length 4 where the mean is 3: ln 2 * 4.4 / (2 + 1.2 * (0.25 + 0.75 * 4 / 3)).
        let found = scored("payments", &["payment gateway payments desk", "orders archive"]);
        assert!((found[0] - 2f64.ln() * 4.4 / 3.5).abs() < 1e-12, "{found:?}");
    }

    // covers: R6
    #[test]
    fn rare_words_and_short_passages_count_more() {
        let found = scored(
            "cache invalidation",
            &[
                "cache cache cache with a shelf for everything",
                "cache invalidation on write",
                "cache",
                "a cache that lies about everything that anybody ever put on its shelf",
                "nothing of it",
            ],
        );
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by(|a, b| found[*b].total_cmp(&found[*a]));
        assert_eq!(order, [1, 0, 2, 3, 4], "{found:?}");
    }

    // covers: R6
    #[test]
    fn a_query_leaves_out_what_every_request_says() {
        assert_eq!(Query::new(&["Fix the bug in date parsing of dates"]).terms, terms("date parsing"));
        assert_eq!(Query::new(&["fix bug"]).terms, terms("fix bug"));
        assert_eq!(Query::new(&["", "payment-api"]).terms, terms("payment api"));
        assert_eq!(Query::new(&[""]).terms, Vec::<String>::new());
        assert_eq!(scored("", &["anything"]), [0.0]);
        assert_eq!(scored("x", &[]), Vec::<f64>::new());
    }

    // covers: R6
    #[test]
    fn counting_is_the_same_as_taking_all_terms() {
        let query = Query::new(&["HTTP server"]);
        let text = "HTTPServer2 serves http; the servers of an API";
        let mut counter = Counter::new(&query);
        let counted = counter.count(&[text]);
        assert_eq!(counted.length, terms(text).len());
        let times = |term: &String| terms(text).iter().filter(|found| *found == term).count();
        assert_eq!(counted.counts, query.terms.iter().map(times).collect::<Vec<_>>());
        assert_eq!(counter.count(&[text]), counted);
    }
}
