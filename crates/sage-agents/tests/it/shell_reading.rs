//! What Sage reads in a command line is what a real shell runs: random lines, run by bash with programs that only write
//! down how they were called.

use std::path::Path;
use std::process::{Command, Stdio};

use sage_core::shell::{Body, List, Redirect, Word, parse};

/// Everything that means something to a shell, in pieces that often make a whole.
const PIECES: &[&str] = &[
    "a",
    "b",
    " ",
    " ",
    " ",
    "\n",
    "'",
    "\"",
    "'x y'",
    "\"x y\"",
    "\\",
    "$",
    "$?",
    "`",
    "(",
    ")",
    "{",
    "}",
    "{}",
    "<",
    ">",
    ">>",
    "2>&1",
    "&>",
    "<<E",
    "<<'E'",
    "\nE\n",
    "<<<",
    "|",
    "|&",
    "||",
    "&&",
    "&",
    ";",
    ";;",
    "#",
    "!",
    "~",
    "~/",
    "*",
    "?",
    "[",
    "]",
    "=",
    "X=",
    "x@{1}",
    "1",
    "2",
    "-",
    "/",
    "time",
    "if",
    "$(",
    "\"$(cat <<'E'\n",
    "\nE\n)\"",
    "\t",
    "\\\n",
    "E",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit
    }

    fn line(&mut self) -> String {
        let pieces = 2 + self.below(14);
        (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }
}

/// Programs with their arguments, and files that are written.
#[derive(Default)]
struct Expected {
    programs: Vec<Vec<Word>>,
    written: Vec<Word>,
}

impl Expected {
    fn list(&mut self, list: &List) {
        for command in list.0.iter().flat_map(|(_, pipeline)| &pipeline.0) {
            for redirect in &command.redirects {
                if let Redirect::Write(word) = redirect {
                    self.written.push(word.clone());
                }
            }
            match &command.body {
                Body::Simple { words, .. } => self.programs.push(words.clone()),
                Body::Group { list, .. } => self.list(list),
            }
        }
    }

    /// A pattern may have become the name of a file that was made on the way, and `$?` any number.
    fn explains(&self, call: &[String]) -> bool {
        let same = |word: &Word, given: &String| {
            let text = if word.home { word.text.replacen('~', "/home", 1) } else { word.text.clone() };
            word.status || word.pattern || text == *given
        };
        let fits = |words: &Vec<Word>| {
            let patterns = words.iter().any(|word| word.pattern);
            let equal =
                words.len() == call.len() && words.iter().zip(call).all(|(word, given)| same(word, given));
            equal || (patterns && words.first().is_some_and(|first| same(first, &call[0])))
        };
        self.programs.iter().any(fits)
    }
}

/// One write for each call: programs of a pipeline are called at the same time.
const SCRIPT: &str = r#"
command_not_found_handle() { printf '%s\0' "$@" $'\1' >> "$LOG"; [[ $1 == a* ]]; }
cat() { local line; while IFS= read -r line; do printf '%s\n' "$line"; done; }
eval "$1"
"#;

/// How programs were called, and which files there are now.
fn run(bash: &Path, line: &str, dir: &Path, log: &Path) -> (Vec<Vec<String>>, Vec<String>) {
    let _ = std::fs::remove_file(log);
    let mut shell = Command::new(bash);
    shell.args(["--norc", "--noprofile", "-c", SCRIPT, "bash", line]).current_dir(dir).env_clear();
    shell.env("PATH", "/nowhere").env("HOME", "/home").env("LOG", log);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned();
    let calls = text.split("\u{1}\0").filter(|call| !call.is_empty());
    let words = |call: &str| call.trim_end_matches('\0').split('\0').map(str::to_string).collect();
    let files = std::fs::read_dir(dir).unwrap().flatten();
    (
        calls.map(words).collect(),
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
    )
}

// covers: R17
#[test]
fn nothing_runs_and_nothing_is_written_that_was_not_read_in_the_line() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(bash) = std::env::split_paths(&path).map(|dir| dir.join("bash")).find(|path| path.is_file())
    else {
        println!("skipped: there is no bash");
        return;
    };
    let (mut random, mut read, mut ran) = (Random(7), 0, 0);
    let outside = tempfile::tempdir().unwrap();
    let is_long = std::env::var_os("SAGE_LONG").is_some_and(|value| !value.is_empty() && value != "0");
    let lines = if is_long { 40_000 } else { 1_500 };
    while read < lines {
        let line = random.line();
        let Ok(list) = parse(&line) else { continue };
        read += 1;
        let mut expected = Expected::default();
        expected.list(&list);
        let dir = tempfile::tempdir().unwrap();
        let (calls, files) = run(&bash, &line, dir.path(), &outside.path().join("log"));
        ran += calls.len();
        for call in &calls {
            assert!(expected.explains(call), "{line:?} ran {call:?}, but was read as {list:?}");
        }
        for file in files {
            let known =
                expected.written.iter().any(|word| word.status || word.text.trim_start_matches("./") == file);
            assert!(known, "{line:?} wrote {file:?}, but was read as {list:?}");
        }
    }
    assert!(ran > lines / 3, "only {ran} programs ran in {lines} lines");
}
