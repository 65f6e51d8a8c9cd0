//! What only several sources together show. None of the sources of an insight says all of it.
//!
//! Three shapes: one subject seen from several sides, one place that several point at for different reasons,
//! and chains: what one says of a thing leads to what another says. What is contested takes no part.

use std::collections::{BTreeMap, BTreeSet};

use super::document::plain;
use super::group::{Side, Topic};
use super::output::{Insight, InsightKind};
use super::source::Source;
use super::value::Body;

/// Of each kind: more of them tell nobody anything.
const MOST: usize = 100;
/// Statements in a chain.
const LONGEST: usize = 5;
/// Statements that one text tells; the others are counted.
const TOLD: usize = 6;

/// A statement that nobody contradicts.
#[derive(Clone, Copy)]
struct Fact<'t> {
    topic: &'t Topic,
    side: &'t Side,
}

pub fn insights(topics: &[Topic], sources: &[Source]) -> Vec<Insight> {
    let facts: Vec<Fact<'_>> = topics
        .iter()
        .filter(|topic| !topic.is_contested())
        .filter_map(|topic| Some(Fact { topic, side: topic.sides.first()? }))
        .collect();
    let mut found = Vec::new();
    for (kind, candidates) in [
        (InsightKind::Subject, by_subject(&facts)),
        (InsightKind::Place, by_place(&facts)),
        (InsightKind::Chain, chains(&facts)),
    ] {
        let together = candidates.into_iter().filter(|(_, facts)| needs_several(facts));
        found.extend(together.take(MOST).map(|(name, facts)| insight(kind, &name, &facts, sources)));
    }
    found
}

/// Two or more sources, and none that says all of it.
fn needs_several(facts: &[Fact<'_>]) -> bool {
    let sources = all_sources(facts);
    let says_all =
        |source: &usize| facts.iter().all(|fact| fact.side.support.iter().any(|own| own.source == *source));
    facts.len() > 1 && sources.len() > 1 && !sources.iter().any(says_all)
}

fn all_sources(facts: &[Fact<'_>]) -> BTreeSet<usize> {
    facts.iter().flat_map(|fact| &fact.side.support).map(|own| own.source).collect()
}

type Candidates<'t> = Vec<(String, Vec<Fact<'t>>)>;

fn by_subject<'t>(facts: &[Fact<'t>]) -> Candidates<'t> {
    let mut subjects: BTreeMap<&str, Candidates<'t>> = BTreeMap::new();
    for fact in facts {
        let same = subjects.entry(&fact.topic.subject_key).or_default();
        // Several values of one predicate are not several sides of the subject.
        match same.last_mut().filter(|(predicate, _)| *predicate == fact.topic.predicate_key) {
            Some((_, values)) => values.push(*fact),
            None => same.push((fact.topic.predicate_key.clone(), vec![*fact])),
        }
    }
    let several = subjects.into_values().filter(|predicates| predicates.len() > 1);
    several
        .map(|predicates| {
            let facts: Vec<Fact<'t>> = predicates.into_iter().flat_map(|(_, facts)| facts).collect();
            (facts[0].topic.subject.clone(), facts)
        })
        .collect()
}

fn by_place<'t>(facts: &[Fact<'t>]) -> Candidates<'t> {
    let mut places: BTreeMap<String, Vec<Fact<'t>>> = BTreeMap::new();
    for fact in facts {
        let named: BTreeSet<String> =
            fact.side.support.iter().flat_map(|own| &own.evidence).filter_map(|piece| place(piece)).collect();
        for place in named {
            places.entry(place).or_default().push(*fact);
        }
    }
    // What is said of one subject is told as such.
    let differ =
        |facts: &Vec<Fact<'_>>| facts.iter().any(|f| f.topic.subject_key != facts[0].topic.subject_key);
    places.into_iter().filter(|(_, facts)| differ(facts)).collect()
}

