//! Decisions, nesting, loops, and how errors travel.

use tree_sitter::Node;

use super::super::facts::{MarkKind, cut};
use super::super::grammar::*;
use super::parameters::children;
use super::{LoopBody, Opened, Walk, words};

impl<'t> Walk<'_, 't> {
    pub(super) fn flow(&mut self, node: Node<'t>, roles: Roles) {
        let chained = roles & IF != 0 && self.continues_chain(node);
        if roles & DECISION != 0 || self.decides(node, roles) {
            self.decision();
        }
        if roles & LOOP != 0 {
            self.begin_loop(node);
        }
        if roles & NEST != 0 && !chained {
            self.nest(node);
        }
        if roles & (CATCH | THROW | PROPAGATE) != 0 && !self.in_test() {
            self.error(node, roles);
        }
        if node.kind() == "comparison_operator" && self.loop_depth() > 0 {
            self.membership(node);
        }
        if roles & AWAIT != 0 {
            self.awaited(node);
        }
        if roles & IF != 0 && !chained {
            self.condition(node);
        }
        if roles & SWITCH != 0 && !has_default(self, node) {
            self.mark(node, MarkKind::NoDefault, String::new());
        }
        if roles & INDEX != 0 {
            self.index(node);
        }
        if roles & UNSAFE != 0 {
            self.mark(node, MarkKind::Unsafe, String::new());
        }
    }

    /// `else if` is the same question asked on.
    fn continues_chain(&self, node: Node<'t>) -> bool {
        self.parent().is_some_and(|parent| {
            let alternative =
                parent.child_by_field_name("alternative").is_some_and(|next| next.id() == node.id());
            parent.kind() == "else_clause" || (self.grammar.roles(&parent) & IF != 0 && alternative)
        })
    }

    fn decides(&self, node: Node<'t>, roles: Roles) -> bool {
        if roles & OPERATOR != 0 {
            let operator = node.child_by_field_name("operator").map(|operator| operator.kind());
            return matches!(operator, Some("&&" | "||" | "and" | "or" | "??"));
        }
        let block = |child: &Node| matches!(child.kind(), "block" | "statement_block");
        roles & ARM != 0 && children(node).any(|child| block(&child) && child.named_child_count() > 1)
    }

    fn decision(&mut self) {
        if let Some(open) = self.functions.last() {
            self.facts.functions[open.index].complexity += 1;
        }
    }

    fn nest(&mut self, node: Node<'t>) {
        if let Some(open) = self.functions.last_mut() {
            open.nesting += 1;
            let function = &mut self.facts.functions[open.index];
            function.nesting = function.nesting.max(open.nesting);
            self.opened(node, Opened::Nest);
        }
    }

    fn begin_loop(&mut self, node: Node<'t>) {
        self.facts.loops += 1;
        let Some(body) = node.child_by_field_name("body") else { return };
        let header = self.text.get(node.start_byte()..body.start_byte()).unwrap_or_default();
        let (names, source) = header_parts(node, self);
        let each = source.is_some_and(|source| !is_small(source));
        let depth = self.loop_depth();
        if let Some(source) = source.filter(|_| depth > 0) {
            self.nested_loop(node, source, depth);
        }
        if is_past_the_end(header) {
            self.mark(node, MarkKind::OffByOne, cut(header.trim(), 80));
        }
        self.pending.push((body.id(), LoopBody { names, each }));
    }

    /// A loop over something that does not come from the loop around it meets every item with every item.
    fn nested_loop(&mut self, node: Node<'t>, source: &'t str, depth: usize) {
        let base = self.loops.len() - depth;
        let derived =
            self.loops[base..].iter().any(|around| words(source).any(|word| around.names.contains(&word)));
        let endless = self.loops[base..].iter().any(|around| !around.each);
        if derived || endless || is_small(source) {
            return;
        }
        let kind = if depth > 1 { MarkKind::DeepLoop } else { MarkKind::EveryPair };
        self.mark(node, kind, cut(source.trim(), 60));
    }

    fn error(&mut self, node: Node<'t>, roles: Roles) {
        if roles & THROW != 0 {
            self.facts.errors.throws += 1;
        }
        if roles & PROPAGATE != 0 {
            self.facts.errors.propagated += 1;
        }
        if roles & CATCH == 0 {
            return;
        }
        self.facts.errors.catches += 1;
        let text = self.slice(node);
        let caught = text.split([':', '{']).next().unwrap_or_default().trim();
        if is_empty_handler(node) {
            self.facts.errors.swallowed += 1;
            self.mark(node, MarkKind::EmptyCatch, cut(caught, 60));
        } else if caught == "except" || caught.contains("BaseException") || caught.contains("Throwable") {
            self.mark(node, MarkKind::BroadCatch, cut(caught, 60));
        }
    }

    fn awaited(&mut self, node: Node<'t>) {
        let depth = self.loop_depth();
        let each = self.loops.last().is_some_and(|body| depth > 0 && body.each);
        // What is only started in the loop is awaited elsewhere.
        let inside = self.ancestors.iter().rev().take_while(|around| self.grammar.roles(around) & LOOP == 0);
        if inside
            .into_iter()
            .any(|around| around.kind() == "async_block" || self.grammar.roles(around) & CLOSURE != 0)
        {
            return;
        }
        // One that changes its owner can only happen after the other.
        let alone = self.current().is_some_and(|function| function.signature.contains("&mut self"));
        // Reading the next item of a stream is what such a loop is for.
        let streams = ["next(", "recv(", "read(", "sleep(", "tick(", "send("];
        let text = self.slice(node);
        if each
            && !(alone && text.starts_with("self."))
            && !streams.iter().any(|stream| text.contains(stream))
        {
            self.mark(node, MarkKind::AwaitInLoop, cut(text.lines().next().unwrap_or_default(), 60));
        }
    }

    /// `x in items`, where `items` is the same in each round.
    fn membership(&mut self, node: Node<'t>) {
        let asks = children(node).any(|child| matches!(child.kind(), "in" | "not in"));
        let last = node.named_child_count().checked_sub(1).and_then(|last| node.named_child(last as u32));
        let Some(list) = last.filter(|list| asks && list.kind() == "identifier") else { return };
        let name = self.slice(list);
        if !self.loops.last().is_some_and(|body| body.names.contains(&name)) {
            self.mark(node, MarkKind::LookupInLoop, name.to_string());
        }
    }

    fn condition(&mut self, node: Node<'t>) {
        let condition = node.child_by_field_name("condition").map_or("", |condition| self.slice(condition));
        if self.grammar.language == Language::Go && condition.contains("!= nil") && condition.contains("err")
        {
            self.facts.errors.checked += usize::from(!self.in_test());
            return;
        }
        if is_open_chain(node) {
            self.mark(node, MarkKind::OpenChain, String::new());
        }
    }

    fn index(&mut self, node: Node<'t>) {
        let field = ["index", "subscript"].iter().find_map(|field| node.child_by_field_name(field));
        let Some(index) = field.or_else(|| node.named_child(1)) else { return };
        let text = self.slice(index);
        let length = ["len()", ".length", ".size()"].iter().any(|end| text.ends_with(end));
        if length || (text.starts_with("len(") && text.ends_with(')')) {
            self.mark(node, MarkKind::OffByOne, cut(self.slice(node), 60));
        } else if is_computed(text) {
            self.mark(node, MarkKind::ComputedIndex, cut(self.slice(node), 60));
        }
    }
}

