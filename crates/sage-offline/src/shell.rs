//! The commands in a line or script of a shell, a Makefile's recipe or a package's script, as far as their words show.
//!
//! Nothing is run, and only variables that the text sets itself are expanded (`variables.rs`). Comments are dropped,
//! quoted text is one word, and commands that only print, look or set something are told apart from those that do the
//! work: `echo "run pytest"` does not run pytest.

mod variables;

pub use variables::Variables;

/// One simple command: a program and its arguments, without the words that stand before it.
pub type Words = Vec<String>;

/// Programs that print, look or set something.
const IDLE: &[&str] = &[
    "echo", "printf", ":", "true", "false", "cat", "grep", "test", "[", "[[", "which", "type", "hash",
    "export", "set", "unset", "exit", "return", "read", "local", "cd", "pushd", "popd", "rm", "mkdir",
    "touch", "sleep", "trap", "shift", "fi", "done", "esac", "}", "case", "for", "tee", "tail", "head",
    "sort", "wc", "sed", "awk", "cp", "mv", "ls",
];

/// Words before a program: of the shell's grammar, and programs that run another one.
const BEFORE: &[&str] = &[
    "if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "env", "nice", "sudo",
    "nohup", "xargs", "command",
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// The commands that do work, in the order in which they stand.
pub fn commands(text: &str) -> Vec<Words> {
    placed(text, "").into_iter().map(|(_, words)| words).collect()
}

/// The same with the folder in which each of them runs, as far as `cd` tells; `folder` is where they begin.
pub fn placed(text: &str, folder: &str) -> Vec<(String, Words)> {
    let joined = text.replace("\\\n", " ");
    let (mut found, mut at) = (Vec::new(), folder.to_string());
    for line in joined.lines() {
        for words in split(line.trim_start().trim_start_matches(['@', '-', '+'])) {
            match words.as_slice() {
                [cd, to] if cd == "cd" => at = joined_path(&at, to),
                _ => found.extend(of_words(words, &at)),
            }
        }
    }
    found
}

/// A path relative to a folder, without `.` and `..`; one that leaves the project keeps its `..`.
pub fn joined_path(folder: &str, path: &str) -> String {
    let start = if path.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The last part of a program's path.
pub fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

pub fn is_shell(program: &str) -> bool {
    SHELLS.contains(&base(program))
}

/// A program that only prints, looks or sets something; `./test` is a script of the project.
fn is_idle(word: &str) -> bool {
    let own = word.contains('/') && !word.starts_with("/bin/") && !word.starts_with("/usr/bin/");
    word.is_empty() || !own && IDLE.contains(&base(word))
}

/// The first command of a text that starts something which is not known before it runs: `"$@"`, `sh $t`, `eval`.
pub fn opaque(text: &str) -> Option<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.trim_start().trim_start_matches(['@', '-', '+']));
    let commands: Vec<Words> = lines.flat_map(|line| split_at(line, true)).collect();
    // `for t in t/*.sh; do sh $t; done` starts what is named there.
    let loops: Vec<String> = commands.iter().filter_map(loop_variable).collect();
    let found = commands.into_iter().map(without_before).find(|words| is_opaque(words, &loops));
    found.map(|words| words.join(" "))
}

fn loop_variable(words: &Words) -> Option<String> {
    let [word, name, within, list @ ..] = words.as_slice() else { return None };
    let is_known = word == "for" && within == "in" && list.iter().all(|item| !item.contains('$'));
    is_known.then(|| format!("${name}"))
}

fn is_opaque(words: &Words, loops: &[String]) -> bool {
    let Some(program) = words.first() else { return false };
    if is_idle(program) {
        return false;
    }
    let name = base(program).trim_start_matches('$').to_lowercase();
    let is_known = |word: &String| loops.iter().any(|name| word.trim_start_matches("./") == name);
    let is_unknown = program.contains('$') && !TOOLS.contains(&name.as_str()) && !is_known(program);
    let given = words[1..].iter().find(|word| !word.starts_with('-') && !is_known(word));
    let is_code = !is_shell(program) && words[1..].iter().any(|word| word == "-c" || word == "-e");
    let runs = is_interpreter(program) && (given.is_some_and(|word| word.contains('$')) || is_code);
    is_unknown || runs || program == "eval" || program == "xargs"
}

/// Variables of these names are the tools of these names.
const TOOLS: &[&str] = &[
    "cargo", "go", "python", "python3", "npm", "npx", "node", "make", "pytest", "cc", "cxx", "gcc", "mvn",
    "gradle", "pip", "uv", "poetry", "ruby", "bundle", "php", "composer", "dotnet", "ctest", "cmake",
    "docker", "rustc", "tox", "nox", "yarn", "pnpm", "jest", "mocha", "bats", "prove",
];

/// Runs the file that it is given.
pub fn is_interpreter(program: &str) -> bool {
    let program = base(program);
    let known = ["node", "tsx", "ts-node", "deno", "bun", "ruby", "perl", "php", "source", ".", "Rscript"];
    is_shell(program) || program.starts_with("python") || known.contains(&program)
}

/// Without words of the shell's grammar and programs that run another one.
fn without_before(words: Words) -> Words {
    let is_setting = |word: &str| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let before =
        |word: &&String| word.as_str() != "xargs" && BEFORE.contains(&word.as_str()) || is_setting(word);
    let skipped = words.iter().take_while(before).count();
    words.into_iter().skip(skipped).collect()
}

