//! Names of leases: a step's folder and its branch. The same step always gets the same ones.

use sage_core::digest::Digest;

/// Enough to read; with `.json` and a digest it stays far below the 255 bytes of a file name.
const READABLE_BYTES: usize = 100;
/// Of a run's id: the end of it is random.
const RUN_BYTES: usize = 8;

/// `look/lines[3]` -> `look.lines_3`. Ids have neither `.` nor `_`, so no two steps share a folder.
pub fn folder(step: &str) -> String {
    let mut name = String::new();
    let mut changed = step.len() > READABLE_BYTES;
    for c in step.chars().filter(|c| *c != ']').take(READABLE_BYTES) {
        match c {
            '/' => name.push('.'),
            '[' => name.push('_'),
            'a'..='z' | '0'..='9' | '-' => name.push(c),
            _ => {
                changed = true;
                name.push('-');
            }
        }
    }
    if changed {
        name.push_str(&format!("_{}", Digest::of(step.as_bytes()).short()));
    }
    name
}

/// `sage/<feature>/<step>-<run>`: what follows the last `-` keeps the branches of two runs apart, and keeps
/// git from refusing a name that ends in `.lock`.
pub fn branch(feature: &str, step: &str, run: &str) -> String {
    let run: String = run.chars().filter(char::is_ascii_alphanumeric).collect();
    let run = run[run.len().saturating_sub(RUN_BYTES)..].to_lowercase();
    format!("sage/{feature}/{}-{run}", folder(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S6
    #[test]
    fn steps_never_share_a_folder_or_a_branch() {
        assert_eq!(folder("look/lines[3]"), "look.lines_3");
        assert_eq!(branch("login", "a/lock", "run_01K9ABCDEFGHJKMNPQRSTVWXYZ"), "sage/login/a.lock-rstvwxyz");
        let long = "x".repeat(150);
        let steps = ["a/b", "a-b", "a/b[1]", "a/b-1", "a/b/1", "a/b[11]", "a@2/b", "a-2/b", &long];
        let mut folders: Vec<String> = steps.iter().map(|step| folder(step)).collect();
        folders.push(folder(&"x".repeat(151)));
        assert!(folders.iter().all(|name| name.len() < 120), "{folders:?}");
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), steps.len() + 1, "{folders:?}");
    }
}
