//! `[approvals]`: what answers agents in a person's stead, as far as the person trusts it, and how long they wait.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_agents::text_file;
use sage_core::approval::{Inherit, Inquiries, Lists, Otherwise, Rules};
use sage_engine::approvals::{Approvals, Known};
use serde_json::{Value, json};

use super::picked::pick;
use super::{APPROVALS, File, MAX_BYTES, Setting};
use crate::cli::failure::Failure;
use crate::trust::Definition;

/// How long a question of an agent waits for a person who is there.
const DEADLINE: &str = "30m";
/// How long the first one waits where nobody may be: somebody may still look into the inbox.
const UNATTENDED_MS: u64 = 5 * 60_000;
/// Settings of Claude Code that belong to a project.
const OF_PROJECT: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// Whether anybody is there to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// A person sits in front of it.
    Terminal,
    /// Nobody does, but somebody may look into the inbox: a run in the background, or without a terminal.
    Away,
    /// Nobody will: `--yes`, or a build server.
    Nobody,
}

impl Attendance {
    /// Of this process; `yes`: questions are not wanted.
    pub fn of(yes: bool) -> Attendance {
        use std::io::IsTerminal;
        let ci = std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
        match yes || ci {
            true => Attendance::Nobody,
            false if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
                Attendance::Terminal
            }
            false => Attendance::Away,
        }
    }
}

/// Rules that count here.
#[derive(Clone, Debug)]
pub struct Answers {
    pub rules: Rules,
    pub lists: Lists,
    /// `None` if nothing is said about it.
    deadline: Option<Deadline>,
}

#[derive(Clone, Copy, Debug)]
enum Deadline {
    Never,
    Ms(u64),
}

impl Answers {
    /// Rules that are not trusted grant nothing; what they deny is denied.
    pub(super) fn of(
        settings: &mut Vec<Setting>,
        file: &File,
        inherited: Inherited,
        untrusted: &[Definition],
    ) -> Result<Answers, Failure> {
        let is_untrusted = |name: &str| untrusted.iter().any(|it| it.name == name);
        let given = file.approvals.clone();
        let rules = if is_untrusted(APPROVALS) { given.without_grants() } else { given };
        let mode = rules.mode.name();
        pick(settings, "approvals.mode", &[], (mode != "ask").then(|| mode.into()), mode.into());
        let deadline = pick(settings, "approvals.deadline", &[], rules.deadline.clone(), DEADLINE.into());
        let allow = rules.default == Otherwise::Allow;
        let default = if allow { "allow" } else { "deny" };
        pick(settings, "approvals.default", &[], allow.then(|| default.into()), default.into());
        let decides = rules.questions == Inquiries::Decide;
        pick(settings, "approvals.questions", &[], decides.then(|| "decide".into()), "ask".into());
        let deadline = match deadline.value.as_str() {
            _ if !deadline.is_given() => None,
            "never" => Some(Deadline::Never),
            _ => Some(Deadline::Ms(deadline.time_ms(DEADLINE)?)),
        };
        let lists = inherited.lists(rules.inherit.is_some(), !is_untrusted("approvals.claude"));
        Ok(Answers { rules, lists, deadline })
    }

    /// Whether a question that nobody answers in time is a yes.
    pub fn allows_by_default(&self) -> bool {
        self.rules.default == Otherwise::Allow
    }

    /// As the engine wants them.
    pub fn approvals(&self, attendance: Attendance, known: Arc<dyn Known>) -> Approvals {
        let given = self.deadline.map(|deadline| match deadline {
            Deadline::Never => None,
            Deadline::Ms(ms) => Some(ms),
        });
        let deadline_ms = match (given, attendance) {
            (Some(given), Attendance::Terminal | Attendance::Away) => given,
            (None, Attendance::Terminal) => Some(6 * UNATTENDED_MS),
            (None, Attendance::Away) => Some(UNATTENDED_MS),
            (_, Attendance::Nobody) => Some(0),
        };
        Approvals {
            rules: self.rules.clone(),
            lists: self.lists.clone(),
            deadline_ms,
            once: given.is_none() && attendance == Attendance::Away,
            allow_by_default: self.allows_by_default(),
            known,
        }
    }
}

