//! How much of what others may use says what it does.

use serde_json::json;

use super::super::look::{Look, percent, rounded};
use super::{Pattern, best};

pub(super) fn patterns(look: &Look) -> Option<Pattern> {
    let mut documented = Vec::new();
    let mut bare = Vec::new();
    for file in look.products() {
        let functions =
            file.functions.iter().filter(|f| f.is_public && !f.in_test && !f.name.starts_with("__"));
        let functions = functions.map(|f| (&f.name, f.line, f.doc.is_some()));
        let types = file.types.iter().filter(|kind| kind.is_public && !kind.in_test);
        for (name, line, doc) in
            functions.chain(types.map(|kind| (&kind.name, kind.line, kind.doc.is_some())))
        {
            let list = if doc { &mut documented } else { &mut bare };
            list.push((name.clone(), file.at(line)));
        }
    }
    let all = documented.len() + bare.len();
    if all < 5 {
        return None;
    }
    let share = documented.len() as f64 / all as f64;
    let usual = share >= 0.5;
    let (following, rest) = if usual { (&documented, &bare) } else { (&bare, &documented) };
    let title = match documented.len() {
        0 => "Nothing has documentation comments".to_string(),
        _ if share >= 0.8 => "Public functions and types are documented".to_string(),
        few => format!("{} of public functions and types are documented", percent(few, all)),
    };
    Some(Pattern {
        kind: "documentation",
        subject: "documentation".into(),
        predicate: "share",
        value: json!(rounded(share)),
        title,
        detail: format!("{} of {all} public functions and types.", documented.len()),
        share: if usual { share } else { 1.0 - share },
        places: all,
        examples: best(look, following.iter().map(|(_, at)| at.clone()).collect()),
        exceptions: rest.iter().map(|(name, at)| format!("`{name}` {at}")).collect(),
    })
}
