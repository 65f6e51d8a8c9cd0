//! Words of names and descriptions: `listPullRequests` and `list_pull_requests` have the same three.

/// Said in nearly every description and question, about nothing.
const EMPTY: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "if", "in",
    "is", "it", "its", "me", "my", "of", "on", "or", "that", "the", "this", "to", "use", "used", "using",
    "want", "what", "when", "which", "with", "you", "your", "tool",
];

/// Lower case, without the plural; those that say something.
pub fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        // `listIssues` is two words, `HTTPServer` is not split inside of its capitals.
        let next = c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit());
        if !c.is_alphanumeric() || next {
            take(&mut word, &mut all);
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    take(&mut word, &mut all);
    all
}

fn take(word: &mut String, all: &mut Vec<String>) {
    let whole = std::mem::take(word);
    if whole.is_empty() || EMPTY.contains(&whole.as_str()) {
        return;
    }
    all.push(singular(whole));
}

/// Good enough for search: `issues`, `repositories`, `searches`; not `status`, `class`.
fn singular(mut word: String) -> String {
    let kept = ["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.len() > 5 && ["ches", "shes", "xes", "sses"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 2);
    } else if word.len() > 3 && word.ends_with('s') && !kept {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_all_styles_have_the_same_words() {
        for name in ["listPullRequests", "list_pull_requests", "List pull-request", "list the pull requests"]
        {
            assert_eq!(words(name), ["list", "pull", "request"], "{name}");
        }
        assert_eq!(words("getRepositories status searches"), ["get", "repository", "status", "search"]);
    }
}
