//! Secrets that stand in files: by the forms that services give their keys, and by names such as `password`.
//!
//! A value is looked at and forgotten. What is told is the kind and the place.

use super::super::extract::is_test_path;
use super::super::facts::FileFacts;
use super::super::issue::{Issue, Severity};
use super::super::look::{Look, count};

/// `(start, least length after it, kind)`
const FORMS: &[(&str, usize, &str)] = &[
    ("AKIA", 16, "AWS access key"),
    ("ASIA", 16, "AWS temporary key"),
    ("ghp_", 36, "GitHub token"),
    ("gho_", 36, "GitHub token"),
    ("ghs_", 36, "GitHub token"),
    ("github_pat_", 40, "GitHub token"),
    ("glpat-", 20, "GitLab token"),
    ("sk-ant-", 30, "Anthropic key"),
    ("sk-proj-", 30, "OpenAI key"),
    ("sk_live_", 20, "Stripe key"),
    ("rk_live_", 20, "Stripe key"),
    ("xoxb-", 20, "Slack token"),
    ("xoxp-", 20, "Slack token"),
    ("AIza", 35, "Google key"),
    ("npm_", 36, "npm token"),
    ("SG.", 40, "SendGrid key"),
];
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "api_key",
    "apikey",
    "access_key",
    "auth_token",
    "access_token",
    "private_key",
    "client_secret",
];
/// What people write where a secret would be.
const STANDINS: &[&str] = &[
    "example",
    "changeme",
    "change_me",
    "your",
    "xxx",
    "placeholder",
    "dummy",
    "fake",
    "test",
    "sample",
    "todo",
    "redacted",
    "***",
    "...",
    "env",
    "none",
    "null",
    "undefined",
    "string",
    "password",
    "secret",
    "token",
    "api_key",
    "apikey",
    "default",
    "hidden",
];

pub(super) fn issues(look: &Look) -> Vec<Issue> {
    let mut issues = Vec::new();
    let mut tests = Vec::new();
    for file in look.tree.files.iter().filter(|file| !is_lock(file.name())) {
        let Some(text) = look.tree.text(file) else { continue };
        let known = look.survey.files.iter().find(|facts| facts.path == file.path);
        let in_test = |line: usize| {
            let tested = |facts: &FileFacts| {
                facts.functions.iter().any(|f| f.in_test && f.line <= line && line <= f.end())
            };
            is_test_path(&file.path) || file.path.contains("example") || known.is_some_and(tested)
        };
        for (index, line) in text.lines().enumerate().filter(|(_, line)| line.len() < 2000) {
            let Some((kind, sure)) = secret(line) else { continue };
            match in_test(index + 1) {
                true => tests.push(format!("{}:{}", file.path, index + 1)),
                false => issues.push(issue(&file.path, index + 1, kind, sure)),
            }
        }
    }
    issues.extend(in_tests(tests));
    issues
}

/// Tests and examples need something that looks like a secret; one look at all of them is enough.
fn in_tests(places: Vec<String>) -> Option<Issue> {
    (!places.is_empty()).then(|| Issue {
        subject: "tests and examples".into(),
        weakness: "hard-coded secret".into(),
        title: format!("{} in tests and examples", count(places.len(), "possible secret")),
        detail: "The values are not shown here. Make sure that none of them opens anything real.".into(),
        severity: Severity::Low,
        confidence: 0.4,
        evidence: places.into_iter().take(8).collect(),
    })
}

fn is_lock(name: &str) -> bool {
    name.ends_with(".lock")
        || name.contains("-lock.")
        || name.ends_with(".sum")
        || name.ends_with(".svg")
        || name.ends_with(".map")
}

fn issue(path: &str, line: usize, kind: String, sure: f64) -> Issue {
    Issue {
        subject: path.to_string(),
        weakness: "hard-coded secret".into(),
        title: format!("{kind} in `{path}`"),
        detail: "The value is not shown here. Take it out of the file and of the history, and replace it where it is used.".into(),
        severity: Severity::High,
        confidence: sure,
        evidence: vec![format!("{path}:{line}")],
    }
}

