//! `devops.prepare`: what builds, ships and configures the project, and what this feature would miss there.

use std::path::Path;

use serde_json::{Value, json};

use super::brief::Brief;
use super::markdown::{capital, code, count, joined, list, section, table};
use super::project::Project;
use super::settings::{self, Setting};
use super::spec::METHOD;
use crate::finding::{Claim, Finding, Report};
use crate::plain;
use crate::request::{Request, Trouble};
use crate::research::Command;

/// Hidden places that the walk leaves out.
const HIDDEN: &[&str] = &[
    ".github/workflows",
    ".circleci",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".ci",
    ".buildkite",
    ".env.example",
    ".env.sample",
    ".env.template",
];
const MAX_BYTES: u64 = 256 * 1024;

/// A file that has to do with running the project somewhere.
struct Ops {
    path: String,
    sort: &'static str,
    text: String,
}

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let project = Project::read(request)?;
    let brief = Brief::of(request, &project);
    let ops = ops(&project);
    let texts: Vec<(String, String)> = ops.iter().map(|o| (o.path.clone(), o.text.clone())).collect();
    let settings = settings::read(&project, &texts);
    let mut report = Report { method: METHOD.to_string(), ..Report::default() };
    unchecked(&project, &ops, &mut report);
    untold(&brief, &settings, &mut report);
    stored(&brief, &ops, &mut report);
    for sort in ["CI", "container", "release"] {
        let number = ops.iter().filter(|o| o.sort == sort).count();
        let subject = "project".to_string();
        report.claims.push(Claim {
            subject,
            predicate: format!("{sort} files"),
            value: json!(number),
            confidence: 0.9,
            ..Claim::default()
        });
    }
    report.findings.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    let missing = match report.findings.len() {
        0 => "nothing is missing that the files show".to_string(),
        n => format!("{} to look at", count(n, "thing")),
    };
    report.summary = format!("{} for building, shipping and settings; {missing}.", count(ops.len(), "file"));
    let document = document(&brief, &ops, &settings, &report);
    let mut result = json!(report);
    result["document"] = json!(document);
    Ok(result)
}

fn ops(project: &Project) -> Vec<Ops> {
    let root = &project.tree.root;
    let mut paths: Vec<String> = project.tree.files.iter().map(|file| file.path.clone()).collect();
    for hidden in HIDDEN {
        paths.extend(below(root, hidden));
    }
    let mut found = Vec::new();
    for path in paths {
        let Some(sort) = sort(&path) else { continue };
        let text = plain::text(root, Path::new(&path), MAX_BYTES).unwrap_or_default();
        found.push(Ops { path, sort, text });
    }
    found
}

fn below(root: &Path, hidden: &str) -> Vec<String> {
    if root.join(hidden).is_file() {
        return vec![hidden.to_string()];
    }
    let entries = std::fs::read_dir(root.join(hidden)).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter(|e| e.path().is_file()).filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names.into_iter().map(|name| format!("{hidden}/{name}")).collect()
}

fn sort(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let lower = name.to_lowercase();
    let yaml = lower.ends_with(".yml") || lower.ends_with(".yaml");
    let within = |folder: &str| path.split('/').rev().skip(1).any(|part| part.eq_ignore_ascii_case(folder));
    let script = ["sh", "py", "js", "mjs", "ps1"].iter().any(|end| lower.ends_with(&format!(".{end}")))
        || !name.contains('.');
    match () {
        () if path.starts_with(".github/") && yaml => Some("CI"),
        () if path.starts_with(".ci/")
            || path.starts_with(".buildkite/")
            || path.starts_with(".circleci/") =>
        {
            Some("CI")
        }
        () if [".gitlab-ci.yml", ".travis.yml", "jenkinsfile", "azure-pipelines.yml"]
            .contains(&lower.as_str()) =>
        {
            Some("CI")
        }
        () if lower.starts_with("dockerfile")
            || lower.ends_with(".dockerfile")
            || lower.starts_with("docker-compose")
            || lower == "compose.yaml"
            || lower == "compose.yml" =>
        {
            Some("container")
        }
        () if yaml && (within("k8s") || within("helm") || within("kubernetes") || within("charts")) => {
            Some("deployment")
        }
        () if lower.ends_with(".tf")
            || ["fly.toml", "vercel.json", "netlify.toml", "procfile", "serverless.yml", "app.yaml"]
                .contains(&lower.as_str()) =>
        {
            Some("deployment")
        }
        () if within("migrations") || within("migrate") => Some("migration"),
        () if script
            && (lower.contains("release") || lower.contains("deploy") || lower.contains("publish")) =>
        {
            Some("release")
        }
        () if lower.starts_with(".env.") => Some("settings"),
        () => None,
    }
}

