//! Tame expressions: those whose time and memory are bounded by a small multiple of what they see.
//!
//! Look-ups, comparisons and plain insertions, which is what most templates consist of. They are evaluated in the
//! process itself. Everything else (loops, recursion, repeated text, products of lists) may be harmless, too, but
//! that cannot be told from the text: it is evaluated where it can be stopped.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::path::{Part, Path};

use super::CONTEXT;
use super::jq::parsed;
use super::mention::blocks;

/// How often a program may copy what it sees: operands of `+`, entries of objects and lists, parts of texts.
const COPIES: usize = 16;

/// Functions whose value is not larger than their input.
const PLAIN: &[&str] = &[
    "not",
    "length",
    "type",
    "keys",
    "first",
    "last",
    "tostring",
    "tonumber",
    "ascii_downcase",
    "ascii_upcase",
    "true",
    "false",
    "null",
    "values",
    "trim",
    "ltrim",
    "rtrim",
    "floor",
    "round",
    "ceil",
    "empty",
];
/// Functions with one argument that compare.
const COMPARING: &[&str] = &["has", "startswith", "endswith", "contains", "ltrimstr", "rtrimstr", "select"];

/// Whether a jq program is tame. One that does not parse is: it fails at once.
pub fn jq(program: &str) -> bool {
    let Ok(term) = parsed(program) else { return true };
    let mut copies = 0;
    is_plain(&term, &mut copies) && copies <= COPIES
}

fn is_plain(term: &Term<&str>, copies: &mut usize) -> bool {
    match term {
        Term::Id | Term::Num(_) | Term::Var(_) => true,
        Term::Str(format, parts) => {
            *copies += parts.len();
            let plain = |part: &StrPart<&str, Term<&str>>, copies: &mut usize| match part {
                StrPart::Term(term) => is_plain(term, copies),
                _ => true,
            };
            format.is_none() && parts.iter().all(|part| plain(part, copies))
        }
        Term::Arr(inner) => {
            *copies += 1;
            inner.as_deref().is_none_or(|term| is_plain(term, copies))
        }
        Term::Obj(entries) => {
            *copies += entries.len();
            entries.iter().all(|(key, value)| {
                is_plain(key, copies) && value.as_ref().is_none_or(|value| is_plain(value, copies))
            })
        }
        Term::Neg(inner) => is_plain(inner, copies),
        Term::BinOp(left, op, right) => {
            *copies += usize::from(matches!(op, BinaryOp::Math(_)));
            joins_plainly(op) && is_plain(left, copies) && is_plain(right, copies)
        }
        Term::TryCatch(tried, caught) => {
            is_plain(tried, copies) && caught.as_deref().is_none_or(|caught| is_plain(caught, copies))
        }
        Term::IfThenElse(branches, otherwise) => {
            let mut parts = branches.iter().flat_map(|(condition, then)| [condition, then]);
            parts.all(|part| is_plain(part, copies))
                && otherwise.as_deref().is_none_or(|otherwise| is_plain(otherwise, copies))
        }
        Term::Call(name, args) => match args.as_slice() {
            [] => PLAIN.contains(name) || CONTEXT.contains(name),
            [one] => COMPARING.contains(name) && is_plain(one, copies),
            _ => false,
        },
        Term::Path(inner, path) => is_plain(inner, copies) && is_plain_path(path, copies),
        Term::Recurse | Term::Break(_) | Term::Label(..) | Term::Fold(..) | Term::Def(..) => false,
    }
}

/// A comma or `as` gives several values, or one value several times.
fn joins_plainly(op: &BinaryOp<&str>) -> bool {
    match op {
        BinaryOp::Pipe(pattern) => pattern.is_none(),
        // `*` repeats texts.
        BinaryOp::Math(op) => matches!(op, jaq_core::ops::Math::Add | jaq_core::ops::Math::Sub),
        BinaryOp::Cmp(_) | BinaryOp::Or | BinaryOp::And | BinaryOp::Alt => true,
        _ => false,
    }
}

/// `.a`, `.[0]`, `.[:5]`; not `.[]`, which gives several values.
fn is_plain_path(Path(parts): &Path<Term<&str>>, copies: &mut usize) -> bool {
    parts.iter().all(|(part, _)| match part {
        Part::Index(term) => is_plain(term, copies),
        Part::Range(None, None) => false,
        Part::Range(from, to) => from.iter().chain(to).all(|term| is_plain(term, copies)),
    })
}

