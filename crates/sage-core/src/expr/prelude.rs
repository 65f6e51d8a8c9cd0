//! The jq functions that a template may call.
//!
//! Native ones are named one by one: whatever reads the environment or a clock, writes, stops the process or
//! takes more input is not in the list, and neither is anything that a new version of jaq adds. Functions
//! written in jq are kept if all they call is there. Only what a program reaches is compiled with it: the
//! whole library costs half a millisecond, which 10,000 operations would pay 10,000 times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jaq_core::data::JustLut;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{Part, Path};
use jaq_core::{Native, native};
use jaq_json::Val;

pub type Data = JustLut<Val>;

/// Holds the context of the evaluation.
pub const CONTEXT_VAR: &str = "$__context";

/// `steps["a/b"].result` without a dot, as in Jinja, means the context whatever `.` is.
const CONTEXT_DEFS: &str = "def feature: $__context.feature; def title: $__context.title; \
    def inputs: $__context.inputs; def run: $__context.run; def steps: $__context.steps; \
    def item: $__context.item; def index: $__context.index;";

#[rustfmt::skip]
const ALLOWED: &[&str] = &[
    "error_empty", "path", "path_value", "range", "keys_unsorted", "key_values", "first", "last", "limit", "skip",
    "floor", "round", "ceil", "utf8bytelength", "explode", "implode", "ascii_downcase", "ascii_upcase", "reverse",
    "sort", "sort_by", "group_by", "min_by_or_empty", "max_by_or_empty", "startswith", "endswith", "ltrimstr",
    "rtrimstr", "trim", "ltrim", "rtrim", "escape_sh",
    "fromjson", "tojson", "tobytes", "length", "contains", "has", "indices", "bsearch",
    "acos", "asin", "atan", "atan2", "cbrt", "copysign", "cos", "exp", "exp10", "exp2", "fabs", "fmax", "fmin",
    "fmod", "hypot", "ilogb", "log", "log10", "log1p", "log2", "modf", "pow", "remainder", "scalbln", "sin", "sqrt",
    "tan", "trunc",
    "escape_html", "unescape_html", "encode_uri", "decode_uri", "encode_base64", "decode_base64",
    "matches", "split_matches", "split_",
    "fromdateiso8601", "todateiso8601", "strftime", "strptime", "mktime",
];

/// Names that jq users know and that templates never have, with the reason.
pub fn why_forbidden(name: &str) -> Option<&'static str> {
    Some(match name {
        "env" | "$ENV" => "an expression cannot read the environment; pass the value with `inputs`",
        "now" | "localtime" | "strflocaltime" | "gmtime" => {
            "an expression cannot read the clock: its value must be the same after a resume"
        }
        "input" | "input_filename" | "input_line_number" => "an expression has one input, the context",
        "halt" | "halt_error" => "an expression cannot stop the program; use `error`",
        "debug" | "stderr" => "an expression cannot write",
        "import" | "include" | "module" | "get_search_list" => "an expression cannot load files",
        _ => return None,
    })
}

pub fn natives() -> impl Iterator<Item = native::Fun<Data>> {
    let all = jaq_core::funs::<Data>().chain(jaq_std::base_funs()).chain(jaq_json::funs());
    all.filter(|(name, _, _): &(_, _, Native<Data>)| ALLOWED.contains(name))
}

