//! Syntax of TypeScript that is more than types: it would need code of its own, so it is refused with what to
//! write instead. The same words as the compiler option `erasableSyntaxOnly`.

use sage_core::diagnostic::Diagnostic;
use sage_core::template::Span;

#[derive(Clone, Copy, Debug)]
pub(super) enum Refused {
    Enum,
    Namespace,
    ParameterProperty,
    Decorator,
    Accessor,
    ImportEquals,
    ExportEquals,
    AngleAssertion,
}

impl Refused {
    pub fn at(self, span: oxc::span::Span) -> Diagnostic {
        let (message, hint) = self.words();
        Diagnostic::error("", place(span), message).hint(hint)
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Refused::Enum => (
                "an `enum` is more than a type",
                "write `const Level = { Low: 0, High: 1 } as const`, or a union: `type Level = \"low\" | \"high\"`",
            ),
            Refused::Namespace => (
                "a `namespace` is more than a type",
                "export from a module of its own, or write an object: `const shapes = { area() { .. } }`",
            ),
            Refused::ParameterProperty => (
                "a parameter that declares a property is more than a type",
                "declare the property in the class and write `this.name = name` in the constructor",
            ),
            Refused::Decorator => (
                "decorators are not supported",
                "call the function yourself: `const wrapped = decorate(original)`",
            ),
            Refused::Accessor => (
                "`accessor` properties are not supported",
                "write `get name() { .. }` and `set name(value) { .. }`",
            ),
            Refused::ImportEquals => {
                ("`import name =` is more than a type", "write `import { name } from \"./module.ts\"`")
            }
            Refused::ExportEquals => ("`export =` is not supported", "write `export default`"),
            Refused::AngleAssertion => {
                ("an assertion in angle brackets cannot be taken away", "write `value as Type`")
            }
        }
    }
}

pub(super) fn place(span: oxc::span::Span) -> Span {
    Span { start: span.start, end: span.end }
}
