//! Jinja, by minijinja: strict, without a loader, with fuel. Used for prose only.
//!
//! An undefined name is an error that says which. Lists and objects are printed as JSON. A parameter that is
//! nothing but `{{ expression }}` keeps its type. A shell step's `run` and a script's `code` are never
//! rendered: data that becomes program text is an injection.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

use super::mention::blocks;
use super::{CONTEXT, ExprError, brief};
use crate::diagnostic::{did_you_mean, printable};
use crate::template::Kind;

/// Instructions that one rendering may take: far beyond any prompt, and over in a fraction of a second.
const FUEL: u64 = 1_000_000;
/// Macros may call each other; the stack must hold it.
const RECURSION: usize = 100;

/// Tokens of one `{{ }}` or `{% %}`, and branches of one text: minijinja recurses on chains of them, and no
/// template may overflow the stack.
const MAX_TOKENS: usize = 300;
const MAX_BRANCHES: usize = 100;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    // Rendering a text must not eat its last line break.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_debug(true);
    environment.add_filter("brief", |value: minijinja::Value| {
        serde_json::to_value(&value).map_or_else(|_| value.to_string(), |value| brief::steps(&value))
    });
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::None | ValueKind::Bool => {
            let json = serde_json::to_string(value).map_err(|error| {
                minijinja::Error::new(ErrorKind::BadSerialization, "the value is not JSON").with_source(error)
            })?;
            out.write_str(&json).map_err(minijinja::Error::from)
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment
}

/// There is no loader: a text that wants another file could never be rendered.
fn refuse_files(text: &str) -> Result<(), ExprError> {
    const LOADING: [&str; 4] = ["include", "extends", "import", "from"];
    for block in blocks(text).filter(|block| text[..block.start].ends_with("{%")) {
        let inside = text[block.clone()].trim_start_matches(['-', '+']).trim_start();
        let word = inside.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if LOADING.contains(&word) {
            return Err(
                ExprError::new(format!("`{word}` is not available: a text cannot load files")).at(block)
            );
        }
    }
    Ok(())
}

/// A text that has been checked to be a template.
#[derive(Clone, Debug)]
pub struct Jinja {
    text: String,
    names: Vec<String>,
}

impl Jinja {
    pub fn compile(text: &str) -> Result<Jinja, ExprError> {
        check_size(text)?;
        refuse_files(text)?;
        let template = ENVIRONMENT.template_from_str(text).map_err(|error| explain(text, &error))?;
        let mut names: Vec<String> = template.undeclared_variables(false).into_iter().collect();
        names.sort_unstable();
        if let Some(name) = names.iter().find(|name| !is_known(name)) {
            return Err(undefined(text, name));
        }
        match unknown_filter(text) {
            Some(error) => Err(error),
            None => Ok(Jinja { text: text.to_owned(), names }),
        }
    }

    /// Does it use a name of the context, such as `item`?
    pub fn uses(&self, name: &str) -> bool {
        self.names.iter().any(|used| used == name)
    }

    pub fn render(&self, context: &Value) -> Result<String, ExprError> {
        render(&self.text, context)
    }
}

/// The context and minijinja's own functions.
fn is_known(name: &str) -> bool {
    // A prompt sees the other parameters of its step.
    CONTEXT.contains(&name) || name == "params" || ENVIRONMENT.globals().any(|(global, _)| global == name)
}

fn undefined(text: &str, name: &str) -> ExprError {
    let error = ExprError::new(format!("`{}` is not defined", printable(name)));
    let hint = did_you_mean(name, CONTEXT);
    let hint = hint.unwrap_or_else(|| format!("there are: {}", CONTEXT.join(", ")));
    let range = words(text).find(|range| &text[range.clone()] == name);
    ExprError { range, hint: Some(hint), ..error }
}

/// minijinja looks for filters when it renders; a typing error should be found before.
fn unknown_filter(text: &str) -> Option<ExprError> {
    let after_bar = |range: &std::ops::Range<usize>| {
        let before = text[..range.start].trim_end();
        before.ends_with('|') && !before.ends_with("||")
    };
    let unknown = words(text).filter(after_bar).find(|range| {
        let test = ENVIRONMENT.compile_expression("name is filter");
        let context = minijinja::context! { name => &text[range.clone()] };
        test.and_then(|test| test.eval(context)).is_ok_and(|known| !known.is_true())
    })?;
    Some(ExprError::new(format!("there is no filter `{}`", printable(&text[unknown.clone()]))).at(unknown))
}

