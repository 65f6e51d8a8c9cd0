//! Characters that a reader does not see but an agent reads, and words in letters of two scripts.

use super::{Found, lines};
use crate::slug::is_invisible;

pub fn look(text: &str, found: &mut Found) {
    // A byte order mark at the very beginning is an editor's.
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    for (number, line) in lines(text) {
        let letters: Vec<char> = line.chars().collect();
        for (at, &c) in letters.iter().enumerate() {
            if let Some(what) = hidden(c)
                && !joins_emoji(&letters, at)
            {
                found.injection(number, format!("the {what} U+{:04X} cannot be seen", u32::from(c)));
            }
        }
        if line.split(|c: char| !c.is_alphabetic()).any(mixes_scripts) {
            found.injection(number, "a word mixes Latin letters with look-alikes of another script");
        }
    }
}

fn hidden(c: char) -> Option<&'static str> {
    match c {
        '\t' | '\n' | '\r' => None,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
            Some("direction mark")
        }
        '\u{E0000}'..='\u{E007F}' => Some("tag character"),
        '\u{E0100}'..='\u{E01EF}' => Some("variation selector"),
        '\u{00AD}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180E}' | '\u{3164}'
        | '\u{FFA0}' => Some("filler"),
        c if is_invisible(c) => {
            Some(if c.is_control() { "control character" } else { "zero-width character" })
        }
        _ => None,
    }
}

/// A zero-width joiner between two pictures makes one picture of them.
fn joins_emoji(letters: &[char], at: usize) -> bool {
    let is_picture = |c: Option<&char>| {
        c.is_some_and(|c| matches!(c, '\u{2600}'..='\u{27BF}' | '\u{FE0F}' | '\u{1F000}'..='\u{1FAFF}'))
    };
    letters[at] == '\u{200D}'
        && is_picture(at.checked_sub(1).and_then(|before| letters.get(before)))
        && is_picture(letters.get(at + 1))
}

fn mixes_scripts(word: &str) -> bool {
    let latin = word.chars().any(|c| c.is_ascii_alphabetic());
    // Greek, Cyrillic, Armenian, Cherokee: the scripts whose letters look like Latin ones.
    let alike = |c: char| matches!(c, '\u{0370}'..='\u{03FF}' | '\u{0400}'..='\u{052F}' | '\u{0531}'..='\u{058F}' | '\u{13A0}'..='\u{13FF}');
    // Formulas have single Greek letters beside Latin ones.
    latin && word.chars().count() > 3 && word.chars().any(alike)
}
