//! make and just: the whole file with what it includes, and what the recipes start.

use super::{Gather, MAX_DEPTH};
use crate::research::{JUSTFILES, MAKEFILES, recipe_of};
use crate::shell::{Variables, Words, base, joined_path};

impl Gather<'_> {
    pub(super) fn make(&mut self, folder: &str, words: &Words, depth: usize) {
        let after = |option: &str| {
            let at = words.iter().position(|word| word == option)?;
            words.get(at + 1).map(String::as_str)
        };
        let folder = joined_path(folder, after("-C").unwrap_or_default());
        let names = if base(&words[0]) == "just" { JUSTFILES } else { MAKEFILES };
        let known = names.iter().map(|name| joined_path(&folder, name));
        let path = after("-f").map(|file| joined_path(&folder, file));
        let Some(path) = path.or_else(|| known.into_iter().find(|path| self.text(path).is_some())) else {
            return;
        };
        let text = self.included(&folder, &path, depth);
        let variables = Variables::of_make(&text);
        if base(&words[0]) == "just" && text.lines().any(|line| line.trim().starts_with("set dotenv-load")) {
            self.whole(&joined_path(&folder, ".env"));
        }
        let is_target = |word: &&String| !word.starts_with('-') && !word.contains('=');
        for target in words[1..].iter().filter(is_target) {
            for line in recipe_of(&text, target).lines() {
                if line.starts_with([' ', '\t']) {
                    self.script(&folder, &variables.resolve(line), depth + 1);
                } else if line.contains("$(") && line.contains(':') {
                    // What it needs is made by rules that are not looked for.
                    self.opaque.get_or_insert_with(|| line.to_string());
                }
            }
        }
    }

    /// The text of a file and of all that it includes; each of them decides.
    fn included(&mut self, folder: &str, path: &str, depth: usize) -> String {
        let Some(mut text) = self.text(path).filter(|_| depth < MAX_DEPTH) else { return String::new() };
        self.whole(path);
        let variables = Variables::of_make(&text);
        let mut more = Vec::new();
        for line in text.lines() {
            let mut words = line.trim_start_matches('-').split_whitespace();
            if !matches!(words.next(), Some("include" | "sinclude" | "import" | "import?" | "mod")) {
                continue;
            }
            let named = variables.resolve(&words.collect::<Vec<_>>().join(" "));
            let names = named.split([' ', '(', ')']).filter(|word| !word.is_empty() && *word != "$");
            more.extend(names.flat_map(|word| self.matching(folder, word.trim_matches(['\'', '"']))));
        }
        for path in more {
            if self.seen.insert(format!("include {path}")) {
                text.push('\n');
                text.push_str(&self.included(folder, &path, depth + 1));
            }
        }
        text
    }

    /// `rules/*.mk`, or the file of that name; of a module of just, its file.
    fn matching(&self, folder: &str, word: &str) -> Vec<String> {
        let path = joined_path(folder, word);
        let Some((start, end)) = path.split_once('*') else {
            return vec![format!("{path}.just"), path];
        };
        let fits = |path: &str| {
            path.len() >= start.len() + end.len() && path.starts_with(start) && path.ends_with(end)
        };
        self.tree.files.iter().filter(|file| fits(&file.path)).map(|file| file.path.clone()).collect()
    }
}
