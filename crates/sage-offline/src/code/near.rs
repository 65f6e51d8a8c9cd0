//! The code that has to do with a title: functions and types that share its words, the rare words counting more.

use std::collections::{HashMap, HashSet};

use super::facts::{FileFacts, Function, Type};
use super::look::Look;
use crate::words::terms;

/// Below this, sharing a word is chance.
const LEAST: f64 = 0.3;

/// A place with how much it has to do with the title, 0 to 1.
#[derive(Clone, Copy)]
pub(super) struct Near<'a> {
    pub file: &'a FileFacts,
    pub thing: Thing<'a>,
    pub score: f64,
}

#[derive(Clone, Copy)]
pub(super) enum Thing<'a> {
    Function(&'a Function),
    Type(&'a Type),
}

impl<'a> Near<'a> {
    pub fn name(&self) -> String {
        match self.thing {
            Thing::Function(function) => function.full_name(),
            Thing::Type(kind) => kind.name.clone(),
        }
    }

    fn own_name(&self) -> &'a str {
        match self.thing {
            Thing::Function(function) => &function.name,
            Thing::Type(kind) => &kind.name,
        }
    }

    pub fn line(&self) -> usize {
        match self.thing {
            Thing::Function(function) => function.line,
            Thing::Type(kind) => kind.line,
        }
    }

    pub fn at(&self) -> String {
        self.file.at(self.line())
    }

    pub fn signature(&self) -> String {
        match self.thing {
            Thing::Function(function) => function.signature.clone(),
            Thing::Type(kind) => format!("{} {}", kind.kind, kind.name),
        }
    }

    pub fn doc(&self) -> Option<&'a str> {
        match self.thing {
            Thing::Function(function) => function.doc.as_deref(),
            Thing::Type(kind) => kind.doc.as_deref(),
        }
    }

    pub fn function(&self) -> Option<&'a Function> {
        match self.thing {
            Thing::Function(function) => Some(function),
            Thing::Type(_) => None,
        }
    }
}

/// Everything near the title, the nearest first. Tests only if they are asked for.
pub(super) fn near<'a>(look: &'a Look, tests: bool) -> Vec<Near<'a>> {
    if look.wanted.is_empty() {
        return Vec::new();
    }
    let places: Vec<(Near, HashMap<String, f64>)> = places(look, tests).collect();
    let weights = weights(&look.wanted, &places);
    let whole: f64 = weights.values().sum();
    let score = |found: &HashMap<String, f64>| {
        let sum: f64 = weights.iter().map(|(term, weight)| weight * found.get(term).unwrap_or(&0.0)).sum();
        sum / whole
    };
    let scored = places.into_iter().map(|(place, found)| Near { score: score(&found), ..place });
    let mut near: Vec<Near> = scored.filter(|place| place.score >= LEAST).collect();
    near.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.at().cmp(&b.at())));
    near
}

/// Each place with the wanted terms it has and how loudly: a name says more than a comment.
fn places<'a>(look: &'a Look, tests: bool) -> impl Iterator<Item = (Near<'a>, HashMap<String, f64>)> {
    let wanted: HashSet<&str> = look.wanted.iter().map(String::as_str).collect();
    let mut known_calls: HashMap<&str, Vec<String>> = HashMap::new();
    for call in look.survey.files.iter().flat_map(|file| &file.functions).flat_map(|f| &f.calls) {
        known_calls.entry(call).or_insert_with(|| {
            terms(call).into_iter().filter(|term| wanted.contains(term.as_str())).collect()
        });
    }
    let known_calls = std::rc::Rc::new(known_calls);
    look.survey.files.iter().filter(move |file| tests || !file.is_test).flat_map(move |file| {
        let functions = file.functions.iter().filter(move |f| tests || !f.in_test).map(Thing::Function);
        let types = file.types.iter().filter(move |kind| tests || !kind.in_test).map(Thing::Type);
        let in_path = terms(&file.path);
        let (wanted, known_calls) = (wanted.clone(), known_calls.clone());
        functions.chain(types).map(move |thing| {
            let place = Near { file, thing, score: 0.0 };
            let mut found = HashMap::new();
            let mut add = |list: &[String], weight: f64| {
                for term in list.iter().filter(|term| wanted.contains(term.as_str())) {
                    let known = found.entry(term.clone()).or_insert(0.0f64);
                    *known = known.max(weight);
                }
            };
            add(&terms(place.own_name()), 1.0);
            add(&terms(&place.name()), 0.8);
            add(&in_path, 0.7);
            add(&terms(place.doc().unwrap_or_default()), 0.6);
            add(&terms(&place.signature()), 0.6);
            if let Some(function) = place.function() {
                let calls = function.calls.iter().filter_map(|call| known_calls.get(call.as_str()));
                calls.for_each(|call| add(call, 0.4));
            }
            (place, found)
        })
    })
}

/// A term that is everywhere says little. One that is nowhere still belongs to what was asked, as much as the others.
fn weights(wanted: &[String], places: &[(Near, HashMap<String, f64>)]) -> HashMap<String, f64> {
    let all = places.len() as f64;
    let having = |term: &String| places.iter().filter(|(_, found)| found.contains_key(term)).count() as f64;
    let weight = |having: f64| (1.0 + all / (having + 1.0)).ln().max(0.2);
    let known: HashMap<String, f64> = wanted
        .iter()
        .filter(|term| having(term) > 0.0)
        .map(|term| (term.clone(), weight(having(term))))
        .collect();
    let most = known.values().copied().fold(0.2, f64::max);
    wanted.iter().map(|term| (term.clone(), known.get(term).copied().unwrap_or(most))).collect()
}
