//! The words of one file, by where they stand: a name says more than a comment, and a comment more than the rest.

use super::project::{about, module_name};
use crate::code::FileFacts;
use crate::words::{code_terms, terms};

pub struct Profile {
    pub file: usize,
    name: Vec<String>,
    folders: Vec<String>,
    /// Each term of a function's or type's name, with the name.
    offers: Vec<(String, String)>,
    about: Vec<String>,
    /// Sorted.
    text: Vec<String>,
}

impl Profile {
    pub fn of(index: usize, file: &FileFacts) -> Profile {
        let folders = file.path.rsplit_once('/').map_or("", |(folders, _)| folders);
        let functions = file.functions.iter().filter(|f| !f.in_test).map(|f| f.name.clone());
        let types = file.types.iter().filter(|t| !t.in_test).map(|t| t.name.clone());
        let offers =
            types.chain(functions).flat_map(|name| terms(&name).into_iter().map(move |t| (t, name.clone())));
        Profile {
            file: index,
            name: terms(module_name(&file.path)),
            folders: terms(folders),
            offers: offers.collect(),
            about: about(file).map(|(_, text)| terms(&text)).unwrap_or_default(),
            text: text(file),
        }
    }

    fn count(&self, term: &str) -> usize {
        let start = self.text.partition_point(|known| known.as_str() < term);
        self.text[start..].iter().take_while(|known| *known == term).count()
    }

    pub fn knows(&self, term: &String) -> bool {
        self.count(term) > 0 || self.name.contains(term) || self.folders.contains(term)
    }

    /// How strongly the file speaks of a term, and how one would say so.
    pub fn strength(&self, term: &String, typed: &str) -> Option<(f64, String)> {
        let offered = self.offers.iter().find(|(known, _)| known == term);
        match self.count(term) {
            _ if self.name.contains(term) => Some((1.0, "its name".to_string())),
            _ if offered.is_some() => offered.map(|(_, name)| (0.75, format!("has `{name}`"))),
            _ if self.about.contains(term) => Some((0.6, "its first comment".to_string())),
            _ if self.folders.contains(term) => Some((0.45, "its folder".to_string())),
            0 => None,
            count => Some(((0.1 + 0.04 * count as f64).min(0.3), format!("says \"{typed}\" {count}x"))),
        }
    }
}

/// Keywords count in comments only, where they are words.
fn text(file: &FileFacts) -> Vec<String> {
    let mut found = Vec::new();
    let mut from = 0;
    for note in &file.notes {
        let (start, end) = (note.span.start as usize, note.span.end as usize);
        found.extend(code_terms(file.text.get(from..start).unwrap_or_default()));
        found.extend(terms(file.slice(note.span)));
        from = end;
    }
    found.extend(code_terms(file.text.get(from..).unwrap_or_default()));
    found.sort_unstable();
    found
}
