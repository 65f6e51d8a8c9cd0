//! Which names in a project are off limits. Pure: `sage-fence` applies these rules to real paths.
//!
//! | rule      | what it covers                                              | who is refused               |
//! |-----------|-------------------------------------------------------------|------------------------------|
//! | protected | files that configure agents, Sage, git (at any depth)       | steps and agents that write  |
//! | private   | Sage's state, sessions, cache, inbox and logs               | agents that read             |
//!
//! Names are compared the way the least strict file system does: without letter case, invisible characters and
//! trailing dots or spaces.

use crate::slug::is_ignorable;

/// Files and folders that decide what agents may do and which programs start.
pub const PROTECTED: [&str; 7] = [".git", ".sage", "sage.toml", ".mcp.json", ".claude", ".codex", ".gemini"];

/// The parts of Sage's directory that hold the project's own work.
const SHARED: [&str; 8] =
    [".gitignore", "templates", "operations", "skills", "tickets", "handoffs", "types", "worktrees"];

/// Whether a single name is protected.
pub fn is_protected(name: &str) -> bool {
    let name = folded(name);
    PROTECTED.contains(&name.as_str())
}

/// The first protected name on a path; parts are separated by `/`.
pub fn protected_part(path: &str) -> Option<&str> {
    path.split('/').find(|part| is_protected(part))
}

/// Whether a path leads into a private part of a `.sage` directory: of any, a worktree in one has its own.
pub fn is_private(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.windows(2).any(|pair| folded(pair[0]) == ".sage" && is_private_entry(pair[1]))
}

/// Whether an entry of Sage's directory is private.
pub fn is_private_entry(name: &str) -> bool {
    !SHARED.contains(&folded(name).as_str())
}

/// The name as a case-insensitive file system compares it: HFS+ and case-folding ext4 skip ignorable characters.
fn folded(name: &str) -> String {
    let kept = name.chars().filter(|c| !is_ignorable(*c));
    let lower: String = kept.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    lower.trim_end_matches(['.', ' ']).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn protected_names_are_found_in_any_spelling() {
        for name in PROTECTED {
            let spellings = [
                name.to_string(),
                name.to_uppercase(),
                format!("{name}."),
                format!("{name}. ."),
                format!("{name} "),
                format!("{}\u{200c}{}", &name[..2], &name[2..]),
                format!("\u{feff}{name}"),
                name.replace('s', "\u{17f}"),
            ];
            for spelling in spellings {
                assert!(is_protected(&spelling), "{spelling:?}");
                assert_eq!(protected_part(&format!("a/{spelling}/b")), Some(spelling.as_str()));
            }
        }
        for name in ["git", ".gitignore", ".github", "sage.tom", "my.sage", ".mcp.json5", "", ".", ".."] {
            assert!(!is_protected(name), "{name}");
        }
        assert_eq!(protected_part("src/main.rs"), None);
    }

    // covers: R17
    #[test]
    fn only_the_shared_parts_of_sages_directory_may_be_read() {
        for path in [
            ".sage/state/serve.json",
            ".sage/sessions/a/turn-1.json",
            "./.sage//state",
            ".SAGE/logs/x",
            "sub/.sage/cache/x",
            ".sage/inbox",
            ".sage/new",
            ".sage/worktrees/run_1/step/.sage/state/serve.json",
        ] {
            assert!(is_private(path), "{path}");
        }
        for path in [
            ".sage",
            ".sage/",
            "src/state",
            ".sage/worktrees/run_1/step/src/a.rs",
            ".sage/templates/a.yaml",
            ".sage/skills/x/SKILL.md",
        ] {
            assert!(!is_private(path), "{path}");
        }
    }
}
