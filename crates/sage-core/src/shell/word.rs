//! Words: quotes, escapes and patterns. A word is read as all shells read it, or it is unclear.

use super::unclear::Unclear;

/// One word as its program gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Without quotes and escapes. Of a pattern, the pattern.
    pub text: String,
    /// It has `*`, `?` or `[` outside of quotes: it may become several names of existing files.
    pub pattern: bool,
    /// The pattern is at its beginning: what it becomes may begin with `-`.
    pub leading_pattern: bool,
    /// It begins with `~`, the home directory.
    pub home: bool,
    /// A part of it is `$?`, a number.
    pub status: bool,
    /// A part of it is quoted or escaped.
    pub quoted: bool,
}

impl Word {
    /// A word without anything special in it.
    pub fn plain(text: &str) -> Word {
        Word { text: text.into(), ..Word::default() }
    }

    /// The text is all that the program gets.
    pub fn is_literal(&self) -> bool {
        !self.pattern && !self.home && !self.status
    }

    /// An operator or keyword of the shell if it is equal to `text`.
    pub(super) fn is_bare(&self, text: &str) -> bool {
        !self.quoted && self.text == text
    }

    fn push(&mut self, c: char) {
        self.text.push(c);
    }

    fn push_quoted(&mut self, c: char) {
        self.quoted = true;
        self.text.push(c);
    }
}

/// The text as one word of a shell's command line.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Reads characters one by one.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { rest: text }
    }

    pub fn rest(&self) -> &'a str {
        self.rest
    }

    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    pub fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// The next line without its newline.
    pub fn line(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line)
    }
}

/// Ends a word.
fn is_meta(c: char) -> bool {
    " \t\n;|&<>()".contains(c)
}

/// Reads one word; `None` if there is none here.
pub(super) fn word(cursor: &mut Cursor<'_>) -> Result<Option<Word>, Unclear> {
    let mut word = Word::default();
    let mut any = false;
    while let Some(c) = cursor.peek().filter(|c| !is_meta(*c)) {
        let first = !std::mem::replace(&mut any, true);
        let before = cursor.rest();
        cursor.next();
        match c {
            '\'' => single(cursor, &mut word)?,
            '"' => double(cursor, &mut word)?,
            '\\' => match cursor.next() {
                // The line goes on.
                Some('\n') => {}
                Some(c) if !c.is_control() => word.push_quoted(c),
                _ => return Err(Unclear::Character("\\".into())),
            },
            '$' => dollar(cursor, &mut word, false)?,
            '`' => return Err(Unclear::Substitution),
            '{' | '}' => brace(c, before, cursor, &mut word, first)?,
            '*' | '?' | '[' => glob(c, cursor, &mut word, first),
            '~' if first => home(cursor, &mut word)?,
            '~' if word.text.ends_with(['=', ':']) => return Err(Unclear::Character("~".into())),
            '=' if first => equals(cursor, &mut word)?,
            // Some shells take it for "all but".
            '^' if first => {
                (word.pattern, word.leading_pattern) = (true, true);
                word.push(c);
            }
            c if c.is_control() || c.is_whitespace() => {
                return Err(Unclear::Character(c.escape_default().to_string()));
            }
            c => word.push(c),
        }
    }
    Ok(any.then_some(word))
}

fn single(cursor: &mut Cursor<'_>, word: &mut Word) -> Result<(), Unclear> {
    word.quoted = true;
    loop {
        match cursor.next() {
            Some('\'') => return Ok(()),
            Some(c) if is_text(c) => word.push(c),
            Some(c) => return Err(Unclear::Character(c.escape_default().to_string())),
            None => return Err(Unclear::Quote),
        }
    }
}

/// What may be in quotes.
fn is_text(c: char) -> bool {
    !c.is_control() || c == '\n' || c == '\t'
}

fn double(cursor: &mut Cursor<'_>, word: &mut Word) -> Result<(), Unclear> {
    word.quoted = true;
    loop {
        match cursor.next() {
            Some('"') => return Ok(()),
            Some('`') => return Err(Unclear::Substitution),
            Some('$') => dollar(cursor, word, true)?,
            Some('\\') => match cursor.next() {
                Some('\n') => {}
                Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c),
                Some(c) if is_text(c) => {
                    word.push('\\');
                    word.push(c);
                }
                _ => return Err(Unclear::Quote),
            },
            Some(c) if is_text(c) => word.push(c),
            Some(c) => return Err(Unclear::Character(c.escape_default().to_string())),
            None => return Err(Unclear::Quote),
        }
    }
}

