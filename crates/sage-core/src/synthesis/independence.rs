//! Who is evidence of their own. "More agents" is not "more evidence" when they saw each other.
//!
//! Two sources that say the same count once if one of them could read the other's result (directly or by way
//! of others), if they are one conversation of one agent and model, or if they name the same evidence. Who
//! read several others adds nothing to their number, and takes nothing from it.

use std::collections::{BTreeMap, BTreeSet};

use super::group::Support;
use super::output::Remark;
use super::source::Source;

#[derive(Debug)]
pub struct Ties<'s> {
    sources: &'s [Source],
    /// Everything that each source saw, by way of others too.
    saw: Vec<BTreeSet<usize>>,
    /// The first source of the same conversation.
    voice: Vec<usize>,
}

/// Members of a side that count once.
#[derive(Debug, Default)]
pub struct Independent {
    /// Positions in the support.
    pub groups: Vec<Vec<usize>>,
    /// How sure each group is.
    pub shares: Vec<f64>,
    pub why: Vec<String>,
}

impl<'s> Ties<'s> {
    pub fn new(sources: &'s [Source]) -> Ties<'s> {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, source) in sources.iter().enumerate() {
            by_name.entry(&source.name).or_default().push(index);
        }
        let direct: Vec<Vec<usize>> = sources
            .iter()
            .map(|source| {
                source.saw.iter().filter_map(|name| by_name.get(name.as_str())).flatten().copied().collect()
            })
            .collect();
        let saw = (0..sources.len()).map(|index| reached(index, &direct)).collect();
        Ties { sources, saw, voice: voices(sources) }
    }

    pub fn independent(&self, support: &[Support]) -> Independent {
        let at: BTreeMap<usize, usize> =
            support.iter().enumerate().map(|(at, own)| (own.source, at)).collect();
        let mut sets = Sets::new(support.len());
        let mut why = Vec::new();
        let mut heard = Vec::with_capacity(support.len());
        for (position, own) in support.iter().enumerate() {
            let seen = self.saw[own.source].iter().filter_map(|seen| at.get(seen)).copied();
            let back = |at: &usize| self.saw[support[*at].source].contains(&own.source);
            let (mutual, before): (Vec<usize>, Vec<usize>) = seen.partition(back);
            for other in mutual {
                sets.join(position, other);
            }
            heard.push(before);
        }
        for (position, before) in heard.iter().enumerate().filter(|(_, before)| !before.is_empty()) {
            let names: Vec<&str> = before.iter().map(|at| self.name(support[*at].source)).collect();
            why.push(format!("{} saw {}", self.name(support[position].source), names.join(", ")));
        }
        self.tie(support, &heard, &mut sets, &mut why);
        let own = self.own(support);
        attach(&heard, &own, &mut sets);
        let groups = sets.groups();
        let share = |group: &Vec<usize>| group.iter().map(|&at| own[at]).fold(0.0, f64::max);
        Independent { shares: groups.iter().map(share).collect(), groups, why }
    }

