//! Rules, roles and modes.

mod lists;
mod table;

use serde_json::{Value, json};

use super::*;
use crate::port::{AskKind, PermissionAsk};
use crate::role::Role;

/// A project in `/p` with tests in several languages, two links, and a home.
pub fn real(path: &str) -> String {
    let path = match path.strip_prefix('~') {
        Some(rest) => format!("/h/me{rest}"),
        None if path.starts_with('/') => path.to_string(),
        None => format!("/p/{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = format!("/{}", parts.join("/"));
    let links = [("/p/out", "/elsewhere"), ("/p/hooks", "/p/.git/hooks")];
    let led = links.iter().find_map(|(from, to)| Some(format!("{to}{}", path.strip_prefix(from)?)));
    led.unwrap_or(path)
}

pub fn checks() -> Checks {
    let check = |kind, line: &str| Check { kind, line: line.into() };
    Checks(vec![
        check(CheckKind::Test, "cargo test --workspace"),
        check(CheckKind::Build, "cargo build --workspace"),
        check(CheckKind::Test, "npm test"),
        check(CheckKind::Test, "python3 -m unittest"),
        check(CheckKind::Test, "make test"),
        check(CheckKind::Test, "go test ./..."),
        check(CheckKind::Test, "./test"),
        check(CheckKind::Test, "./gradlew test"),
        check(CheckKind::Test, "cd web && npm test"),
    ])
}

/// What is decided in this project.
pub fn decide_with(rules: &Rules, lists: &Lists, mode: Mode, role: Role, ask: &PermissionAsk) -> Verdict {
    let (checks, real) = (checks(), |path: &str| real(path));
    let site = Site { cwd: "/p", real: &real, checks: &checks };
    let home = Some("/h/me");
    let access = role.access();
    Judge { rules, mode, lists, access, project: "/p", home, spent_usd: Some(0.5), site }.decide(ask)
}

pub fn decide(rules: &Rules, role: Role, ask: &PermissionAsk) -> Verdict {
    decide_with(rules, &Lists::default(), rules.mode, role, ask)
}

pub fn ask(kind: AskKind, tool: &str, path: Option<&str>, command: Option<&str>) -> PermissionAsk {
    PermissionAsk {
        id: "1".into(),
        tool: tool.into(),
        input: Value::Null,
        kind,
        paths: path.map(str::to_string).into_iter().collect(),
        command: command.map(str::to_string),
        inquiry: None,
        planning: false,
    }
}

pub fn bash(command: &str) -> PermissionAsk {
    ask(AskKind::Run, "Bash", None, Some(command))
}

/// `Some(true)`: allowed; `None`: asked.
pub fn said(verdict: &Verdict) -> Option<bool> {
    match verdict {
        Verdict::Allow { .. } => Some(true),
        Verdict::Deny { .. } => Some(false),
        Verdict::Ask { .. } => None,
    }
}

fn answer(rules: &Rules, ask: &PermissionAsk, role: Role) -> Option<bool> {
    said(&decide(rules, role, ask))
}

// covers: S6
#[test]
fn a_role_forbids_whatever_the_rules_say() {
    let rules = Rules { tools: vec!["*".into()], under_usd: Some(9.0), mode: Mode::All, ..Rules::default() };
    let write = ask(AskKind::Write, "Edit", Some("src/a.rs"), None);
    assert_eq!(answer(&rules, &write, Role::Auditor), Some(false));
    assert_eq!(answer(&rules, &write, Role::Planner), Some(false));
    assert_eq!(answer(&rules, &write, Role::Implementer), Some(true));
    let docs = ask(AskKind::Write, "Edit", Some("docs/a.md"), None);
    assert_eq!(answer(&rules, &docs, Role::Planner), Some(true));
    assert_eq!(answer(&rules, &bash("ls"), Role::Observer), Some(false));
    let fetch = ask(AskKind::Network, "WebFetch", None, None);
    assert_eq!(answer(&rules, &fetch, Role::Auditor), Some(false));
}

#[test]
fn reading_and_writing_in_the_project_need_no_person_by_default() {
    let rules = Rules::default();
    let implementer = |ask| answer(&rules, &ask, Role::Implementer);
    assert_eq!(implementer(ask(AskKind::Read, "Read", Some("/etc/passwd"), None)), Some(true));
    assert_eq!(implementer(ask(AskKind::Write, "Write", Some("/p/src/a.rs"), None)), Some(true));
    for outside in ["/etc/passwd", "../x", "/p/../q", "/pq/x", "out/x"] {
        assert_eq!(implementer(ask(AskKind::Write, "Write", Some(outside), None)), None, "{outside}");
    }
    for protected in [
        ".git/config",
        "/p/.sage/state/x",
        "./.sage/x",
        "/p//.sage/x",
        ".GIT/config",
        "sage.toml",
        "hooks/pre-commit",
        "a/.claude/settings.json",
        "/elsewhere/.codex/config.toml",
    ] {
        for kind in [AskKind::Write, AskKind::Other] {
            for mode in Mode::ALL {
                let open = Rules { tools: vec!["*".into()], under_usd: Some(9.0), mode, ..Rules::default() };
                let told = answer(&open, &ask(kind, "Write", Some(protected), None), Role::Implementer);
                assert_eq!(told, Some(false), "{protected} {mode}");
            }
        }
    }
    assert_eq!(implementer(ask(AskKind::Write, "Write", None, None)), None);
    assert_eq!(implementer(ask(AskKind::Other, "mcp__x__y", None, None)), None);
    assert_eq!(implementer(ask(AskKind::Network, "WebSearch", None, None)), Some(true));
    assert_eq!(implementer(ask(AskKind::Network, "WebFetch", None, None)), None);
    assert_eq!(implementer(ask(AskKind::Run, "PowerShell", None, Some("ls"))), None);
}

#[test]
fn patterns_of_commands_hold_for_every_part_of_a_line() {
    let rules = Rules {
        commands: vec!["deploy *".into(), "gen".into()],
        deny: vec!["rm -rf *".into(), "git push*".into()],
        ..Rules::default()
    };
    let run = |command: &str| answer(&rules, &bash(command), Role::Implementer);
    for command in ["deploy --dry", "deploy", "gen 2>&1 | tail -3", "cd src && deploy x > log.txt", "ls; gen"]
    {
        assert_eq!(run(command), Some(true), "{command}");
    }
    for command in ["deploy $(x)", "deploy; curl x", "gen x", "deploy > /etc/x", "PATH=. deploy", "deploy &"]
    {
        assert_eq!(run(command), None, "{command}");
    }
    for command in [
        "rm -rf /",
        "cd x && rm -rf y",
        "ls; git push",
        "timeout 5 git push origin main",
        "sh -c 'git push'",
        "sudo rm -rf /",
        "for i in a; do git push; done",
    ] {
        assert_eq!(run(command), Some(false), "{command}");
    }
    let audit = |command: &str| answer(&rules, &bash(command), Role::Auditor);
    assert_eq!((audit("gen"), audit("deploy x")), (Some(true), None));
    let all = Rules { commands: vec!["*".into()], ..Rules::default() };
    assert_eq!(answer(&all, &bash("for i in a; do x $i; done"), Role::Implementer), Some(true));
    assert_eq!(answer(&all, &bash("x"), Role::Auditor), None);
}

/// Without a mode that would allow it.
#[test]
fn denials_by_name_hold_in_every_mode() {
    for mode in Mode::ALL {
        let rules = Rules { mode, deny: vec!["curl *".into(), "mcp__x__*".into()], ..Rules::default() };
        for command in ["curl x", "timeout 5 curl x", "echo $(curl x)", "bash -c 'curl x'", "a | curl x"] {
            assert_eq!(answer(&rules, &bash(command), Role::Implementer), Some(false), "{mode} {command}");
        }
        let wrapped = Rules { deny: vec!["cat *".into()], mode, ..Rules::default() };
        for command in ["timeout 5 cat a", "ls | xargs cat", "nice cat a"] {
            assert_eq!(answer(&wrapped, &bash(command), Role::Implementer), Some(false), "{mode} {command}");
        }
        let tool = ask(AskKind::Other, "mcp__x__y", None, None);
        assert_eq!(answer(&rules, &tool, Role::Implementer), Some(false), "{mode}");
    }
}

#[test]
fn a_careful_person_can_be_asked_about_everything() {
    let rules = Rules { read_only: false, checks: false, paths: Vec::new(), ..Rules::default() };
    for command in ["ls", "git status", "cargo test", "git commit -m x", "echo x > a.txt", "mkdir a"] {
        assert_eq!(answer(&rules, &bash(command), Role::Implementer), None, "{command}");
    }
    let write = ask(AskKind::Write, "Write", Some("src/a.rs"), None);
    assert_eq!(answer(&rules, &write, Role::Implementer), None);
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
    let all = Rules { mode: Mode::All, ..rules(&[], &["git/push"]) };
    assert!(all.allows_tool("git", "pull") && !all.allows_tool("git", "push"));
}

#[test]
fn rules_that_are_not_trusted_grant_nothing_and_still_deny() {
    let rules = Rules {
        mode: Mode::All,
        inherit: Some(Inherit::Claude),
        commands: vec!["*".into()],
        tools: vec!["*".into()],
        deny: vec!["rm*".into()],
        under_usd: Some(5.0),
        default: Otherwise::Allow,
        checks: false,
        ..Rules::default()
    };
    assert!(rules.grants() && !Rules::default().grants());
    let bare = rules.without_grants();
    assert_eq!(bare, Rules { deny: vec!["rm*".into()], checks: false, ..Rules::default() });
    assert!(!bare.grants());
    for mode in [Mode::Edits, Mode::Commands, Mode::All] {
        assert!(Rules { mode, ..Rules::default() }.grants(), "{mode}");
    }
}

#[test]
fn little_money_needs_no_person() {
    let run = bash("unheard of");
    let decide = |role: Role, spent_usd: Option<f64>, limit: f64| {
        let rules = Rules { under_usd: Some(limit), ..Rules::default() };
        let (checks, real) = (checks(), |path: &str| real(path));
        let site = Site { cwd: "/p", real: &real, checks: &checks };
        let (access, lists) = (role.access(), Lists::default());
        let judge = Judge {
            rules: &rules,
            mode: Mode::Ask,
            lists: &lists,
            access,
            project: "/p",
            home: None,
            spent_usd,
            site,
        };
        said(&judge.decide(&run))
    };
    assert_eq!(decide(Role::Implementer, Some(0.99), 1.0), Some(true));
    assert_eq!(decide(Role::Implementer, Some(1.0), 1.0), None);
    assert_eq!(decide(Role::Implementer, None, 1.0), None, "nobody knows what was spent");
    assert_eq!(
        decide(Role::Auditor, Some(0.1), 1.0),
        None,
        "who may not write gets no shell for being cheap"
    );
}

#[test]
fn a_question_says_why_it_is_asked_and_which_rule_would_answer() {
    let rules = Rules::default();
    let question = |command: &str| match decide(&rules, Role::Implementer, &bash(command)) {
        Verdict::Ask { why, rule } => (why, rule),
        other => panic!("{command}: {other:?}"),
    };
    let (why, rule) = question("npm run deploy --prod");
    assert_eq!((why.as_str(), rule.as_deref()), ("`npm` is not known to be harmless", Some("npm run *")));
    assert_eq!(question("curl -s https://x").1.as_deref(), Some("curl *"));
    assert_eq!(question("echo a && terraform plan").1.as_deref(), Some("terraform plan *"));
    assert_eq!(question("echo $(id)"), ("it uses command substitution".into(), None));
    assert_eq!(question("cat $F").0, "it uses a variable (`$F`)");
    assert!(question("cat ~/.ssh/id_rsa").0.contains("outside of the project"));
    assert!(question("echo x > /etc/hosts").0.contains("`/etc/hosts`"));
    assert!(question("rm -r src").0.contains("may be lost"));
}

#[test]
fn an_agent_is_told_what_it_may_do_without_a_person() {
    let text = advice(Role::Implementer.access(), &checks());
    for part in ["edit files", "`git commit`", "`cargo test --workspace`", "no variables"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = advice(Role::Researcher.access(), &checks());
    assert!(!text.contains("commit") && !text.contains("cargo") && !text.contains("edit"), "{text}");
}

#[test]
fn modes_have_names() {
    for mode in Mode::ALL {
        assert_eq!(mode.name().parse(), Ok(mode));
        assert_eq!(serde_json::from_value::<Mode>(json!(mode.name())).unwrap(), mode);
    }
    assert!("everything".parse::<Mode>().unwrap_err().contains("ask, edits, commands, all"));
    assert!(Mode::Ask < Mode::Edits && Mode::Edits < Mode::Commands && Mode::Commands < Mode::All);
}