fn of_words(words: Words, folder: &str) -> Vec<(String, Words)> {
    let looks = words.iter().any(|word| word == "command") && words.iter().any(|word| word == "-v");
    let mut words = without_before(words);
    if words.first().is_some_and(|word| word == "xargs") {
        words = without_before(words.split_off(1));
    }
    let program = words.first().map(|word| base(word).to_string()).unwrap_or_default();
    if looks || words.first().is_none_or(|word| is_idle(word)) {
        return Vec::new();
    }
    // `sh -c "pytest -q"`: the text is a script of its own.
    if is_shell(&program)
        && let Some(script) = words.iter().position(|word| word.starts_with('-') && word.ends_with('c'))
        && let Some(text) = words.get(script + 1)
    {
        return placed(text, folder);
    }
    vec![(folder.to_string(), words)]
}

fn split(line: &str) -> Vec<Words> {
    split_at(line, false)
}

/// A line at its separators, outside of quotes. `keeps`: variables stay what they are.
fn split_at(line: &str, keeps: bool) -> Vec<Words> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                while let Some(inside) = letters.next_if(|inside| *inside != letter) {
                    word.push(inside);
                }
                letters.next();
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            '$' if matches!(letters.peek(), Some('(' | '{')) => {
                letters.next();
                let name: String = std::iter::from_fn(|| letters.next_if(|c| !")}".contains(*c))).collect();
                letters.next();
                // `$(CARGO) test` is most likely cargo's; what it really is, its output shows.
                let name = if keeps { format!("${name}") } else { name.to_lowercase() };
                word.get_or_insert_default().push_str(&name);
            }
            // `2>&1` is one word.
            '&' if word.as_ref().is_some_and(|word| word.ends_with('>')) => {
                word.get_or_insert_default().push('&')
            }
            ';' | '&' | '|' | '(' | ')' | '`' => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
            }
            letter if letter.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.take());
    all.push(words);
    all.retain(|words: &Words| !words.is_empty());
    all
}

/// Whether a command runs a tool: `cargo test`, also as `cargo +nightly --locked test` and `uv run pytest`.
pub fn runs(words: &[String], tool: &str) -> bool {
    let mut tool = tool.split(' ');
    let Some(first) = tool.next() else { return false };
    let second = tool.next();
    words.iter().enumerate().any(|(at, word)| {
        let Some(second) = second else { return base(word) == first };
        let is_option = |word: &&String| word.starts_with(['-', '+']) && word.as_str() != second;
        let next = words[at + 1..].iter().find(|word| !is_option(word));
        base(word) == first && next.is_some_and(|next| next == second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        commands(text).iter().map(|words| words.join(" ")).collect()
    }

    // covers: P4
    #[test]
    fn commands_are_told_from_talk() {
        assert_eq!(told("\t@echo 'run pytest' && cargo test # pytest"), ["cargo test"]);
        assert_eq!(told("# unittest is broken\n\tDB=x ./run.sh -v; exit 1"), ["./run.sh -v"]);
        assert_eq!(
            told("if command -v pytest >/dev/null; then pytest -q; else echo none; fi"),
            ["pytest -q"]
        );
        assert_eq!(told("bash -ec 'npm test || true'\n$(GO) test ./..."), ["npm test", "go test ./..."]);
        assert_eq!(told("echo \"a; pytest\"; (cd web && npm \\\n run test)"), ["npm run test"]);
        assert_eq!(told("command pytest 2>&1 | tee log"), ["pytest 2>&1"]);
        assert!(
            told("").is_empty() && told("  #").is_empty() && told("'").is_empty() && told("&&").is_empty()
        );
    }

    #[test]
    fn commands_know_their_folder() {
        let told = |text: &str, folder: &str| -> Vec<String> {
            placed(text, folder).iter().map(|(at, words)| format!("{at}: {}", words.join(" "))).collect()
        };
        assert_eq!(told("cd web && npm test", ""), ["web: npm test"]);
        assert_eq!(told("(cd ../a/./b; ./x)", "web"), ["a/b: ./x"]);
        assert_eq!(joined_path("a", "../../b"), "../b");
        assert_eq!(joined_path("a", "/etc/x"), "etc/x");
    }

    // covers: P4
    #[test]
    fn what_is_started_by_a_variable_is_not_known() {
        for text in [
            "for t in $(cat list); do sh $t; done",
            "exec \"$@\"",
            "$CMD",
            "cat x | xargs -n1 sh",
            "eval $x",
            ". $LIB/x.sh",
            "python3 -c 'import x'",
        ] {
            assert!(opaque(text).is_some(), "{text}");
        }
        for text in [
            "for t in t/*.sh; do sh $t; done",
            "for t in a b; do ./$t || exit 1; done",
            "$(CARGO) test",
            "$VENV/bin/pytest -q",
            "make -C $DIR test",
            "echo $x; test -n $y",
            "sh -c 'pytest'",
            "x=$(date) ./run.sh",
            "cd $x && npm test",
        ] {
            assert_eq!(opaque(text), None, "{text}");
        }
        assert_eq!(told("./test && test -e x && bin/test"), ["./test", "bin/test"]);
    }

    #[test]
    fn tools_are_found_behind_others() {
        let runs = |line: &str, tool: &str| commands(line).iter().any(|words| runs(words, tool));
        assert!(runs("cargo +nightly --locked test", "cargo test"));
        assert!(runs("uv run .venv/bin/pytest -q", "pytest"));
        assert!(runs("node --test unit/", "node --test"));
        assert!(!runs("cargo build --tests", "cargo test"));
        assert!(!runs("git commit -m 'fix pytest'", "pytest"));
    }
}
