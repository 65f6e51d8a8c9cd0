//! What looks like a secret is replaced before anybody sees it: tokens, keys, passwords, signed tickets.

const MASK: &str = "[masked]";
/// Starts of tokens that services give out.
const TOKENS: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "SG.",
    "dop_v1_",
];
/// Names whose values are secrets.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "authorization",
    "access_key",
    "private_key",
    "client_secret",
    "credential",
    "cookie",
];

/// A text without what looks like a secret. Lines stay lines.
pub(crate) fn masked(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    if line.contains("PRIVATE KEY") {
        return MASK.to_string();
    }
    let mut out = String::with_capacity(line.len());
    let mut secret_follows = false;
    for word in line.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        let space = &word[bare.len()..];
        if bare.is_empty() {
            out.push_str(space);
            continue;
        }
        let scheme = ["bearer", "basic", "=", ":"].contains(&bare.to_lowercase().as_str());
        if secret_follows && !scheme {
            // `unexpected token: }` tells no secret.
            let some = bare.chars().filter(|c| c.is_alphanumeric()).count() > 2;
            out.push_str(if some { MASK } else { bare });
            secret_follows = false;
        } else {
            let (shown, follows) = word_of(bare);
            out.push_str(&shown);
            secret_follows = follows || secret_follows || bare.eq_ignore_ascii_case("bearer");
        }
        out.push_str(space);
    }
    out
}

/// A word without its secret, and whether the next word is one.
fn word_of(word: &str) -> (String, bool) {
    if let Some(shown) = address(word) {
        return (shown, false);
    }
    if let Some(at) = word.find(['=', ':']) {
        let name = word[..at].trim_end_matches(['"', '\'']).to_lowercase();
        let named = NAMES.iter().any(|secret| name.ends_with(secret)) && !name.contains('/');
        let value = word[at + 1..].trim_matches(['"', '\'', ',', ';']);
        if named && !value.is_empty() && !value.starts_with([':', '/']) {
            return (format!("{}{MASK}", &word[..=at]), false);
        }
        if named && value.is_empty() {
            return (word.to_string(), true);
        }
    }
    let is_edge = |c: char| !(c.is_alphanumeric() || "-_.+/=".contains(c));
    let mut out = String::new();
    for part in word.split_inclusive(is_edge) {
        let bare = part.trim_end_matches(is_edge);
        let value = bare.rsplit('=').find(|value| !value.is_empty()).unwrap_or(bare);
        if is_token(value) {
            out.push_str(&part.replace(value, MASK));
        } else {
            out.push_str(part);
        }
    }
    (out, false)
}

/// `https://name:word@host` without the name and the word.
fn address(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://")?;
    let host = rest.split('/').next().unwrap_or(rest);
    let (_, after) = host.rsplit_once('@')?;
    let start = rest.find(after)?;
    Some(format!("{scheme}://{MASK}@{}", &rest[start..]))
}

fn is_token(word: &str) -> bool {
    if TOKENS.iter().any(|start| word.starts_with(start) && word.len() >= start.len() + 12) {
        return true;
    }
    // Paths have slashes, names of modules dots or underlines; random letters and digits have neither, and change
    // between them often.
    let random = word.chars().all(|c| c.is_ascii_alphanumeric() || "+/=-_".contains(c));
    let kinds: Vec<u8> = word.chars().map(|c| u8::from(c.is_ascii_digit())).collect();
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
    random && word.len() >= 32 && changes >= 8 && !is_uuid(word)
}

/// Ids are no secrets, and people look for them.
fn is_uuid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R6
    #[test]
    fn secrets_are_masked_and_the_rest_stays() {
        let pairs = [
            ("login with password=hunter2 failed", "login with password=[masked] failed"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [masked]"),
            ("key sk-abcdefghijklmnop, next", "key [masked], next"),
            ("postgres://app:pw@db:5432/shop down", "postgres://[masked]@db:5432/shop down"),
            ("{\"token\": \"abc\", \"id\": 5}", "{\"token\": [masked] \"id\": 5}"),
            ("a9F3k2L8m1Q7z5X4c6V0b2N9s8D1f3G7 x", "[masked] x"),
            ("-----BEGIN RSA PRIVATE KEY-----", "[masked]"),
        ];
        for (text, shown) in pairs {
            assert_eq!(masked(text), shown);
        }
        for text in [
            "order 6f1c2d3e-1111-4222-8333-444455556666 not found in /srv/shop/src/orders/repository.py:42",
            "thread 'main' panicked at src/token.rs:10:5:",
            "unexpected token: `}`",
            "TypeError: x is not a function\n    at pay (/app/src/pay.ts:3:5)",
        ] {
            let shown = masked(text);
            assert_eq!(shown, text);
        }
    }
}
