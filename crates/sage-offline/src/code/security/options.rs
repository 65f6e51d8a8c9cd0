//! Protection that is switched off, and markup that is put in as it is.

use super::super::facts::FileFacts;
use super::super::issue::{Issue, Severity};
use super::at;

/// One of these is in each of the texts below.
const NAMES: &[&str] = &[
    "rejectUnauthorized",
    "REJECT_UNAUTHORIZED",
    "InsecureSkipVerify",
    "debug",
    "dangerouslySet",
    "csrf_exempt",
    "NoopHostname",
];
/// A text in one line that means only one thing, by language (empty: all).
const SWITCHES: &[(&str, &str, &str, &str, Severity)] = &[
    (
        "rejectUnauthorized:false",
        "",
        "certificates are not checked",
        "Anybody between the two can read and change everything.",
        Severity::High,
    ),
    (
        "NODE_TLS_REJECT_UNAUTHORIZED=",
        "Script",
        "certificates are not checked",
        "Anybody between the two can read and change everything.",
        Severity::High,
    ),
    (
        "InsecureSkipVerify:true",
        "Go",
        "certificates are not checked",
        "Anybody between the two can read and change everything.",
        Severity::High,
    ),
    (
        "app.run(debug=True",
        "Python",
        "debugger is on",
        "Whoever reaches an error page can run code.",
        Severity::Medium,
    ),
    (
        "dangerouslySetInnerHTML",
        "Script",
        "unescaped markup",
        "What is put in is not escaped, so it can hold a script.",
        Severity::Medium,
    ),
    (
        "csrf_exempt",
        "Python",
        "protection against forged requests is off",
        "Another site can send this request for the user.",
        Severity::Medium,
    ),
    (
        "NoopHostnameVerifier",
        "Java",
        "certificates are not checked",
        "Anybody between the two can read and change everything.",
        Severity::High,
    ),
];

pub(super) fn issues(file: &FileFacts) -> Vec<Issue> {
    let mut issues = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.len() > 400 || !NAMES.iter().any(|name| line.contains(name)) || is_comment(line) {
            continue;
        }
        let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        for (mark, language, what, why, severity) in SWITCHES {
            // A name in quotes is talked about, not used.
            let quoted = [format!("\"{mark}"), format!("'{mark}"), format!("`{mark}")]
                .iter()
                .any(|text| compact.contains(text));
            let after = || file.text.lines().skip(index).take(4).any(is_cleaned);
            let excused = *what == "unescaped markup" && after();
            if !excused
                && file.language.ends_with(language)
                && compact.contains(mark)
                && !quoted
                && !is_import(&compact)
            {
                issues.push(at(file, index + 1, what, why, *severity, 0.75));
            }
        }
    }
    issues.extend(inner_markup(file));
    issues
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['/', '#', '*'])
}

fn is_cleaned(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["sanitize", "purify", "escape"].iter().any(|word| lower.contains(word))
}

fn is_import(compact: &str) -> bool {
    compact.starts_with("import") || compact.starts_with("from")
}

/// `element.innerHTML = text`
fn inner_markup(file: &FileFacts) -> Vec<Issue> {
    let own = file.assigns.iter().filter(|assign| !assign.in_test && file.language.ends_with("Script"));
    let open = own.filter(|assign| {
        let (name, value) = (file.slice(assign.name), file.slice(assign.value));
        let markup = name.ends_with(".innerHTML") || name.ends_with(".outerHTML");
        let fixed = value.starts_with(['"', '\'', '`']) && !value.contains("${") && !value.contains('+');
        markup && !fixed && !is_cleaned(value)
    });
    let why = "What is put in is not escaped, so it can hold a script.";
    open.map(|assign| at(file, assign.line as usize, "unescaped markup", why, Severity::Medium, 0.65))
        .collect()
}