/// The names that a loop gives a new value in each round, and what it goes over, if it goes over something.
fn header_parts<'t>(node: Node<'t>, walk: &Walk<'_, 't>) -> (Vec<&'t str>, Option<&'t str>) {
    let range = children(node).find(|child| matches!(child.kind(), "range_clause" | "for_clause"));
    let head = range.unwrap_or(node);
    let field = |names: &[&str]| names.iter().find_map(|name| head.child_by_field_name(name));
    let names = field(&["pattern", "left", "name", "initializer", "init"]);
    let names = names.map(|names| words(walk.slice(names)).collect()).unwrap_or_default();
    let source = match node.kind() {
        "while_expression" | "loop_expression" | "while_statement" | "do_statement" => None,
        _ => field(&["right", "value", "condition"]).map(|source| walk.slice(source)),
    };
    (names, source)
}

/// A list that is written out, a range of numbers, or a constant does not grow with the data.
fn is_small(source: &str) -> bool {
    let source = source.trim().trim_start_matches('&');
    let first = source.chars().next();
    let numbers = |text: &str| text.chars().all(|c| c.is_numeric() || " .=,()".contains(c));
    let constant =
        words(source).all(|word| word.chars().all(|c| c.is_uppercase() || c == '_' || c.is_numeric()));
    let counted = words(source).last().is_some_and(|word| word.chars().all(char::is_numeric));
    matches!(first, Some('[' | '(' | '{' | '"' | '\'')) || numbers(source) || constant || counted
}

