//! Lists, pipelines, groups and redirections.

use super::unclear::Unclear;
use super::word::{Cursor, Word, word};
use super::{Body, Command, Join, List, Pipeline, Redirect};

/// Groups in groups beyond this are not written by anybody.
const DEPTH: usize = 8;

/// Words of shells that are no programs. Where a command begins, they begin something else.
const KEYWORDS: &[&str] = &[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "for",
    "foreach",
    "select",
    "while",
    "until",
    "repeat",
    "do",
    "done",
    "case",
    "esac",
    "in",
    "function",
    "coproc",
    "[[",
    "]]",
    "{",
    "}",
    "end",
    "nocorrect",
    "noglob",
    "-",
];

/// Reads a whole command line.
pub fn parse(text: &str) -> Result<List, Unclear> {
    let mut parser = Parser { cursor: Cursor::new(text), waiting: Vec::new() };
    let list = parser.list(0, End::Text)?;
    if !parser.waiting.is_empty() {
        return Err(Unclear::HereDocument);
    }
    if list.0.is_empty() { Err(Unclear::Empty) } else { Ok(list) }
}

/// What a list ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Parenthesis,
    Brace,
}

/// A here-document whose text comes after the end of the line.
struct Document {
    delimiter: String,
    /// Nothing in it is expanded.
    literal: bool,
    tabs: bool,
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    waiting: Vec<Document>,
}

