//! A small shop with documents, dependencies, logs and a history.

use super::*;

const README: &str = "# Bookshop\n\nBookshop sells used books to students over the web, with a small API.\n\n## Users\n\nIt is made for \
                      small teams who want to sell without a warehouse.\n\n## Payments\n\nCard payments go through the `Gateway`; a \
                      payment is taken once, and must never be logged.\n\n## Alternatives\n\n- Shopify is hosted and takes a \
                      share of card payments.\n\n## Glossary\n\n- Basket: what a customer has chosen, before payment.\n";

/// The project, and a registry with two of its dependencies.
pub(super) fn shop() -> (tempfile::TempDir, Places) {
    let dir = project(&[
        ("README.md", README),
        (
            "CHANGELOG.md",
            "# Changelog\n\n## 1.1\n\n- Fixed: a declined card was charged twice by the gateway.\n",
        ),
        ("CLAUDE.md", "# Rules\n\n- Always test payments with the fake gateway.\n"),
        (
            "Cargo.toml",
            "[package]\nname = \"bookshop\"\ndescription = \"Sells used books\"\n[dependencies]\npayer = \"1\"\nchrono = \"0.4\"\ntime = \"0.3\"\n",
        ),
        (
            "src/gateway.rs",
            "//! Talks to the bank about card payments, one at a time.\n\npub fn take() {\n    fail(\"card was declined by the bank\");\n}\n",
        ),
        (
            "logs/web.log",
            "thread 'main' panicked at src/gateway.rs:4:5:\ncard 17 declined, token=abcdef\n\nthread 'main' panicked at src/gateway.rs:4:5:\ncard 18 declined, token=zyxwvu\n",
        ),
        (".gitignore", "logs\ncargo\n"),
        (
            "cargo/registry/src/index/payer-1.2.0/README.md",
            "# payer\n\nTakes card payments with any bank. You should retry a payment with the same key.\n",
        ),
        (
            "cargo/registry/src/index/payer-1.2.0/CHANGELOG.md",
            "# 1.2.0\n\n- Fixed: a declined card returned the wrong error.\n",
        ),
        (
            "cargo/registry/src/index/payer-1.2.0/Cargo.toml",
            "[package]\nname = \"payer\"\ndescription = \"Payments\"\n[features]\ncard-tokens = []\nextra = []\n",
        ),
    ]);
    let places = Places { cargo_home: Some(dir.path().join("cargo")), ..Places::default() };
    (dir, places)
}

/// Evidence and title of each finding.
fn told(report: &Report) -> Vec<String> {
    report.findings.iter().map(|finding| format!("{} {}", finding.evidence[0], finding.title)).collect()
}

// covers: R6
#[test]
fn market_says_what_the_project_is_and_that_it_knows_no_market() {
    let (dir, places) = shop();
    let report = reported("research.market", dir.path(), "card payments", &places);
    assert!(
        report.summary.starts_with("No market data offline. Bookshop: Sells used books. 6 passages"),
        "{}",
        report.summary
    );
    assert_eq!(
        told(&report),
        [
            "README.md:11 README.md: Bookshop > Payments",
            "README.md:15 README.md: Bookshop > Alternatives",
            "src/gateway.rs:1 src/gateway.rs",
            "README.md:19 What `Basket` means here",
            "Cargo.toml:3 What Bookshop is",
            "README.md:3 How Bookshop introduces itself",
            "README.md:7 Who uses it",
            "CLAUDE.md:3 CLAUDE.md: Rules",
            "CHANGELOG.md:5 CHANGELOG.md: Changelog > 1.1",
        ]
    );
    assert_eq!(report.claims[0].value, "Sells used books");
    assert!(report.open_questions.iter().any(|question| question.contains("Needs the web or a person")));
}

// covers: R6
#[test]
fn competitors_that_the_documents_name_and_dependencies_that_do_it_already() {
    let (dir, places) = shop();
    let report = reported("research.competitive", dir.path(), "card payments", &places);
    assert_eq!(
        told(&report),
        [
            "payer-1.2.0/README.md:3 already a dependency: payer 1.2.0: payer",
            "README.md:15 README.md: Alternatives",
            "payer-1.2.0/Cargo.toml:3 already a dependency: payer 1.2.0",
        ]
    );
    assert_eq!(report.findings[1].detail, "Shopify is hosted and takes a share of card payments.");
}

// covers: R6
#[test]
fn practices_of_the_project_of_dependencies_and_the_rules() {
    let (dir, places) = shop();
    let report = reported("research.practices", dir.path(), "card payments", &places);
    let told = told(&report);
    for expected in [
        "README.md:11 README.md: Bookshop > Payments",
        "payer-1.2.0/README.md:3 payer 1.2.0: payer",
        "CLAUDE.md:3 Always test payments with the fake gateway.",
    ] {
        assert!(told.iter().any(|line| line == expected), "{expected} in {told:#?}");
    }
    assert_eq!(report.findings[0].evidence, ["README.md:11"]);
}