/// What kind of secret a line holds, and how sure that is.
fn secret(line: &str) -> Option<(String, f64)> {
    if line.contains("-----BEGIN") && line.contains("PRIVATE KEY-----") && line.trim_end().ends_with("-----")
    {
        return line.trim_start().starts_with("-----").then(|| ("Private key".to_string(), 0.95));
    }
    for (start, least, kind) in FORMS {
        for (at, _) in line.match_indices(start) {
            let before = line[..at].chars().next_back();
            let value: String = line[at + start.len()..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
                .collect();
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
                && value.len() >= *least
                && is_random(&value)
            {
                return Some((kind.to_string(), 0.9));
            }
        }
    }
    in_address(line).or_else(|| named(line))
}

/// `postgres://user:value@host`
fn in_address(line: &str) -> Option<(String, f64)> {
    let (_, rest) = line.split_once("://")?;
    let (login, _) = rest.split_once('@')?;
    let (user, value) = login.split_once(':')?;
    let plain = |text: &str| {
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "/{}$<>\"'%()[],".contains(c))
    };
    (plain(user) && plain(value) && value.len() >= 6 && !is_standin(value) && value != user)
        .then(|| ("Password in an address".to_string(), 0.6))
}

/// `api_key = "..."`
fn named(line: &str) -> Option<(String, f64)> {
    let at = line.find(['=', ':'])?;
    let (left, right) = (&line[..at], line[at + 1..].trim_start_matches(['=', ' ', '>']));
    let name: String = left
        .trim_end()
        .trim_end_matches(['"', '\''])
        .chars()
        .rev()
        .take_while(|c| c.is_alphanumeric() || "_-".contains(*c))
        .collect();
    let name: String = name.chars().rev().collect();
    let lower = name.to_lowercase().replace('-', "_");
    let kind = NAMES.iter().find(|known| lower.ends_with(*known))?;
    let right =
        right.trim_start_matches("String").trim_start_matches("string").trim_start_matches([' ', '=']);
    let mark = right.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let value: String = right[1..].chars().take_while(|c| *c != mark).collect();
    let is_password = kind.starts_with("pass");
    let least = if is_password { 8 } else { 16 };
    let plain = !value.contains(|c: char| c.is_whitespace() || "{}<>$()".contains(c) || !c.is_ascii());
    let strong = is_random(&value) || (is_password && value.contains(|c: char| c.is_ascii_digit()));
    (value.len() >= least && plain && !is_standin(&value) && strong)
        .then(|| (format!("A value for `{name}`"), if is_password { 0.6 } else { 0.75 }))
}

fn is_standin(value: &str) -> bool {
    let lower = value.to_lowercase();
    STANDINS.iter().any(|word| lower.contains(word))
}

/// Letters and digits mixed as no word is.
fn is_random(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let letters = value.chars().filter(char::is_ascii_alphabetic).count();
    let different: std::collections::BTreeSet<char> = value.chars().collect();
    digits >= 2
        && letters >= 2
        && different.len() >= 8
        && !is_standin(value)
        && !value.contains("0123456")
        && !value.contains("abcdef")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Put together here, so that no scanner takes this file for a leak.
    fn key(start: &str) -> String {
        format!("{start}{}", "Q7Rz9mK2xP4vL8wN3tB6yH1cD5fG0jS7aE2u".repeat(2))
    }

    // covers: R6
    #[test]
    fn forms_and_names_are_known_and_standins_are_not() {
        let found = |line: &str| secret(line).map(|(kind, _)| kind);
        assert_eq!(found(&format!("token = '{}'", key("ghp_"))).unwrap(), "GitHub token");
        assert_eq!(found(&format!("const API_KEY = \"{}\";", key(""))).unwrap(), "A value for `API_KEY`");
        assert_eq!(
            found(&format!("url = \"postgres://shop:{}@db/shop\"", "hunter22x")).unwrap(),
            "Password in an address"
        );
        assert_eq!(found("-----BEGIN RSA PRIVATE KEY-----").unwrap(), "Private key");
        for fine in [
            "password = \"changeme1234\"",
            "api_key = os.environ[\"API_KEY\"]",
            "apiKey: process.env.API_KEY,",
            "let secret = \"the name of a secret that is long\";",
            "postgres://user:${PASSWORD}@db",
            "token_kind = \"ghp_\"",
            "password: string;",
        ] {
            assert_eq!(found(fine), None, "{fine}");
        }
    }
}
