//! Synthesis: what several agents said, put side by side. No model, no average: claims are compared by value.
//!
//! ```text
//! sources -> claim -> group (words, value) -> topics -+-> agreements, partial, minority
//!                                                     +-> conflicts, all sides kept
//!            independence -> confidence               +-> insight
//! ```
//! What must stay true: every claim is somewhere in the output; confidence is never above the best
//! independent evidence; the order of the sources changes nothing but the order of their names.

mod claim;
mod confidence;
mod date;
mod document;
mod group;
mod independence;
mod insight;
mod number;
mod output;
mod source;
mod value;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use output::*;
pub use source::Source;

use claim::Reading;
use confidence::{Sum, Weight, contested, cut};
use group::{Side, Topic, topics};
use independence::Ties;
use value::Body;

/// Below this confidence a person is asked.
pub const THRESHOLD: f64 = 0.5;
/// Names of silent sources that one statement lists.
const SILENT: usize = 50;

pub fn synthesize(sources: &[Source], threshold: f64) -> Synthesis {
    let Reading { claims, gaps, clear, notes } = Reading::of(sources);
    let answered: BTreeSet<usize> = claims.iter().map(|claim| claim.source).collect();
    let topics = topics(claims);
    let ties = Ties::new(sources);
    let mut desk =
        Desk { sources, ties: &ties, answered: &answered, sum: Sum::default(), out: Synthesis::default() };
    for topic in &topics {
        match topic.is_contested() {
            true => desk.conflict(topic),
            false => desk.statement(topic, &topic.sides[0]),
        }
    }
    let Desk { sum, mut out, .. } = desk;
    out.confidence = sum.whole(answered.len(), sources.len(), ties.count(&answered));
    out.insights = insight::insights(&topics, sources);
    (out.gaps, out.clear, out.notes, out.dependent) = (gaps, clear, notes, ties.remarks());
    out.escalate_why = escalation(&out, threshold);
    out.escalate = out.escalate_why.is_some();
    out.summary = summary(&out, answered.len(), sources.len());
    out.document = document::document(&out);
    out
}

/// Where topics are sorted into lists.
struct Desk<'s> {
    sources: &'s [Source],
    ties: &'s Ties<'s>,
    answered: &'s BTreeSet<usize>,
    sum: Sum,
    out: Synthesis,
}

impl Desk<'_> {
    fn names(&self, side: &Side) -> Vec<String> {
        side.support.iter().map(|own| self.sources[own.source].name.clone()).collect()
    }

    fn statement(&mut self, topic: &Topic, side: &Side) {
        let weight = Weight::of(side, self.ties);
        let (subject, predicate) = (topic.subject.clone(), topic.predicate.clone());
        let (value, evidence, sources) = (side.value.clone(), evidence(side), self.names(side));
        let confidence = cut(weight.best);
        self.sum.add(weight.best, weight.low, weight.best);
        let alone = side.support.len() == 1;
        if alone && self.answered.len() > 1 {
            let minority = self.minority(topic, side, Mark::Alone);
            return self.out.minority.extend(minority);
        }
        if side.support.len() < self.answered.len() || alone {
            let (subject, predicate, value) = (subject.clone(), predicate.clone(), value.clone());
            let (sources, evidence, silent) = (sources.clone(), evidence.clone(), self.silent(side));
            self.out.partial.push(Partial {
                subject,
                predicate,
                value,
                sources,
                silent,
                evidence,
                confidence,
            });
        }
        if !alone {
            self.out.agreements.push(Agreement {
                subject,
                predicate,
                value,
                sources,
                independent_sources: weight.independent.groups.len(),
                evidence,
                confidence,
                range: [cut(weight.low), confidence],
                silent: self.silent(side),
                dependent: weight.independent.why,
                also_written: side.also.clone(),
            });
        }
    }

    fn silent(&self, side: &Side) -> Vec<String> {
        let said: BTreeSet<usize> = side.support.iter().map(|own| own.source).collect();
        let mut silent: Vec<String> =
            self.answered.difference(&said).map(|source| self.sources[*source].name.clone()).collect();
        if silent.len() > SILENT {
            let more = silent.len() - SILENT;
            silent.truncate(SILENT);
            silent.push(format!("and {more} more"));
        }
        silent
    }

    fn minority(&self, topic: &Topic, side: &Side, mark: Mark) -> Option<Minority> {
        let [own] = side.support.as_slice() else { return None };
        Some(Minority {
            subject: topic.subject.clone(),
            predicate: topic.predicate.clone(),
            value: side.value.clone(),
            source: self.sources[own.source].name.clone(),
            evidence: evidence(side),
            confidence: cut(own.confidence),
            mark,
        })
    }

    fn conflict(&mut self, topic: &Topic) {
        let mut sides: Vec<(&Side, Weight)> =
            topic.sides.iter().map(|side| (side, Weight::of(side, self.ties))).collect();
        sides.sort_by(|(one, a), (other, b)| {
            let count = |weight: &Weight| weight.independent.groups.len();
            let order = count(b).cmp(&count(a)).then(b.best.total_cmp(&a.best));
            order.then_with(|| one.meaning.key().cmp(&other.meaning.key()))
        });
        let most = sides.iter().map(|(side, _)| side.support.len()).max().unwrap_or(0);
        for (side, _) in sides.iter().filter(|(side, _)| side.support.len() < most) {
            let minority = self.minority(topic, side, Mark::Contradicted);
            self.out.minority.extend(minority);
        }
        let shown = |(side, weight): &(&Side, Weight)| ConflictSide {
            value: side.value.clone(),
            sources: self.names(side),
            independent_sources: weight.independent.groups.len(),
            evidence: evidence(side),
            confidence: cut(weight.best),
            also_written: side.also.clone(),
        };
        let shown: Vec<ConflictSide> = sides.iter().map(shown).collect();
        let why = reason(&sides.iter().map(|(side, _)| *side).collect::<Vec<_>>());
        let weights: Vec<Weight> = sides.into_iter().map(|(_, weight)| weight).collect();
        let left = contested(&weights);
        let best = weights.first().map_or(0.0, |weight| weight.best);
        self.sum.add(left, 0.0, best);
        self.out.conflicts.push(Conflict {
            subject: topic.subject.clone(),
            predicate: topic.predicate.clone(),
            sides: shown,
            confidence: cut(left),
            critical: topic.sides.iter().any(|side| side.critical),
            resolved: false,
            why,
        });
    }
}

