//! Options and operands of a program, read the way getopt does.
//!
//! Long options may be shortened as long as they are unique, and short ones may be joined (`-rno`). Both are taken
//! into account: an option counts as a dangerous one if it could be one.

use crate::shell::Word;

/// Which options a program may have.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub accepts: Accepts,
    /// Short options whose value follows.
    pub short_values: &'static str,
    /// Long options whose value may be the next word.
    pub long_values: &'static [&'static str],
}

#[derive(Clone, Copy, Debug)]
pub enum Accepts {
    AllBut { short: &'static str, long: &'static [&'static str] },
    Only { short: &'static str, long: &'static [&'static str] },
}

impl Options {
    /// Nothing that the program knows is dangerous.
    pub const ANY: Options = Options::all_but("", &[]);

    pub const fn all_but(short: &'static str, long: &'static [&'static str]) -> Options {
        Options { accepts: Accepts::AllBut { short, long }, short_values: "", long_values: &[] }
    }

    pub const fn only(short: &'static str, long: &'static [&'static str]) -> Options {
        Options { accepts: Accepts::Only { short, long }, short_values: "", long_values: &[] }
    }

    pub const fn values(self, short_values: &'static str, long_values: &'static [&'static str]) -> Options {
        Options { short_values, long_values, ..self }
    }

    fn takes_any(&self) -> bool {
        matches!(self.accepts, Accepts::AllBut { short: "", long: [] })
    }

    fn accepts_short(&self, c: char) -> bool {
        match self.accepts {
            Accepts::AllBut { short, .. } => !short.contains(c),
            Accepts::Only { short, .. } => short.contains(c),
        }
    }

    fn accepts_long(&self, name: &str) -> bool {
        match self.accepts {
            Accepts::AllBut { long, .. } => !long.iter().any(|bad| bad.starts_with(name)),
            Accepts::Only { long, .. } => long.contains(&name),
        }
    }
}

/// The arguments of a program, taken apart.
#[derive(Clone, Debug, Default)]
pub struct Args<'a> {
    /// Short ones letter by letter, long ones by name.
    pub options: Vec<String>,
    /// What options were given, by option.
    pub values: Vec<(String, Word)>,
    pub operands: Vec<&'a Word>,
}

impl<'a> Args<'a> {
    /// `words` are those after the program's name. An error says which option is not accepted.
    pub fn split(words: &'a [Word], known: &Options) -> Result<Args<'a>, String> {
        let mut args = Args::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if text == "--" && word.is_literal() {
                args.operands.extend(words);
                break;
            }
            if word.leading_pattern && !known.takes_any() {
                return Err(format!("a file name that `{text}` matches could be read as an option"));
            }
            match text.strip_prefix("--").filter(|name| !name.is_empty()) {
                Some(long) => args.long(long, word, known, &mut words)?,
                None if text.len() > 1 && text.starts_with('-') => args.short(word, known, &mut words)?,
                None => args.operands.push(word),
            }
        }
        Ok(args)
    }

    fn long(
        &mut self,
        text: &str,
        word: &Word,
        known: &Options,
        words: &mut std::slice::Iter<'_, Word>,
    ) -> Result<(), String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if !known.accepts_long(name) {
            return Err(format!("the option `--{name}`"));
        }
        self.options.push(name.into());
        let value = match value {
            Some(value) => Some(Word { text: value.into(), home: false, ..word.clone() }),
            None if known.long_values.contains(&name) => words.next().cloned(),
            None => None,
        };
        self.values.extend(value.map(|value| (name.to_string(), value)));
        Ok(())
    }

    fn short(
        &mut self,
        word: &Word,
        known: &Options,
        words: &mut std::slice::Iter<'_, Word>,
    ) -> Result<(), String> {
        let letters = &word.text[1..];
        for (at, letter) in letters.char_indices() {
            if !known.accepts_short(letter) {
                return Err(format!("the option `-{letter}`"));
            }
            self.options.push(letter.into());
            if known.short_values.contains(letter) {
                let attached = &letters[at + letter.len_utf8()..];
                let value = match attached {
                    "" => words.next().cloned(),
                    text => Some(Word { text: text.into(), ..word.clone() }),
                };
                self.values.extend(value.map(|value| (letter.to_string(), value)));
                return Ok(());
            }
        }
        Ok(())
    }

    pub fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(&option.as_str()))
    }

    /// What long options were given.
    pub fn given_long(&self) -> impl Iterator<Item = &Word> {
        self.values.iter().filter(|(name, _)| name.len() > 1).map(|(_, value)| value)
    }

    /// What the named options were given.
    pub fn given<'b>(&'b self, names: &'b [&str]) -> impl Iterator<Item = &'b Word> {
        self.values.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value)
    }
}