/// Names inside `{{ }}` and `{% %}`, outside of quotes.
fn words(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    blocks(text).flat_map(move |block| {
        let mut found = Vec::new();
        let (mut start, mut quote) = (None, None);
        for (at, c) in text[block.clone()].char_indices().chain([(block.len(), ' ')]) {
            let is_word = quote.is_none() && (c.is_alphanumeric() || c == '_');
            match (start, is_word) {
                (None, true) => start = Some(at),
                (Some(from), false) => {
                    found.push(block.start + from..block.start + at);
                    start = None;
                }
                _ => {}
            }
            quote = match quote {
                Some(open) if open == c => None,
                None if matches!(c, '"' | '\'') => Some(c),
                quote => quote,
            };
        }
        found
    })
}

/// Is there anything to render in `text`?
pub fn is_dynamic(text: &str) -> bool {
    text.match_indices('{').any(|(at, _)| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')))
}

pub fn render(text: &str, context: &Value) -> Result<String, ExprError> {
    if !is_dynamic(text) {
        return Ok(text.to_owned());
    }
    render_with(text, &minijinja::Value::from(Serde(context)))
}

fn render_with(text: &str, context: &minijinja::Value) -> Result<String, ExprError> {
    check_size(text)?;
    let template = ENVIRONMENT.template_from_str(text).map_err(|error| explain(text, &error))?;
    template.render(context.clone()).map_err(|error| explain(text, &error))
}

fn check_size(text: &str) -> Result<(), ExprError> {
    let (mut rest, mut branches) = (text, 0);
    while let Some(open) = rest.find(['{']) {
        let inside = &rest[open + 1..];
        let Some(close @ ('{' | '%')) = inside.chars().next() else {
            rest = inside;
            continue;
        };
        let close = if close == '{' { '}' } else { close };
        let (tokens, end) = count_tokens(&inside[1..], close);
        branches += usize::from(inside[1..].trim_start_matches(['-', '+', ' ']).starts_with("elif"));
        if tokens > MAX_TOKENS || branches > MAX_BRANCHES {
            let start = text.len() - rest.len() + open;
            let error = ExprError::new(
                "the Jinja expression is too long; compute it with jq, or pass it as an input",
            );
            return Err(error.at(start..start + 2));
        }
        rest = &inside[1 + end..];
    }
    Ok(())
}

/// Words and signs up to the end of a block, and where that is. Quoted text counts once.
fn count_tokens(block: &str, close: char) -> (usize, usize) {
    let (mut tokens, mut in_word, mut quote, mut escaped) = (0, false, None, false);
    let mut before = '\0';
    for (at, c) in block.char_indices() {
        if let Some(open) = quote {
            quote = (escaped || c != open).then_some(open);
            escaped = !escaped && c == '\\';
            continue;
        }
        if c == '}' && before == close {
            return (tokens, at + 1);
        }
        let word = c.is_alphanumeric() || c == '_';
        tokens += usize::from(!(c.is_whitespace() || word && in_word));
        in_word = word;
        quote = matches!(c, '"' | '\'').then_some(c);
        before = c;
    }
    (tokens, block.len())
}

/// What happens to the strings under one top-level parameter of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    Never,
    Text,
    /// Text, but a string that is one whole expression keeps the value's type.
    Typed,
}

fn treatment(kind: Kind, name: &str) -> Treatment {
    match (kind, name) {
        (Kind::Shell, "run") | (Kind::Script, "code") => Treatment::Never,
        (Kind::Shell | Kind::Agent, "argv" | "command" | "env" | "cwd") => Treatment::Text,
        (Kind::Agent | Kind::Verify | Kind::Synthesize, "prompt" | "system") => Treatment::Text,
        (Kind::Approval, "message") => Treatment::Text,
        _ => Treatment::Typed,
    }
}

/// Has any parameter something to render? The counterpart of `render_params`.
pub fn is_rendered_dynamic(kind: Kind, params: &Map<String, Value>) -> bool {
    rendered_texts(kind, params).into_iter().any(is_dynamic)
}

/// The texts that `render_params` renders.
pub(super) fn rendered_texts(kind: Kind, params: &Map<String, Value>) -> Vec<&str> {
    fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            Value::Object(map) => {
                map.iter().filter(|(name, _)| !is_command(name)).for_each(|(_, value)| collect(value, texts));
            }
            _ => {}
        }
    }
    let mut texts = Vec::new();
    let rendered = params.iter().filter(|(name, _)| treatment(kind, name) != Treatment::Never);
    rendered.for_each(|(_, value)| collect(value, &mut texts));
    texts
}

