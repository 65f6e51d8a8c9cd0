//! Which skills fit what is asked: offered from `SHOWN` on, used by themselves from `BY_ITSELF` on if approved.
//!
//! Only an approved skill gives more than its name: its instructions, and what its steps had found (`known`).
//! The description of one that nobody has approved is left out where it looks like an order to agents.

use std::cmp::Ordering;

use sage_core::diagnostic::printable;
use sage_core::skill::scan::scan;
use sage_core::skill::{BY_ITSELF, SHOWN, similarity};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Index, Listed};

/// More would only fill the prompt.
const MAX_OFFERS: usize = 10;
/// Of all skills that are used by themselves: with `known` the whole stays small enough for a journal's record.
const MAX_INSTRUCTION_BYTES: usize = 16 << 10;
/// What a step's result may carry on to later ones.
pub const MAX_KNOWN_BYTES: usize = 32 << 10;

#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// The nearest first.
    pub offers: Vec<Offer>,
    pub known: Option<KnownResult>,
    /// Skills that were compared.
    pub looked_at: usize,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub name: String,
    pub description: String,
    pub similarity: f64,
    pub approved: bool,
    pub version: u32,
    pub path: String,
    pub used_by_itself: bool,
    /// The text of the skill, where it is used by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// What the steps of the run had found that the nearest skill came out of.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownResult {
    pub skill: String,
    pub version: u32,
    /// RFC 3339: how old it is.
    pub since: Option<String>,
    /// Path of the step -> its result.
    pub results: Value,
}

/// `more` is further text about the work.
pub fn discover(index: &Index, title: &str, more: &str) -> Discovered {
    let near = |listed: &'_ Listed| similarity(title, more, &listed.skill);
    let mut fits: Vec<(f64, &Listed)> =
        index.skills.iter().map(|listed| (near(listed), listed)).filter(|(near, _)| *near >= SHOWN).collect();
    // Equally near ones: the approved before the others, then by name.
    fits.sort_by(|(a, one), (b, other)| {
        let nearer = b.partial_cmp(a).unwrap_or(Ordering::Equal);
        nearer.then(other.approved().cmp(&one.approved())).then(one.skill.name.cmp(&other.skill.name))
    });
    fits.truncate(MAX_OFFERS);
    let used = fits.iter().filter(|(near, listed)| by_itself(*near, listed));
    let known = used.clone().find_map(|(_, listed)| known(listed));
    let mut left = MAX_INSTRUCTION_BYTES;
    let offers = fits.iter().map(|(near, listed)| offered(index, *near, listed, &mut left)).collect();
    Discovered { offers, known, looked_at: index.skills.len() }
}

fn by_itself(near: f64, listed: &Listed) -> bool {
    near >= BY_ITSELF && listed.approved()
}

fn offered(index: &Index, near: f64, listed: &Listed, left: &mut usize) -> Offer {
    let skill = &listed.skill;
    let used = by_itself(near, listed);
    let safe = listed.approved() || scan(&skill.description, &[]).is_clean();
    let description = match safe {
        true => printable(&skill.description.replace(['\n', '\r'], " ")),
        false => "(left out: it looks like an order to agents, and nobody has approved it)".into(),
    };
    Offer {
        name: skill.name.clone(),
        description,
        similarity: near,
        approved: listed.approved(),
        version: listed.version(),
        path: index.shown(&listed.file()),
        used_by_itself: used,
        instructions: used.then(|| trimmed(&skill.body, &index.shown(&listed.file()), left)),
    }
}

fn trimmed(body: &str, path: &str, left: &mut usize) -> String {
    let body = body.trim();
    let head = &body[..body.floor_char_boundary(*left)];
    *left -= head.len();
    match body.len() - head.len() {
        0 => body.to_string(),
        more => format!("{head}\n[{more} more bytes in {path}]"),
    }
}

/// `None` also where it is too much to carry on: the steps then work as if nothing were known.
fn known(listed: &Listed) -> Option<KnownResult> {
    let bytes = listed.content.as_ref()?.result().filter(|bytes| bytes.len() <= MAX_KNOWN_BYTES)?;
    let results: Value = serde_json::from_slice(bytes).ok().filter(Value::is_object)?;
    let since = listed.meta.as_ref().map(|meta| meta.created.clone());
    Some(KnownResult { skill: listed.skill.name.clone(), version: listed.version(), since, results })
}

impl Discovered {
    pub fn used(&self) -> impl Iterator<Item = &str> {
        self.offers.iter().filter(|offer| offer.used_by_itself).map(|offer| offer.name.as_str())
    }

    /// The result of the operation `skills.discover`.
    pub fn to_json(&self) -> Value {
        let used: Vec<&str> = self.used().collect();
        let summary = match (self.offers.len(), used.as_slice()) {
            (0, _) => format!("none of {} skills fits", self.looked_at),
            (fits, []) => format!("{fits} of {} skills may fit; none is used by itself", self.looked_at),
            (fits, used) => {
                format!("{fits} of {} skills fit; used by itself: {}", self.looked_at, used.join(", "))
            }
        };
        json!({
            "type": "skills.discover",
            "summary": summary,
            "skills": self.offers,
            "known": self.known,
            "offer": offer(self),
            "method": "terms of the title compared with name, tags and description; shown from 0.70, used by itself from 0.85 if approved",
        })
    }
}

/// What a step is told of them; empty if there is nothing to tell. Instructions are not in it: they are a
/// part of the result, and in the files.
pub fn offer(discovered: &Discovered) -> String {
    if discovered.offers.is_empty() {
        return String::new();
    }
    let mut text = String::from("Skills you may use:\n");
    for offer in &discovered.offers {
        let how = match (offer.used_by_itself, offer.approved) {
            (true, _) => "; approved for this kind of work: follow it",
            (false, true) => "",
            (false, false) => "; not approved: do not run its files",
        };
        text += &format!("- {}: {} ({}{how})\n", offer.name, offer.description, offer.path);
    }
    text
}