/// Permissions of Claude Code's settings.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    user: Lists,
    project: Lists,
    /// The project's, if they allow something.
    pub defined: Option<Definition>,
}

impl Inherited {
    /// Reads them where the project wants them.
    pub fn read(rules: &Rules, root: &Path) -> Inherited {
        if rules.inherit != Some(Inherit::Claude) {
            return Inherited::default();
        }
        let user = claude_home().map(|home| text_file::read(&home.join("settings.json"), MAX_BYTES));
        let user = user.map(settings).unwrap_or_default();
        let read = |file: &&str| text_file::read_in(root, &root.join(file), MAX_BYTES);
        let of_project: Vec<Value> = OF_PROJECT.iter().map(|file| settings(read(file))).collect();
        let mut project = Lists::default();
        of_project.iter().for_each(|settings| project.extend(Lists::of_settings(settings)));
        let written: Vec<&Value> =
            of_project.iter().map(|settings| &settings["permissions"]["allow"]).collect();
        let defined =
            (!project.allow.is_empty()).then(|| Definition::inherited(OF_PROJECT[0], &json!(written)));
        Inherited { user: Lists::of_settings(&user), project, defined }
    }

    /// Both of them; what is not trusted allows nothing.
    fn lists(self, inherits: bool, trusted: bool) -> Lists {
        let Inherited { mut user, mut project, .. } = self;
        if !inherits {
            user.allow.clear();
        }
        if !inherits || !trusted {
            project.allow.clear();
        }
        user.extend(project);
        user
    }
}

/// Where Claude Code keeps the user's settings.
fn claude_home() -> Option<PathBuf> {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    path("CLAUDE_CONFIG_DIR").or_else(|| Some(path("HOME")?.join(".claude")))
}

/// A file that is not there, or cannot be read, says nothing.
fn settings(text: std::io::Result<String>) -> Value {
    serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(toml: &str) -> Answers {
        let file: File = toml::from_str(toml).unwrap();
        Answers::of(&mut Vec::new(), &file, Inherited::default(), &[]).unwrap()
    }

    #[derive(Debug)]
    struct Nothing;

    impl Known for Nothing {
        fn checks(&self, _root: &Path) -> sage_core::approval::Checks {
            Default::default()
        }

        fn kept(&self) -> Vec<sage_core::approval::Listed> {
            Vec::new()
        }
    }

    // covers: P3
    #[test]
    fn a_question_waits_as_long_as_somebody_may_be_there() {
        let deadline = |toml: &str, attendance| {
            let approvals = answers(toml).approvals(attendance, Arc::new(Nothing));
            (approvals.deadline_ms, approvals.once)
        };
        use Attendance::{Away, Nobody, Terminal};
        assert_eq!(deadline("", Terminal), (Some(30 * 60_000), false));
        assert_eq!(deadline("", Away), (Some(5 * 60_000), true));
        assert_eq!(deadline("", Nobody), (Some(0), false));
        let given = "[approvals]\ndeadline = \"7s\"\n";
        assert_eq!(deadline(given, Terminal), (Some(7_000), false));
        assert_eq!(deadline(given, Away), (Some(7_000), false));
        assert_eq!(deadline(given, Nobody), (Some(0), false));
        assert_eq!(deadline("[approvals]\ndeadline = \"never\"\n", Away), (None, false));
    }

    // covers: R17
    #[test]
    fn what_is_not_trusted_restricts_and_allows_nothing() {
        let lists = |text: &str| Lists::of_settings(&serde_json::from_str(text).unwrap());
        let inherited = || Inherited {
            user: lists(r#"{"permissions": {"allow": ["Bash(a:*)"], "deny": ["Bash(b)"]}}"#),
            project: lists(r#"{"permissions": {"allow": ["Bash(c)"], "ask": ["Bash(d)"]}}"#),
            defined: None,
        };
        let all = inherited().lists(true, true);
        assert_eq!((all.allow.len(), all.ask.len(), all.deny.len()), (2, 1, 1));
        let own = inherited().lists(true, false);
        assert_eq!((own.allow.len(), own.ask.len(), own.deny.len()), (1, 1, 1));
        let none = inherited().lists(false, false);
        assert_eq!((none.allow.len(), none.ask.len(), none.deny.len()), (0, 1, 1));
    }
}
