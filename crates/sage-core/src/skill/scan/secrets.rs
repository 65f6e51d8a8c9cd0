//! Secrets by their shape, by the name they are assigned to, and by their very value.

use super::{Found, Known, lines};

/// Values shorter than this are found in any text.
const LEAST_VALUE: usize = 8;
/// Bits per character; random text has 4 to 6, prose and names below 3.5 at these lengths.
const MUCH_ENTROPY: f64 = 3.5;
const LONG: usize = 16;
/// Of one line: a whole document on one line is looked at as far as this.
const MAX_ASSIGNMENTS: usize = 2_000;
/// Of a value that is looked at: no text, however hostile, is looked at twice as a whole.
const MAX_VALUE: usize = 256;

/// A beginning, which characters follow, how many at least, and whose it is.
struct Shape(&'static str, fn(u8) -> bool, usize, &'static str);

const SHAPES: &[Shape] = &[
    Shape("AKIA", is_upper, 16, "an AWS access key"),
    Shape("ASIA", is_upper, 16, "an AWS access key"),
    Shape("ghp_", is_plain, 30, "a GitHub token"),
    Shape("gho_", is_plain, 30, "a GitHub token"),
    Shape("ghu_", is_plain, 30, "a GitHub token"),
    Shape("ghs_", is_plain, 30, "a GitHub token"),
    Shape("ghr_", is_plain, 30, "a GitHub token"),
    Shape("github_pat_", is_token, 22, "a GitHub token"),
    Shape("glpat-", is_token, 20, "a GitLab token"),
    Shape("sk-ant-", is_token, 20, "an Anthropic key"),
    Shape("sk-proj-", is_token, 20, "an OpenAI key"),
    Shape("sk-or-", is_token, 20, "an OpenRouter key"),
    Shape("sk-", is_plain, 32, "an OpenAI key"),
    Shape("xoxb-", is_token, 10, "a Slack token"),
    Shape("xoxp-", is_token, 10, "a Slack token"),
    Shape("xoxa-", is_token, 10, "a Slack token"),
    Shape("xoxr-", is_token, 10, "a Slack token"),
    Shape("xapp-", is_token, 10, "a Slack token"),
    Shape("hooks.slack.com/services/", is_path, 20, "a Slack webhook"),
    Shape("AIza", is_token, 35, "a Google key"),
    Shape("ya29.", is_token, 20, "a Google token"),
    Shape("GOCSPX-", is_token, 20, "a Google secret"),
    Shape("sk_live_", is_plain, 16, "a Stripe key"),
    Shape("sk_test_", is_plain, 16, "a Stripe key"),
    Shape("rk_live_", is_plain, 16, "a Stripe key"),
    Shape("whsec_", is_plain, 16, "a Stripe webhook secret"),
    Shape("npm_", is_plain, 36, "an npm token"),
    Shape("pypi-", is_token, 50, "a PyPI token"),
    Shape("hf_", is_plain, 30, "a Hugging Face token"),
    Shape("dop_v1_", is_plain, 40, "a DigitalOcean token"),
    Shape("dapi", is_hex, 32, "a Databricks token"),
    Shape("shpat_", is_hex, 32, "a Shopify token"),
    Shape("SG.", is_dotted, 40, "a SendGrid key"),
    Shape("AGE-SECRET-KEY-1", is_upper, 40, "an age key"),
    Shape("gsk_", is_plain, 40, "a Groq key"),
    Shape("xai-", is_plain, 40, "an xAI key"),
];

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn is_dotted(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

fn is_path(byte: u8) -> bool {
    is_token(byte) || byte == b'/'
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

pub fn look(text: &str, known: &[Known], found: &mut Found) {
    for (number, line) in lines(text) {
        shapes(line, number, found);
        if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY")
            || line.contains("PuTTY-User-Key-File")
        {
            found.secret(number, "a private key");
        }
        if jwt(line) {
            found.secret(number, "a signed token (JWT)");
        }
        if url_password(line) {
            found.secret(number, "an address with a password in it");
        }
        if bearer(line) {
            found.secret(number, "an authorization header");
        }
        assignments(line, number, found);
    }
    values(text, known, found);
}

fn shapes(line: &str, number: usize, found: &mut Found) {
    for shape in SHAPES {
        let fits = line.match_indices(shape.0).any(|(at, _)| {
            let inside_word = line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            !inside_word && shape.length(line, at).is_some()
        });
        if fits {
            found.secret(number, shape.3);
        }
    }
}

impl Shape {
    /// Of a key that begins at `at`, where its beginning is.
    fn length(&self, text: &str, at: usize) -> Option<usize> {
        let Shape(start, follows, least, _) = self;
        let rest = &text.as_bytes()[at + start.len()..];
        let length = rest.iter().take(MAX_VALUE).take_while(|byte| follows(**byte)).count();
        let whole = start.len() + length;
        (length >= *least && !is_placeholder(&text[at..at + whole])).then_some(whole)
    }
}

/// How long the provider's key is that begins at a byte of a text, if one does.
pub fn key_at(text: &str, at: usize) -> Option<usize> {
    let rest = &text.as_bytes()[at..];
    let fits = |shape: &&Shape| rest.starts_with(shape.0.as_bytes());
    SHAPES.iter().filter(fits).find_map(|shape| shape.length(text, at))
}

/// Three parts with dots, the first of which begins a JSON object.
fn jwt(line: &str) -> bool {
    line.match_indices("eyJ").any(|(at, _)| {
        let token: &str = head(&line[at..])
            .split(|c: char| !c.is_ascii() || !is_dotted(c as u8))
            .next()
            .unwrap_or_default();
        let parts: Vec<&str> = token.split('.').collect();
        parts.len() == 3 && parts[..2].iter().all(|part| part.len() >= 10) && parts[2].len() >= 20
    })
}

/// `scheme://user:password@host`
fn url_password(line: &str) -> bool {
    line.match_indices("://").any(|(at, _)| {
        let rest = head(&line[at + 3..]);
        let end = rest.find(|c: char| c.is_whitespace() || "/\"'`<>".contains(c)).unwrap_or(rest.len());
        let Some((user, _)) = rest[..end].rsplit_once('@') else { return false };
        user.split_once(':').is_some_and(|(_, password)| password.len() >= 4 && !is_placeholder(password))
    })
}

/// `Authorization: Bearer <token>`
fn bearer(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["bearer ", "basic "].iter().any(|scheme| {
        let named = lower.contains("authorization");
        lower.match_indices(scheme).any(|(at, _)| {
            let value = line[at + scheme.len()..]
                .split(|c: char| c.is_whitespace() || "\"'`".contains(c))
                .next()
                .unwrap_or_default();
            named && value.len() >= LONG && entropy(value) >= MUCH_ENTROPY - 0.5 && !is_placeholder(value)
        })
    })
}

/// `NAME=value`, `"name": "value"`, `name: value` where the name or the value looks like a secret.
fn assignments(line: &str, number: usize, found: &mut Found) {
    line.match_indices(['=', ':'])
        .take(MAX_ASSIGNMENTS)
        .for_each(|(at, _)| assignment(line, at, number, found));
}

fn assignment(line: &str, at: usize, number: usize, found: &mut Found) {
    // `::`, `://` and `=>` assign nothing.
    let rest = head(&line[at + 1..]).trim_start_matches('=');
    if rest.starts_with([':', '/']) {
        return;
    }
    let name = tail(&line[..at]).trim_end().trim_end_matches(['"', '\'', '`']);
    let name =
        name.rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).next().unwrap_or_default();
    let value = value_of(rest.trim_start_matches('>'));
    if name.is_empty() || is_placeholder(value) {
        return;
    }
    let env_line = line.as_bytes()[at] == b'=' && name.bytes().all(|b| is_upper(b) || b == b'_');
    let random =
        value.len() >= LONG && is_one_word(value) && entropy(value) >= MUCH_ENTROPY && has_digit(value);
    if looks_secret(name) {
        let literal = value.len() >= 6 && is_one_word(value);
        if env_line && literal {
            found.secret(number, format!("a line of an environment file that sets `{name}`"));
        } else if literal && (random || has_digit(value) && value.len() >= LEAST_VALUE) {
            found.secret(number, format!("a value for `{}`", crate::diagnostic::printable(name)));
        }
    } else if env_line && random && value.len() >= 2 * LONG && mixes(value) {
        found.secret(number, format!("a random value for `{name}`"));
    }
}

/// Without quotes, separators and comments after it.
fn value_of(rest: &str) -> &str {
    let rest = rest.trim();
    match rest.chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => rest[1..].split(quote).next().unwrap_or_default(),
        _ => {
            let word =
                rest.split(|c: char| c.is_whitespace() || c == ',' || c == ';').next().unwrap_or_default();
            // The end of a line in JSON: a runner that counts `Pass:   1\n` names no password.
            word.split("\\n").next().unwrap_or_default()
        }
    }
}

