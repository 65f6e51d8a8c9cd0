//! jq, by jaq: compiled once, run on plain JSON.
//!
//! The text is bounded before it is parsed, because jaq's parser and compiler recurse: a template must not
//! be able to overflow the stack. Definitions that call themselves are refused for the same reason at run
//! time. What remains possible is a loop without end or a huge value: see `Order::is_tame`.

use std::collections::BTreeSet;

use jaq_core::load::lex::{Lexer, StrPart, Tok, Token};
use jaq_core::load::parse::Term;
use jaq_core::load::{self, Arena, File, Loader, Parser, span};
use jaq_core::{Compiler, Ctx, Vars, compile};
use jaq_json::{Num, Val};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::prelude::{self, CONTEXT_VAR, Data, Walk};
use super::{CONTEXT, ExprError};
use crate::diagnostic::{did_you_mean, printable};

const MAX_BYTES: usize = 64 * 1024;
/// Bracket nesting of a program: the lexer recurses on it.
const MAX_NESTING: usize = 48;
/// How deep the parser and the compiler may recurse, in levels of their cheapest kind. Measured: this much
/// fits in a thread of 2 MiB even without optimisation.
const MAX_LEVELS: usize = 200;
/// Depth of a value: what `serde_json` reads back.
const MAX_DEPTH: usize = 120;

/// A compiled program. Cheap to share between threads.
pub struct Jq {
    filter: jaq_core::Filter<Data>,
}

impl std::fmt::Debug for Jq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Jq")
    }
}

impl Jq {
    pub fn compile(text: &str) -> Result<Jq, ExprError> {
        let calls = check_terms(text)?;
        let loader = Loader::new(prelude::reached(&calls));
        let arena = Arena::default();
        let modules = loader.load(&arena, File { code: text, path: () }).map_err(|errors| {
            let first = errors.into_iter().next();
            first.map_or_else(|| ExprError::new("not a jq expression"), |(_, error)| load_error(text, error))
        })?;
        let compiler = Compiler::default().with_global_vars([CONTEXT_VAR]).with_funs(prelude::natives());
        let filter = compiler.compile(modules).map_err(|errors| {
            let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
            first.map_or_else(|| ExprError::new("not a jq expression"), |error| undefined(text, &error))
        })?;
        Ok(Jq { filter })
    }

    /// At most `limit` outputs. `input` is `.`; bare names such as `steps` mean `context`.
    pub fn outputs(&self, input: &Value, context: &Value, limit: usize) -> Result<Vec<Value>, ExprError> {
        let vars = Vars::new([to_val(context)?]);
        let cx = Ctx::<Data>::new(&self.filter.lut, vars);
        let mut values = Vec::new();
        for output in self.filter.id.run((cx, to_val(input)?)).take(limit) {
            match output {
                Ok(value) => values.push(from_val(&value, 0)?),
                Err(exception) => {
                    let message = match exception.get_err() {
                        Ok(error) => shorten(&printable(&told(error.into_val()))),
                        Err(_) => "stopped by `break` or `halt`".to_owned(),
                    };
                    return Err(ExprError::new(message));
                }
            }
        }
        Ok(values)
    }

    /// Exactly one output, as `when`, `foreach` and `while` need it.
    pub fn one(&self, input: &Value, context: &Value) -> Result<Value, ExprError> {
        let mut values = self.outputs(input, context, 2)?;
        match (values.pop(), values.is_empty()) {
            (Some(value), true) => Ok(value),
            (None, _) => Err(ExprError::new("the expression has no value")),
            (Some(_), false) => {
                Err(ExprError::new("the expression has several values, expected one; wrap it in [ ]"))
            }
        }
    }

    /// The first output, null if there is none, as a filter needs it.
    pub fn one_or_null(&self, input: &Value, context: &Value) -> Result<Value, ExprError> {
        match self.outputs(input, context, 2)?.as_slice() {
            [] => Ok(Value::Null),
            [value] => Ok(value.clone()),
            _ => Err(ExprError::new("the filter has several values, expected one; wrap it in [ ]")),
        }
    }
}

