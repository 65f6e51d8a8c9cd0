//! JSON: tokens from `jsonc-parser`, the grammar from RFC 8259 and nothing beyond it.
//!
//! The crate's own tree is not used: ours has spans on keys, a depth limit of its own and no second copy.

use std::borrow::Cow;

use jsonc_parser::errors::ParseError;
use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

use super::MAX_DEPTH;
use super::node::{Data, Entry, Key, Node, Trail, number, refuse_duplicates};
use crate::diagnostic::{Diagnostic, Diagnostics, printable};
use crate::template::Span;

pub fn parse<'a>(text: &'a str, base: usize, problems: &mut Diagnostics) -> Option<Node<'a>> {
    let mut parser = Parser {
        scanner: Scanner::new(text, &STRICT),
        text,
        base,
        end: 0,
        trail: Trail::default(),
        problems,
    };
    match parser.document() {
        Ok(node) => Some(node),
        Err(error) => {
            problems.push(*error);
            None
        }
    }
}

const STRICT: ScannerOptions = ScannerOptions {
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

struct Parser<'a, 'p> {
    scanner: Scanner<'a>,
    text: &'a str,
    /// Bytes before `text` in the file (a byte order mark).
    base: usize,
    /// End of the last token, to look at what lies between tokens.
    end: usize,
    trail: Trail<'a>,
    problems: &'p mut Diagnostics,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

impl<'a> Parser<'a, '_> {
    fn document(&mut self) -> Parsed<Node<'a>> {
        let Some(first) = self.next()? else {
            return Err(self.error("the template is empty"));
        };
        let node = self.value(first, 0)?;
        match self.next()? {
            None => Ok(node),
            Some(_) => Err(self.error("unexpected text after the end of the JSON value")),
        }
    }

    /// The next token. The scanner takes any Unicode space between tokens; JSON has four.
    fn next(&mut self) -> Parsed<Option<Token<'a>>> {
        let token = self.scanner.scan().map_err(|error| self.refused(&error))?;
        let between = &self.text.as_bytes()[self.end..self.scanner.token_start()];
        if !between.iter().all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
            return Err(self.error("only spaces, tabs and line breaks may stand between JSON tokens"));
        }
        self.end = self.scanner.token_end();
        match token {
            Some(Token::CommentLine(_) | Token::CommentBlock(_)) => {
                Err(self.error("JSON has no comments").map_hint("use YAML for a template with comments"))
            }
            token => Ok(token),
        }
    }

    fn expect(&mut self, what: &str) -> Parsed<Token<'a>> {
        match self.next()? {
            Some(token) => Ok(token),
            None => Err(self.error(&format!("the text ends where {what} should be"))),
        }
    }

    fn value(&mut self, token: Token<'a>, depth: usize) -> Parsed<Node<'a>> {
        let span = self.span();
        let data = match token {
            Token::OpenBrace => return self.object(span, depth),
            Token::OpenBracket => return self.array(span, depth),
            Token::String(text) => Data::Str(self.checked(text)?),
            Token::Boolean(value) => Data::Bool(value),
            Token::Null => Data::Null,
            Token::Number(text) => match number(text) {
                Ok(number) => Data::Number(number),
                Err(message) => return Err(self.error(message)),
            },
            other => {
                let message = format!("expected a value, found `{}`", printable(other.as_str()));
                return Err(self.error(&message));
            }
        };
        Ok(Node { span, data })
    }

    fn object(&mut self, open: Span, depth: usize) -> Parsed<Node<'a>> {
        self.check_depth(depth)?;
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let mut token = self.expect("`}`")?;
        while token != Token::CloseBrace {
            let Token::String(name) = token else {
                return Err(self.error("expected a key in double quotes"));
            };
            let key = Key { span: self.span(), name: self.checked(name)? };
            if self.expect("`:`")? != Token::Colon {
                return Err(self.error("expected `:` after the key"));
            }
            self.trail.push_key(key.name.clone());
            let first = self.expect("a value")?;
            let value = self.value(first, depth + 1)?;
            self.trail.pop();
            entries.push((key, value));
            token = self.separator(&Token::CloseBrace, "`,` or `}`")?;
        }
        refuse_duplicates(&entries, &self.trail, self.problems);
        Ok(Node { span: self.span_from(open), data: Data::Map(entries) })
    }

    fn array(&mut self, open: Span, depth: usize) -> Parsed<Node<'a>> {
        self.check_depth(depth)?;
        let mut items = Vec::new();
        let mut token = self.expect("`]`")?;
        while token != Token::CloseBracket {
            self.trail.push_index(items.len());
            let item = self.value(token, depth + 1)?;
            self.trail.pop();
            items.push(item);
            token = self.separator(&Token::CloseBracket, "`,` or `]`")?;
        }
        Ok(Node { span: self.span_from(open), data: Data::Seq(items) })
    }

    /// After an item: the closing token, or the first token of the next item.
    fn separator(&mut self, close: &Token<'a>, what: &str) -> Parsed<Token<'a>> {
        let token = self.expect(what)?;
        if token == *close {
            return Ok(token);
        }
        if token != Token::Comma {
            return Err(self.error(&format!("expected {what}")));
        }
        let comma = self.span();
        let next = self.expect("a value")?;
        if next == *close {
            return Err(Box::new(Diagnostic::error(&self.trail, comma, "JSON has no trailing commas")));
        }
        Ok(next)
    }

    /// The scanner lets raw control characters through; in JSON they must be escaped.
    fn checked(&self, text: Cow<'a, str>) -> Parsed<Cow<'a, str>> {
        let raw = &self.text.as_bytes()[self.scanner.token_start()..self.scanner.token_end()];
        if raw.iter().any(|b| *b < 0x20) {
            return Err(self.error("a line break or control character in text must be escaped, as in `\\n`"));
        }
        Ok(text)
    }

    fn check_depth(&self, depth: usize) -> Parsed<()> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        Err(self.error(&format!("nested more than {MAX_DEPTH} levels deep")))
    }

    fn span(&self) -> Span {
        self.span_of(self.scanner.token_start(), self.scanner.token_end())
    }

    fn span_from(&self, open: Span) -> Span {
        Span { start: open.start, end: self.span().end }
    }

    /// 64 MiB fit in 32 bits.
    fn span_of(&self, start: usize, end: usize) -> Span {
        Span { start: (self.base + start) as u32, end: (self.base + end) as u32 }
    }

    fn error(&self, message: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(&self.trail, self.span(), message))
    }

    fn refused(&self, error: &ParseError) -> Box<Diagnostic> {
        let range = error.range();
        let mut message = error.kind().to_string();
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        Box::new(Diagnostic::error(&self.trail, self.span_of(range.start, range.end), message))
    }
}

trait MapHint {
    fn map_hint(self, hint: &str) -> Self;
}

impl MapHint for Box<Diagnostic> {
    fn map_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }
}