/// What a term calls: names with the number of their arguments.
pub type Calls = BTreeSet<(&'static str, usize)>;

struct Library {
    /// In their order of definition, for later ones call earlier ones.
    defs: Vec<(Def<&'static str>, Calls)>,
    /// Number of arguments and index in `defs`.
    by_name: BTreeMap<&'static str, Vec<(usize, usize)>>,
    natives: BTreeSet<(&'static str, usize)>,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(Library::build);

impl Library {
    fn build() -> Library {
        let natives: BTreeSet<_> = natives().map(|(name, args, _)| (name, args.len())).collect();
        let context = jaq_core::load::parse(CONTEXT_DEFS, |p| p.defs()).unwrap_or_default();
        let all = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(context);
        let mut defs: Vec<_> = all.map(|def| (outside_calls(&def), def)).map(|(c, d)| (d, c)).collect();
        // Whatever calls something that is not there goes too, until nothing changes.
        loop {
            let known: BTreeSet<_> = defs.iter().map(|(def, _)| signature(def)).collect();
            let before = defs.len();
            defs.retain(|(_, calls)| calls.iter().all(|c| known.contains(c) || natives.contains(c)));
            if defs.len() == before {
                break;
            }
        }
        let mut by_name: BTreeMap<_, Vec<(usize, usize)>> = BTreeMap::new();
        for (index, (def, _)) in defs.iter().enumerate() {
            by_name.entry(def.name).or_default().push((def.args.len(), index));
        }
        Library { defs, by_name, natives }
    }

    fn indices(&self, (name, arity): (&str, usize)) -> impl Iterator<Item = usize> {
        let overloads = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        overloads.iter().filter(move |(a, _)| *a == arity).map(|(_, index)| *index)
    }
}

/// The definitions that `calls` reach, in order.
pub fn reached(calls: &BTreeSet<(&str, usize)>) -> Vec<Def<&'static str>> {
    let library = &*LIBRARY;
    let mut found = BTreeSet::new();
    let mut todo: Vec<usize> = calls.iter().flat_map(|call| library.indices(*call)).collect();
    while let Some(index) = todo.pop() {
        if found.insert(index) {
            todo.extend(library.defs[index].1.iter().flat_map(|call| library.indices(*call)));
        }
    }
    found.into_iter().map(|index| library.defs[index].0.clone()).collect()
}

/// All names, for "did you mean".
pub fn names() -> impl Iterator<Item = &'static str> {
    let natives = LIBRARY.natives.iter().map(|(name, _)| *name).filter(|name| !name.contains("_empty"));
    LIBRARY.by_name.keys().copied().chain(natives)
}

fn signature(def: &Def<&'static str>) -> (&'static str, usize) {
    (def.name, def.args.len())
}

/// What a definition calls that is neither its argument nor defined inside it.
fn outside_calls(def: &Def<&'static str>) -> Calls {
    let mut walk = Walk::default();
    walk.defined.extend(def.args.iter().copied());
    walk.term(&def.body);
    let (calls, local) = (walk.calls, walk.defined);
    calls.into_iter().filter(|(name, _)| !local.contains(name)).collect()
}

/// Collects from a term what checks need to know. Recursion is bounded by the caller's limit on the text.
#[derive(Debug, Default)]
pub struct Walk<'s> {
    pub calls: BTreeSet<(&'s str, usize)>,
    /// Names that are defined or bound inside.
    pub defined: BTreeSet<&'s str>,
    /// Definitions that call themselves.
    pub recursive: Vec<&'s str>,
    within: Vec<(&'s str, usize)>,
}

impl<'s> Walk<'s> {
    fn def(&mut self, def: &Def<&'s str>) {
        self.defined.insert(def.name);
        self.defined.extend(def.args.iter().copied());
        self.within.push((def.name, def.args.len()));
        self.term(&def.body);
        self.within.pop();
    }

    pub fn term(&mut self, term: &Term<&'s str>) {
        match term {
            Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_) => {}
            Term::Str(format, parts) => {
                if let Some(format) = format {
                    self.call(format, 0);
                }
                for part in parts {
                    if let StrPart::Term(term) = part {
                        self.term(term);
                    }
                }
            }
            Term::Arr(inner) => inner.iter().for_each(|t| self.term(t)),
            Term::Obj(entries) => {
                for (key, value) in entries {
                    self.term(key);
                    value.iter().for_each(|v| self.term(v));
                }
            }
            Term::Neg(inner) | Term::Label(_, inner) => self.term(inner),
            Term::BinOp(left, op, right) => {
                self.term(left);
                if let BinaryOp::Pipe(Some(pattern)) = op {
                    self.pattern(pattern);
                }
                self.term(right);
            }
            Term::Fold(_, over, pattern, args) => {
                self.term(over);
                self.pattern(pattern);
                args.iter().for_each(|a| self.term(a));
            }
            Term::TryCatch(tried, caught) => {
                self.term(tried);
                caught.iter().for_each(|c| self.term(c));
            }
            Term::IfThenElse(branches, otherwise) => {
                for (condition, then) in branches {
                    self.term(condition);
                    self.term(then);
                }
                otherwise.iter().for_each(|o| self.term(o));
            }
            Term::Def(defs, rest) => {
                defs.iter().for_each(|d| self.def(d));
                self.term(rest);
            }
            Term::Call(name, args) => {
                self.call(name, args.len());
                args.iter().for_each(|a| self.term(a));
            }
            Term::Path(inner, path) => {
                self.term(inner);
                self.path(path);
            }
        }
    }

    fn path(&mut self, Path(parts): &Path<Term<&'s str>>) {
        for (part, _) in parts {
            match part {
                Part::Index(term) => self.term(term),
                Part::Range(from, to) => from.iter().chain(to).for_each(|t| self.term(t)),
            }
        }
    }

    fn pattern(&mut self, pattern: &Pattern<&'s str>) {
        match pattern {
            Pattern::Var(_) => {}
            Pattern::Arr(items) => items.iter().for_each(|p| self.pattern(p)),
            Pattern::Obj(entries) => {
                for (key, value) in entries {
                    self.term(key);
                    self.pattern(value);
                }
            }
        }
    }

    fn call(&mut self, name: &'s str, arity: usize) {
        self.calls.insert((name, arity));
        if self.within.contains(&(name, arity)) {
            self.recursive.push(name);
        }
    }
}
