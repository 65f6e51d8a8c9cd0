//! Commands that fetch and run what nobody has read, hide themselves, or send data away.

use super::{Found, base64, lines};

const FETCHERS: &[&str] =
    &["curl", "wget", "fetch", "aria2c", "iwr", "irm", "invoke-webrequest", "invoke-restmethod"];
const RUNNERS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "iex",
    "invoke-expression",
    "source",
    "eval",
];
const SENDERS: &[&str] =
    &["curl", "wget", "nc", "ncat", "netcat", "socat", "scp", "rsync", "ftp", "iwr", "invoke-webrequest"];

/// Files and commands that give secrets away.
const PRIVATE: &[&str] = &[
    "~/.ssh",
    "$home/.ssh",
    ".ssh/id_",
    "id_rsa",
    "id_ed25519",
    "~/.aws",
    ".aws/credentials",
    "~/.netrc",
    "~/.npmrc",
    "~/.config/gh",
    "~/.docker/config",
    "~/.kube/config",
    "/etc/passwd",
    "/etc/shadow",
    ".env",
    "printenv",
    "~/.claude",
    "keychain",
    "~/.gnupg",
    "~/.git-credentials",
];

/// Hosts whose purpose is to take whatever is sent to them.
const COLLECTORS: &[&str] = &[
    "webhook.site",
    "requestbin",
    "pipedream.net",
    "requestcatcher.com",
    "hookbin.com",
    "beeceptor.com",
    "ngrok.io",
    "ngrok.app",
    "ngrok-free.app",
    "burpcollaborator.net",
    "oastify.com",
    "interact.sh",
    "oast.pro",
    "oast.fun",
    "oast.live",
    "oast.site",
    "dnslog.cn",
    "transfer.sh",
    "pastebin.com",
    "0x0.st",
    "discord.com/api/webhooks",
    "discordapp.com/api/webhooks",
    "api.telegram.org/bot",
    "canarytokens",
];

/// What a blob must not decode to.
const HIDDEN_COMMANDS: &[&str] = &[
    "curl ",
    "wget ",
    "bash",
    "/bin/sh",
    "sh -c",
    "rm -rf",
    "eval",
    "exec(",
    "import os",
    "subprocess",
    "powershell",
    "invoke-",
    "iex ",
    "nc -",
    "chmod ",
    "http://",
    "https://",
    "ignore previous",
    "ignore all",
    "sudo ",
];

/// Shorter ones are words, and longer ones pictures whose beginning is enough.
const BLOB_LEAST: usize = 20;
const BLOB_MOST: usize = 64 << 10;
/// Of an address that is looked at.
const MAX_ADDRESS: usize = 256;

pub fn look(text: &str, found: &mut Found) {
    for (number, line) in joined(text) {
        let lower = line.to_lowercase();
        if fetches_and_runs(&lower) {
            found.injection(number, "it fetches a program and runs it unread");
        }
        if decodes_and_runs(&lower) {
            found.injection(number, "it decodes a command and runs it");
        }
        if deletes_everything(&lower) {
            found.injection(number, "it deletes the home or the root directory");
        }
        sends(&lower, number, found);
    }
    for (number, line) in lines(text) {
        if blobs(line).any(decodes_to_command) {
            found.injection(number, "an encoded text decodes to a command");
        }
    }
}

/// Lines with those that a backslash continues; the number is that of the first.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in lines(text) {
        let (part, continues) = match line.trim_end().strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match all.last_mut().filter(|_| open) {
            Some((_, whole)) => whole.push_str(part),
            None => all.push((number, part.to_string())),
        }
        open = continues;
    }
    all
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).filter(|word| !word.is_empty())
}

fn names(text: &str, wanted: &[&str]) -> bool {
    words(text).any(|word| wanted.contains(&word))
}

/// `curl x | sudo sh`, `sh -c "$(curl x)"`, `bash <(curl x)`, `iex (iwr x)`.
fn fetches_and_runs(line: &str) -> bool {
    if !names(line, FETCHERS) {
        return false;
    }
    let mut parts = line.split('|');
    let mut fetched = parts.next().is_some_and(|part| names(part, FETCHERS));
    for part in parts {
        let runs = words(part).find(|word| !["sudo", "env", "exec", "-e"].contains(word));
        if fetched && runs.is_some_and(|word| RUNNERS.contains(&word)) {
            return true;
        }
        fetched = fetched || names(part, FETCHERS);
    }
    // Where the first program that runs others is named: what is fetched after it may be run by it.
    let Some(runner) = words(line).find(|word| RUNNERS.contains(word)) else { return false };
    let from = runner.as_ptr() as usize - line.as_ptr() as usize;
    ["$(", "<(", "`", "("].iter().any(|opening| {
        line[from..].match_indices(opening).any(|(at, _)| {
            let inside = words(&line[from + at + opening.len()..]).next();
            inside.is_some_and(|word| FETCHERS.contains(&word))
        })
    })
}