/// Commands of the project that no CI file runs.
fn unchecked(project: &Project, ops: &[Ops], report: &mut Report) {
    let ci: Vec<&Ops> = ops.iter().filter(|o| o.sort == "CI").collect();
    let commands = &project.commands;
    if ci.is_empty() {
        if let Some(command) = commands.test.first() {
            report.findings.push(finding(
                "No CI file: nobody but people runs the tests".to_string(),
                format!("The project's command is `{}`.", command.shell()),
                0.7,
                vec![command.evidence.clone()],
            ));
        }
        return;
    }
    // CI may call a wrapper (`make test`) or the tool itself: one of those known is enough.
    let runs = |list: &[Command]| {
        list.iter().any(|command| ci.iter().any(|o| o.text.contains(first_two(&command.line))))
    };
    for (what, list) in [("tests", &commands.test), ("checks", &commands.lint)] {
        if !list.is_empty() && !runs(list) {
            let lines: Vec<String> = list.iter().take(3).map(|command| code(&command.shell())).collect();
            report.findings.push(finding(
                format!("No CI file names the project's {what}"),
                format!("Known: {}. CI may run them under another name.", joined(&lines)),
                0.5,
                ci.iter().map(|o| o.path.clone()).take(3).collect(),
            ));
        }
    }
}

/// `cargo test` of `cargo test --workspace`.
fn first_two(line: &str) -> &str {
    line.match_indices(' ').nth(1).map_or(line, |(at, _)| &line[..at])
}

/// Settings that nothing tells of; those in near files first.
fn untold(brief: &Brief, settings: &[Setting], report: &mut Report) {
    for setting in settings.iter().filter(|setting| setting.told_in.is_none()) {
        let near = brief
            .core_paths()
            .iter()
            .chain(&brief.caller_paths())
            .any(|path| setting.place.starts_with(path.as_str()));
        report.findings.push(finding(
            format!("`{}` is read and nothing tells of it", setting.name),
            "No document, example of settings or CI file names it.".to_string(),
            if near { 0.9 } else { 0.4 },
            vec![setting.place.clone()],
        ));
    }
}

/// Near code stores data and there are migrations: one may be needed.
fn stored(brief: &Brief, ops: &[Ops], report: &mut Report) {
    let last = ops.iter().filter(|o| o.sort == "migration").map(|o| o.path.clone()).max();
    let Some(last) = last else { return };
    report
        .open_questions
        .push(format!("Does \"{}\" change what is stored? The newest migration is `{last}`.", brief.title));
}

fn finding(title: String, detail: String, relevance: f64, evidence: Vec<String>) -> Finding {
    Finding { title, detail, relevance, evidence, kind: "standard".to_string(), confidence: 0.8 }
}

fn document(brief: &Brief, ops: &[Ops], settings: &[Setting], report: &Report) -> String {
    let mut text = format!("# {}: what running it needs\n\n{}\n", capital(&brief.title), report.summary);
    let rows: Vec<Vec<String>> = ops
        .iter()
        .map(|o| vec![code(&o.path), o.sort.to_string(), o.text.lines().count().to_string()])
        .collect();
    let found = if rows.is_empty() {
        "No CI, container, deployment, migration or release file was found.".to_string()
    } else {
        table(&["file", "what for", "lines:"], &rows)
    };
    text += &section("What is there", &found);
    let told = |s: &Setting| {
        vec![code(&s.name), code(&s.place), s.told_in.as_deref().map_or("**nowhere**".to_string(), code)]
    };
    let rows: Vec<Vec<String>> = settings.iter().map(told).collect();
    text += &section("Settings", &table(&["variable", "read at", "told in"], &rows));
    let missing: Vec<String> = report
        .findings
        .iter()
        .map(|f| format!("{}. {} {}", f.title, f.detail, super::markdown::places(&f.evidence, 3)))
        .collect();
    text += &section("To look at", &list(&missing, "Nothing that the files show."));
    let asked = &report.open_questions;
    text += &section("Open questions", &if asked.is_empty() { String::new() } else { list(asked, "") });
    let tests: Vec<String> = brief
        .project
        .commands
        .test
        .iter()
        .chain(&brief.project.commands.build)
        .map(|c| format!("`{}` ({})", c.shell(), c.evidence))
        .collect();
    text += &section("Before it ships", &list(&tests, "No build or test command is known."));
    text += &section(
        "How this was made",
        "By Sage's offline agent, from the files alone. Nothing was changed, and no model was asked.",
    );
    text
}
