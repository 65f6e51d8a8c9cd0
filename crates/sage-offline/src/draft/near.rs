//! Which files are near a feature: by their names, by what they speak of, by who calls them, by who cites them.
//!
//! A word of the title weighs more the fewer files know it, so that "payment" counts and "data" does not.

use super::earlier::Earlier;
use super::place;
use super::project::{Project, about, module_name};
use super::uses::Uses;
use crate::code::FileFacts;
use crate::finding::Finding;
use crate::words::terms;

/// More files than these are not near.
const MOST_CORE: usize = 6;
const MOST_CALLERS: usize = 6;
const MOST_LOOSE: usize = 4;
const MOST_FUNCTIONS: usize = 8;
/// A file counts with this score, and with this share of the best one.
const LEAST: f64 = 0.3;
const LEAST_SHARE: f64 = 0.45;
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
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearFile {
    pub file: usize,
    pub score: f64,
    pub why: Vec<String>,
    /// Of the product, the nearest first.
    pub functions: Vec<usize>,
}

impl Near {
    pub fn find(title: &str, project: &Project, uses: &Uses, earlier: &Earlier) -> Near {
        let profiles: Vec<Profile> =
            project.products().map(|(index, file)| Profile::of(index, file)).collect();
        let mut near =
            Near { title: title.to_string(), wanted: weights(title, &profiles), ..Near::default() };
        near.unknown = unknown(title, &profiles, project);
        let mut scored: Vec<NearFile> =
            profiles.iter().map(|profile| near.score(profile, project, earlier)).collect();
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
        near.callers = callers(&near.core, project, uses);
        near
    }

    fn score(&self, profile: &Profile, project: &Project, earlier: &Earlier) -> NearFile {
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
        let mut why: Vec<String> = why.into_iter().map(|(_, reason)| reason).collect();
        why.dedup();
        NearFile { file: profile.file, score, why, functions: self.functions(file) }
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

    /// Public functions first, those that the title names before all.
    fn functions(&self, file: &FileFacts) -> Vec<usize> {
        let rank = |index: &usize| {
            let function = &file.functions[*index];
            let named = self.names(&function.full_name());
            (!named, !function.is_public, *index)
        };
        let of_product =
            |index: &usize| !file.functions[*index].in_test && !file.functions[*index].name.starts_with("__");
        let mut all: Vec<usize> = (0..file.functions.len()).filter(of_product).collect();
        all.sort_by_key(rank);
        all.truncate(MOST_FUNCTIONS);
        all.sort_unstable();
        all
    }
}

/// The words of one file, by where they stand.
struct Profile {
    file: usize,
    name: Vec<String>,
    folders: Vec<String>,
    /// Each term of a function's or type's name, with the name.
    offers: Vec<(String, String)>,
    about: Vec<String>,
    text: Vec<String>,
}

impl Profile {
    fn of(index: usize, file: &FileFacts) -> Profile {
        let folders = file.path.rsplit_once('/').map_or("", |(folders, _)| folders);
        let functions = file.functions.iter().filter(|f| !f.in_test).map(|f| f.name.clone());
        let types = file.types.iter().filter(|t| !t.in_test).map(|t| t.name.clone());
        let offers =
            types.chain(functions).flat_map(|name| terms(&name).into_iter().map(move |t| (t, name.clone())));
        let mut text = terms(&file.text);
        text.sort_unstable();
        Profile {
            file: index,
            name: terms(module_name(&file.path)),
            folders: terms(folders),
            offers: offers.collect(),
            about: about(file).map(|(_, text)| terms(&text)).unwrap_or_default(),
            text,
        }
    }

    fn count(&self, term: &str) -> usize {
        let start = self.text.partition_point(|known| known.as_str() < term);
        self.text[start..].iter().take_while(|known| *known == term).count()
    }

    fn knows(&self, term: &String) -> bool {
        self.count(term) > 0 || self.name.contains(term) || self.folders.contains(term)
    }

    /// How strongly the file speaks of a term, and how one would say so.
    fn strength(&self, term: &String, typed: &str) -> Option<(f64, String)> {
        let offered = self.offers.iter().find(|(known, _)| known == term);
        match self.count(term) {
            _ if self.name.contains(term) => Some((1.0, "its name".to_string())),
            _ if offered.is_some() => offered.map(|(_, name)| (0.75, format!("has `{name}`"))),
            _ if self.about.contains(term) => Some((0.6, "its first comment".to_string())),
            _ if self.folders.contains(term) => Some((0.45, "its folder".to_string())),
            0 => None,
            count => Some(((0.1 + 0.04 * count as f64).min(0.3), format!("says \"{typed}\" {count}x"))),
        }
    }
}

/// Rare terms weigh more. What no source knows weighs most: a file that lacks it lacks what the title is about.
fn weights(title: &str, profiles: &[Profile]) -> Vec<(String, f64)> {
    let mut wanted = terms(title);
    wanted.sort();
    wanted.dedup();
    let weight = |term: String| {
        let known = profiles.iter().filter(|profile| profile.knows(&term)).count();
        (term, (1.0 + profiles.len() as f64 / known.max(1) as f64).ln())
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
        !found.is_convention() && found.kind != "document" && found.evidence.len() <= MOST_PLACES
    };
    let mut all =
        earlier.findings().into_iter().filter(|(_, found)| found.relevance >= RELEVANT && about(found));
    let found = all.find(|(_, found)| found.evidence.iter().any(names));
    found.map(|(step, found)| (step.to_string(), found.relevance))
}

fn callers(core: &[NearFile], project: &Project, uses: &Uses) -> Vec<NearFile> {
    let mut found: Vec<NearFile> = Vec::new();
    for near in core {
        for &function in &near.functions {
            let name = &project.sources[near.file].functions[function].name;
            for call in uses.of(project, near.file, function).iter().filter(|call| !call.in_test) {
                if core.iter().any(|known| known.file == call.file) {
                    continue;
                }
                let at = found.iter().position(|known| known.file == call.file).unwrap_or_else(|| {
                    found.push(NearFile { file: call.file, ..NearFile::default() });
                    found.len() - 1
                });
                let (caller, why) = (&mut found[at], format!("calls `{name}`"));
                caller.score += 1.0;
                caller.functions.extend(call.by.filter(|by| !caller.functions.contains(by)));
                if !caller.why.contains(&why) {
                    caller.why.push(why);
                }
            }
        }
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
    found.truncate(MOST_CALLERS);
    found
}
