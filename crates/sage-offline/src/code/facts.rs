//! What is known about one source file: plain data, taken from its syntax tree in one pass.
//!
//! Places are spans of the file's text, which is kept, so that nothing is copied until a report needs it.

use serde::Serialize;

/// Where something is in the text of its file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

/// One source file.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileFacts {
    /// Relative to the project, with `/`.
    pub path: String,
    /// `Rust`, `TypeScript`, `JavaScript`, `Python`, `Go`, `Java`
    pub language: &'static str,
    pub lines: usize,
    /// Parts of it cannot be parsed; the rest is here.
    pub broken: bool,
    /// By its name or folder: nothing in it is part of the product.
    pub is_test: bool,
    pub functions: Vec<Function>,
    pub types: Vec<Type>,
    pub constants: Vec<Constant>,
    pub imports: Vec<Import>,
    pub errors: Errors,
    pub loops: usize,
    pub todos: Vec<Todo>,
    /// Comments in the order of the text; lines that follow each other are one.
    #[serde(skip)]
    pub(crate) notes: Vec<Note>,
    #[serde(skip)]
    pub(crate) calls: Vec<Call>,
    #[serde(skip)]
    pub(crate) assigns: Vec<Assign>,
    #[serde(skip)]
    pub(crate) marks: Vec<Mark>,
    /// JSX, outermost elements.
    #[serde(skip)]
    pub(crate) markup: Vec<Markup>,
    #[serde(skip)]
    pub(crate) numbers: Vec<Number>,
    /// Lines of functions with names and literals taken out, to find copies.
    #[serde(skip)]
    pub(crate) shape: Vec<ShapeLine>,
    #[serde(skip)]
    pub(crate) text: String,
}

/// A function, method or named test.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Function {
    pub name: String,
    /// The type or class it belongs to.
    pub owner: Option<String>,
    pub line: usize,
    pub lines: usize,
    /// As it is written, up to the body.
    pub signature: String,
    /// Without `self` and `cls`.
    pub params: usize,
    pub typed_params: usize,
    pub returns_typed: bool,
    /// Cyclomatic: one, and one for each decision. Arms of a `match` that only give a value are not decisions.
    pub complexity: usize,
    pub nesting: usize,
    /// The first line of its documentation.
    pub doc: Option<String>,
    pub is_test: bool,
    /// In test code: a test, or something that tests use.
    pub in_test: bool,
    pub is_public: bool,
    pub is_async: bool,
    /// Called by others than the project: entry points, overrides, what an attribute or decorator registers.
    pub is_expected: bool,
    /// It can fail and says so: a `Result`, an `error`, `throws`.
    pub is_fallible: bool,
    /// Names of what it calls, each once.
    pub calls: Vec<String>,
    /// Names that it hands on: callbacks and components.
    #[serde(skip)]
    pub(crate) refers: Vec<String>,
}

impl Function {
    pub fn end(&self) -> usize {
        self.line + self.lines.saturating_sub(1)
    }

    /// `Tree::read`, or the name alone.
    pub fn full_name(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{owner}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Type {
    pub name: String,
    /// `struct`, `class`, `interface`, ...
    pub kind: &'static str,
    pub line: usize,
    pub lines: usize,
    pub doc: Option<String>,
    pub is_public: bool,
    pub in_test: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Constant {
    pub name: String,
    pub line: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Import {
    /// As it is written: `crate::walk::Tree`, `./session`, `app.models`.
    pub path: String,
    pub line: usize,
}

/// How a file deals with errors. Tests are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Errors {
    pub catches: usize,
    pub throws: usize,
    /// `?`
    pub propagated: usize,
    /// `if err != nil`
    pub checked: usize,
    pub unwraps: usize,
    pub expects: usize,
    pub panics: usize,
    /// Empty `catch`, `except: pass`, `let _ =`, `_ =` of a call.
    pub swallowed: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// `TODO`, `FIXME`, `HACK`, `XXX`
    pub mark: &'static str,
    pub line: usize,
    pub text: String,
}

/// A comment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    pub span: Span,
    pub line: usize,
    /// Its last line.
    pub last: usize,
    pub in_test: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub name: Span,
    /// With its receiver or path.
    pub callee: Span,
    pub arguments: Span,
    pub line: u32,
    pub function: Option<u32>,
    /// How many loops it is in.
    pub loops: u8,
    /// The innermost loop goes over the items of something.
    pub each: bool,
    /// Its receiver comes from the innermost loop.
    pub own: bool,
    pub is_macro: bool,
    pub in_test: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Assign {
    pub name: Span,
    pub value: Span,
    /// Declared with it, if at all.
    pub kind: Span,
    pub line: u32,
    pub function: Option<u32>,
    pub declares: bool,
    /// `+=`
    pub adds: bool,
    pub loops: u8,
    /// The name was declared in the innermost loop.
    pub own: bool,
    pub in_test: bool,
}

/// A place that deserves a second look.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub kind: MarkKind,
    pub line: u32,
    pub function: Option<u32>,
    pub in_test: bool,
    pub note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MarkKind {
    EmptyCatch,
    BroadCatch,
    Discarded,
    NoDefault,
    OpenChain,
    ComputedIndex,
    OffByOne,
    EveryPair,
    DeepLoop,
    AwaitInLoop,
    /// `x in list`; the note is the list.
    LookupInLoop,
    Unsafe,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Markup {
    pub span: Span,
    pub line: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    pub span: Span,
    pub line: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ShapeLine {
    pub line: u32,
    pub hash: u64,
    pub tokens: u16,
    pub function: u32,
}

impl FileFacts {
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// `path:line`
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }

    /// The function of a call or mark.
    pub(crate) fn function(&self, index: Option<u32>) -> Option<&Function> {
        self.functions.get(index? as usize)
    }

    /// One line of the text, trimmed and cut to what fits a report.
    pub(crate) fn line_text(&self, line: usize) -> String {
        let text = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
        cut(text, 90)
    }
}

/// The first `most` characters, with an ellipsis where something is missing.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_string(),
    }
}
