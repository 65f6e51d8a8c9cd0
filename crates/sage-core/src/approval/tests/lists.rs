//! Rules in Claude Code's syntax.

use serde_json::json;

use super::{ask, bash, decide_with, said};
use crate::approval::{Listed, Lists, Mode, Rules};
use crate::port::{AskKind, PermissionAsk};
use crate::role::Role;

fn lists(allow: &[&str], asked: &[&str], deny: &[&str]) -> Lists {
    Lists::of_settings(&json!({"permissions": {"allow": allow, "ask": asked, "deny": deny}}))
}

fn told(lists: &Lists, ask: &PermissionAsk) -> Option<bool> {
    said(&decide_with(&Rules::default(), lists, Mode::Ask, Role::Implementer, ask))
}

#[test]
fn rules_are_read_as_they_are_written() {
    for text in ["Bash", "Bash(npm test:*)", "Read(~/x/**)", "mcp__a__b", "WebFetch(domain:x.org)"] {
        assert_eq!(Listed::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Listed::parse("Bash(*)").unwrap().to_string(), "Bash");
    for text in ["", "Bash(", "Bash(x", "(x)", "a b"] {
        assert_eq!(Listed::parse(text), None, "{text}");
    }
}

#[test]
fn commands_are_matched_part_by_part() {
    let rules = lists(&["Bash(deploy staging:*)", "Bash(terraform plan *)", "Bash(exact --only)"], &[], &[]);
    for command in [
        "deploy staging",
        "deploy staging --now",
        "terraform plan -out=x | tail -5",
        "exact --only",
        "cd src && deploy staging",
        "deploy staging && git status",
    ] {
        assert_eq!(told(&rules, &bash(command)), Some(true), "{command}");
    }
    for command in [
        "deploy stagingx",
        "deploy prod",
        "exact --only --more",
        "deploy staging; curl x",
        "deploy staging $(x)",
    ] {
        assert_eq!(told(&rules, &bash(command)), None, "{command}");
    }
    assert_eq!(told(&lists(&["Bash"], &[], &[]), &bash("while true; do x; done")), Some(true));
}

#[test]
fn deny_goes_before_ask_and_ask_before_allow() {
    let rules = lists(&["Bash(aws:*)", "Bash(git:*)"], &["Bash(git push:*)"], &["Bash(aws s3:*)"]);
    assert_eq!(told(&rules, &bash("aws ec2 list")), Some(true));
    assert_eq!(told(&rules, &bash("aws s3 ls")), Some(false));
    assert_eq!(told(&rules, &bash("ls && aws s3 ls")), Some(false));
    assert_eq!(told(&rules, &bash("git push")), None);
    assert_eq!(told(&rules, &bash("git fetch")), Some(true));
    assert_eq!(told(&lists(&[], &["Bash(ls:*)"], &[]), &bash("ls")), None);
    assert_eq!(told(&lists(&[], &["Bash(ls:*)"], &[]), &bash("cat a | ls")), None);
    assert_eq!(told(&lists(&[], &[], &["Bash"]), &bash("ls")), Some(false));
}

#[test]
fn paths_are_absolute_of_the_home_of_the_project_or_relative() {
    let read = |path: &str| ask(AskKind::Read, "Read", Some(path), None);
    let write = |path: &str| ask(AskKind::Write, "Write", Some(path), None);
    let rules = lists(
        &["Edit(//elsewhere/x/**)", "Edit(~/notes/**)"],
        &[],
        &["Read(.env)", "Edit(/src/gen/**)", "Read(//etc/**)"],
    );
    assert_eq!(told(&rules, &write("/elsewhere/x/a/b")), Some(true));
    assert_eq!(told(&rules, &write("/elsewhere/y")), None);
    assert_eq!(told(&rules, &write("~/notes/a.md")), Some(true));
    assert_eq!(told(&rules, &write("src/gen/a.rs")), Some(false));
    assert_eq!(told(&rules, &write("src/a.rs")), Some(true));
    assert_eq!(told(&rules, &read("sub/.env")), Some(false));
    assert_eq!(told(&rules, &read("/etc/passwd")), Some(false));
    // Commands that read and write these files are denied as well.
    assert_eq!(told(&rules, &bash("cat sub/.env")), Some(false));
    assert_eq!(told(&rules, &bash("echo x > src/gen/a.rs")), Some(false));
    // Roles and protected files go before every rule.
    let open = lists(&["Edit(//**)", "Edit", "Bash"], &[], &[]);
    assert_eq!(told(&open, &write(".git/hooks/x")), Some(false));
    assert_eq!(
        said(&decide_with(&Rules::default(), &open, Mode::Ask, Role::Auditor, &write("src/a"))),
        Some(false)
    );
    assert_eq!(
        told(&lists(&["Edit"], &[], &[]), &write("/elsewhere/a")),
        None,
        "of the project's files only"
    );
}

#[test]
fn tools_and_hosts_are_named() {
    let fetch = |url: &str| PermissionAsk {
        input: json!({"url": url}),
        ..ask(AskKind::Network, "WebFetch", None, None)
    };
    let rules = lists(
        &["WebFetch(domain:docs.rs)", "WebFetch(domain:*.x.org)", "mcp__git", "mcp__a__*", "Skill"],
        &[],
        &["mcp__git__push"],
    );
    assert_eq!(told(&rules, &fetch("https://docs.rs/serde")), Some(true));
    assert_eq!(told(&rules, &fetch("https://a.x.org:8080/?q")), Some(true));
    for url in [
        "https://evil.org/docs.rs",
        "https://docs.rs@evil.org/",
        "https://docs.rs.evil.org",
        "https://x.org.evil/",
    ] {
        assert_eq!(told(&rules, &fetch(url)), None, "{url}");
    }
    let tool = |name: &str| ask(AskKind::Other, name, None, None);
    for (name, expected) in [
        ("mcp__git__log", Some(true)),
        ("mcp__git__push", Some(false)),
        ("mcp__github__log", None),
        ("mcp__a__b", Some(true)),
        ("Skill", Some(true)),
    ] {
        assert_eq!(told(&rules, &tool(name)), expected, "{name}");
    }
    // A rule that cannot be evaluated grants nothing, and restricts.
    let unknown = lists(&["Skill(x)", "mcp__b(y)"], &[], &["mcp__a__b(z)"]);
    assert_eq!(told(&unknown, &tool("Skill")), None);
    assert_eq!(told(&unknown, &tool("mcp__a__b")), None);
}

#[test]
fn what_was_kept_answers_the_same_question_and_no_other() {
    let keep =
        |rule: Listed| Lists { allow: vec![Listed::parse(&rule.to_string()).unwrap()], ..Lists::default() };
    for command in ["rm -r build/*.tmp", "curl $X | sh", "npm run x (y)", r"printf 'a\*' > /etc/x"] {
        let kept = keep(Listed::command(command));
        assert_eq!(told(&kept, &bash(command)), Some(true), "{command}");
        assert_eq!(told(&kept, &bash(&format!("{command} x"))), None, "{command}");
        assert_eq!(told(&kept, &bash(&command.replace('*', "y"))).filter(|_| command.contains('*')), None);
    }
    let kept = keep(Listed::prefix("npm run"));
    assert_eq!(told(&kept, &bash("npm run deploy -- --x")), Some(true));
    assert_eq!(told(&kept, &bash("npm run")), Some(true));
    assert_eq!(told(&kept, &bash("npm runner")), None);
    assert_eq!(told(&kept, &bash("npm run a; curl b")), None);
    let kept = keep(Listed::file("/elsewhere/a*b"));
    assert_eq!(told(&kept, &ask(AskKind::Write, "Write", Some("/elsewhere/a*b"), None)), Some(true));
    assert_eq!(told(&kept, &ask(AskKind::Write, "Write", Some("/elsewhere/axb"), None)), None);
    let kept = keep(Listed::tool("mcp__x__y"));
    assert_eq!(told(&kept, &ask(AskKind::Other, "mcp__x__y", None, None)), Some(true));
}
