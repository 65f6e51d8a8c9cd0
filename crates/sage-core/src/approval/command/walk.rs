//! Goes through a command line in the order in which it may run, and knows in which directories each part may.
//!
//! `cd sub && make` runs `make` in `sub`; `cd sub; make` runs it there or, if there is no `sub`, here. A part is
//! judged for all directories that it may run in.

use super::place::{Site, is_sink, join, plain};
use super::{Does, Effect, Part, files, find, git, looks, runners, scripts, wrappers};
use crate::shell::{self, Body, Command, Join, List, Pipeline, Redirect, Unclear, Word};

/// More directories than these are nobody's command.
const DIRECTORIES: usize = 8;

/// Variables that change how a program prints, and nothing else.
const VARIABLES: &[&str] = &[
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "TERM",
    "COLUMNS",
    "LINES",
    "LANG",
    "LANGUAGE",
    "TZ",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "CARGO_TERM_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "NODE_ENV",
    "PY_COLORS",
    "VERBOSE",
    "DEBUG",
];

/// Reads a command line. Parts are in the order in which they are written.
pub fn read(text: &str, site: Site<'_>) -> Result<Vec<Part>, Unclear> {
    let list = shell::parse(text)?;
    let mut walk = Walk { site, parts: Vec::new() };
    walk.list(&list, &Dirs(vec![site.cwd.to_string()]));
    Ok(walk.parts)
}

/// Where the shell may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Dirs(Vec<String>);

impl Dirs {
    fn or(&self, other: &Dirs) -> Dirs {
        let mut all = self.0.clone();
        all.extend(other.0.iter().filter(|dir| !self.0.contains(dir)).cloned());
        Dirs(all)
    }
}

/// Where the shell may be after a command, if it succeeds and if it fails.
#[derive(Clone, Debug)]
struct After {
    success: Dirs,
    failure: Dirs,
}

impl After {
    fn same(dirs: &Dirs) -> After {
        After { success: dirs.clone(), failure: dirs.clone() }
    }

    fn any(&self) -> Dirs {
        self.success.or(&self.failure)
    }
}

struct Walk<'a> {
    site: Site<'a>,
    parts: Vec<Part>,
}

impl Walk<'_> {
    fn list(&mut self, list: &List, dirs: &Dirs) -> After {
        let mut after = After::same(dirs);
        for (join, pipeline) in &list.0 {
            let begins = match join {
                Join::Then => after.any(),
                Join::And => after.success.clone(),
                Join::Or => after.failure.clone(),
            };
            let next = self.pipeline(pipeline, &begins);
            after = match join {
                Join::Then => next,
                Join::And => After { failure: after.failure.or(&next.failure), ..next },
                Join::Or => After { success: after.success.or(&next.success), ..next },
            };
        }
        after
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dirs: &Dirs) -> After {
        match pipeline.0.as_slice() {
            [alone] => self.command(alone, dirs),
            many => {
                // Some shells run the last command themselves, others run all of them in shells of their own.
                let all = many.iter().fold(dirs.clone(), |all, one| all.or(&self.command(one, dirs).any()));
                After::same(&all)
            }
        }
    }

    fn command(&mut self, command: &Command, dirs: &Dirs) -> After {
        match &command.body {
            Body::Group { list, subshell } => {
                let after = self.list(list, dirs);
                self.redirects(command, dirs);
                if *subshell { After::same(dirs) } else { after }
            }
            Body::Simple { variables, words } => {
                let effect = simple(variables, words, &self.site);
                let is_cd = matches!(words.first(), Some(first) if first.text == "cd");
                match cd(words).filter(|_| is_cd && command.redirects.is_empty()) {
                    Some(to) => self.change_directory(words, to, dirs),
                    None => {
                        // A variable that may change what the program does is part of it.
                        let set = variables.iter().filter(|(name, value)| !is_harmless(name, value));
                        let set = set.map(|(name, value)| Word {
                            text: format!("{name}={}", value.text),
                            ..value.clone()
                        });
                        let all: Vec<Word> = set.chain(words.iter().cloned()).collect();
                        self.push(&all, effect, &command.redirects, dirs);
                        After::same(dirs)
                    }
                }
            }
        }
    }

    /// Files that a group as a whole reads and writes.
    fn redirects(&mut self, command: &Command, dirs: &Dirs) {
        if !command.redirects.is_empty() {
            self.push(&[], Effect::new(Does::Looks), &command.redirects, dirs);
        }
    }

    fn push(&mut self, words: &[Word], effect: Effect, redirects: &[Redirect], dirs: &Dirs) {
        let Effect { does, mut reads, mut writes, within } = effect;
        for redirect in redirects {
            match redirect {
                Redirect::Read(word) => reads.push(word.clone()),
                Redirect::Write(word) => writes.push(word.clone()),
            }
        }
        writes.retain(|word| !is_sink(&word.text));
        let too_many = dirs.0.len() > DIRECTORIES;
        let does = if too_many { Does::Unknown("it changes its directory too often".into()) } else { does };
        let words: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        let (reads, writes) = (self.real(&reads, dirs), self.real(&writes, dirs));
        let mut at = dirs.0.clone();
        at.extend(self.real(within.as_slice(), dirs));
        self.parts.push(Part { text: words.join(" "), words, does, reads, writes, dirs: at });
    }

    /// Every path in every directory that it may be meant in.
    fn real(&self, words: &[Word], dirs: &Dirs) -> Vec<String> {
        let mut all = Vec::new();
        for word in words {
            for dir in dirs.0.iter().take(DIRECTORIES) {
                let path = real(word, dir, &self.site);
                if !all.contains(&path) {
                    all.push(path);
                }
            }
        }
        all
    }

    /// A directory counts only if it is where its name says: a link would make `..` mean two things.
    fn change_directory(&mut self, words: &[Word], to: &Word, dirs: &Dirs) -> After {
        let (mut success, mut reads, mut does) = (Dirs::default(), Vec::new(), Does::Looks);
        for dir in &dirs.0 {
            let wanted = plain(&join(dir, &to.text));
            let found = (self.site.real)(&wanted);
            if !to.is_literal() || found != wanted {
                does = Does::Unknown(format!("`cd {}` may lead anywhere", to.text));
            }
            reads.push(found);
            success = success.or(&Dirs(vec![wanted]));
        }
        let words: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        let text = words.join(" ");
        self.parts.push(Part { text, words, does, reads, writes: Vec::new(), dirs: dirs.0.clone() });
        After { success, failure: dirs.clone() }
    }
}

