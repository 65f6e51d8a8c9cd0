//! Claims about the same thing come together: a topic, and its sides if they cannot all be true.
//!
//! ```text
//! (subject, predicate) -> sides by value -> one topic per set of sides that exclude each other
//! ```
//! Two values of one predicate exclude each other, and so do a value and its negation. Two negations do not,
//! and neither do texts of a predicate for which one source itself names several: it can have many values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::claim::Claim;
use super::number::Number;
use super::value::{Body, Meaning};
use super::words;

/// One source's share in a side: the best of its claims, and all of their evidence.
#[derive(Clone, Debug)]
pub struct Support {
    pub source: usize,
    pub confidence: f64,
    pub evidence: BTreeSet<String>,
}

/// Claims that say the same.
#[derive(Clone, Debug)]
pub struct Side {
    pub meaning: Meaning,
    pub value: Value,
    /// Other ways in which it was written.
    pub also: Vec<Value>,
    /// In the order of the sources.
    pub support: Vec<Support>,
    pub critical: bool,
}

/// One side, if nobody contradicts; else all of them.
#[derive(Clone, Debug)]
pub struct Topic {
    pub subject: String,
    pub predicate: String,
    pub subject_key: String,
    pub predicate_key: String,
    pub sides: Vec<Side>,
}

impl Topic {
    pub fn is_contested(&self) -> bool {
        self.sides.len() > 1
    }
}

/// In the order of subjects, then predicates, then values.
pub fn topics(claims: Vec<Claim>) -> Vec<Topic> {
    let mut groups: BTreeMap<(String, String), Vec<Claim>> = BTreeMap::new();
    for claim in as_questions(claims) {
        groups.entry((words::name(&claim.subject), claim.predicate.key.clone())).or_default().push(claim);
    }
    let mut topics = Vec::new();
    for ((subject_key, predicate_key), claims) in groups {
        let subject = shown(&claims, |claim| claim.subject.clone());
        let predicate = shown(&claims, |claim| claim.shown_predicate.clone());
        for sides in contradicting(sides(claims)) {
            topics.push(Topic {
                subject: subject.clone(),
                predicate: predicate.clone(),
                subject_key: subject_key.clone(),
                predicate_key: predicate_key.clone(),
                sides,
            });
        }
    }
    topics
}

/// `cache | is | not thread safe` becomes `cache | is thread safe | false`, if anybody put it like that.
fn as_questions(mut claims: Vec<Claim>) -> Vec<Claim> {
    let is_bool = |claim: &&Claim| matches!(claim.meaning.body, Body::Bool(_));
    let key = |claim: &Claim| (words::name(&claim.subject), claim.predicate.key.clone());
    let asked: BTreeSet<(String, String)> = claims.iter().filter(is_bool).map(key).collect();
    for claim in claims.iter_mut().filter(|claim| claim.predicate.key == "is") {
        let Body::Text(text) = &claim.meaning.body else { continue };
        if !asked.contains(&(words::name(&claim.subject), text.clone())) {
            continue;
        }
        let yes = !claim.meaning.negated;
        let positive = words::phrase(claim.value.as_str().unwrap_or_default()).shown;
        claim.shown_predicate = format!("is {positive}");
        claim.predicate.key = text.clone();
        claim.meaning = Meaning { body: Body::Bool(yes), negated: false };
        claim.value = Value::Bool(yes);
    }
    claims
}

/// How most certain source puts it; the first in the alphabet if several are equally so.
fn shown(claims: &[Claim], part: impl Fn(&Claim) -> String) -> String {
    let mut best: Option<(f64, String)> = None;
    for claim in claims {
        let text = part(claim);
        let better = best.as_ref().is_none_or(|(confidence, shown)| {
            claim.confidence > *confidence || claim.confidence == *confidence && text < *shown
        });
        if better {
            best = Some((claim.confidence, text));
        }
    }
    best.map(|(_, text)| text).unwrap_or_default()
}

fn sides(claims: Vec<Claim>) -> Vec<Side> {
    let mut by_key: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
    let mut numbers = Vec::new();
    for claim in claims {
        match claim.meaning.body {
            Body::Number(_) => numbers.push(claim),
            _ => by_key.entry(claim.meaning.key()).or_default().push(claim),
        }
    }
    by_key.into_values().chain(clusters(numbers)).map(side).collect()
}