/// jq's truth: everything but `null` and `false`.
pub fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn check_size(text: &str) -> Result<(), ExprError> {
    if text.len() > MAX_BYTES {
        return Err(ExprError::new(format!("the expression is longer than {} KiB", MAX_BYTES >> 10)));
    }
    let (mut depth, mut deepest) = (0usize, 0usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MAX_NESTING {
        return Err(ExprError::new(format!("the expression is nested more than {MAX_NESTING} levels deep")));
    }
    Ok(())
}

/// The program's syntax, if it is small enough to be parsed without risk.
pub(super) fn parsed(text: &str) -> Result<Term<&str>, ExprError> {
    check_size(text)?;
    let tokens = Lexer::new(text).lex().map_err(|e| load_error(text, load::Error::Lex(e)))?;
    if let Some(Token(word, _)) = tokens.first()
        && let Some(reason) =
            prelude::why_forbidden(word).filter(|_| matches!(*word, "import" | "include" | "module"))
    {
        return Err(forbidden(text, word, reason));
    }
    if levels(&tokens, false) > MAX_LEVELS {
        let message = "the expression is too long: too many operators in one chain";
        return Err(ExprError::new(message));
    }
    Parser::new(&tokens).parse(|p| p.term()).map_err(|errors| {
        let errors = errors.into_iter().map(|(expected, found)| (expected, Token::opt_as_str(found, text)));
        load_error(text, load::Error::Parse(errors.collect()))
    })
}

/// Parses for our own checks; what is called decides how much of the library is compiled in.
fn check_terms(text: &str) -> Result<BTreeSet<(&str, usize)>, ExprError> {
    let term = parsed(text)?;
    let mut walk = Walk::default();
    walk.term(&term);
    if let Some(name) = walk.recursive.first() {
        let error = ExprError::new(format!("`{name}` calls itself, which a template's expression cannot"));
        return Err(ExprError {
            hint: Some("use `recurse`, `until`, `reduce` or `walk`".to_owned()),
            ..error
        }
        .at(span(text, name)));
    }
    Ok(walk.calls)
}

/// Levels of recursion that these tokens can cost: operators chain, keywords and brackets nest.
fn levels(tokens: &[Token<&str>], in_object: bool) -> usize {
    const BRACKET: usize = 4;
    const KEYWORD: usize = 2;
    let (mut chain, mut deepest) = (0, 0);
    for Token(text, token) in tokens {
        match token {
            Tok::Block(inner) => deepest = deepest.max(BRACKET + levels(inner, text.starts_with('{'))),
            Tok::Str(parts) => {
                for part in parts {
                    if let StrPart::Term(token) = part {
                        deepest = deepest.max(BRACKET + levels(std::slice::from_ref(token), false));
                    }
                }
            }
            Tok::Word => {
                chain += match *text {
                    "if" | "elif" | "try" | "def" | "label" | "reduce" | "foreach" => KEYWORD,
                    "and" | "or" | "as" => 1,
                    _ => 0,
                }
            }
            Tok::Sym => {
                chain += match *text {
                    "-" => KEYWORD,
                    ";" | ":" | "?" | ")" | "]" | "}" => 0,
                    "," if in_object => 0,
                    path if path.starts_with('.') => 0,
                    _ => 1,
                }
            }
            _ => {}
        }
    }
    chain + deepest
}

fn load_error(text: &str, error: load::Error<&str>) -> ExprError {
    let (expected, found) = match error {
        load::Error::Lex(errors) => match errors.into_iter().next() {
            Some((expected, found)) => (expected.as_str().to_owned(), found),
            None => return ExprError::new("not a jq expression"),
        },
        load::Error::Parse(errors) => match errors.into_iter().next() {
            Some((expected, found)) => (expected.as_str().to_owned(), found),
            None => return ExprError::new("not a jq expression"),
        },
        load::Error::Io(_) => return ExprError::new("an expression cannot load files"),
    };
    let range = span(text, found);
    // A lexer's error has the whole rest of the text; the first character says enough.
    let shown: String = found.chars().take(12).collect();
    let end = range.start + shown.len();
    let message = match shown.trim() {
        "" => format!("expected {expected}, but the expression ends"),
        shown if expected == "nothing" => format!("unexpected `{}`", printable(shown)),
        shown => format!("expected {expected}, found `{}`", printable(shown)),
    };
    ExprError { hint: advice(text, found), ..ExprError::new(message).at(range.start..end) }
}

/// Habits of other languages.
fn advice(text: &str, found: &str) -> Option<String> {
    let inner = text.trim().strip_prefix("{{").and_then(|inner| inner.strip_suffix("}}"));
    match inner {
        Some(inner) => Some(format!("this is jq, without `{{{{ }}}}`: `{}`", printable(inner.trim()))),
        None if found.starts_with('\'') => {
            Some(format!("text in jq has double quotes: `{}`", printable(&text.replace('\'', "\""))))
        }
        None => None,
    }
}

fn undefined(text: &str, (name, what): &compile::Error<&str>) -> ExprError {
    if let Some(reason) = prelude::why_forbidden(name) {
        return forbidden(text, name, reason);
    }
    let range = within(text, name);
    let error = match what {
        compile::Undefined::Filter(arity) => {
            let dotted = (*arity == 0).then(|| format!("did you mean `.{name}`?"));
            let hint = did_you_mean(name, prelude::names().chain(CONTEXT)).or(dotted);
            let called = if *arity == 0 { (*name).to_owned() } else { format!("{name}/{arity}") };
            ExprError { hint, ..ExprError::new(format!("`{}` is not defined", printable(&called))) }
        }
        other => ExprError::new(format!("the {} `{}` is not defined", other.as_str(), printable(name))),
    };
    ExprError { range, ..error }
}

fn forbidden(text: &str, name: &str, reason: &str) -> ExprError {
    let error = ExprError::new(format!("`{name}` is not available: {reason}"));
    ExprError { range: within(text, name), ..error }
}

/// The range of `part` if it is a slice of `text` (names of the library are not).
fn within(text: &str, part: &str) -> Option<std::ops::Range<usize>> {
    let (outer, inner) = (text.as_bytes().as_ptr_range(), part.as_bytes().as_ptr_range());
    (outer.start <= inner.start && inner.end <= outer.end).then(|| span(text, part))
}

/// What `error` was given: text as it is, anything else as JSON.
fn told(value: Val) -> String {
    match &value {
        Val::TStr(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.to_string(),
    }
}

/// Values can be large; their message need not be.
fn shorten(message: &str) -> String {
    const SHOWN: usize = 300;
    match message.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &message[..end]),
        None => message.to_owned(),
    }
}

