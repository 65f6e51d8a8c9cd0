//! Commands of Sage that people copy from hints: with the directory that they typed, quoted for a shell.
//!
//! ```text
//! sage -C ../shop run hup ...   ->   hint: sage -C ../shop resume hup
//! ```
//! `-C` is repeated as it was typed, unless it names the project that the current directory belongs to.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use crate::display::text::argument;

/// What comes behind a command, for people; a shell takes it for a comment.
const COMMENT: &str = "    # ";

/// `-C` of this process, where commands need it.
static DIRECTORY: OnceLock<String> = OnceLock::new();

/// Remembers what was typed; `here` is the directory that the command was typed in.
pub fn remember(typed: Option<&Path>, here: Option<&Path>) {
    let Some(typed) = typed else { return };
    let project = |dir: &Path| dir.canonicalize().ok().map(|dir| root_of(&dir).to_path_buf());
    if here.and_then(project) != project(typed) {
        let _ = DIRECTORY.set(typed.display().to_string());
    }
}

/// The nearest directory that is a project, else the directory itself.
pub fn root_of(dir: &Path) -> &Path {
    let marked = |dir: &&Path| dir.join(".sage").is_dir() || dir.join("sage.toml").is_file();
    dir.ancestors().find(marked).unwrap_or(dir)
}

/// One command, word by word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    words: Vec<String>,
    comment: String,
}

/// `sage <command>`; several words for a command of a command.
pub fn sage(command: &str) -> CommandLine {
    CommandLine { words: command.split(' ').map(str::to_string).collect(), comment: String::new() }
}

impl CommandLine {
    #[must_use]
    pub fn arg(mut self, word: impl Into<String>) -> CommandLine {
        self.words.push(word.into());
        self
    }

    #[must_use]
    pub fn option(self, name: &str, value: impl Into<String>) -> CommandLine {
        self.arg(name).arg(value)
    }

    #[must_use]
    pub fn option_if(self, name: &str, value: Option<impl Into<String>>) -> CommandLine {
        match value {
            Some(value) => self.option(name, value),
            None => self,
        }
    }

    #[must_use]
    pub fn flag_if(self, name: &str, given: bool) -> CommandLine {
        if given { self.arg(name) } else { self }
    }

    /// What it does, where the command does not say it.
    #[must_use]
    pub fn comment(self, comment: impl Into<String>) -> CommandLine {
        CommandLine { comment: comment.into(), ..self }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sage")?;
        if let Some(directory) = DIRECTORY.get() {
            write!(f, " -C {}", argument(directory))?;
        }
        for word in &self.words {
            write!(f, " {}", argument(word))?;
        }
        if self.comment.is_empty() { Ok(()) } else { write!(f, "{COMMENT}{}", self.comment) }
    }
}

impl From<CommandLine> for String {
    fn from(command: CommandLine) -> String {
        command.to_string()
    }
}

/// A hint as it is printed: commands that were written as text get the directory, too.
pub fn here(hint: impl Into<String>) -> String {
    located(hint.into(), DIRECTORY.get().map(String::as_str))
}

/// Prints a hint for people, beside the data.
pub fn tell(hint: impl Into<String>) {
    eprintln!("hint: {}", here(hint));
}

fn located(hint: String, directory: Option<&str>) -> String {
    let Some(directory) = directory else { return hint };
    let with = format!("sage -C {} ", argument(directory));
    let rest = match hint.strip_prefix("sage ") {
        Some(rest) if !rest.starts_with("-C ") => format!("{with}{rest}"),
        _ => return hint,
    };
    rest.replace(", or sage ", &format!(", or {with}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R5
    #[test]
    fn words_are_quoted_and_comments_are_comments() {
        let command = sage("approve").arg("a b").arg("p/each[1]").option("-c", "it's").comment("say so");
        assert_eq!(command.to_string(), r"sage approve 'a b' 'p/each[1]' -c 'it'\''s'    # say so");
        let command = sage("skills approve").option_if("-t", None::<String>).flag_if("--new", true);
        assert_eq!(command.to_string(), "sage skills approve --new");
    }

    // covers: R5
    #[test]
    fn text_gets_the_directory_once() {
        let here = |hint: &str| located(hint.into(), Some("../my shop"));
        assert_eq!(here("sage list"), "sage -C '../my shop' list");
        assert_eq!(here("sage -C x list"), "sage -C x list");
        assert_eq!(here("did you mean `a`?"), "did you mean `a`?");
        assert_eq!(here("sage a x, or sage b y"), "sage -C '../my shop' a x, or sage -C '../my shop' b y");
        assert_eq!(located("sage list".into(), None), "sage list");
    }
}