/// After a `$`: the number of the last exit, a text given in place, a plain dollar sign, or something unknown.
fn dollar(cursor: &mut Cursor<'_>, word: &mut Word, in_quotes: bool) -> Result<(), Unclear> {
    if cursor.eat("?") {
        word.status = true;
        word.text.push_str("$?");
        return Ok(());
    }
    if cursor.peek() == Some('(') {
        let text = given_in_place(cursor).filter(|_| in_quotes).ok_or(Unclear::Substitution)?;
        word.text.push_str(&text);
        return Ok(());
    }
    let ends = match cursor.peek() {
        None => !in_quotes,
        Some(c) if in_quotes => " \n\t\"/.,)|".contains(c),
        Some(c) => " \n\t;|&<>)".contains(c),
    };
    if ends {
        word.push('$');
        return Ok(());
    }
    let name: String =
        cursor.rest().chars().take_while(|c| c.is_alphanumeric() || "_{".contains(*c)).collect();
    Err(Unclear::Variable(format!("${name}")))
}

/// `$(cat <<'EOF' ... EOF )`: the way in which agents pass a text of several lines. With a quoted delimiter nothing
/// in it is expanded, so it is what it says.
fn given_in_place(cursor: &mut Cursor<'_>) -> Option<String> {
    let mut look = cursor.clone();
    let blanks = |look: &mut Cursor<'_>| while look.eat(" ") || look.eat("\t") {};
    look.eat("(").then_some(())?;
    blanks(&mut look);
    look.eat("cat").then_some(())?;
    blanks(&mut look);
    look.eat("<<").then_some(())?;
    blanks(&mut look);
    let quote = look.next().filter(|c| ['\'', '"'].contains(c))?;
    let (delimiter, rest) = look.rest().split_once(quote)?;
    let plain = !delimiter.is_empty() && delimiter.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    look = Cursor::new(rest);
    (plain && look.line()?.trim_matches([' ', '\t']).is_empty()).then_some(())?;
    let mut lines = Vec::new();
    loop {
        let line = look.line()?;
        if line == delimiter {
            break;
        }
        line.chars().all(is_text).then_some(())?;
        lines.push(line);
    }
    while look.eat(" ") || look.eat("\t") || look.eat("\n") {}
    look.eat(")").then_some(())?;
    *cursor = look;
    // A substitution loses the newlines at its end.
    Some(lines.join("\n").trim_end_matches('\n').to_string())
}

/// Braces mean themselves in `{}` and `@{upstream}`; elsewhere they may stand for several words.
fn brace<'a>(
    c: char,
    before: &'a str,
    cursor: &mut Cursor<'a>,
    word: &mut Word,
    first: bool,
) -> Result<(), Unclear> {
    let ends = |rest: &str| rest.chars().next().is_none_or(is_meta);
    if first && before.starts_with("{}") && ends(&before[2..]) {
        cursor.next();
        word.text.push_str("{}");
        return Ok(());
    }
    // Alone it is a keyword; the parser decides whether it is in the right place.
    if first && ends(cursor.rest()) {
        word.push(c);
        return Ok(());
    }
    let named = before.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    match named.filter(|(name, _)| word.text.ends_with('@') && plain(name)) {
        Some((name, rest)) => {
            word.text.push_str(&format!("{{{name}}}"));
            *cursor = Cursor::new(rest);
            Ok(())
        }
        None => Err(Unclear::Braces),
    }
}

fn glob(c: char, cursor: &Cursor<'_>, word: &mut Word, first: bool) {
    // `[` alone is a program.
    let alone = c == '[' && first && cursor.peek().is_none_or(is_meta);
    if !alone {
        word.pattern = true;
        word.leading_pattern |= word.text.is_empty();
    }
    word.push(c);
}

fn home(cursor: &Cursor<'_>, word: &mut Word) -> Result<(), Unclear> {
    match cursor.peek() {
        Some(c) if c != '/' && !is_meta(c) => Err(Unclear::Character("~".into())),
        _ => {
            word.home = true;
            word.push('~');
            Ok(())
        }
    }
}

/// zsh takes `=name` for the place of a program; `=` and `==` are comparisons.
fn equals(cursor: &mut Cursor<'_>, word: &mut Word) -> Result<(), Unclear> {
    word.push('=');
    if cursor.eat("=") {
        word.push('=');
    }
    match cursor.peek() {
        Some(c) if !is_meta(c) => Err(Unclear::Character("=".into())),
        _ => Ok(()),
    }
}