/// The file or address of a piece of evidence, without its line; prose is no place.
fn place(piece: &str) -> Option<String> {
    if piece.contains(char::is_whitespace) || !piece.contains(['.', '/']) {
        return None;
    }
    let mut place = piece;
    while let Some((rest, line)) = place.rsplit_once(':') {
        if line.is_empty() || !line.chars().all(|c| c.is_ascii_digit() || c == '-') {
            break;
        }
        place = rest;
    }
    Some(place.to_owned())
}

/// Ways from fact to fact where the value of one is the subject of the next.
fn chains<'t>(facts: &[Fact<'t>]) -> Candidates<'t> {
    let mut from: BTreeMap<&str, Vec<Fact<'t>>> = BTreeMap::new();
    for fact in facts {
        from.entry(&fact.topic.subject_key).or_default().push(*fact);
    }
    let targets: BTreeSet<&str> = facts.iter().filter_map(target).collect();
    let starts = facts.iter().filter(|fact| !targets.contains(fact.topic.subject_key.as_str()));
    let mut found = Vec::new();
    for start in starts.filter(|start| target(start).is_some_and(|next| from.contains_key(next))) {
        walk(&mut vec![*start], &from, &mut found);
        // Many ways lead through few facts: the first ones are enough.
        if found.len() > 4 * MOST {
            break;
        }
    }
    found
}

fn target<'t>(fact: &Fact<'t>) -> Option<&'t str> {
    match &fact.side.meaning.body {
        Body::Text(text) if !fact.side.meaning.negated && *text != fact.topic.subject_key => Some(text),
        _ => None,
    }
}

fn walk<'t>(way: &mut Vec<Fact<'t>>, from: &BTreeMap<&str, Vec<Fact<'t>>>, found: &mut Candidates<'t>) {
    let next = way.last().and_then(target).and_then(|next| from.get(next));
    let mut on = false;
    for fact in next.into_iter().flatten() {
        let visited = way.iter().any(|before| before.topic.subject_key == fact.topic.subject_key);
        if visited || way.len() == LONGEST || found.len() > 4 * MOST {
            continue;
        }
        on = true;
        way.push(*fact);
        walk(way, from, found);
        way.pop();
    }
    if !on && way.len() > 1 {
        found.push((way[0].topic.subject.clone(), way.clone()));
    }
}

fn insight(kind: InsightKind, name: &str, facts: &[Fact<'_>], sources: &[Source]) -> Insight {
    let name_of = |source: usize| sources[source].name.as_str();
    let told = |fact: &Fact<'_>| {
        let who: Vec<&str> = fact.side.support.iter().map(|own| name_of(own.source)).collect();
        let statement = match kind {
            InsightKind::Subject => format!("{}: {}", fact.topic.predicate, plain(&fact.side.value)),
            _ => format!("{}, {}: {}", fact.topic.subject, fact.topic.predicate, plain(&fact.side.value)),
        };
        format!("{statement} ({})", who.join(", "))
    };
    let separator = if kind == InsightKind::Chain { "; and " } else { "; " };
    let mut text: String = facts.iter().take(TOLD).map(told).collect::<Vec<_>>().join(separator);
    if facts.len() > TOLD {
        text.push_str(&format!("; and {} more", facts.len() - TOLD));
    }
    let text = match kind {
        InsightKind::Subject => format!("{name} - {text}"),
        InsightKind::Place => format!("{name} is behind several statements - {text}"),
        InsightKind::Chain => text,
    };
    let best = |fact: &Fact<'_>| fact.side.support.iter().map(|own| own.confidence).fold(0.0, f64::max);
    let evidence: BTreeSet<&String> =
        facts.iter().flat_map(|fact| &fact.side.support).flat_map(|own| &own.evidence).collect();
    Insight {
        kind,
        text,
        from: all_sources(facts).into_iter().map(|source| name_of(source).to_owned()).collect(),
        evidence: evidence.into_iter().cloned().collect(),
        // A combination is as sure as the weakest of its parts.
        confidence: super::confidence::cut(facts.iter().map(best).fold(1.0, f64::min)),
    }
}
