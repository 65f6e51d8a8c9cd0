//! Which files are near a feature: by their names, by what they speak of, by who calls them, by who cites them.
//!
//! A word of the title weighs more the fewer files know it, so that "payment" counts and "data" does not.

use super::callers::{self, has_word};
use super::earlier::Earlier;
use super::mentions::{self, Mention, Thing};
use super::passages::{self, Passage};
use super::place;
use super::profile::Profile;
use super::project::Project;
use super::uses::Uses;
use crate::code::FileFacts;
use crate::finding::Finding;
use crate::words::terms;

/// More files than these are not near.
const MOST_CORE: usize = 6;
const MOST_LOOSE: usize = 4;
const MOST_FUNCTIONS: usize = 8;
const MOST_REASONS: usize = 2;
/// A file counts with this score, and with this share of the best one.
const LEAST: f64 = 0.3;
const LEAST_SHARE: f64 = 0.45;
/// Words that many titles have and that say little about which one it is: the other words count.
const GENERAL: &str = "mode support processing handling management feature system option integration functionality \
                       improvement service module component workflow process tool";
const OF_GENERAL: f64 = 0.4;
/// A finding that is this relevant draws the files that it cites near.
const RELEVANT: f64 = 0.6;
const MOST_PLACES: usize = 3;

#[derive(Clone, Debug, Default)]
pub struct Near {
    pub title: String,
    /// Terms of the title with their weight; what no source knows weighs the most.
    pub wanted: Vec<(String, f64)>,
    /// Words of the title, as typed, that nothing in the project knows.
    pub unknown: Vec<String>,
    pub core: Vec<NearFile>,
    /// Files that call what the core offers.
    pub callers: Vec<NearFile>,
    /// Where nothing is near: files that share a word with the title.
    pub loose: Vec<NearFile>,
    /// What the documents say about it.
    pub says: Vec<Passage>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearFile {
    pub file: usize,
    pub score: f64,
    pub why: Vec<String>,
    /// Of the product, the nearest first.
    pub functions: Vec<usize>,
    /// Comments in it and documents that speak of the title.
    pub mentions: Vec<Mention>,
    /// It is near for what is mentioned only: the rest of the file is about something else.
    pub is_narrow: bool,
    /// Of a file that calls: the files of the core that it relies on.
    pub relies_on: Vec<usize>,
}

impl NearFile {
    /// The functions and types that are spoken of, each once.
    pub fn things(&self) -> Vec<Thing> {
        let mut found = Vec::new();
        for thing in self.mentions.iter().filter_map(|mention| mention.thing) {
            if !found.contains(&thing) {
                found.push(thing);
            }
        }
        found
    }

    /// Does a function have to do with what is spoken of: itself, a method of a type, one that takes or returns it?
    fn touches(&self, file: &FileFacts, index: usize) -> bool {
        let function = &file.functions[index];
        let of_type = |name: &str| {
            let own = function.owner.as_deref() == Some(name);
            let words = terms(name);
            let named = !words.is_empty() && share(&weighed(words), &function.name) >= 1.0;
            own || has_word(&function.signature, name) || named && function.owner.is_none()
        };
        self.things().into_iter().any(|thing| match thing {
            Thing::Function(at) => at == index,
            Thing::Type(at) => of_type(&file.types[at].name),
        })
    }
}

impl Near {
    pub fn find(title: &str, project: &Project, uses: &Uses, earlier: &Earlier) -> Near {
        let profiles: Vec<Profile> =
            project.products().map(|(index, file)| Profile::of(index, file)).collect();
        let mut near =
            Near { title: title.to_string(), wanted: weights(title, &profiles), ..Near::default() };
        near.unknown = unknown(title, &profiles, project);
        near.says = passages::about(&near.wanted, project);
        let terms: Vec<String> = near.wanted.iter().map(|(term, _)| term.clone()).collect();
        let mut spoken = mentions::in_comments(&terms, project);
        spoken.extend(mentions::in_documents(&near.wanted, project, &near.says));
        let mut scored: Vec<NearFile> =
            profiles.iter().map(|profile| near.score(profile, project, earlier, &spoken)).collect();
        scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
        let mut loose = scored.clone();
        loose.retain(|file| file.score >= LEAST / 3.0);
        let best = scored.first().map_or(0.0, |file| file.score);
        let offers = |near: &NearFile| {
            let file = &project.sources[near.file];
            !near.functions.is_empty() || file.types.iter().any(|known| !known.in_test)
        };
        scored.retain(|file| file.score >= LEAST && file.score >= best * LEAST_SHARE && offers(file));
        scored.truncate(MOST_CORE);
        near.core = scored;
        if near.core.is_empty() {
            loose.truncate(MOST_LOOSE);
            near.loose = loose;
        }
        near.callers = callers::find(&near.core, project, uses);
        near
    }