fn real(word: &Word, dir: &str, site: &Site<'_>) -> String {
    // Names that begin with a dot are matched by patterns that do, among them those that are private.
    let hidden = |part: &str| part.starts_with('.') && part.contains(['*', '?', '[']);
    if word.status || (word.pattern && word.text.split('/').any(hidden)) {
        return "..".into();
    }
    (site.real)(&join(dir, &word.text))
}

/// Where `cd` goes.
fn cd(words: &[Word]) -> Option<&Word> {
    match words {
        [_, to] if !to.text.starts_with('-') && !to.text.is_empty() => Some(to),
        [_, dashes, to] if dashes.text == "--" => Some(to),
        _ => None,
    }
}

/// Whether a variable may be set for a command.
pub(super) fn is_harmless(name: &str, value: &Word) -> bool {
    let pager = ["PAGER", "GIT_PAGER"].contains(&name) && ["", "cat"].contains(&value.text.as_str());
    let known = VARIABLES.contains(&name) || name.starts_with("LC_") || pager;
    known && value.is_literal()
}

fn simple(variables: &[(String, Word)], words: &[Word], site: &Site<'_>) -> Effect {
    if let Some((name, _)) = variables.iter().find(|(name, value)| !is_harmless(name, value)) {
        return Effect::unknown(format!("it sets the variable `{name}`"));
    }
    match words {
        [] => Effect::new(Does::Looks),
        words => program(words, site),
    }
}

/// What a program does with its arguments.
pub(super) fn program(words: &[Word], site: &Site<'_>) -> Effect {
    let [first, args @ ..] = words else { return Effect::unknown("it runs nothing") };
    if !first.is_literal() {
        return Effect::unknown("the name of its program is not known");
    }
    let known = looks::effect(program_name(&first.text), args)
        .or_else(|| files::effect(program_name(&first.text), args))
        .or_else(|| match program_name(&first.text) {
            "find" => Some(find::effect(args)),
            "git" => Some(git::effect(args)),
            "sed" => Some(scripts::sed(args)),
            "awk" | "gawk" | "mawk" | "nawk" => Some(scripts::awk(args)),
            "jq" => Some(scripts::jq(args)),
            name => wrappers::effect(name, args, site),
        });
    match known {
        Some(effect) if !matches!(effect.does, Does::Unknown(_)) => effect,
        known => runners::effect(words, site)
            .or(known)
            .unwrap_or_else(|| Effect::unknown(format!("`{}` is not known to be harmless", first.text))),
    }
}

/// Programs of the system are known by their name alone.
pub(super) fn program_name(text: &str) -> &str {
    let dirs = ["/usr/bin/", "/bin/", "/usr/local/bin/"];
    dirs.iter().find_map(|dir| text.strip_prefix(dir)).filter(|name| !name.contains('/')).unwrap_or(text)
}