fn is_one_word(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_graphic() && !b"()<>{}[]".contains(&b))
}

fn has_digit(value: &str) -> bool {
    value.bytes().any(|b| b.is_ascii_digit())
}

/// Digits, small and capital letters: no name and no path is written so.
fn mixes(value: &str) -> bool {
    has_digit(value)
        && value.bytes().any(|b| b.is_ascii_lowercase())
        && value.bytes().any(|b| b.is_ascii_uppercase())
        && !value.contains('/')
}

/// What stands where a secret would: a reference, or a word that says so.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let words = [
        "your",
        "example",
        "placeholder",
        "changeme",
        "change-me",
        "change_me",
        "redacted",
        "dummy",
        "xxxx",
        "...",
        "****",
        "1234567890",
        "process.env",
        "os.environ",
        "env.",
        "getenv",
        "secrets.",
        "vault",
        "todo",
        "insert",
        "replace",
    ];
    value.is_empty()
        || value.starts_with(['$', '<', '{', '[', '%', '(', '*', '&', '@'])
        || words.iter().any(|word| lower.contains(word))
        || value.bytes().all(|b| Some(b) == value.bytes().next())
}

/// Whether a variable's name says that its value is secret.
pub fn looks_secret(name: &str) -> bool {
    const NOT: &[&str] = &["pwd", "oldpwd", "sage_key", "public_key", "ssh_auth_sock"];
    let lower = separated(name);
    if NOT.contains(&lower.as_str()) {
        return false;
    }
    let parts: Vec<&str> = lower.split('_').collect();
    let sure = [
        "secret",
        "secrets",
        "token",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "pass",
        "credential",
        "credentials",
        "apikey",
    ];
    let counts = ["tokens", "max", "count", "limit", "budget", "public"];
    let key = parts.windows(2).any(|two| {
        two[1] == "key"
            && ["api", "access", "private", "secret", "auth", "signing", "encryption", "service", "account"]
                .contains(&two[0])
    });
    let named =
        parts.last() == Some(&"key") && name.bytes().all(|b| is_upper(b) || b == b'_') && parts.len() > 1;
    let is_sure =
        parts.iter().any(|part| sure.contains(part)) && !parts.iter().any(|part| counts.contains(part));
    (is_sure || key || named) && !parts.contains(&"public")
}

/// `apiKey`, `API-KEY` and `api_key` as `api_key`.
fn separated(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut small = false;
    for c in name.chars() {
        if c.is_uppercase() && small {
            out.push('_');
        }
        small = c.is_lowercase() || c.is_ascii_digit();
        out.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
    }
    out
}

fn values(text: &str, known: &[Known], found: &mut Found) {
    for Known { name, value } in known.iter().filter(|known| known.value.trim().len() >= LEAST_VALUE) {
        // The text before it is counted once per place, and places of one value do not overlap.
        let (mut line, mut from) = (1, 0);
        for (at, _) in text.match_indices(value.trim()) {
            line += text[from..at].matches('\n').count();
            from = at;
            found.secret(line, format!("the value of the environment variable `{name}`"));
        }
    }
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_VALUE)]
}

fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_VALUE))..]
}

/// Shannon entropy in bits per byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let all = text.len() as f64;
    let bits = |count: &u32| f64::from(*count) / all * (all / f64::from(*count)).log2();
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}
