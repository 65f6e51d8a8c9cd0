//! The rule that would have answered a question.

use super::Part;

/// Programs whose second word says what they do.
const FAMILIES: &[&str] = &[
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "npx",
    "cargo",
    "go",
    "git",
    "make",
    "just",
    "docker",
    "kubectl",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "gh",
    "brew",
    "apt",
    "apt-get",
    "terraform",
    "dotnet",
    "mix",
    "bundle",
    "composer",
    "rustup",
];
const RUNS: &[&str] = &["run", "run-script", "exec", "x"];
/// Programs that can do anything: a pattern for one of them would allow far more than was asked for.
const BROAD: &[&str] = &[
    "python", "python3", "node", "deno", "ruby", "perl", "php", "bash", "sh", "zsh", "env", "sudo", "su",
    "eval", "exec", "xargs", "find", "ssh", "rm", "mv", "cp", "dd", "chmod", "chown", "kill", "source", ".",
];

/// A pattern for `[approvals] commands` that covers a part and little else.
pub fn pattern(part: &Part) -> Option<String> {
    let plain = |word: &&String| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@+".contains(c))
    };
    let first = part.words.first().filter(plain).filter(|first| !BROAD.contains(&first.as_str()))?;
    let second = part.words.get(1).filter(plain).filter(|word| !word.starts_with('-'));
    Some(match second {
        Some(second) if FAMILIES.contains(&first.as_str()) || RUNS.contains(&second.as_str()) => {
            format!("{first} {second} *")
        }
        _ => format!("{first} *"),
    })
}
