//! One question, answered by what is known: the rules, the role, and what the command would do.

use super::command::{self, CheckKind, Does, Part, Site, is_public, pattern};
use super::listed::{Lists, Subject, boundaries, names_part};
use super::mode::Mode;
use super::pattern::{fits, matches};
use super::rules::Rules;
use crate::fence::{is_private, is_protected, protected_part};
use crate::port::{AskKind, PermissionAsk};
use crate::role::{Access, Paths};
use crate::shell::Unclear;

/// What a question is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    pub rules: &'a Rules,
    /// Of the run; the rules' own does not count here.
    pub mode: Mode,
    /// Rules of other programs' settings, and answers that were kept.
    pub lists: &'a Lists,
    pub access: Access,
    /// The real path of where the agent works.
    pub project: &'a str,
    pub home: Option<&'a str>,
    /// What the run has spent, where that is known.
    pub spent_usd: Option<f64>,
    pub site: Site<'a>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow {
        why: String,
    },
    /// `why` goes to the agent.
    Deny {
        why: String,
    },
    /// A person has to decide. `rule` is a pattern for `[approvals] commands` that would have answered.
    Ask {
        why: String,
        rule: Option<String>,
    },
}

fn allow(why: impl Into<String>) -> Verdict {
    Verdict::Allow { why: why.into() }
}

fn deny(why: impl Into<String>) -> Verdict {
    Verdict::Deny { why: why.into() }
}

fn asks(why: impl Into<String>) -> Verdict {
    Verdict::Ask { why: why.into(), rule: None }
}

/// What asks for words, not for permission: only a person has them.
const QUESTIONS: [&str; 2] = [super::YOUR_ANSWER, "AskUserQuestion"];

/// A command, taken apart as far as it could be.
type Read = Result<Vec<Part>, Unclear>;