fn decodes_and_runs(line: &str) -> bool {
    let decodes = (line.contains("base64")
        && ["-d", "--decode", "-di", "b64decode"].iter().any(|flag| line.contains(flag)))
        || line.contains("b64decode")
        || line.contains("atob(")
        || line.contains("xxd -r");
    let piped =
        line.split('|').skip(1).any(|part| words(part).next().is_some_and(|word| RUNNERS.contains(&word)));
    decodes && (piped || ["eval", "exec("].iter().any(|run| line.contains(run)))
}

fn deletes_everything(line: &str) -> bool {
    let Some((_, rest)) = line.split_once("rm -") else { return false };
    let mut words = rest.split_whitespace();
    let flags = words.next().unwrap_or_default();
    let everything =
        |target: &str| ["/", "/*", "~", "~/", "~/*", "$home", "\"$home\"", "$home/*"].contains(&target);
    flags.contains('r') && words.any(everything)
}

fn sends(line: &str, number: usize, found: &mut Found) {
    let addresses = || line.match_indices("http").filter_map(|(at, _)| address(&line[at..]));
    if COLLECTORS.iter().any(|host| names_host(line, host)) {
        found.injection(number, "it names a place whose purpose is to collect what is sent to it");
    }
    if addresses().any(|url| host_of(url).is_some_and(is_public_number)) {
        found.injection(number, "it names a machine by its number instead of its name");
    }
    // A picture or link whose address is filled in with data is how chats leak.
    let filled = |url: &str| {
        url.split_once('?').is_some_and(|(_, query)| {
            ["${", "{{", "$(", "=$", "={", "=["].iter().any(|mark| query.contains(mark))
        })
    };
    if line.contains("](http") && addresses().any(filled) {
        found.injection(number, "it has a link whose address is filled in with data");
    }
    let private = PRIVATE.iter().any(|place| names_place(line, place));
    let away = names(line, SENDERS) || line.contains("http://") || line.contains("https://");
    let env =
        names(line, SENDERS) && (line.contains("$(env)") || line.contains("env |") || line.contains("`env`"));
    if private && away || env {
        found.injection(number, "it sends private files or the environment away");
    }
}

/// From `http` to the end of the address.
fn address(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let rest = &rest[..rest.floor_char_boundary(MAX_ADDRESS)];
    let end = rest.find(|c: char| c.is_whitespace() || "\"'<>`".contains(c)).unwrap_or(rest.len());
    Some(&rest[..end])
}

fn host_of(address: &str) -> Option<&str> {
    let host = address.split(['/', '?', '#', ')']).next()?;
    host.rsplit('@').next()?.split(':').next()
}

/// Four numbers that are not of this machine or a private net.
fn is_public_number(host: &str) -> bool {
    let numbers: Option<Vec<u8>> = host.split('.').map(|part| part.parse().ok()).collect();
    match numbers.as_deref() {
        Some([a, b, _, _]) => {
            !(matches!(a, 0 | 10 | 127 | 255)
                || *a == 192 && *b == 168
                || *a == 172 && (16..32).contains(b)
                || *a == 169 && *b == 254)
        }
        _ => false,
    }
}

/// Not as a part of another word.
fn names_host(line: &str, host: &str) -> bool {
    line.match_indices(host).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-'))
}

fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let after = line[at + place.len()..].chars().next();
        let before = line[..at].chars().next_back();
        // `.env` is a file; `process.env` and `.envoy` are not.
        place != ".env"
            || !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// Runs of base64 digits.
fn blobs(line: &str) -> impl Iterator<Item = &str> {
    let runs = line.split(|c: char| !(c.is_ascii() && base64::is_digit(c as u8)));
    runs.filter(|run| run.len() >= BLOB_LEAST).map(|run| &run[..run.len().min(BLOB_MOST)])
}

fn decodes_to_command(blob: &str) -> bool {
    // A blob may be cut anywhere; whole groups of four are enough to see what it is.
    let whole = &blob[..blob.len() - blob.len() % 4];
    let Some(bytes) = base64::decode(whole) else { return false };
    let text = String::from_utf8_lossy(&bytes).to_lowercase();
    let odd = text
        .chars()
        .filter(|c| c.is_control() && !c.is_whitespace() || *c == char::REPLACEMENT_CHARACTER)
        .count();
    odd * 10 <= text.chars().count() && HIDDEN_COMMANDS.iter().any(|command| text.contains(command))
}
