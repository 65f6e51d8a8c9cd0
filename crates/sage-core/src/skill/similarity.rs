//! How near a skill is to what is asked, 0 to 1.
//!
//! ```text
//! cover = weight of the title's terms that the skill has, each times how firmly it has it
//!         (1 in name or tags, 0.8 only in the description), by the weight of all terms of the title
//! focus = share of the skill's name (or of its tags, if that is more) that title and further text have
//! similarity = 2 * cover * focus / (cover + focus), times 0.8 if the deeds differ (add against fix)
//! ```
//! Terms weigh 1, deeds such as "add" and "fix" 0.5. Nothing in common is 0, and neither a long
//! description nor a one-word title is near to everything: both shares must be high.

use std::collections::BTreeSet;

use super::Skill;
use super::terms::{Deed, deed, terms};

/// From here on a skill is shown to those who work.
pub const SHOWN: f64 = 0.70;
/// From here on it is used without being asked for, if a person has approved it.
pub const BY_ITSELF: f64 = 0.85;

const DEED_WEIGHT: f64 = 0.5;
const DESCRIBED: f64 = 0.8;
/// Keeps what does something else below `BY_ITSELF`.
const OTHER_DEED: f64 = 0.8;

/// `more` is further text about the work (its inputs, its ticket); it can only bring a skill nearer.
/// Rounded to three digits, so that what is shown is what was decided on.
pub fn similarity(title: &str, more: &str, skill: &Skill) -> f64 {
    let wanted = terms(title);
    let known: BTreeSet<String> = wanted.union(&terms(more)).cloned().collect();
    let (name, tags) = (terms(&skill.name), terms(&skill.tags.join(" ")));
    let described = terms(&skill.description);
    let firmness = |term: &String| match () {
        () if name.contains(term) || tags.contains(term) => 1.0,
        () if described.contains(term) => DESCRIBED,
        () => 0.0,
    };
    let cover = share(&wanted, firmness);
    let has = |term: &String| if known.contains(term) { 1.0 } else { 0.0 };
    let focus = share(&name, has).max(share(&tags, has));
    if cover == 0.0 || focus == 0.0 {
        return 0.0;
    }
    let core: BTreeSet<String> = name.union(&tags).cloned().collect();
    // A name that says nothing of it leaves it to the description, which may speak of anything.
    let done = deeds(&core).or_else(|| Some(&deeds(&described)? | &made())).unwrap_or_else(made);
    let fits = !deeds(&wanted).unwrap_or_else(made).is_disjoint(&done);
    let near = 2.0 * cover * focus / (cover + focus) * if fits { 1.0 } else { OTHER_DEED };
    (near * 1_000.0).round() / 1_000.0
}

/// The weighted mean of `value` over the terms; 0 without terms.
fn share(terms: &BTreeSet<String>, value: impl Fn(&String) -> f64) -> f64 {
    let weight = |term: &String| if deed(term).is_some() { DEED_WEIGHT } else { 1.0 };
    let all: f64 = terms.iter().map(weight).sum();
    let found: f64 = terms.iter().map(|term| weight(term) * value(term)).sum();
    if all == 0.0 { 0.0 } else { found / all }
}

fn deeds(terms: &BTreeSet<String>) -> Option<BTreeSet<Deed>> {
    let named: BTreeSet<Deed> = terms.iter().filter_map(|term| deed(term)).collect();
    (!named.is_empty()).then_some(named)
}

/// Who says nothing else wants something made.
fn made() -> BTreeSet<Deed> {
    BTreeSet::from([Deed::Make])
}