impl Judge<'_> {
    pub fn decide(&self, ask: &PermissionAsk) -> Verdict {
        let paths: Vec<String> = ask.paths.iter().map(|path| (self.site.real)(path)).collect();
        let read = command_of(ask).map(|text| command::read(text, self.site));
        let parts = read.as_ref().and_then(|read| read.as_deref().ok());
        let subject = Subject { ask, paths: &paths, parts, project: self.project, home: self.home };
        self.forbidden(ask, &paths, parts)
            .or_else(|| self.restricted(ask, &subject))
            .or_else(|| self.named(ask, &subject))
            .or_else(|| self.harmless(ask, &paths, read.as_ref()))
            .or_else(|| self.cheap(ask))
            .unwrap_or_else(|| self.question(ask, &paths, read))
    }

    /// No rule, no mode and no person changes these.
    fn forbidden(&self, ask: &PermissionAsk, paths: &[String], parts: Option<&[Part]>) -> Option<Verdict> {
        let access = self.access;
        let role = |what: &str| Some(deny(format!("your role may not {what}")));
        let by_role = match ask.kind {
            AskKind::Write if !access.write => role("change files"),
            AskKind::Write if access.paths != Paths::All && !self.is_in_its_folders(paths) => {
                role("change files there")
            }
            AskKind::Run if !access.run => role("run commands"),
            AskKind::Network if !access.network => role("use the network"),
            _ => None,
        };
        let written = matches!(ask.kind, AskKind::Write | AskKind::Other).then_some(paths);
        let written =
            written.into_iter().flatten().chain(parts.into_iter().flatten().flat_map(|part| &part.writes));
        protected(written, self.project)
            .or(by_role)
            .or_else(|| parts?.iter().find_map(|part| self.forbidden_part(part)))
    }

    fn forbidden_part(&self, part: &Part) -> Option<Verdict> {
        let changes =
            matches!(part.does, Does::Changes | Does::Rearranges | Does::Records) || !part.writes.is_empty();
        if changes && !self.access.write {
            return Some(deny(format!("your role may not change files (`{}`)", part.text)));
        }
        let private = part.reads.iter().filter_map(|path| self.inside(path)).find(|path| is_private(path))?;
        Some(deny(format!("`{private}` is private to Sage")))
    }

    fn is_in_its_folders(&self, paths: &[String]) -> bool {
        let own = |path: &String| self.inside(path).is_some_and(|path| self.access.paths.contains(path));
        !paths.is_empty() && paths.iter().all(own)
    }

    /// What is denied, or has to be asked, by name.
    fn restricted(&self, ask: &PermissionAsk, subject: &Subject<'_>) -> Option<Verdict> {
        let text = command_of(ask);
        let named = |pattern: &&String| {
            let part = |part: &Part| names_part(part, |text| fits(pattern, text));
            let inner =
                |text: &str| subject.parts.is_none() && boundaries(text).any(|rest| fits(pattern, rest));
            matches(pattern, &ask.tool)
                || text.is_some_and(|text| fits(pattern, text) || inner(text))
                || subject.parts.is_some_and(|parts| parts.iter().any(part))
        };
        if let Some(pattern) = self.rules.deny.iter().find(named) {
            return Some(deny(format!("`{pattern}` is not allowed in this project")));
        }
        if let Some(rule) = self.lists.denies(subject) {
            return Some(deny(format!("the rule `{rule}` does not allow it")));
        }
        self.lists.asks(subject).map(|rule| asks(format!("the rule `{rule}` wants to be asked")))
    }

    fn named(&self, ask: &PermissionAsk, subject: &Subject<'_>) -> Option<Verdict> {
        if self.rules.tools.iter().any(|pattern| matches(pattern, &ask.tool)) {
            return Some(allow("the tool is allowed"));
        }
        if let Some(rule) = self.lists.allows(subject) {
            return Some(allow(format!("the rule `{rule}` allows it")));
        }
        let text = command_of(ask)?;
        self.rules.commands.iter().any(|known| known == text).then(|| allow("the command is allowed"))
    }

    fn harmless(&self, ask: &PermissionAsk, paths: &[String], read: Option<&Read>) -> Option<Verdict> {
        let network = self.access.network && ask.tool == "WebSearch";
        match ask.kind {
            AskKind::Read if self.rules.read_only => Some(allow("it only reads")),
            AskKind::Write if self.writes(paths) => Some(allow("it writes where it may")),
            AskKind::Run => {
                let (text, read) = (command_of(ask)?, read?);
                self.runs(text, read).ok().map(allow)
            }
            AskKind::Network if network => Some(allow("it only searches")),
            _ if self.mode == Mode::All
                && ask.kind != AskKind::Run
                && !QUESTIONS.contains(&ask.tool.as_str()) =>
            {
                Some(allow("everything is allowed"))
            }
            _ => None,
        }
    }

    /// All of these files may be written.
    fn writes(&self, paths: &[String]) -> bool {
        !paths.is_empty() && paths.iter().all(|path| self.may_write(path))
    }

    fn may_write(&self, path: &str) -> bool {
        match self.inside(path) {
            Some(inside) => {
                self.mode >= Mode::Edits || self.rules.paths.iter().any(|pattern| matches(pattern, inside))
            }
            None => self.mode == Mode::All,
        }
    }

    /// Why a command needs no person, or why it does.
    fn runs(&self, text: &str, read: &Read) -> Result<String, Verdict> {
        let own = self.site.checks.of_line(text).filter(|_| self.rules.checks);
        if own.is_some_and(|kind| kind == CheckKind::Test || self.access.write) {
            return Ok("it is a check of the project".into());
        }
        let anything = self.anything();
        match read {
            Ok(parts) => {
                parts.iter().try_for_each(|part| self.part(part, anything))?;
                Ok("the command is allowed".into())
            }
            Err(_) if anything && !names_protected(text) => Ok("commands are allowed".into()),
            Err(unclear) => Err(asks(unclear.to_string())),
        }
    }

    /// Who may not write gets no command for its name's or the mode's sake: many a harmless program has a flag that
    /// writes.
    fn anything(&self) -> bool {
        let named = self.rules.commands.iter().any(|pattern| pattern == "*");
        let listed = self.lists.allow.iter().any(|rule| rule.is_any_command());
        self.access.write && (self.mode >= Mode::Commands || named || listed)
    }

    fn part(&self, part: &Part, anything: bool) -> Result<(), Verdict> {
        let Rules { read_only, checks, commands, .. } = self.rules;
        let (write, mode) = (self.access.write, self.mode);
        let (by_kind, why) = match &part.does {
            Does::Looks => (*read_only, "commands that read are asked here".to_string()),
            Does::Tests => (*checks, "tests are asked here".into()),
            Does::Builds | Does::Records => {
                (*checks && write, format!("`{}` changes files or the repository", part.text))
            }
            Does::Changes => (write, "it changes files".into()),
            Does::Rearranges => {
                (write && mode >= Mode::Edits, format!("`{}` changes files that may be lost", part.text))
            }
            Does::Unknown(why) => (false, why.clone()),
        };
        let fits = |pattern: &String| if write { fits(pattern, &part.text) } else { *pattern == part.text };
        let listed = self
            .lists
            .allow
            .iter()
            .any(|rule| if write { rule.fits(&part.text) } else { rule.is_exactly(&part.text) });
        let named = commands.iter().any(fits) || listed;
        let any = anything && (!matches!(part.does, Does::Unknown(_)) || !names_protected(&part.text));
        if !(by_kind || named || any) {
            return Err(Verdict::Ask { why, rule: pattern(part) });
        }
        let looks = matches!(part.does, Does::Looks | Does::Changes);
        // Code that runs is the project's own.
        let outside = |path: &&String| self.inside(path).is_none() && !(looks && is_public(path));
        if let Some(path) = part.reads.iter().find(outside).filter(|_| !named && !any) {
            let why = format!("`{}` reads {}, outside of the project", part.text, shown(path));
            return Err(asks(why));
        }
        let away =
            part.dirs.iter().find(|dir| self.inside(dir).is_none()).filter(|_| part.is_bound() && !any);
        if let Some(dir) = away {
            return Err(asks(format!("`{}` runs in {}, outside of the project", part.text, shown(dir))));
        }
        match part.writes.iter().find(|path| !self.may_write(path)).filter(|_| !any) {
            Some(path) => {
                Err(asks(format!("it writes {}, where nothing may be written without asking", shown(path))))
            }
            None => Ok(()),
        }
    }

    /// What nobody counts is not cheap, and who may not write does not get a shell for being cheap.
    fn cheap(&self, ask: &PermissionAsk) -> Option<Verdict> {
        let harmless = self.access.write || matches!(ask.kind, AskKind::Read | AskKind::Network);
        let cheap =
            self.rules.under_usd.is_some_and(|limit| self.spent_usd.is_some_and(|spent| spent < limit));
        (harmless && cheap).then(|| allow("little has been spent"))
    }

    fn question(&self, ask: &PermissionAsk, paths: &[String], read: Option<Read>) -> Verdict {
        match (ask.kind, command_of(ask), read) {
            (AskKind::Run, Some(text), Some(read)) => match self.runs(text, &read) {
                Err(question) => question,
                Ok(_) => asks("the command is not known"),
            },
            (AskKind::Write, ..) => match paths.iter().find(|path| !self.may_write(path)) {
                Some(path) => {
                    asks(format!("it writes {}, where nothing may be written without asking", shown(path)))
                }
                None => asks("it does not say what it writes"),
            },
            (AskKind::Network, ..) => asks("it uses the network"),
            _ => asks(format!("`{}` is not known to be harmless", ask.tool)),
        }
    }

    /// The path relative to the project; `None` if it lies outside, or cannot be told.
    fn inside<'p>(&self, path: &'p str) -> Option<&'p str> {
        let relative = match path.strip_prefix('/') {
            Some(_) => match path.strip_prefix(self.project.trim_end_matches('/'))? {
                "" => ".",
                rest => rest.strip_prefix('/')?,
            },
            None => path,
        };
        (!relative.split('/').any(|part| part == "..")).then_some(relative)
    }
}

/// What a shell would run. PowerShell is another language.
fn command_of(ask: &PermissionAsk) -> Option<&str> {
    ask.command.as_deref().filter(|_| ask.kind == AskKind::Run && ask.tool != "PowerShell")
}

/// Files that configure agents, Sage and git.
fn protected<'a>(mut paths: impl Iterator<Item = &'a String>, project: &str) -> Option<Verdict> {
    let inside = |path: &'a str| path.strip_prefix(project).map_or(path, |rest| rest.trim_start_matches('/'));
    let path = paths.find_map(|path| Some(inside(path)).filter(|path| protected_part(path).is_some()))?;
    Some(deny(format!("`{path}` is protected: it configures agents or Sage, so agents cannot change it")))
}

/// A command that nobody has taken apart mentions one of them.
fn names_protected(text: &str) -> bool {
    text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !"._-".contains(c)).any(is_protected)
}

fn shown(path: &str) -> String {
    if path == ".." { "a path that cannot be told".into() } else { format!("`{path}`") }
}
