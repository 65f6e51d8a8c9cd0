//! How functions, types, constants, tests and files are named, for each language.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::facts::FileFacts;
use super::super::look::{Look, count, percent};
use super::super::names::Style;
use super::{Pattern, best};

/// Fewer names are no habit.
const LEAST: usize = 3;

struct Name<'a> {
    text: &'a str,
    at: String,
}

pub(super) fn patterns(look: &Look) -> Vec<Pattern> {
    let several = look.survey.languages.len() > 1;
    let mut patterns = Vec::new();
    for (language, _) in &look.survey.languages {
        let files: Vec<&FileFacts> =
            look.survey.files.iter().filter(|file| file.language == language).collect();
        let products = || files.iter().copied().filter(|file| !file.is_test);
        let suffix = if several { format!(" ({language})") } else { String::new() };
        let groups = [
            ("function", functions(products())),
            ("type", types(products())),
            ("constant", constants(products())),
            ("test", tests(files.iter().copied())),
            ("file", file_names(products())),
        ];
        for (what, names) in groups {
            // Go's rule is about capitals inside a name; the first one says who may use it.
            let mixed_caps = language == "Go" && what != "file";
            patterns.extend(pattern(look, what, &suffix, &names, mixed_caps));
        }
    }
    patterns
}

fn functions<'a>(files: impl Iterator<Item = &'a FileFacts>) -> Vec<Name<'a>> {
    let own = files.flat_map(|file| file.functions.iter().filter(|f| !f.in_test).map(move |f| (file, f)));
    let ordinary = own.filter(|(file, function)| {
        let constructor = function.owner.as_deref() == Some(function.name.as_str());
        let dunder = function.name.starts_with("__");
        // Components are functions that are named like types.
        let component = !file.markup.is_empty() && function.name.starts_with(char::is_uppercase);
        // A key of an object that holds a function may be anything.
        let key = function.name.contains(|c: char| !c.is_alphanumeric() && c != '_' && c != '#');
        !constructor && !dunder && !component && !key
    });
    ordinary.map(|(file, f)| Name { text: &f.name, at: file.at(f.line) }).collect()
}

fn types<'a>(files: impl Iterator<Item = &'a FileFacts>) -> Vec<Name<'a>> {
    let own = files.flat_map(|file| file.types.iter().filter(|t| !t.in_test).map(move |t| (file, t)));
    own.map(|(file, kind)| Name { text: &kind.name, at: file.at(kind.line) }).collect()
}

fn constants<'a>(files: impl Iterator<Item = &'a FileFacts>) -> Vec<Name<'a>> {
    let own = files.flat_map(|file| file.constants.iter().map(move |constant| (file, constant)));
    own.map(|(file, constant)| Name { text: &constant.name, at: file.at(constant.line) }).collect()
}

fn tests<'a>(files: impl Iterator<Item = &'a FileFacts>) -> Vec<Name<'a>> {
    let own = files.flat_map(|file| file.functions.iter().filter(|f| f.is_test).map(move |f| (file, f)));
    // Sentences are looked at with the tests.
    own.filter(|(_, f)| !f.name.contains(' '))
        .map(|(file, f)| Name { text: &f.name, at: file.at(f.line) })
        .collect()
}

fn file_names<'a>(files: impl Iterator<Item = &'a FileFacts>) -> Vec<Name<'a>> {
    let fixed = ["__init__", "__main__", "index", "mod", "main", "lib", "setup", "package-info"];
    let named = files.map(|file| {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        Name { text: name.split('.').next().unwrap_or(name), at: file.path.clone() }
    });
    named.filter(|name| !name.text.is_empty() && !fixed.contains(&name.text)).collect()
}

fn pattern(look: &Look, what: &str, suffix: &str, names: &[Name], mixed_caps: bool) -> Option<Pattern> {
    if names.len() < LEAST {
        return None;
    }
    let style_of = |name: &Name| match Style::of(name.text) {
        Style::Camel | Style::Pascal | Style::Word | Style::Screaming if mixed_caps => Style::Camel,
        style => style,
    };
    let mut counts: BTreeMap<Style, usize> = BTreeMap::new();
    names.iter().for_each(|name| *counts.entry(style_of(name)).or_default() += 1);
    let decisive = counts.iter().filter(|(style, _)| !matches!(style, Style::Word | Style::Mixed));
    let dominant = decisive.max_by_key(|(_, number)| **number).map_or(Style::Word, |(style, _)| *style);
    let follows = |name: &&Name| style_of(name).fits(dominant);
    let following = names.iter().filter(follows).count();
    let telling: Vec<String> =
        names.iter().filter(|n| style_of(n) == dominant).map(|n| n.at.clone()).collect();
    let others = names.iter().filter(|name| !follows(name));
    let exceptions = others.map(|name| format!("`{}` {}", name.text, name.at)).collect();
    let style = if mixed_caps { "MixedCaps" } else { dominant.name() };
    let share = percent(following, names.len());
    Some(Pattern {
        kind: "naming",
        subject: format!("{what} naming{suffix}"),
        predicate: "style",
        value: json!(style),
        title: format!("{}s are named in {style}{suffix}", capital(what)),
        detail: format!("{share} of {}.", count(names.len(), &format!("{what} name"))),
        share: following as f64 / names.len() as f64,
        places: names.len(),
        examples: best(look, telling),
        exceptions,
    })
}

pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}
