//! Rules in the syntax of Claude Code: `Bash(npm test:*)`, `Read(~/notes/**)`, `Edit(/src/**)`, `WebFetch(domain:x.org)`,
//! `mcp__server__tool`. They come from the user's settings (`inherit = "claude"`) and from answers that were kept.
//!
//! The first list that has a matching rule decides: deny, then ask, then allow. A rule that cannot be evaluated allows
//! nothing; in the other lists it asks.

use serde_json::Value;

use super::command::Part;
use super::pattern::{covers_path, fits, literal, matches};
use crate::port::{AskKind, PermissionAsk};

/// `permissions` of a settings file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    pub deny: Vec<Listed>,
    pub ask: Vec<Listed>,
    pub allow: Vec<Listed>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    tool: String,
    /// What is in the parentheses.
    given: Option<String>,
}

/// What a rule is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub ask: &'a PermissionAsk,
    /// Real paths of the files that the tool names.
    pub paths: &'a [String],
    /// The parts of its command, if they are known.
    pub parts: Option<&'a [Part]>,
    /// Where the agent works.
    pub project: &'a str,
    pub home: Option<&'a str>,
}

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.given {
            Some(given) => write!(f, "{}({given})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

impl Listed {
    /// `Tool` or `Tool(something)`; `None` if it is neither.
    pub fn parse(text: &str) -> Option<Listed> {
        let text = text.trim();
        let (tool, given) = match text.split_once('(') {
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
            None => (text, None),
        };
        let named = !tool.is_empty() && tool.chars().all(|c| c.is_ascii_alphanumeric() || "_-*".contains(c));
        let given = given.filter(|given| !matches!(*given, "" | "*")).map(str::to_string);
        named.then(|| Listed { tool: tool.into(), given })
    }

    /// This command, to the letter.
    pub fn command(text: &str) -> Listed {
        Listed { tool: "Bash".into(), given: Some(literal(text)) }
    }

    /// Commands that begin with these words.
    pub fn prefix(words: &str) -> Listed {
        Listed { tool: "Bash".into(), given: Some(format!("{}:*", literal(words.trim()))) }
    }

    /// A tool, whatever it is used for.
    pub fn tool(name: &str) -> Listed {
        Listed { tool: name.into(), given: None }
    }

    /// Edits of this file.
    pub fn file(path: &str) -> Listed {
        Listed { tool: "Edit".into(), given: Some(format!("/{}", literal(path))) }
    }

    /// Whether it stands for every command.
    pub fn is_any_command(&self) -> bool {
        self.tool == "Bash" && self.given.is_none()
    }

    /// Whether a program with its arguments is covered.
    pub fn fits(&self, command: &str) -> bool {
        let Some(given) = self.given.as_deref().filter(|_| self.tool == "Bash") else {
            return self.is_any_command();
        };
        match given.strip_suffix(":*") {
            Some(prefix) => fits(&format!("{prefix} *"), command),
            None => fits(given, command),
        }
    }

    /// For lists that grant: everything that is asked for is covered.
    fn grants(&self, subject: &Subject<'_>) -> bool {
        let Subject { ask, paths, .. } = subject;
        match (self.tool.as_str(), ask.kind) {
            // Parts are compared one by one; only a command as a whole is granted here.
            ("Bash", AskKind::Run) => ask.command.as_ref().is_some_and(|text| self.is_exactly(text)),
            ("Read", AskKind::Read) => self.given.is_none() || all(paths, |path| self.covers(path, subject)),
            // Without a path, of the project's files only.
            ("Edit", AskKind::Write) if self.given.is_none() => {
                all(paths, |path| path.starts_with(&format!("{}/", subject.project)))
            }
            ("Edit", AskKind::Write) => all(paths, |path| self.covers(path, subject)),
            ("WebFetch", _) if self.given.is_some() => ask.tool == "WebFetch" && self.names_host(&ask.input),
            ("Bash" | "Read" | "Edit" | "Write" | "MultiEdit" | "NotebookEdit", _) => false,
            _ => self.given.is_none() && self.names(&ask.tool),
        }
    }

    /// For lists that restrict: anything that is asked for is covered, or may be.
    fn touches(&self, subject: &Subject<'_>) -> Touch {
        let Subject { ask, paths, parts, .. } = subject;
        let sure = |hit: bool| if hit { Touch::Yes } else { Touch::No };
        let some = |paths: &[String]| paths.iter().any(|path| self.covers(path, subject));
        let of_parts = |pick: fn(&Part) -> &Vec<String>| {
            parts.is_some_and(|parts| parts.iter().any(|part| some(pick(part))))
        };
        match (self.tool.as_str(), ask.kind) {
            ("Bash", AskKind::Run) if self.given.is_none() => Touch::Yes,
            ("Bash", AskKind::Run) => self.touches_command(subject),
            ("Read", AskKind::Read) => sure(self.given.is_none() || some(paths)),
            ("Read", AskKind::Run) if self.given.is_some() => sure(of_parts(|part| &part.reads)),
            ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", AskKind::Write) => {
                sure(self.given.is_none() || some(paths))
            }
            ("Edit" | "Write", AskKind::Run) if self.given.is_some() => sure(of_parts(|part| &part.writes)),
            ("WebFetch", _) if self.given.is_some() => {
                sure(ask.tool == "WebFetch" && self.names_host(&ask.input))
            }
            ("Bash" | "Read" | "Edit" | "Write" | "MultiEdit" | "NotebookEdit", _) => Touch::No,
            _ if !self.names(&ask.tool) => Touch::No,
            _ => {
                if self.given.is_none() {
                    Touch::Yes
                } else {
                    Touch::Maybe
                }
            }
        }
    }

    fn touches_command(&self, subject: &Subject<'_>) -> Touch {
        let text = subject.ask.command.as_deref().unwrap_or_default();
        let hit = match subject.parts {
            Some(parts) => {
                self.fits(text) || parts.iter().any(|part| names_part(part, |text| self.fits(text)))
            }
            None => boundaries(text).any(|rest| self.fits(rest)),
        };
        if hit { Touch::Yes } else { Touch::No }
    }

    /// It names this command and no other.
    pub fn is_exactly(&self, command: &str) -> bool {
        let exact = |given: &str| !given.ends_with(":*") && !has_star(given) && matches(given, command);
        self.tool == "Bash" && self.given.as_deref().is_some_and(exact)
    }

    /// `//absolute`, `~/home`, `/of the project`, `relative`.
    fn covers(&self, path: &str, subject: &Subject<'_>) -> bool {
        let Some(given) = self.given.as_deref() else { return true };
        if let Some(absolute) = given.strip_prefix("//") {
            return covers_path(absolute, path);
        }
        if let Some(rest) = given.strip_prefix("~/") {
            return subject.home.is_some_and(|home| covers_path(&format!("{home}/{rest}"), path));
        }
        let Some(inside) = path.strip_prefix(subject.project).and_then(|rest| rest.strip_prefix('/')) else {
            return false;
        };
        match given.strip_prefix('/').or_else(|| given.strip_prefix("./")) {
            Some(rest) => covers_path(rest, inside),
            // A name alone is meant in every folder.
            None if !given.contains('/') => covers_path(&format!("**/{given}"), inside),
            None => covers_path(given, inside),
        }
    }

    fn names(&self, tool: &str) -> bool {
        let server = self.tool.starts_with("mcp__")
            && tool.strip_prefix(self.tool.as_str()).is_some_and(|rest| rest.starts_with("__"));
        server || matches(&self.tool, tool)
    }

    fn names_host(&self, input: &Value) -> bool {
        let url = input["url"].as_str().unwrap_or_default();
        let host = url
            .split_once("://")
            .map_or(url, |(_, rest)| rest)
            .split(['/', '?', '#'])
            .next()
            .unwrap_or_default();
        // A name before the host would make another host of it.
        let plain = !host.contains('@') && !host.is_empty();
        let host = host.split(':').next().unwrap_or_default().to_lowercase();
        let domain = self
            .given
            .as_deref()
            .and_then(|given| given.strip_prefix("domain:"))
            .unwrap_or_default()
            .to_lowercase();
        plain
            && !domain.is_empty()
            && (host == domain
                || domain.strip_prefix("*.").is_some_and(|end| host.ends_with(&format!(".{end}"))))
    }
}

/// Whether a rule that restricts applies.
enum Touch {
    Yes,
    /// It cannot be told.
    Maybe,
    No,
}

fn all(paths: &[String], covered: impl Fn(&str) -> bool) -> bool {
    !paths.is_empty() && paths.iter().all(|path| covered(path))
}

fn has_star(pattern: &str) -> bool {
    pattern.replace("\\\\", "").replace("\\*", "").contains('*')
}

/// Whether a part is meant, or, of a program that is not known, a command that it may run.
pub(super) fn names_part(part: &Part, fits: impl Fn(&str) -> bool) -> bool {
    let inner = matches!(part.does, super::command::Does::Unknown(_)) || part.wraps();
    fits(&part.text) || (inner && boundaries(&part.text).any(fits))
}

/// Every place of a command line where a command may begin.
pub(super) fn boundaries(text: &str) -> impl Iterator<Item = &str> {
    let begins = |c: char| !(c.is_alphanumeric() || "-_./=".contains(c));
    let inner = text.char_indices().filter(move |(_, c)| begins(*c)).map(|(at, c)| at + c.len_utf8());
    std::iter::once(0).chain(inner).map(|at| text[at..].trim_start_matches(['"', '\'', '(', ' ']))
}

impl Lists {
    /// `permissions` as it is written in a settings file. What is no rule is left out.
    pub fn of_settings(settings: &Value) -> Lists {
        let list = |name: &str| {
            let texts = settings["permissions"][name].as_array().into_iter().flatten();
            texts.filter_map(Value::as_str).filter_map(Listed::parse).collect()
        };
        Lists { deny: list("deny"), ask: list("ask"), allow: list("allow") }
    }

    pub fn extend(&mut self, other: Lists) {
        self.deny.extend(other.deny);
        self.ask.extend(other.ask);
        self.allow.extend(other.allow);
    }

    pub fn is_empty(&self) -> bool {
        *self == Lists::default()
    }

    pub(super) fn denies(&self, subject: &Subject<'_>) -> Option<&Listed> {
        self.deny.iter().find(|rule| matches!(rule.touches(subject), Touch::Yes))
    }

    pub(super) fn asks(&self, subject: &Subject<'_>) -> Option<&Listed> {
        let unsure = self.deny.iter().find(|rule| matches!(rule.touches(subject), Touch::Maybe));
        unsure.or_else(|| self.ask.iter().find(|rule| !matches!(rule.touches(subject), Touch::No)))
    }

    pub(super) fn allows(&self, subject: &Subject<'_>) -> Option<&Listed> {
        self.allow.iter().find(|rule| rule.grants(subject))
    }
}
