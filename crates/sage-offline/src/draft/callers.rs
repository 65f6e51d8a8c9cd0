//! Files outside of the core that rely on it: they call its functions, or use its types.

use super::mentions::Thing;
use super::near::NearFile;
use super::project::{Project, function_index};
use super::uses::Uses;
use crate::code::FileFacts;

/// More files than these are not told.
const MOST: usize = 5;
const MOST_FUNCTIONS: usize = 8;

pub fn find(core: &[NearFile], project: &Project, uses: &Uses) -> Vec<NearFile> {
    let mut callers = Callers { core, found: Vec::new() };
    for near in core {
        for &function in &near.functions {
            let name = &project.sources[near.file].functions[function].name;
            for call in uses.of(project, near.file, function).iter().filter(|call| !call.in_test) {
                callers.add(near.file, call.file, call.by, &format!("calls `{name}`"));
            }
        }
        for &thing in &near.things() {
            if let Thing::Type(at) = thing {
                callers.using(near.file, &project.sources[near.file].types[at].name, project);
            }
        }
    }
    let mut found = callers.found;
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
    found.truncate(MOST);
    found
}

struct Callers<'a> {
    core: &'a [NearFile],
    found: Vec<NearFile>,
}

impl Callers<'_> {
    fn add(&mut self, of: usize, file: usize, by: Option<usize>, why: &str) {
        if self.core.iter().any(|known| known.file == file) {
            return;
        }
        let at = self.found.iter().position(|known| known.file == file).unwrap_or_else(|| {
            self.found.push(NearFile { file, ..NearFile::default() });
            self.found.len() - 1
        });
        let caller = &mut self.found[at];
        caller.score += 1.0;
        let new = by.filter(|by| !caller.functions.contains(by) && caller.functions.len() < MOST_FUNCTIONS);
        caller.functions.extend(new);
        if !caller.why.iter().any(|known| known == why) {
            caller.why.push(why.to_string());
        }
        if !caller.relies_on.contains(&of) {
            caller.relies_on.push(of);
        }
    }

    /// Files that write the name of a type. Where several types have it, only those that import it are meant.
    fn using(&mut self, home: usize, name: &str, project: &Project) {
        let namesakes = project
            .products()
            .flat_map(|(_, file)| &file.types)
            .filter(|t| !t.in_test && t.name == name)
            .count();
        let language = project.sources[home].language;
        for (index, file) in project.products().filter(|(index, _)| *index != home) {
            let imported = file.imports.iter().any(|import| has_word(&import.path, name));
            if file.language != language || (namesakes > 1 && !imported) {
                continue;
            }
            for line in lines_with(file, name) {
                let by = function_index(file, line).filter(|by| !file.functions[*by].in_test);
                self.add(home, index, by, &format!("uses `{name}`"));
            }
        }
    }
}

/// Lines of code that have the word; not comments, imports and tests.
fn lines_with(file: &FileFacts, word: &str) -> Vec<usize> {
    let commented = |line: usize| file.notes.iter().any(|note| note.line <= line && line <= note.last);
    let in_test = |line: usize| function_index(file, line).is_some_and(|at| file.functions[at].in_test);
    let imports =
        |text: &str| ["use ", "pub use ", "import ", "from "].iter().any(|start| text.starts_with(start));
    let lines = file.text.lines().enumerate().map(|(at, text)| (at + 1, text.trim()));
    let written = lines.filter(|(_, text)| has_word(text, word) && !imports(text));
    written.map(|(line, _)| line).filter(|line| !commented(*line) && !in_test(*line)).collect()
}

/// The word as a whole: `Card` is not in `CardView`.
pub fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(part)
            && !text[at + word.len()..].chars().next().is_some_and(part)
    })
}
