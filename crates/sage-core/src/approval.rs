//! Which questions of agents need no person. Pure: an ask, what the role may do, what was spent.
//!
//! In this order: changes of protected files are denied; what a role may not do is denied; what is denied by
//! name is denied; what is allowed by name, only reads, writes where it may, runs a listed command, or comes
//! while little has been spent is allowed; all else is asked.

use serde::Deserialize;

use crate::fence::protected_part;
use crate::port::{AskKind, PermissionAsk};
use crate::role::{Access, Paths};

/// `[approvals]` of sage.toml.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Rules {
    /// Tools that only read need no person.
    pub read_only: bool,
    /// Files in the project that may be written without asking; `*` stands for anything.
    pub paths: Vec<String>,
    /// Commands that may run without asking; `*` at the end stands for any arguments.
    pub commands: Vec<String>,
    /// Tools that may be used without asking.
    pub tools: Vec<String>,
    /// Tools and commands that are never used.
    pub deny: Vec<String>,
    /// While the run has spent less than this, nobody is asked.
    pub under_usd: Option<f64>,
    /// What happens when nobody answers in time: `allow` or `deny`.
    pub default: Otherwise,
    pub deadline: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Otherwise {
    Allow,
    #[default]
    Deny,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            read_only: true,
            paths: vec!["*".into()],
            commands: Vec::new(),
            tools: Vec::new(),
            deny: Vec::new(),
            under_usd: None,
            default: Otherwise::Deny,
            deadline: None,
        }
    }
}

/// What a rule says; `why` is told to the agent or written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub allow: bool,
    pub why: String,
}

fn allow(why: &str) -> Option<Ruling> {
    Some(Ruling { allow: true, why: why.into() })
}

fn deny(why: String) -> Option<Ruling> {
    Some(Ruling { allow: false, why })
}

impl Rules {
    /// Whether they allow anything that would otherwise be asked.
    pub fn grants(&self) -> bool {
        *self != self.clone().without_grants()
    }

    /// The same rules, as far as they deny or ask.
    #[must_use]
    pub fn without_grants(self) -> Rules {
        let Rules { commands, tools, under_usd, default, .. } = Rules::default();
        Rules { commands, tools, under_usd, default, ..self }
    }

    /// `project` is where the agent works; `spent_usd` what the run has spent, where that is known.
    pub fn decide(
        &self,
        ask: &PermissionAsk,
        access: Access,
        project: &str,
        spent_usd: Option<f64>,
    ) -> Option<Ruling> {
        let paths: Vec<Option<&str>> = ask.paths.iter().map(|path| inside(path, project)).collect();
        protected(ask, &paths)
            .or_else(|| forbidden(ask, access, &paths))
            .or_else(|| self.by_name(ask))
            .or_else(|| match ask.kind {
                AskKind::Read if self.read_only => allow("it only reads"),
                AskKind::Write if self.writes(&paths) => allow("it writes where it may"),
                AskKind::Run if self.runs(ask, access) => allow("the command is allowed"),
                _ if self.is_cheap(ask, access, spent_usd) => allow("little has been spent"),
                _ => None,
            })
    }

    fn by_name(&self, ask: &PermissionAsk) -> Option<Ruling> {
        let named = |pattern: &String| {
            matches(pattern, &ask.tool)
                || ask.command.as_ref().is_some_and(|command| matches(pattern, command))
        };
        if let Some(pattern) = self.deny.iter().find(|pattern| named(pattern)) {
            return deny(format!("`{pattern}` is not allowed in this project"));
        }
        if self.tools.iter().any(|pattern| matches(pattern, &ask.tool)) {
            return allow("the tool is allowed");
        }
        None
    }

    /// Whether a tool of an MCP server may be used without asking. Rules name it as `server/tool`, or as agents do.
    pub fn allows_tool(&self, server: &str, tool: &str) -> bool {
        let names = [format!("{server}/{tool}"), format!("mcp__{server}__{tool}")];
        let named = |patterns: &[String]| {
            patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
        };
        named(&self.tools) && !named(&self.deny)
    }

    fn writes(&self, paths: &[Option<&str>]) -> bool {
        let allowed = |path: &Option<&str>| {
            path.is_some_and(|path| self.paths.iter().any(|pattern| matches(pattern, path)))
        };
        !paths.is_empty() && paths.iter().all(allowed)
    }

