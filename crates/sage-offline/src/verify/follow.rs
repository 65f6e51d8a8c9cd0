//! What a person changed while a run stood still is taken over; what runs changed stays their change.
//!
//! ```text
//! began --(the run)--> left --(a person, other runs)--> now
//! taken over: what differs between `left` and `now`, without what differs between `began` and `left` of another run
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::baseline::{Baseline, FileTests, Known, Tests};
use super::decides::{Decides, Facts};
use super::executed::Executed;

/// How a project was when another run began, and when it stopped.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    pub began: &'a Baseline,
    pub left: &'a Baseline,
}

impl Baseline {
    /// Takes over what a person changed since `left`. `others` ran since then.
    pub fn follow(&mut self, left: &Baseline, now: &Baseline, others: &[Stretch]) {
        if let (Some(own), Some(left), Some(now)) = (&mut self.tests, &left.tests, &now.tests) {
            let before = (counted(own), off(own));
            follow_tests(own, left, now, others);
            let removed = minus(&before.0, &counted(own));
            let switched = off(own).saturating_sub(before.1);
            self.ran.iter_mut().for_each(|ran| ran.without(&removed, switched));
            if !minus(&counted(own), &before.0).is_empty() {
                self.ran.iter_mut().for_each(Executed::forget_ends);
            }
        }
        follow_commands(&mut self.test, &left.test, &now.test, others, |it| &it.test);
        follow_commands(&mut self.build, &left.build, &now.build, others, |it| &it.build);
        follow_commands(&mut self.named, &left.named, &now.named, others, |it| &it.named);
    }
}

type Names = BTreeMap<String, usize>;

fn counted(tests: &Tests) -> Names {
    multiset(tests.values().flat_map(|file| &file.names))
}

fn multiset<'a>(names: impl IntoIterator<Item = &'a String>) -> Names {
    let mut counts = Names::new();
    for name in names {
        *counts.entry(name.clone()).or_insert(0) += 1;
    }
    counts
}

fn minus(some: &Names, others: &Names) -> Names {
    let left = some.iter().map(|(name, count)| {
        let other = others.get(name).copied().unwrap_or(0);
        (name.clone(), count.saturating_sub(other))
    });
    left.filter(|(_, count)| *count > 0).collect()
}

fn off(tests: &Tests) -> usize {
    tests.values().map(|file| file.off).sum()
}

/// Names that came, names that went, and how many more lines switch tests off.
fn change(before: Option<&FileTests>, after: Option<&FileTests>) -> (Names, Names, i64) {
    let names = |file: Option<&FileTests>| multiset(file.into_iter().flat_map(|file| &file.names));
    let off = |file: Option<&FileTests>| file.map_or(0, |file| file.off as i64);
    let (then, now) = (names(before), names(after));
    (minus(&now, &then), minus(&then, &now), off(after) - off(before))
}

fn follow_tests(own: &mut Tests, left: &Tests, now: &Tests, others: &[Stretch]) {
    let paths: BTreeSet<&String> = left.keys().chain(now.keys()).collect();
    for path in paths.into_iter().filter(|path| left.get(*path) != now.get(*path)) {
        let (mut added, mut removed, mut switched) = change(left.get(path), now.get(path));
        for other in others {
            let file = |it: &Baseline| it.tests.as_ref().and_then(|tests| tests.get(path)).cloned();
            let theirs = change(file(other.began).as_ref(), file(other.left).as_ref());
            (added, removed) = (minus(&added, &theirs.0), minus(&removed, &theirs.1));
            switched -= theirs.2.max(0);
        }
        for (name, count) in removed {
            (0..count).for_each(|_| remove(own, path, &name));
        }
        let file = own.entry(path.clone()).or_default();
        added.into_iter().for_each(|(name, count)| file.names.extend(std::iter::repeat_n(name, count)));
        file.off = (file.off as i64 + switched).max(0) as usize;
    }
    own.retain(|_, file| *file != FileTests::default());
}

/// From this file, or from where it was before the run moved it.
fn remove(tests: &mut Tests, path: &str, name: &str) {
    let at = |file: &FileTests| file.names.iter().position(|own| own == name);
    let own = tests.get(path).and_then(at).map(|at| (path.to_string(), at));
    let found = own.or_else(|| tests.iter().find_map(|(path, file)| Some((path.clone(), at(file)?))));
    if let Some((path, at)) = found
        && let Some(file) = tests.get_mut(&path)
    {
        file.names.remove(at);
    }
}

type Commands = fn(&Baseline) -> &Vec<Known>;

fn find<'a>(list: &'a [Known], known: &Known) -> Option<&'a Known> {
    list.iter().find(|it| it.is(known))
}

fn follow_commands(own: &mut Vec<Known>, left: &[Known], now: &[Known], others: &[Stretch], of: Commands) {
    let of_another = |known: &Known| {
        others.iter().any(|it| find(of(it.began), known).is_some() != find(of(it.left), known).is_some())
    };
    let removed = |known: &Known| find(left, known).is_some() && find(now, known).is_none();
    own.retain(|known| !removed(known) || of_another(known));
    for now in now {
        let before = find(left, now);
        if let Some(own) = own.iter_mut().find(|it| it.is(now)) {
            let theirs: Vec<(&Known, &Known)> = others
                .iter()
                .filter_map(|it| Some((find(of(it.began), now)?, find(of(it.left), now)?)))
                .collect();
            follow_decides(&mut own.decides, before.map(|left| &left.decides), &now.decides, &theirs);
            own.definition.clone_from(&now.definition);
        } else if before.is_none() && !of_another(now) {
            own.push(now.clone());
        }
    }
}

fn follow_decides(own: &mut Decides, left: Option<&Decides>, now: &Decides, others: &[(&Known, &Known)]) {
    let (nothing, none) = (Decides::new(), Facts::default());
    let left = left.unwrap_or(&nothing);
    let paths: BTreeSet<&String> = left.keys().chain(now.keys()).collect();
    for path in paths.into_iter().filter(|path| left.get(*path) != now.get(*path)) {
        let of = |decides: &Decides| decides.get(path).unwrap_or(&none).clone();
        let theirs: Vec<(Facts, Facts)> =
            others.iter().map(|(began, left)| (of(&began.decides), of(&left.decides))).collect();
        let facts = own.entry(path.clone()).or_default();
        facts.follow(&of(left), &of(now), &theirs);
        if facts.is_empty() {
            own.remove(path);
        }
    }
}