fn to_val(value: &Value) -> Result<Val, ExprError> {
    Val::deserialize(value).map_err(|error| ExprError::new(error.to_string()))
}

fn from_val(value: &Val, depth: usize) -> Result<Value, ExprError> {
    if depth > MAX_DEPTH {
        return Err(ExprError::new(format!("the value is nested more than {MAX_DEPTH} levels deep")));
    }
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(value) => Value::Bool(*value),
        Val::Num(number) => number_of(number),
        Val::TStr(bytes) | Val::BStr(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
        Val::Arr(items) => {
            Value::Array(items.iter().map(|v| from_val(v, depth + 1)).collect::<Result<_, _>>()?)
        }
        Val::Obj(entries) => {
            let mut map = Map::with_capacity(entries.len());
            for (key, value) in entries.iter() {
                let Value::String(key) = from_val(key, depth + 1)? else {
                    return Err(ExprError::new("the keys of an object must be text"));
                };
                map.insert(key, from_val(value, depth + 1)?);
            }
            Value::Object(map)
        }
    })
}

/// `4.0` is printed as `4` by jq, and equal values must have equal hashes.
fn number_of(number: &Num) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = |value: f64| {
        if value.fract() == 0.0 && value.abs() < EXACT {
            Value::from(value as i64)
        } else {
            Number::from_f64(value).map_or(Value::Null, Value::Number)
        }
    };
    match number {
        Num::Int(value) => Value::from(*value as i64),
        Num::Float(value) => float(*value),
        other => {
            let text = other.to_string();
            text.parse::<u64>().map(Value::from).unwrap_or_else(|_| float(text.parse().unwrap_or(f64::NAN)))
        }
    }
}