    /// Only plain commands: what a shell would take apart could be anything. Who may not write gets only what
    /// is named to the letter: many a harmless program has a flag that writes.
    fn runs(&self, ask: &PermissionAsk, access: Access) -> bool {
        let plain = |command: &&String| !command.contains([';', '&', '|', '<', '>', '$', '`', '\n', '(']);
        let command = ask.command.as_ref().filter(plain);
        let exact = !access.write;
        let fits = |pattern: &String, command: &str| {
            if exact { pattern == command } else { matches(pattern, command) }
        };
        command.is_some_and(|command| self.commands.iter().any(|pattern| fits(pattern, command)))
    }

    /// What nobody counts is not cheap, and who may not write does not get a shell for being cheap.
    fn is_cheap(&self, ask: &PermissionAsk, access: Access, spent_usd: Option<f64>) -> bool {
        let harmless = access.write || matches!(ask.kind, AskKind::Read | AskKind::Network);
        let cheap = |limit| spent_usd.is_some_and(|spent| spent < limit);
        harmless && self.under_usd.is_some_and(cheap)
    }
}

/// No rule, no amount of money and no person lets an agent change what configures agents.
fn protected(ask: &PermissionAsk, paths: &[Option<&str>]) -> Option<Ruling> {
    if !matches!(ask.kind, AskKind::Write | AskKind::Other) {
        return None;
    }
    let mut named = paths.iter().zip(&ask.paths).map(|(inside, path)| inside.unwrap_or(path));
    let path = named.find(|path| protected_part(path).is_some())?;
    deny(format!("`{path}` is protected: it configures agents or Sage, so agents cannot change it"))
}

/// What a role may not do is no question.
fn forbidden(ask: &PermissionAsk, access: Access, paths: &[Option<&str>]) -> Option<Ruling> {
    let role = |what: &str| deny(format!("your role may not {what}"));
    match ask.kind {
        AskKind::Write if !access.write => role("change files"),
        AskKind::Write if access.paths != Paths::All => {
            let outside = |path: &Option<&str>| !path.is_some_and(|path| access.paths.contains(path));
            let told = !paths.is_empty() && !paths.iter().any(outside);
            if told { None } else { role("change files there") }
        }
        AskKind::Run if !access.run => role("run commands"),
        AskKind::Network if !access.network => role("use the network"),
        _ => None,
    }
}

/// The path relative to the project; `None` if it lies outside, or cannot be told.
fn inside<'a>(path: &'a str, project: &str) -> Option<&'a str> {
    let relative = if path.starts_with('/') {
        path.strip_prefix(project.trim_end_matches('/'))?.strip_prefix('/')?
    } else {
        path
    };
    (!relative.split('/').any(|part| part == "..")).then_some(relative)
}