fn evidence(side: &Side) -> Vec<String> {
    let all: BTreeSet<&String> = side.support.iter().flat_map(|own| &own.evidence).collect();
    all.into_iter().cloned().collect()
}

/// Why the sides cannot all be true.
fn reason(sides: &[&Side]) -> String {
    let bodies = || sides.iter().map(|side| &side.meaning.body);
    let units: BTreeSet<Option<&str>> = bodies()
        .filter_map(|body| match body {
            Body::Number(number) => Some(number.unit.as_deref()),
            _ => None,
        })
        .collect();
    let same_voice =
        sides.iter().flat_map(|side| &side.support).map(|own| own.source).collect::<BTreeSet<_>>();
    let text = if same_voice.len() == 1 {
        "one source contradicts itself".to_owned()
    } else if bodies().all(|body| matches!(body, Body::Bool(_))) {
        "one says yes, the other says no".to_owned()
    } else if sides.len() == 2 && sides.iter().any(|side| side.meaning.negated) {
        "one says what the other denies".to_owned()
    } else if bodies().all(|body| matches!(body, Body::Number(_))) && units.len() > 1 {
        "the numbers have different units".to_owned()
    } else if bodies().all(|body| matches!(body, Body::Number(_))) {
        "the numbers differ".to_owned()
    } else if bodies().all(|body| matches!(body, Body::Set(_))) {
        "the lists differ".to_owned()
    } else {
        format!("{} different values", sides.len())
    };
    let critical = sides.iter().any(|side| side.critical);
    if critical { format!("{text}; a source calls it critical") } else { text }
}

fn escalation(out: &Synthesis, threshold: f64) -> Option<String> {
    let mut why: Vec<String> = Vec::new();
    let claimed = out.agreements.len() + out.conflicts.len() + out.minority.len() + out.partial.len();
    // Everybody looked and nobody found anything: there is nothing to decide.
    if claimed == 0 && out.gaps.is_empty() && !out.clear.is_empty() {
        return None;
    }
    if claimed == 0 {
        why.push("no source made a claim".to_owned());
    } else if out.confidence.value < threshold {
        why.push(format!("confidence {} is below {threshold}", out.confidence.value));
    }
    let critical: Vec<String> = out
        .conflicts
        .iter()
        .filter(|conflict| conflict.critical)
        .map(|conflict| format!("{}, {}", conflict.subject, conflict.predicate))
        .collect();
    match critical.len() {
        0 => {}
        1..=3 => why.push(format!("unresolved and critical: {}", critical.join("; "))),
        count => {
            why.push(format!("unresolved and critical: {}; and {} more", critical[..3].join("; "), count - 3))
        }
    }
    (!why.is_empty()).then(|| why.join("; "))
}

fn summary(out: &Synthesis, answered: usize, asked: usize) -> String {
    let alone = out.minority.iter().filter(|said| said.mark == Mark::Alone).count();
    let only = out.partial.iter().filter(|said| said.sources.len() == 1).count();
    let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let confidence = &out.confidence;
    let clear = match out.clear.len() {
        0 => String::new(),
        _ if answered == 0 && out.gaps.is_empty() => {
            return format!("{} looked and found nothing.", count(asked, "source", "sources"));
        }
        n => format!(" {n} looked and found nothing."),
    };
    format!(
        "{answered} of {} made claims: {}, {}, {} said by one source only, {}, {}.{clear} Confidence {} ({} to {}).",
        count(asked, "source", "sources"),
        count(out.agreements.len(), "agreement", "agreements"),
        count(out.conflicts.len(), "conflict", "conflicts"),
        alone + only,
        count(out.insights.len(), "insight", "insights"),
        count(out.gaps.len(), "gap", "gaps"),
        confidence.value,
        confidence.low,
        confidence.high,
    )
}
