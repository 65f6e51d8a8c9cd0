//! Variables that a script or a Makefile sets itself, and the usual ways of naming the folder that it stands in.

use std::collections::BTreeMap;

/// Values that name values that name values.
const MAX_DEPTH: usize = 4;

/// What is known about the variables of a text.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    set: BTreeMap<String, String>,
    /// `/` and the folder of the script, from the project on: paths that begin so are the project's.
    here: Option<String>,
    is_make: bool,
}

impl Variables {
    /// Of a script in a folder of the project.
    pub fn of_script(text: &str, folder: &str) -> Variables {
        let mut found = Variables { here: Some(format!("/{folder}")), ..Variables::default() };
        text.lines().filter_map(assigned).for_each(|(name, value)| found.set(name, value));
        found
    }

    /// Of a Makefile with all that it includes.
    pub fn of_make(text: &str) -> Variables {
        let known = [("MAKE", "make"), ("CURDIR", "."), ("SHELL", "sh")];
        let set = known.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut found = Variables { set, is_make: true, ..Variables::default() };
        let lines = text.lines().filter(|line| !line.starts_with('\t'));
        for (name, sign, value) in lines.filter_map(made) {
            match (sign, found.set.get(&name)) {
                ('?', Some(_)) => {}
                ('+', Some(before)) => found.set(name, format!("{before} {value}")),
                _ => found.set(name, value),
            }
        }
        found
    }

    fn set(&mut self, name: String, value: String) {
        // One that names itself would never end.
        let value = self.resolve(&value);
        self.set.insert(name, value);
    }

    /// The text with the values of what is known; all else stays as it is.
    pub fn resolve(&self, text: &str) -> String {
        let mut text = text.to_string();
        for _ in 0..MAX_DEPTH {
            let next = self.once(&text);
            if next == text {
                break;
            }
            text = next;
        }
        if self.is_make { text.replace("$$", "$") } else { text }
    }

    fn once(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let found = &rest[at..];
            let (length, value) = match self.value(found) {
                Some(known) => known,
                None if found.starts_with("$$") => (2, "$$".to_string()),
                None => (1, "$".to_string()),
            };
            out.push_str(&value);
            rest = &found[length..];
        }
        out + rest
    }

    /// What stands at the beginning of a text, and how long it is there.
    fn value(&self, text: &str) -> Option<(usize, String)> {
        let after = &text[1..];
        let (length, inner) = match after.chars().next()? {
            open @ ('(' | '{') => {
                let end = closing(after, open)?;
                (end + 2, after[1..end].trim())
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
                (end + 1, &after[..end])
            }
            _ => return None,
        };
        // A shell's `$(name)` is a command.
        let is_command = after.starts_with('(') && !self.is_make;
        let name = inner.split([':', '%', '#']).next().unwrap_or(inner);
        let value = match self.set.get(name).filter(|_| !is_command) {
            Some(value) => value.clone(),
            None if name == "PWD" => ".".to_string(),
            None => self.folder(inner)?,
        };
        Some((length, value))
    }

    /// `dirname "$0"`, `cd x && pwd`, `git rev-parse --show-toplevel`, `${0%/*}`.
    fn folder(&self, inner: &str) -> Option<String> {
        let plain = inner.replace(['"', '\''], "");
        let plain = plain.trim_start_matches("shell ").trim();
        let own = ["$0", "${BASH_SOURCE[0]}", "$BASH_SOURCE", "${BASH_SOURCE}", "${(%):-%x}"];
        if plain == "0%/*" {
            return self.here.clone();
        }
        if let Some(rest) = plain.strip_prefix("dirname ") {
            return own.contains(&rest.trim_start_matches("-- ").trim()).then(|| self.here.clone()).flatten();
        }
        if plain == "pwd" {
            return Some(".".to_string());
        }
        if plain.starts_with("git rev-parse --show-toplevel") {
            return Some("/.".to_string());
        }
        let (_, to) = plain.split_once("cd ").filter(|_| plain.contains("pwd"))?;
        let to = to.trim_start_matches("-- ").split(['&', ';']).next()?.trim();
        (!to.contains('$')).then(|| to.to_string())
    }
}

/// Where the bracket at the beginning ends.
fn closing(text: &str, open: char) -> Option<usize> {
    let close = if open == '(' { ')' } else { '}' };
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        depth += i32::from(letter == open) - i32::from(letter == close);
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// `DIR=$(dirname "$0")`, alone on its line.
fn assigned(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let words = ["export ", "local ", "readonly ", "declare "];
    let line = words.iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    is_name(name).then_some(())?;
    let value = value.trim();
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    let value = match quoted('"').or_else(|| quoted('\'')) {
        Some(inner) => inner,
        None if value.starts_with("$(") && value.ends_with(')') => value,
        None => value.split([' ', ';', '#']).next().unwrap_or_default(),
    };
    Some((name.to_string(), value.to_string()))
}

/// `RUN ?= ./tools/run.sh`
fn made(line: &str) -> Option<(String, char, String)> {
    let line = line.strip_prefix("export ").or_else(|| line.strip_prefix("override ")).unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let sign = name.chars().last().filter(|sign| "?+:!".contains(*sign)).unwrap_or('=');
    let name = name.trim_end_matches(['?', '+', ':', '!', ' ', '\t']);
    let value = value.split(" #").next().unwrap_or(value).trim();
    is_name(name).then(|| (name.to_string(), sign, value.to_string()))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: P4
    #[test]
    fn variables_of_a_script_are_put_in_their_places() {
        let cases = [
            ("DIR=$(dirname \"$0\")\n", "\"$DIR/inner.sh\"", "\"/ci/inner.sh\""),
            (
                "HERE=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"\n",
                ". \"$HERE/a.sh\"",
                ". \"/ci/a.sh\"",
            ),
            ("ROOT=.\nexport LIB=${ROOT}/lib\n", ". $LIB/t.sh", ". ./lib/t.sh"),
            ("", "cd \"$(dirname \"$0\")\"", "cd \"/ci\""),
            ("", "cd \"${0%/*}\"; $PWD/x", "cd \"/ci\"; ./x"),
            ("", "cd $(git rev-parse --show-toplevel)", "cd /."),
            ("", "exec \"$@\" $unset $(date)", "exec \"$@\" $unset $(date)"),
            ("A=$B\nB=$A\n", "$A", "$B"),
        ];
        for (script, line, expected) in cases {
            assert_eq!(Variables::of_script(script, "ci").resolve(line), expected, "{script}{line}");
        }
    }

    // covers: P4
    #[test]
    fn variables_of_a_makefile_are_put_in_their_places() {
        let text =
            "DIR = tools\nRUN := ./$(DIR)/run.sh\nRUN ?= other\nFLAGS = -v\nFLAGS += -x\n\tNOT = this\n";
        let made = Variables::of_make(text);
        let cases = [
            ("$(RUN) ${FLAGS}", "./tools/run.sh -v -x"),
            ("$(MAKE) -C sub", "make -C sub"),
            ("for t in t/*.sh; do sh $$t; done", "for t in t/*.sh; do sh $t; done"),
            ("$(NOT) $(wildcard *.mk)", "$(NOT) $(wildcard *.mk)"),
        ];
        for (line, expected) in cases {
            assert_eq!(made.resolve(line), expected, "{line}");
        }
    }
}