/// Filters that only shorten, or write out what there is.
const FILTERS: &[&str] = &[
    "brief",
    "tojson",
    "length",
    "default",
    "upper",
    "lower",
    "trim",
    "first",
    "last",
    "string",
    "int",
    "join",
    "title",
    "capitalize",
    "safe",
    "d",
    "count",
    "bool",
];
const STATEMENTS: &[&str] = &["if", "elif", "else", "endif"];

/// Whether a Jinja text is tame: insertions and conditions.
pub fn jinja(text: &str) -> bool {
    blocks(text).all(|block| {
        let inside = text[block.clone()].trim_matches(['-', '+']).trim();
        let is_statement = text[..block.start].ends_with("{%");
        let word = inside.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        (!is_statement || STATEMENTS.contains(&word)) && inserts_plainly(inside)
    })
}

/// Outside of quotes: no repetition, no call but that of a plain filter.
fn inserts_plainly(inside: &str) -> bool {
    let (mut word, mut quote, mut filter, mut escaped) = (String::new(), None, false, false);
    for c in inside.chars() {
        if let Some(open) = quote {
            quote = (escaped || c != open).then_some(open);
            escaped = !escaped && c == '\\';
            continue;
        }
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        let known = FILTERS.contains(&word.as_str());
        match c {
            // Only filters are called.
            '(' if !(filter && known) => return false,
            '*' | '~' => return false,
            '|' => {}
            '"' | '\'' => quote = Some(c),
            _ if c.is_whitespace() && word.is_empty() => continue,
            _ => {}
        }
        if filter && !word.is_empty() && !known {
            return false;
        }
        if !word.is_empty() || c == '|' {
            filter = c == '|';
        }
        word.clear();
    }
    !filter || word.is_empty() || FILTERS.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R14
    #[test]
    fn look_ups_and_comparisons_are_tame() {
        for program in [
            ".",
            "inputs.flag",
            "steps[\"a/b\"].result",
            "steps[\"a/b\"].result.items | length > 3",
            "inputs.needs_security and (inputs.kind == \"web\" or .x != null)",
            ".findings[:5]",
            "not",
            "{a: .x, b: [.y]}",
            "\"\\(.a) of \\(.b)\"",
            "if .a then .b else .c end",
            ".a // \"none\"",
            ".a + 1",
            "steps[\"critique/critique\"].result.verdict == \"REQUEST_CHANGES\"",
            ")(",
        ] {
            assert!(jq(program), "{program}");
        }
        for text in [
            "",
            "{{ title }}",
            "a {{ steps['a/b'].result.stdout }} b",
            "{{ steps | brief }}",
            "{# note #}",
            "{% if inputs.a %}yes{% elif not inputs.b %}no{% else %}{{ item }}{% endif %}",
            "{{ inputs.list | join(', ') }}",
            "{{ x | default('a * b') }}",
            "{{ a if b == 'c(d)' else e }}",
        ] {
            assert!(jinja(text), "{text}");
        }
    }

    // covers: R14
    #[test]
    fn what_may_grow_or_never_end_is_not() {
        for program in [
            "until(false; .)",
            "[limit(1e9; repeat(1))]",
            "[range(100000000)]",
            "..",
            "recurse",
            "[.[]] | [.[]]",
            "reduce range(40) as $i (\"x\"; . + .)",
            "\"x\" * 1e9",
            "., .",
            "def f: .; f",
            ". as $x | $x",
            "[paths]",
            "map(.)",
            "{a: .} | {a: ., b: .} | {a: ., b: ., c: ., d: ., e: ., f: ., g: ., h: ., i: ., j: ., k: ., l: ., m: ., n: .}",
            &[". + ."; 20].join(" | "),
        ] {
            assert!(!jq(program), "{program}");
        }
        for text in [
            "{{ '%999999999d' | format(1) }}",
            "{% for x in range(9) %}x{% endfor %}",
            "{{ 'x' * 1000000000 }}",
            "{% set s = 'x' %}{{ s ~ s }}",
            "{% macro m() %}{% endmacro %}",
            "{{ range(100000) }}",
            "{{ x | replace('', 'long') }}",
            "{{ x|format(1) }}",
            "{{ 'a'.upper() }}",
            "{{ f (1) }}",
        ] {
            assert!(!jinja(text), "{text}");
        }
    }
}
