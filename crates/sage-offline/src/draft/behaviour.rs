//! What a function does that matters to a plan: how it fails, and what it touches outside of itself.
//!
//! Read from the text of its lines, language by language. Only what is written there is told.

use super::project::body;
use crate::code::{FileFacts, Function};

/// One way to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail {
    pub line: usize,
    /// `ValueError`, `Trouble::Invalid`; empty where only a text is given.
    pub what: String,
    pub message: Option<String>,
}

impl Fail {
    /// `` `ValueError` "nothing to pay" ``
    pub fn told(&self) -> String {
        let message = self.message.as_ref().map(|message| super::markdown::quoted(message, 60));
        match (self.what.is_empty(), message) {
            (true, Some(message)) => message,
            (true, None) => "an error".to_string(),
            (false, Some(message)) => format!("`{}` {message}", self.what),
            (false, None) => format!("`{}`", self.what),
        }
    }

    /// The name without its path: what a test would mention.
    pub fn short_name(&self) -> &str {
        self.what.rsplit(['.', ':']).next().unwrap_or(&self.what)
    }
}

pub fn fails(file: &FileFacts, function: &Function) -> Vec<Fail> {
    let lines = body(file, function);
    let found = lines.iter().enumerate().filter_map(|(at, (number, line))| {
        let next = lines.get(at + 1).map_or("", |(_, next)| next.trim());
        fail(file.language, line.trim(), next).map(|(what, message)| Fail { line: *number, what, message })
    });
    found.collect()
}

fn fail(language: &str, line: &str, next: &str) -> Option<(String, Option<String>)> {
    if ["//", "#", "*", "/*"].iter().any(|start| line.starts_with(start)) {
        return None;
    }
    let thrown = match language {
        "Python" => line.strip_prefix("raise ")?,
        "Rust" => rust(line)?,
        "Go" => {
            ["errors.New(", "fmt.Errorf("].iter().find_map(|call| line.find(call).map(|at| &line[at..]))?
        }
        _ => line.split_once("throw ").map(|(_, rest)| rest.trim_start_matches("new "))?,
    };
    let what: String = thrown.chars().take_while(|c| c.is_alphanumeric() || "_.:".contains(*c)).collect();
    let what = if what.starts_with("errors.") || what.starts_with("fmt.") { String::new() } else { what };
    let what = what.trim_end_matches([':', '.']).to_string();
    // The text may stand on the line below.
    let message =
        text_in(thrown).or_else(|| thrown.trim_end().ends_with('(').then(|| text_in(next)).flatten());
    Some((what, message))
}

/// What is given back as an error; not `Err(e) => ...`, which takes one.
fn rust(line: &str) -> Option<&str> {
    let at = line.find("Err(").filter(|at| !line[*at..].contains("=>") && !line[..*at].contains("let "));
    let given = at.map(|at| &line[at + 4..]);
    let given = given.or_else(|| line.split_once("bail!(").map(|(_, rest)| rest));
    let given = given.or_else(|| {
        line.split_once("ok_or_else(|| ").or_else(|| line.split_once("ok_or(")).map(|(_, rest)| rest)
    });
    // `Err(error)` hands on what somebody else said.
    given.filter(|rest| rest.starts_with(|c: char| c.is_uppercase() || c == '"' || c == 'f'))
}

fn text_in(code: &str) -> Option<String> {
    let start = code.find(['"', '\'', '`'])?;
    let mark = code[start..].chars().next()?;
    let rest = &code[start + 1..];
    let end = rest.find(mark)?;
    (end > 2).then(|| rest[..end].to_string())
}

/// What is outside of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    Stored,
    Network,
    Process,
    Environment,
}

const SIGNS: &[(Outside, &[&str])] = &[
    (
        Outside::Stored,
        &[
            "write_text(",
            "write_bytes(",
            "json.dump(",
            "pickle.dump(",
            "writeFile",
            "fs.write",
            "fs::write(",
            "File::create(",
            "os.WriteFile(",
            "os.Create(",
            "Files.write",
            ".commit()",
            ".save(",
            "INSERT INTO",
            "UPDATE ",
            "DELETE FROM",
            "localStorage.",
            "OpenOptions::new(",
            "fs::rename(",
        ],
    ),
    (
        Outside::Network,
        &[
            "requests.",
            "urlopen(",
            "httpx.",
            "aiohttp",
            "fetch(",
            "axios",
            "http.Get(",
            "http.Post(",
            "reqwest",
            "TcpStream::connect(",
            "HttpClient",
            "XMLHttpRequest",
        ],
    ),
    (
        Outside::Process,
        &["subprocess.", "os.system(", "Command::new(", "exec.Command(", "child_process", "ProcessBuilder("],
    ),
    (
        Outside::Environment,
        &["os.environ", "os.getenv(", "process.env", "env::var", "os.Getenv(", "System.getenv("],
    ),
];

/// What it touches, each kind once, with its first line.
pub fn outside(file: &FileFacts, function: &Function) -> Vec<(Outside, usize)> {
    let mut found: Vec<(Outside, usize)> = Vec::new();
    for (number, line) in body(file, function) {
        let code = line.trim();
        if code.starts_with("//") || code.starts_with('#') || code.starts_with('*') || is_text(code) {
            continue;
        }
        for (kind, signs) in SIGNS {
            if !found.iter().any(|(known, _)| known == kind) && signs.iter().any(|sign| code.contains(sign)) {
                found.push((*kind, number));
            }
        }
    }
    found
}

/// A line that is nothing but a text: a list of words, a message.
fn is_text(code: &str) -> bool {
    code.starts_with('"') && code.trim_end_matches(',').ends_with('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R6
    #[test]
    fn failures_are_read_in_each_language() {
        let told = |language, line, next| {
            fail(language, line, next)
                .map(|(what, message)| format!("{what}|{}", message.unwrap_or_default()))
        };
        assert_eq!(
            told("Python", "raise ValueError(\"nothing to pay\")", "").unwrap(),
            "ValueError|nothing to pay"
        );
        assert_eq!(told("Python", "raise", ""), None);
        assert_eq!(told("TypeScript", "if (x) throw new PayError(`no`);", "").unwrap(), "PayError|");
        assert_eq!(
            told("Rust", "return Err(Trouble::Invalid(", "\"too long\".into()").unwrap(),
            "Trouble::Invalid|too long"
        );
        assert_eq!(told("Rust", "Err(error) => return Err(error),", ""), None);
        assert_eq!(told("Rust", "Err(error)", ""), None);
        assert_eq!(told("Go", "return nil, errors.New(\"no card\")", "").unwrap(), "|no card");
        assert_eq!(told("Java", "// throw new X()", ""), None);
    }
}