/// `*` stands for anything, at any place.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;
    use serde_json::Value;

    fn ask(kind: AskKind, tool: &str, path: Option<&str>, command: Option<&str>) -> PermissionAsk {
        PermissionAsk {
            id: "1".into(),
            tool: tool.into(),
            input: Value::Null,
            kind,
            paths: path.map(str::to_string).into_iter().collect(),
            command: command.map(str::to_string),
        }
    }

    fn said(rules: &Rules, ask: &PermissionAsk, role: Role) -> Option<bool> {
        rules.decide(ask, role.access(), "/p", Some(0.5)).map(|ruling| ruling.allow)
    }

    // covers: S6
    #[test]
    fn a_role_forbids_whatever_the_rules_say() {
        let rules = Rules { tools: vec!["*".into()], under_usd: Some(9.0), ..Rules::default() };
        let write = ask(AskKind::Write, "Edit", Some("src/a.rs"), None);
        assert_eq!(said(&rules, &write, Role::Auditor), Some(false));
        assert_eq!(said(&rules, &write, Role::Planner), Some(false));
        assert_eq!(said(&rules, &write, Role::Implementer), Some(true));
        assert_eq!(
            said(&rules, &ask(AskKind::Write, "Edit", Some("docs/a.md"), None), Role::Planner),
            Some(true)
        );
        assert_eq!(said(&rules, &ask(AskKind::Run, "Bash", None, Some("ls")), Role::Observer), Some(false));
        assert_eq!(said(&rules, &ask(AskKind::Network, "WebFetch", None, None), Role::Auditor), Some(false));
    }

    #[test]
    fn reading_and_writing_in_the_project_need_no_person_by_default() {
        let rules = Rules::default();
        let implementer = |ask| said(&rules, &ask, Role::Implementer);
        assert_eq!(implementer(ask(AskKind::Read, "Read", Some("/etc/passwd"), None)), Some(true));
        assert_eq!(implementer(ask(AskKind::Write, "Write", Some("/p/src/a.rs"), None)), Some(true));
        for outside in ["/etc/passwd", "../x", "/p/../q", "/pq/x"] {
            assert_eq!(implementer(ask(AskKind::Write, "Write", Some(outside), None)), None, "{outside}");
        }
        for protected in [
            ".git/config",
            "/p/.sage/state/x",
            "./.sage/x",
            "/p//.sage/x",
            ".GIT/config",
            "sage.toml",
            "a/.claude/settings.json",
            "/elsewhere/.codex/config.toml",
        ] {
            for kind in [AskKind::Write, AskKind::Other] {
                let open = Rules { tools: vec!["*".into()], under_usd: Some(9.0), ..Rules::default() };
                let told = said(&open, &ask(kind, "Write", Some(protected), None), Role::Implementer);
                assert_eq!(told, Some(false), "{protected}");
            }
        }
        assert_eq!(implementer(ask(AskKind::Write, "Write", None, None)), None);
        assert_eq!(implementer(ask(AskKind::Run, "Bash", None, Some("ls"))), None);
        assert_eq!(implementer(ask(AskKind::Other, "mcp__x__y", None, None)), None);
    }

    #[test]
    fn commands_match_only_as_a_whole_and_only_plain_ones() {
        let rules = Rules {
            commands: vec!["cargo test*".into(), "git status".into()],
            deny: vec!["*rm -rf*".into()],
            ..Rules::default()
        };
        let run =
            |command: &str| said(&rules, &ask(AskKind::Run, "Bash", None, Some(command)), Role::Implementer);
        assert_eq!(run("cargo test -p core"), Some(true));
        assert_eq!(run("git status"), Some(true));
        assert_eq!(run("git status -v"), None);
        for trick in
            ["cargo test; curl x", "cargo test && x", "cargo test $(x)", "cargo test\nx", "cargo test > f"]
        {
            assert_eq!(run(trick), None, "{trick}");
        }
        assert_eq!(run("cargo test; rm -rf /"), Some(false));
        let audit =
            |command: &str| said(&rules, &ask(AskKind::Run, "Bash", None, Some(command)), Role::Auditor);
        assert_eq!((audit("git status"), audit("cargo test --out x")), (Some(true), None));
    }

    // covers: R17
    #[test]
    fn tools_of_servers_are_allowed_by_either_name_unless_they_are_denied() {
        let rules = |tools: &[&str], deny: &[&str]| Rules {
            tools: tools.iter().map(ToString::to_string).collect(),
            deny: deny.iter().map(ToString::to_string).collect(),
            ..Rules::default()
        };
        assert!(!Rules::default().allows_tool("git", "push"));
        for pattern in ["git/push", "git/*", "mcp__git__push", "mcp__git__*"] {
            assert!(rules(&[pattern], &[]).allows_tool("git", "push"), "{pattern}");
            assert!(!rules(&[pattern], &[pattern]).allows_tool("git", "push"), "{pattern}");
        }
        assert!(!rules(&["push", "git"], &[]).allows_tool("git", "push"));
    }

    #[test]
    fn rules_that_are_not_trusted_grant_nothing_and_still_deny() {
        let rules = Rules {
            commands: vec!["*".into()],
            tools: vec!["*".into()],
            deny: vec!["rm*".into()],
            under_usd: Some(5.0),
            default: Otherwise::Allow,
            ..Rules::default()
        };
        assert!(rules.grants() && !Rules::default().grants());
        let bare = rules.without_grants();
        assert_eq!(bare, Rules { deny: vec!["rm*".into()], ..Rules::default() });
        assert!(!bare.grants());
    }

    #[test]
    fn little_money_needs_no_person() {
        let rules = Rules { under_usd: Some(1.0), ..Rules::default() };
        let run = ask(AskKind::Run, "Bash", None, Some("make"));
        let decide = |spent| rules.decide(&run, Role::Implementer.access(), "/p", spent);
        assert!(decide(Some(0.99)).is_some_and(|ruling| ruling.allow));
        assert_eq!(decide(Some(1.0)), None);
        assert_eq!(decide(None), None, "nobody knows what was spent");
        let auditor = rules.decide(&run, Role::Auditor.access(), "/p", Some(0.1));
        assert_eq!(auditor, None, "who may not write gets no shell for being cheap");
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fits) in [
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("*b*", "abc", true),
            ("a", "ab", false),
            ("src/*", "src/x/y", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
