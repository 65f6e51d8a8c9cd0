//! TypeScript to JavaScript by blanking: types become spaces, everything else stays where it was.
//!
//! ```text
//!  const total: number = rows!.length as number
//!  const total         = rows .length ;
//! ```
//! No source map is needed, and what a script throws names a line and column of the TypeScript. Syntax that is
//! more than types is refused with what to write instead. In the same pass: what the script says about itself.

mod canvas;
mod eraser;
mod literal;
mod nesting;
mod refuse;
mod scan;
#[cfg(test)]
mod tests;

use oxc::allocator::Allocator;
use oxc::ast_visit::Visit;
use oxc::diagnostics::OxcDiagnostic;
use oxc::parser::{ParseOptions, Parser};
use oxc::span::SourceType;
use sage_core::diagnostic::{Diagnostic, Shown};
use sage_core::source::SourceText;
use sage_core::template::Span;

pub use scan::Scan;

/// Longer scripts are somebody's data; they belong into a file that a step reads.
pub const MAX_BYTES: usize = 256 << 10;

/// What a text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A workflow in code, of either dialect.
    Workflow,
    /// A module that others import.
    Module,
    /// Statements with `await` and `return` at top level, and imports.
    Body,
}

/// JavaScript of the same length, and what the script says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Stripped {
    pub code: String,
    pub scan: Scan,
}

/// Takes the types away.
///
/// # Errors
/// All that is wrong with the text, ready to print.
pub fn strip(name: &str, text: &str, form: Form) -> Result<Stripped, Vec<Shown>> {
    let source = SourceText::new(name, text);
    let show = |problems: Vec<Diagnostic>| problems.iter().map(|problem| source.show(problem)).collect();
    if text.len() > MAX_BYTES {
        let message = format!("the script has {} bytes, at most {MAX_BYTES} are read", text.len());
        return Err(show(vec![Diagnostic::error("", Span { start: 0, end: 0 }, message)]));
    }
    nesting::with_room_for(text, || read(text, form)).and_then(|result| result).map_err(show)
}

fn read(text: &str, form: Form) -> Result<Stripped, Vec<Diagnostic>> {
    let allocator = Allocator::default();
    let options =
        ParseOptions { allow_return_outside_function: form != Form::Module, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, text, SourceType::ts()).with_options(options).parse();
    let problems: Vec<Diagnostic> = parsed.diagnostics.errors().map(told).collect();
    if !problems.is_empty() || parsed.panicked {
        return Err(problems);
    }
    let mut eraser = eraser::Eraser::new(text);
    eraser.visit_program(&parsed.program);
    let (scanned, mut problems) = match scan::scan(&parsed.program, form) {
        Ok(scanned) => (scanned, Vec::new()),
        Err(problems) => (Scan::default(), problems),
    };
    problems.append(&mut eraser.refused);
    if problems.is_empty() {
        return Ok(Stripped { code: eraser.canvas.finish(), scan: scanned });
    }
    problems.sort_by_key(|problem| problem.span.start);
    Err(problems)
}

/// A parser's complaint in our form.
fn told(problem: &OxcDiagnostic) -> Diagnostic {
    let mut labels = problem.labels.iter();
    let place = |label: &oxc::diagnostics::LabeledSpan| Span {
        start: label.offset(),
        end: label.offset() + label.len(),
    };
    let first = labels.next();
    let span = first.map_or(Span { start: 0, end: 0 }, place);
    let mut told = Diagnostic::error("", span, problem.message.to_string());
    let said = first.and_then(|label| label.label()).map(str::to_owned);
    told = told.hint_if(problem.help.as_ref().map(ToString::to_string).or(said));
    match labels.next() {
        Some(second) => told.also(place(second), second.label().unwrap_or("belongs to it").to_owned()),
        None => told,
    }
}

impl Stripped {
    /// The text as the body of a function: imports go before `head`, on the same line, `export` of `meta` goes
    /// away, `tail` follows on a line of its own. Every line keeps its number.
    pub fn wrapped(&self, head: &str, tail: &str) -> String {
        let mut first = String::new();
        let mut body = canvas::Canvas::new(&self.code);
        for (start, end) in &self.scan.import_spans {
            first.push_str(&self.code[*start..*end].replace(['\n', '\r'], " "));
            first.push(';');
        }
        for (start, end) in self.scan.import_spans.iter().chain(&self.scan.meta_export) {
            body.erase(*start as u32, *end as u32);
        }
        let body = body.finish();
        format!("{first}{head}{body}\n{tail}")
    }
}
