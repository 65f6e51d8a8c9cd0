//! Patterns in rules: `*` stands for anything, also nothing.

/// `*` stands for anything, at any place; `\*` for itself.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = split(pattern).into_iter();
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    let parts: Vec<String> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part.as_str()) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last.as_str())
}

/// The same for command lines, where ` *` at the end also stands for no arguments at all.
pub fn fits(pattern: &str, command: &str) -> bool {
    matches(pattern, command) || pattern.strip_suffix(" *").is_some_and(|bare| matches(bare, command))
}

/// The text as a pattern that only it matches.
pub fn literal(text: &str) -> String {
    text.replace('\\', "\\\\").replace('*', "\\*")
}

/// The texts between the stars.
fn split(pattern: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = c == '\\' && chars.peek().is_some_and(|next| ['*', '\\'].contains(next));
        match (c, parts.last_mut()) {
            ('*', _) => parts.push(String::new()),
            (c, Some(last)) => last.push(if escaped { chars.next().unwrap_or(c) } else { c }),
            (_, None) => {}
        }
    }
    parts
}

/// Paths as `.gitignore` writes them: `*` within a name, `**` for any folders, a folder for all that is in it.
pub fn covers_path(pattern: &str, path: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        text.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_string).collect()
    };
    covers(&parts(pattern), &parts(path))
}

fn covers(pattern: &[String], path: &[String]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, _) => true,
        (Some((first, rest)), _) if first == "**" => {
            // At the end it is everything below, not the folder itself.
            if rest.is_empty() {
                !path.is_empty()
            } else {
                (0..=path.len()).any(|at| covers(rest, &path[at..]))
            }
        }
        (Some(_), None) => false,
        (Some((first, rest)), Some((name, below))) => matches(first, name) && covers(rest, below),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fits) in [
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("*b*", "abc", true),
            ("a", "ab", false),
            ("src/*", "src/x/y", true),
            ("a*a", "a", false),
            (r"rm \*.tmp", "rm *.tmp", true),
            (r"rm \*.tmp", "rm x.tmp", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
        for text in ["a*b", r"a\b", r"\*", ""] {
            assert!(matches(&literal(text), text), "{text}");
            assert!(!matches(&literal(text), "axb"), "{text}");
        }
    }

    #[test]
    fn a_star_for_arguments_also_stands_for_none() {
        assert!(fits("ls *", "ls") && fits("ls *", "ls -l") && !fits("ls *", "lsof"));
        assert!(fits("ls*", "lsof") && fits("npm run *", "npm run build") && !fits("npm run *", "npm test"));
    }

    #[test]
    fn paths_are_covered_as_git_ignores_them() {
        for (pattern, path, covered) in [
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", false),
            ("src", "src/a.rs", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("**/.env", ".env", true),
            ("**/.env", "a/b/.env", true),
            ("a/**/c", "a/c", true),
            ("docs/*", "src/a", false),
        ] {
            assert_eq!(covers_path(pattern, path), covered, "{pattern} {path}");
        }
    }
}