    /// Puts those together who saw nobody but are one conversation or rest on the same evidence.
    fn tie<'a>(&self, support: &'a [Support], heard: &[Vec<usize>], sets: &mut Sets, why: &mut Vec<String>) {
        let mut first_of_voice: BTreeMap<usize, usize> = BTreeMap::new();
        let mut first_with: BTreeMap<&'a str, usize> = BTreeMap::new();
        for (position, own) in support.iter().enumerate().filter(|(at, _)| heard[*at].is_empty()) {
            let first = *first_of_voice.entry(self.voice[own.source]).or_insert(position);
            if sets.join(position, first) {
                why.push(format!(
                    "{} and {} are one session",
                    self.name(support[first].source),
                    self.name(own.source)
                ));
            }
            for piece in &own.evidence {
                let first = *first_with.entry(piece).or_insert(position);
                if sets.join(position, first) {
                    let (one, other) = (self.name(support[first].source), self.name(own.source));
                    why.push(format!("{one} and {other} give the same evidence: {piece}"));
                }
            }
        }
    }

    /// How sure each member is for reasons of its own. An echo, that is who saw another member and has no
    /// evidence besides, has none.
    fn own(&self, support: &[Support]) -> Vec<f64> {
        let at: BTreeMap<usize, usize> =
            support.iter().enumerate().map(|(at, own)| (own.source, at)).collect();
        let seen = |own: &Support| -> Vec<usize> {
            self.saw[own.source].iter().filter_map(|seen| at.get(seen)).copied().collect()
        };
        let seen: Vec<Vec<usize>> = support.iter().map(seen).collect();
        let adds = |own: &Support, seen: &[usize]| {
            own.evidence.iter().any(|piece| !seen.iter().any(|&at| support[at].evidence.contains(piece)))
        };
        let echoes: Vec<bool> =
            support.iter().zip(&seen).map(|(own, seen)| !seen.is_empty() && !adds(own, seen)).collect();
        let own = |at: usize| match echoes[at] {
            false => support[at].confidence,
            true if seen[at].iter().any(|seen| !echoes[*seen]) => 0.0,
            // All of them saw each other: nobody knows who said it first.
            true => {
                seen[at].iter().map(|seen| support[*seen].confidence).fold(support[at].confidence, f64::min)
            }
        };
        (0..support.len()).map(own).collect()
    }

    /// How many of some sources are evidence of their own, whatever they say.
    pub fn count(&self, sources: &BTreeSet<usize>) -> usize {
        let bare = |&source: &usize| Support { source, confidence: 0.0, evidence: BTreeSet::new() };
        let support: Vec<Support> = sources.iter().map(bare).collect();
        self.independent(&support).groups.len()
    }

    /// What ties sources together before they say anything.
    pub fn remarks(&self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        for (index, source) in self.sources.iter().enumerate() {
            let seen: Vec<&str> = self.saw[index].iter().map(|seen| self.name(*seen)).collect();
            let mut told = |why: String| remarks.push(Remark { source: source.name.clone(), why });
            if !seen.is_empty() {
                told(format!("it saw {}", seen.join(", ")));
            }
            if self.voice[index] != index {
                told(format!("it is one session with {}", self.name(self.voice[index])));
            }
        }
        remarks
    }

    fn name(&self, source: usize) -> &str {
        &self.sources[source].name
    }
}

/// Who saw others counts with the surest of them, and does not make them one.
fn attach(heard: &[Vec<usize>], own: &[f64], sets: &mut Sets) {
    let is_first = |at: &usize| heard[*at].is_empty();
    let mut best: Vec<f64> = vec![0.0; heard.len()];
    for at in (0..heard.len()).filter(is_first) {
        let root = sets.root(at);
        best[root] = best[root].max(own[at]);
    }
    let mut chosen = Vec::new();
    for (position, before) in heard.iter().enumerate() {
        let roots = before.iter().filter(|at| is_first(at)).map(|at| sets.root(*at));
        let surest = roots.max_by(|a, b| best[*a].total_cmp(&best[*b]));
        chosen.extend(surest.map(|root| (position, root)));
    }
    for (position, root) in chosen {
        sets.join(position, root);
    }
}

fn reached(start: usize, direct: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = direct[start].clone();
    while let Some(next) = open.pop() {
        if next != start && found.insert(next) {
            open.extend(&direct[next]);
        }
    }
    found
}

fn voices(sources: &[Source]) -> Vec<usize> {
    let mut first = BTreeMap::new();
    let mut voices = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate() {
        voices.push(match &source.session {
            Some(session) => *first.entry((&source.agent, &source.model, session)).or_insert(index),
            None => index,
        });
    }
    voices
}

/// Disjoint sets of positions.
struct Sets(Vec<usize>);

impl Sets {
    fn new(count: usize) -> Sets {
        Sets((0..count).collect())
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// False if they were together before.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
        one != other
    }

    fn groups(&mut self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..self.0.len() {
            let root = self.root(at);
            groups.entry(root).or_default().push(at);
        }
        groups.into_values().collect()
    }
}