/// Numbers that are near each other, smallest first.
fn clusters(claims: Vec<Claim>) -> Vec<Vec<Claim>> {
    let mut sorted: Vec<(Number, Claim)> = claims
        .into_iter()
        .filter_map(|claim| match &claim.meaning.body {
            Body::Number(number) => Some((number.clone(), claim)),
            _ => None,
        })
        .collect();
    sorted.sort_by(|(a, x), (b, y)| {
        let order = (x.meaning.negated, &a.unit).cmp(&(y.meaning.negated, &b.unit));
        order.then(a.amount.total_cmp(&b.amount)).then(b.exact.cmp(&a.exact))
    });
    let units: BTreeSet<String> = sorted.iter().filter_map(|(number, _)| number.unit.clone()).collect();
    let (bare, with_unit): (Vec<_>, Vec<_>) =
        sorted.into_iter().partition(|(number, _)| number.unit.is_none());
    let mut clusters: Vec<Vec<(Number, Claim)>> = Vec::new();
    for (number, claim) in with_unit {
        add(&mut clusters, number, claim);
    }
    let measured = clusters.len();
    for (number, claim) in bare {
        // A bare number means the unit that all others use, if it is written like one of them.
        let meant = clusters[..measured].iter_mut().filter(|_| units.len() == 1).find(|cluster| {
            let same = cluster[0].1.meaning.negated == claim.meaning.negated;
            same && cluster.iter().any(|(other, _)| other.unit.is_some() && other.written_as(&number))
        });
        match meant {
            Some(cluster) => cluster.push((number, claim)),
            None => add(&mut clusters, number, claim),
        }
    }
    clusters.into_iter().map(|cluster| cluster.into_iter().map(|(_, claim)| claim).collect()).collect()
}

fn add(clusters: &mut Vec<Vec<(Number, Claim)>>, number: Number, claim: Claim) {
    let fits = |cluster: &&mut Vec<(Number, Claim)>| {
        let (first, of) = &cluster[0];
        first.unit == number.unit && of.meaning.negated == claim.meaning.negated && first.near(&number)
    };
    match clusters.last_mut().filter(fits) {
        Some(cluster) => cluster.push((number, claim)),
        None => clusters.push(vec![(number, claim)]),
    }
}

fn side(claims: Vec<Claim>) -> Side {
    let written = shown(&claims, |claim| claim.value.to_string());
    let mut forms: BTreeMap<String, Value> = BTreeMap::new();
    let mut support: BTreeMap<usize, Support> = BTreeMap::new();
    let critical = claims.iter().any(|claim| claim.critical);
    let meaning = claims[0].meaning.clone();
    for claim in claims {
        forms.insert(claim.value.to_string(), claim.value);
        let none = Support { source: claim.source, confidence: 0.0, evidence: BTreeSet::new() };
        let own = support.entry(claim.source).or_insert(none);
        own.confidence = own.confidence.max(claim.confidence);
        own.evidence.extend(claim.evidence);
    }
    let value = forms.remove(&written).unwrap_or_default();
    Side {
        meaning,
        value,
        also: forms.into_values().collect(),
        support: support.into_values().collect(),
        critical,
    }
}

/// Sets of sides that exclude each other.
fn contradicting(sides: Vec<Side>) -> Vec<Vec<Side>> {
    let many = has_many_values(&sides);
    let (denials, claims): (Vec<Side>, Vec<Side>) = sides.into_iter().partition(|side| side.meaning.negated);
    let mut sets: Vec<Vec<Side>> = match many {
        true => claims.into_iter().map(|side| vec![side]).collect(),
        false if claims.is_empty() => Vec::new(),
        false => vec![claims],
    };
    let claimed = sets.len();
    for denial in denials {
        let denied = sets[..claimed].iter_mut().find(|set| set.iter().any(|side| denies(&denial, side)));
        match denied {
            Some(set) => set.push(denial),
            None => sets.push(vec![denial]),
        }
    }
    sets
}

fn has_many_values(sides: &[Side]) -> bool {
    let mut named = BTreeSet::new();
    let texts =
        sides.iter().filter(|side| !side.meaning.negated && matches!(side.meaning.body, Body::Text(_)));
    texts.flat_map(|side| &side.support).any(|support| !named.insert(support.source))
}

fn denies(denial: &Side, side: &Side) -> bool {
    if side.meaning.negated {
        return false;
    }
    match (&denial.meaning.body, &side.meaning.body) {
        (Body::Number(a), Body::Number(b)) => a.unit == b.unit && a.near(b),
        (a, b) => a == b,
    }
}
