//! Programs that no reader knows: what they call an error, else what they said last.

/// Words that begin an error, in lowercase; a program's name may stand before them.
const ERRORS: [&str; 5] = ["error: ", "fatal: ", "fatal error: ", "[error] ", "error[: "];
/// What tools say when something that they started has failed: it said why before.
const WEAK: [&str; 14] = [
    "error: could not compile",
    "error: test failed",
    "error: aborting due to",
    "error: process didn't exit successfully",
    "collect2: error:",
    "npm error ",
    "npm err! ",
    "exit status ",
    "aborted",
    "failed (",
    "for more information",
    "note: ",
    "node.js v",
    "hint: ",
];

/// The first line that calls itself an error.
pub fn said(lines: &[&str]) -> Option<String> {
    let said = |line: &&&str| !is_weak(line) && is_error(&line.trim().to_lowercase());
    lines.iter().find(said).map(|line| line.trim().to_string())
}

/// `error: ...`, or `program: error: ...`
fn is_error(line: &str) -> bool {
    let begins = |text: &str| ERRORS.iter().any(|word| text.starts_with(word));
    begins(line) || line.split_once(": ").is_some_and(|(name, rest)| !name.contains(' ') && begins(rest))
}

/// The last line that says something of its own.
pub fn last(lines: &[&str]) -> Option<String> {
    lines.iter().rev().find(|line| !is_weak(line) && !is_warning(line)).map(|line| line.trim().to_string())
}

/// The last line, whatever it says.
pub fn any(lines: &[&str]) -> Option<String> {
    lines.iter().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_string())
}

fn is_weak(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let of_make = line.starts_with("make") && line.contains(": *** [");
    let wordless = !line.chars().any(char::is_alphanumeric);
    of_make || wordless || WEAK.iter().any(|weak| line.starts_with(weak))
}

fn is_warning(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    ["warning", "warn ", "npm warn"].iter().any(|word| line.starts_with(word)) || line.contains("warning: ")
}