    fn score(&self, profile: &Profile, project: &Project, earlier: &Earlier, spoken: &[Mention]) -> NearFile {
        let file = &project.sources[profile.file];
        let all: f64 = self.wanted.iter().map(|(_, weight)| weight).sum();
        let mut why: Vec<(f64, String)> = Vec::new();
        let mut score = 0.0;
        for (term, weight) in &self.wanted {
            if let Some((strength, reason)) = profile.strength(term, &self.typed(term)) {
                score += strength * weight / all;
                why.push((strength * weight, reason));
            }
        }
        if let Some((step, relevance)) = cited(&file.path, earlier) {
            score += 0.25 + 0.25 * relevance;
            why.push((relevance, format!("cited by `{step}`")));
        }
        why.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mentions: Vec<Mention> = spoken.iter().filter(|m| m.file == profile.file).cloned().collect();
        let is_narrow = score < LEAST && mentions.iter().any(|mention| mention.thing.is_some());
        let mut reasons: Vec<String> = mentions.iter().map(|mention| reason(file, mention)).collect();
        reasons.dedup();
        reasons.truncate(MOST_REASONS);
        // What a file is called says more than what is said in it; a word that it has somewhere says nothing beside it.
        if !is_narrow {
            reasons.splice(..0, why.into_iter().map(|(_, reason)| reason)).for_each(drop);
        }
        reasons.dedup();
        let spoken = mentions.iter().map(|mention| mention.score).fold(0.0, f64::max);
        let mut near =
            NearFile { file: profile.file, score: score + spoken, why: reasons, ..NearFile::default() };
        (near.mentions, near.is_narrow) = (mentions, is_narrow);
        near.functions = self.functions(file, &near);
        near
    }

    /// The word of the title that a term comes from.
    fn typed(&self, term: &String) -> String {
        let is_it = |word: &&str| terms(word).contains(term);
        self.title.split_whitespace().find(is_it).unwrap_or(term).to_lowercase()
    }

    /// Does a name share a term with the title?
    pub fn names(&self, name: &str) -> bool {
        terms(name).iter().any(|term| self.wanted.iter().any(|(wanted, _)| wanted == term))
    }

    /// Public functions first, those that the title names or that are spoken of before all.
    fn functions(&self, file: &FileFacts, near: &NearFile) -> Vec<usize> {
        let rank = |index: &usize| {
            let function = &file.functions[*index];
            let named = self.names(&function.full_name());
            (!named && !near.touches(file, *index), !function.is_public, *index)
        };
        let of_product =
            |index: &usize| !file.functions[*index].in_test && !file.functions[*index].name.starts_with("__");
        let mut all: Vec<usize> = (0..file.functions.len()).filter(of_product).collect();
        all.retain(|index| !near.is_narrow || near.touches(file, *index));
        all.sort_by_key(rank);
        all.truncate(MOST_FUNCTIONS);
        all.sort_unstable();
        all
    }
}

/// `` `Amount`: its TODO in line 8 speaks of it ``
fn reason(file: &FileFacts, mention: &Mention) -> String {
    let name = match mention.thing {
        Some(Thing::Function(at)) => format!("`{}`: ", file.functions[at].full_name()),
        Some(Thing::Type(at)) => format!("`{}`: ", file.types[at].name),
        None => String::new(),
    };
    format!("{name}{}", mention.why)
}

/// Which share of the weight of the wanted terms a text has, 0 to 1.
pub fn share(wanted: &[(String, f64)], text: &str) -> f64 {
    let said = terms(text);
    let all: f64 = wanted.iter().map(|(_, weight)| weight).sum();
    let known: f64 = wanted.iter().filter(|(term, _)| said.contains(term)).map(|(_, weight)| weight).sum();
    known / all.max(f64::MIN_POSITIVE)
}

fn weighed(words: Vec<String>) -> Vec<(String, f64)> {
    words.into_iter().map(|word| (word, 1.0)).collect()
}

/// Rare terms weigh more. What no source knows weighs most: a file that lacks it lacks what the title is about.
fn weights(title: &str, profiles: &[Profile]) -> Vec<(String, f64)> {
    let mut wanted = terms(title);
    wanted.sort();
    wanted.dedup();
    let general = terms(GENERAL);
    let weight = |term: String| {
        let known = profiles.iter().filter(|profile| profile.knows(&term)).count();
        let rarity = (1.0 + profiles.len() as f64 / known.max(1) as f64).ln();
        let weight = if general.contains(&term) { rarity * OF_GENERAL } else { rarity };
        (term, weight)
    };
    wanted.into_iter().map(weight).collect()
}

fn unknown(title: &str, profiles: &[Profile], project: &Project) -> Vec<String> {
    let words = title.split_whitespace().filter(|word| !terms(word).is_empty());
    let mut open: Vec<&str> = words.collect();
    open.retain(|word| !terms(word).iter().any(|term| profiles.iter().any(|profile| profile.knows(term))));
    open.retain(|word| {
        let wanted = terms(word);
        let tells = |text: &str| terms(text).iter().any(|term| wanted.contains(term));
        !project.documents.iter().any(|document| tells(&document.text))
    });
    open.into_iter().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_string()).collect()
}

/// The step whose most relevant finding names a place in the file. A finding about many places is about none.
fn cited(path: &str, earlier: &Earlier) -> Option<(String, f64)> {
    let names = |evidence: &String| place::split(evidence).0 == path;
    // A document was found by the same words as the file itself: it says nothing new.
    let about = |found: &Finding| {
        let same = ["document", "near"].contains(&found.kind.as_str());
        !found.is_convention() && !same && found.evidence.len() <= MOST_PLACES
    };
    let mut all =
        earlier.findings().into_iter().filter(|(_, found)| found.relevance >= RELEVANT && about(found));
    let found = all.find(|(_, found)| found.evidence.iter().any(names));
    found.map(|(step, found)| (step.to_string(), found.relevance))
}