/// Nested `run` texts (a fake agent's turns) are commands like a shell step's.
fn is_command(name: &str) -> bool {
    name == "run"
}

/// Renders every string of `params` that is not a program. Keys stay as they are.
pub fn render_params(
    kind: Kind,
    params: &Map<String, Value>,
    context: &Value,
) -> Result<Map<String, Value>, ExprError> {
    if !is_rendered_dynamic(kind, params) {
        return Ok(params.clone());
    }
    let bare = minijinja::Value::from(Serde(context));
    let mut rendered = Map::with_capacity(params.len());
    let render = |name: &str, value: &Value, context: &minijinja::Value| match treatment(kind, name) {
        Treatment::Never => Ok(value.clone()),
        how => render_value(value, how == Treatment::Typed, context)
            .map_err(|error| ExprError { message: format!("`{name}`: {}", error.message), ..error }),
    };
    for (name, value) in params {
        let value = if name == "prompt" { value.clone() } else { render(name, value, &bare)? };
        rendered.insert(name.clone(), value);
    }
    // A prompt sees the other parameters: a named operation's are its author's own.
    if let Some(prompt) = params.get("prompt") {
        let mut others = rendered.clone();
        others.shift_remove("prompt");
        let known =
            minijinja::context! { params => minijinja::Value::from(Serde(&Value::Object(others))), ..bare };
        rendered.insert("prompt".into(), render("prompt", prompt, &known)?);
    }
    Ok(rendered)
}

fn render_value(value: &Value, typed: bool, context: &minijinja::Value) -> Result<Value, ExprError> {
    Ok(match value {
        Value::String(text) if !is_dynamic(text) => value.clone(),
        Value::String(text) => match whole_expression(text).filter(|_| typed) {
            Some(expression) => evaluate(expression, text, context)?,
            None => Value::String(render_with(text, context)?),
        },
        Value::Array(items) => Value::Array(
            items.iter().map(|item| render_value(item, typed, context)).collect::<Result<_, _>>()?,
        ),
        Value::Object(map) => {
            let mut rendered = Map::with_capacity(map.len());
            for (name, value) in map {
                let value =
                    if is_command(name) { value.clone() } else { render_value(value, typed, context)? };
                rendered.insert(name.clone(), value);
            }
            Value::Object(rendered)
        }
        other => other.clone(),
    })
}

/// The inside of `{{ expression }}` if that is the whole text.
fn whole_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    check_size(text).ok()?;
    // `{{ a }} and {{ b }}` has an inside that is no expression.
    ENVIRONMENT.compile_expression(inner).ok().map(|_| inner)
}

fn evaluate(expression: &str, text: &str, context: &minijinja::Value) -> Result<Value, ExprError> {
    let shift = expression.as_ptr() as usize - text.as_ptr() as usize;
    let shifted = |mut error: ExprError| {
        error.range = error.range.map(|range| range.start + shift..range.end + shift);
        error
    };
    let compiled =
        ENVIRONMENT.compile_expression(expression).map_err(|e| shifted(explain(expression, &e)))?;
    let value = compiled.eval(context.clone()).map_err(|e| shifted(explain(expression, &e)))?;
    if value.is_undefined() {
        return Err(ExprError::new(format!("`{}` is not defined", printable(expression.trim()))));
    }
    serde_json::to_value(&value).map_err(|error| ExprError::new(error.to_string()))
}

fn explain(text: &str, error: &minijinja::Error) -> ExprError {
    let range = error.range().filter(|range| text.get(range.clone()).is_some());
    // An undefined attribute is told from its dot on; people look for the whole name.
    let range = range.map(|range| {
        let before = text[..range.start].rfind([' ', '\n', '{', '(', ',', '|']).map_or(0, |at| at + 1);
        if text[range.clone()].starts_with(['.', '[']) { before..range.end } else { range }
    });
    let meant = range.clone().map(|range| printable(&text[range])).filter(|meant| !meant.is_empty());
    let detail = error.detail().map(printable);
    let message = match (error.kind(), meant, detail) {
        (ErrorKind::UndefinedError, Some(meant), _) => format!("`{meant}` is not defined"),
        (ErrorKind::OutOfFuel, _, _) => "the template takes too long to render".to_owned(),
        (_, _, Some(detail)) => detail,
        (kind, _, None) => kind.to_string(),
    };
    ExprError { message, range, hint: None }
}