/// `i <= items.length` goes one too far when counted from 0.
fn is_past_the_end(header: &str) -> bool {
    let compact: String = header.chars().filter(|c| !c.is_whitespace()).collect();
    let from_zero = compact.contains("=0;") || compact.contains("in0..=") || compact.contains("range(len(");
    let ends = ["<=len(", "len())+1", ")+1)"];
    let lengths = [".length;", ".length();", ".size();", ".len()", ".Count;"];
    let upto = |text: &str| {
        text.split_once("<=").or_else(|| text.split_once("..=")).is_some_and(|(_, rest)| {
            let rest = rest.split(['{', '&']).next().unwrap_or_default();
            lengths.iter().any(|length| {
                rest.ends_with(length.trim_end_matches(';')) || rest.contains(&format!("{length}i"))
            }) || rest.starts_with("len(") && !rest.contains("-1")
        })
    };
    from_zero
        && (upto(&compact)
            || (compact.contains("range(len(") && ends[1..].iter().any(|end| compact.contains(end))))
}

fn is_empty_handler(node: Node) -> bool {
    let body = node.child_by_field_name("body");
    let body = body.or_else(|| children(node).find(|child| child.kind() == "block"));
    let idle = |child: &Node| matches!(child.kind(), "pass_statement" | "ellipsis" | "continue_statement");
    body.is_some_and(|body| {
        let all = children(body).filter(|child| child.is_named() && !child.is_extra()).collect::<Vec<_>>();
        // A comment says why nothing is done.
        let explained = children(body).any(|child| child.kind().contains("comment"));
        !explained && all.iter().all(|child| idle(child) || child.kind().contains("comment"))
    })
}

fn has_default(walk: &Walk, node: Node) -> bool {
    let body = node.child_by_field_name("body").unwrap_or(node);
    children(body).any(|child| {
        matches!(child.kind(), "switch_default" | "default_case")
            || children(child).any(|label| {
                label.kind() == "switch_label" && walk.slice(label).trim_start().starts_with("default")
            })
    })
}

/// `if .. else if ..` that ends without `else`.
fn is_open_chain(node: Node) -> bool {
    let mut links = 0;
    let mut at = node;
    loop {
        let mut cursor = at.walk();
        let alternatives: Vec<Node> = at.children_by_field_name("alternative", &mut cursor).collect();
        let Some(last) = alternatives.last() else { return links > 0 };
        if last.kind() == "elif_clause" {
            return true;
        }
        let inner = match last.kind() {
            "else_clause" => last.named_child(0).filter(|inner| inner.kind().starts_with("if_")),
            "if_statement" => Some(*last),
            _ => None,
        };
        let Some(inner) = inner else { return false };
        links += 1;
        at = inner;
    }
}

/// An index that was calculated or counted, as opposed to a key.
fn is_computed(index: &str) -> bool {
    let counters = ["i", "j", "k", "n", "idx", "index", "pos", "position", "offset", "at"];
    let literal =
        index.chars().all(|c| c.is_numeric()) || index.starts_with(['"', '\'', '`']) || index.contains("..");
    let sum = [" + ", " - ", "+1", "-1"].iter().any(|part| index.contains(part));
    !literal && !index.contains(':') && (sum || counters.contains(&index))
}