impl Parser<'_> {
    fn list(&mut self, depth: usize, end: End) -> Result<List, Unclear> {
        if depth > DEPTH {
            return Err(Unclear::Depth);
        }
        let mut list = List::default();
        let mut join = Join::Then;
        loop {
            self.lines()?;
            if self.is_over(end)? {
                // `a &&` needs something after it, and a group is not empty.
                let whole = join == Join::Then && (end == End::Text || !list.0.is_empty());
                return if whole { Ok(list) } else { Err(Unclear::Operator) };
            }
            list.0.push((join, self.pipeline(depth)?));
            self.blanks();
            join = match () {
                () if self.cursor.eat("&&") => Join::And,
                () if self.cursor.eat("||") => Join::Or,
                () if self.cursor.rest().starts_with(";;") => return Err(Unclear::Keyword(";;".into())),
                () if self.cursor.eat(";") => Join::Then,
                () if self.cursor.peek() == Some('&') => return Err(Unclear::Background),
                () if self.cursor.peek() == Some('\n') => Join::Then,
                () if self.is_over(end)? => return Ok(list),
                () => return Err(Unclear::Parenthesis),
            };
        }
    }

    /// At the end of the list; takes the bracket that closes it.
    fn is_over(&mut self, end: End) -> Result<bool, Unclear> {
        match end {
            End::Text => match self.cursor.peek() {
                None => Ok(true),
                Some(')') => Err(Unclear::Parenthesis),
                Some(_) => Ok(false),
            },
            End::Parenthesis => match self.cursor.peek() {
                None => Err(Unclear::Parenthesis),
                Some(_) => Ok(self.cursor.eat(")")),
            },
            End::Brace => {
                let mut look = self.cursor.clone();
                if look.peek().is_none() {
                    return Err(Unclear::Braces);
                }
                let closes = word(&mut look)?.is_some_and(|word| word.is_bare("}"));
                if closes {
                    self.cursor = look;
                }
                Ok(closes)
            }
        }
    }

    fn pipeline(&mut self, depth: usize) -> Result<Pipeline, Unclear> {
        let mut commands = vec![self.command(depth, true)?];
        loop {
            self.blanks();
            let rest = self.cursor.rest();
            if rest.starts_with("||") || !rest.starts_with('|') {
                return Ok(Pipeline(commands));
            }
            // `|&` also passes errors on.
            let _ = self.cursor.eat("|&") || self.cursor.eat("|");
            self.lines()?;
            commands.push(self.command(depth, false)?);
        }
    }

    fn command(&mut self, depth: usize, first: bool) -> Result<Command, Unclear> {
        self.blanks();
        if self.cursor.rest().starts_with("((") {
            return Err(Unclear::Keyword("((".into()));
        }
        if self.cursor.eat("(") {
            let list = self.list(depth + 1, End::Parenthesis)?;
            return self.group(list, true);
        }
        let mut look = self.cursor.clone();
        if word(&mut look)?.is_some_and(|word| word.is_bare("{")) {
            self.cursor = look;
            let list = self.list(depth + 1, End::Brace)?;
            return self.group(list, false);
        }
        self.simple(depth, first)
    }

    /// Only redirections may follow a group.
    fn group(&mut self, list: List, subshell: bool) -> Result<Command, Unclear> {
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.extend(redirect),
                None => return Ok(Command { body: Body::Group { list, subshell }, redirects }),
            }
        }
    }

    fn simple(&mut self, depth: usize, first: bool) -> Result<Command, Unclear> {
        let (mut variables, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.extend(redirect);
                continue;
            }
            let before = self.cursor.rest();
            let Some(next) = self.word()? else { break };
            if !words.is_empty() {
                words.push(argument(next)?);
                continue;
            }
            match assignment(before, &next) {
                Some((name, value)) => variables.push((name, value)),
                None if variables.is_empty() && redirects.is_empty() && first && next.is_bare("!") => {
                    return self.command(depth, false);
                }
                None if variables.is_empty() && redirects.is_empty() && first && next.is_bare("time") => {
                    return self.command(depth, false);
                }
                None if !next.quoted && KEYWORDS.contains(&next.text.as_str()) => {
                    return Err(Unclear::Keyword(next.text));
                }
                None => words.push(next),
            }
        }
        if self.cursor.peek() == Some('(') {
            return Err(Unclear::Parenthesis);
        }
        if words.is_empty() && variables.is_empty() && redirects.is_empty() {
            return Err(Unclear::Operator);
        }
        Ok(Command { body: Body::Simple { variables, words }, redirects })
    }

    /// `None`: there is no redirection here. `Some(None)`: one that touches no file.
    fn redirect(&mut self) -> Result<Option<Option<Redirect>>, Unclear> {
        let mut look = self.cursor.clone();
        if look.eat("&>>") || look.eat("&>") {
            self.cursor = look;
            return self.file().map(|file| Some(Some(Redirect::Write(file))));
        }
        // One digit: shells do not agree on longer ones.
        if look.peek().is_some_and(|c| c.is_ascii_digit()) {
            look.next();
        }
        if !look.peek().is_some_and(|c| "<>".contains(c)) {
            return Ok(None);
        }
        let eaten = |look: &mut Cursor<'_>, texts: &[&str]| texts.iter().any(|text| look.eat(text));
        if look.rest().starts_with(">(") || look.rest().starts_with("<(") {
            return Err(Unclear::Process);
        }
        if eaten(&mut look, &["<<<"]) {
            self.cursor = look;
            return self.target().map(|_| Some(None));
        }
        if look.eat("<<") {
            self.cursor = look;
            return self.document().map(|()| Some(None));
        }
        if eaten(&mut look, &[">&", "<&"]) {
            self.cursor = look;
            let target = self.target()?;
            let copies = target.is_literal()
                && (target.text == "-" || target.text.parse::<u8>().is_ok_and(|n| n < 10));
            return if copies { Ok(Some(None)) } else { Err(Unclear::Redirection) };
        }
        if look.rest().starts_with("<>") || is_range(look.rest()) {
            return Err(Unclear::Redirection);
        }
        let writes = look.peek() == Some('>');
        let _ = eaten(&mut look, &[">>", ">|", ">", "<"]);
        self.cursor = look;
        let file = self.file()?;
        Ok(Some(Some(if writes { Redirect::Write(file) } else { Redirect::Read(file) })))
    }

    /// After the operator. `>!` and `>>|` are another shell's.
    fn file(&mut self) -> Result<Word, Unclear> {
        if self.cursor.peek().is_some_and(|c| "!|&".contains(c)) {
            return Err(Unclear::Redirection);
        }
        self.target()
    }

    fn target(&mut self) -> Result<Word, Unclear> {
        self.blanks();
        let target = match self.cursor.peek() {
            Some('(') => return Err(Unclear::Process),
            _ => self.word()?.ok_or(Unclear::Redirection)?,
        };
        if target.pattern || target.text.is_empty() { Err(Unclear::Redirection) } else { Ok(target) }
    }

    fn word(&mut self) -> Result<Option<Word>, Unclear> {
        let before = self.cursor.rest();
        let Some(word) = word(&mut self.cursor)? else { return Ok(None) };
        let rest = self.cursor.rest();
        // The text of a here-document begins after the line, and this would be in the middle of it.
        if before[..before.len() - rest.len()].contains('\n') && !self.waiting.is_empty() {
            return Err(Unclear::HereDocument);
        }
        // `12>file`: a descriptor for some shells, a word for others.
        if word.text.chars().all(|c| c.is_ascii_digit()) && !word.quoted && rest.starts_with(['<', '>']) {
            return Err(Unclear::Redirection);
        }
        Ok(Some(word))
    }

    fn document(&mut self) -> Result<(), Unclear> {
        let tabs = self.cursor.eat("-");
        let delimiter = self.target()?;
        let plain = delimiter.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plain || !delimiter.is_literal() {
            return Err(Unclear::HereDocument);
        }
        self.waiting.push(Document { delimiter: delimiter.text, literal: delimiter.quoted, tabs });
        Ok(())
    }

    /// Skips blanks, comments and empty lines, and reads the here-documents that begin after a line.
    fn lines(&mut self) -> Result<(), Unclear> {
        loop {
            self.blanks();
            if !self.cursor.eat("\n") {
                return Ok(());
            }
            for document in std::mem::take(&mut self.waiting) {
                self.skip(&document)?;
            }
        }
    }

    fn skip(&mut self, document: &Document) -> Result<(), Unclear> {
        loop {
            let line = self.cursor.line().ok_or(Unclear::HereDocument)?;
            let text = if document.tabs { line.trim_start_matches('\t') } else { line };
            if text == document.delimiter {
                return Ok(());
            }
            if !document.literal && line.contains(['$', '`', '\\']) {
                return Err(Unclear::HereDocument);
            }
        }
    }

    /// Skips blanks, continued lines, and a comment up to the end of its line.
    fn blanks(&mut self) {
        let mut skipped = self.cursor.eat(" ") || self.cursor.eat("\t") || self.cursor.eat("\\\n");
        while skipped {
            skipped = self.cursor.eat(" ") || self.cursor.eat("\t") || self.cursor.eat("\\\n");
        }
        // Called between words only, so it does not stand inside of one.
        if self.cursor.peek() == Some('#') {
            while self.cursor.peek().is_some_and(|c| c != '\n') {
                self.cursor.next();
            }
        }
    }
}

/// A brace alone may close a group in some shells, wherever it stands.
fn argument(word: Word) -> Result<Word, Unclear> {
    if word.is_bare("{") || word.is_bare("}") { Err(Unclear::Braces) } else { Ok(word) }
}

/// `<1-9>`: numbers in a file name, for zsh.
fn is_range(rest: &str) -> bool {
    let inner = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(inner, _)| inner);
    inner.is_some_and(|inner| inner.contains('-') && inner.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

/// `NAME=value`, if the name is not quoted. `before` begins with the word as it is written.
fn assignment(before: &str, word: &Word) -> Option<(String, Word)> {
    let (name, _) = before.split_once('=')?;
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let value = word.text.strip_prefix(name)?.strip_prefix('=')?;
    Some((name.into(), Word { text: value.into(), ..word.clone() }))
}