// covers: R6
#[test]
fn solutions_find_the_message_the_documents_and_the_changelogs() {
    let (dir, places) = shop();
    let report = reported("research.solutions", dir.path(), "card was declined", &places);
    let found: Vec<(&str, &str)> =
        report.findings.iter().map(|f| (f.evidence[0].as_str(), f.kind.as_str())).collect();
    for expected in [
        ("src/gateway.rs:4", "errors"),
        ("CHANGELOG.md:5", "document"),
        ("payer-1.2.0/CHANGELOG.md:3", "dependency"),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:#?}");
    }
    let exact = reported("research.solutions", dir.path(), "users see \"declined by the bank\"", &places);
    assert_eq!(
        (exact.findings[0].evidence[0].as_str(), exact.findings[0].relevance),
        ("src/gateway.rs:4", 1.0)
    );
}

// covers: R6
#[test]
fn alternatives_at_hand_and_two_packages_for_one_purpose() {
    let (dir, places) = shop();
    let report = reported("research.alternatives", dir.path(), "card dates", &places);
    let told = told(&report);
    assert!(told.contains(&"Cargo.toml:5 payer 1.2.0 has a feature `card-tokens`".to_string()), "{told:#?}");
    let double = report.findings.iter().find(|f| f.title == "2 dependencies for dates and times").unwrap();
    assert_eq!(double.evidence, ["Cargo.toml:6", "Cargo.toml:7"]);
    assert_eq!(report.claims.len(), 2);
    assert!(
        report.open_questions.contains(&"Are both chrono and time needed for dates and times?".to_string())
    );
}

// covers: R6
#[test]
fn errors_of_logs_are_grouped_placed_and_without_secrets() {
    let (dir, places) = shop();
    let mut request = asked("errors.track", dir.path(), "card declined");
    let found = report(&request, &places).unwrap();
    assert_eq!(found.findings.len(), 1);
    assert_eq!(found.findings[0].title, "card 18 declined, token=[masked]");
    assert_eq!(found.findings[0].evidence, ["src/gateway.rs:4", "logs/web.log:4"]);
    assert!(found.findings[0].detail.starts_with("Rust panic, 2 times (logs/web.log:1 to logs/web.log:4)"));
    assert!(!serde_json::to_string(&found).unwrap().contains("abcdef"));
    assert!(!serde_json::to_string(&found).unwrap().contains("zyxwvu"));
    request.params.insert("log".into(), "TypeError: no card\n    at pay (/srv/src/gateway.rs:3:1)\n".into());
    let found = report(&request, &places).unwrap();
    assert_eq!(found.findings[0].title, "TypeError: no card");
    assert_eq!(found.findings[0].evidence, ["src/gateway.rs:3"]);
    assert!(found.summary.starts_with("3 errors of 2 kinds in 2 files; 2 kinds lead"), "{}", found.summary);
}

// covers: R6
#[test]
fn history_near_a_bug_with_reverts_and_files_that_fixes_return_to() {
    let (dir, places) = shop();
    git(dir.path(), &["init", "-q"]);
    commit(dir.path(), &[("src/basket.rs", "1")], "basket: first version");
    for (n, message) in
        ["gateway: fix a declined card", "fix gateway timeout", "gateway: bug with the bank's time"]
            .iter()
            .enumerate()
    {
        let text = n.to_string();
        commit(dir.path(), &[("src/gateway.rs", &text), ("src/bank.rs", &text)], message);
    }
    commit(
        dir.path(),
        &[("src/gateway.rs", "x")],
        "Revert \"gateway: retries\"\n\nIt charged twice.\n\nSigned-off-by: Ada <ada@example.org>",
    );
    let report = reported("research.similar", dir.path(), "declined card", &places);
    assert_eq!(report.summary, "Commits near \"declined card\": 1 of 5; fixes among all: 4.");
    let titles: Vec<&str> = report.findings.iter().map(|finding| finding.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "gateway: fix a declined card",
            "src/gateway.rs was touched by 4 of 4 fixes",
            "src/bank.rs was touched by 3 of 4 fixes",
            "src/bank.rs and src/gateway.rs change together",
            "Revert \"gateway: retries\"",
        ]
    );
    assert_eq!(report.findings[0].evidence[1..], ["src/bank.rs", "src/gateway.rs"]);
    assert!(
        report.findings[4].detail.contains("It charged twice") && report.findings[4].detail.contains("Ada")
    );
    let whole = serde_json::to_string(&report).unwrap();
    assert!(!whole.contains("example.org"), "{whole}");
}

// covers: R6
#[test]
fn without_git_it_says_so() {
    let (dir, places) = shop();
    let report = reported("research.similar", dir.path(), "declined card", &places);
    assert_eq!(report.findings, []);
    assert_eq!(report.summary, "No history to look at: the project is no git repository, or has no commits.");
    git(dir.path(), &["init", "-q"]);
    assert_eq!(reported("research.similar", dir.path(), "declined card", &places).summary, report.summary);
}
