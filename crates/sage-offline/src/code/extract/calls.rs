//! What is called and what is assigned, with the loops around it.

use tree_sitter::Node;

use super::super::facts::{Assign, Call, Constant, Import, Mark, MarkKind, Markup, Span};
use super::super::grammar::*;
use super::super::names::Style;
use super::{Opened, Walk, row, span, words};

impl<'t> Walk<'_, 't> {
    pub(super) fn uses(&mut self, node: Node<'t>, roles: Roles) {
        if roles & CALL != 0 {
            self.call(node, roles & MACRO != 0);
        }
        if roles & ASSIGN != 0 {
            self.assign(node, roles & DECLARE != 0);
        }
        if roles & IDENTIFIER != 0 {
            self.handed_on(node);
            self.macro_call(node);
        }
    }

    fn call(&mut self, node: Node<'t>, is_macro: bool) {
        let fields = ["function", "macro", "constructor", "name", "type"];
        let Some(target) = fields.iter().find_map(|field| node.child_by_field_name(field)) else { return };
        let start = node.child_by_field_name("object").unwrap_or(target).start_byte();
        let name = self.last_name(target);
        let arguments = node.child_by_field_name("arguments").or_else(|| {
            let last = node.child_count().checked_sub(1)?;
            node.child(last).filter(|_| is_macro)
        });
        let callee = Span { start: start as u32, end: target.end_byte() as u32 };
        let arguments = arguments.map(span).unwrap_or_default();
        if self.grammar.language.is_script() && self.text_of(name) == "require" {
            self.required(node, arguments);
        }
        self.record(node, name, callee, arguments, is_macro);
    }

    /// `require('./cart')`
    fn required(&mut self, node: Node<'t>, arguments: Span) {
        let path = self.text_of(arguments).trim_matches(['(', ')']).trim();
        let inner = path.trim_matches(['"', '\'']);
        if inner.len() + 2 == path.len() {
            self.facts.imports.push(Import { path: inner.to_string(), line: row(node) });
        }
    }

    /// `a.b::<T>.c` is called `c`.
    fn last_name(&self, target: Node<'t>) -> Span {
        let mut node = target;
        let fields = ["field", "property", "attribute", "name", "function"];
        while let Some(inner) = fields.iter().find_map(|field| node.child_by_field_name(field)) {
            node = inner;
        }
        span(node)
    }

    /// Macros hold tokens: a name before parentheses is a call.
    fn macro_call(&mut self, node: Node<'t>) {
        if self.grammar.language != Language::Rust || self.parent().is_none_or(|p| p.kind() != "token_tree") {
            return;
        }
        let next = node.next_sibling().filter(|next| next.kind() == "token_tree");
        if let Some(arguments) = next.filter(|next| self.slice(*next).starts_with('(')) {
            self.record(node, span(node), span(node), span(arguments), false);
        }
    }

    /// A name where a value is expected may be a function that is called later.
    fn handed_on(&mut self, node: Node<'t>) {
        let places = [
            "arguments",
            "argument_list",
            "jsx_expression",
            "pair",
            "assignment_pattern",
            "object_assignment_pattern",
            "keyword_argument",
        ];
        if self.parent().is_some_and(|parent| places.contains(&parent.kind())) {
            let name = self.slice(node).to_string();
            if let Some(open) = self.functions.last_mut() {
                open.refers.insert(name);
            }
        }
    }

    fn record(&mut self, node: Node<'t>, name: Span, callee: Span, arguments: Span, is_macro: bool) {
        let text = |span: Span| self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let called = text(name);
        if called.is_empty() || called.len() > 100 {
            return;
        }
        let receiver = Span { start: callee.start, end: name.start.max(callee.start) };
        let (depth, function, in_test) = (self.loop_depth(), self.function_index(), self.in_test());
        let around = self.loops.last().filter(|_| depth > 0);
        let own = around.is_some_and(|body| words(text(receiver)).any(|word| body.names.contains(&word)));
        let each = around.is_some_and(|body| body.each);
        let errors = &mut self.facts.errors;
        if !in_test && self.grammar.language == Language::Rust {
            match called {
                "unwrap" if !is_macro => errors.unwraps += 1,
                "expect" if !is_macro && text(arguments).starts_with("(\"") => errors.expects += 1,
                "panic" | "todo" | "unimplemented" if is_macro => errors.panics += 1,
                _ => {}
            }
        }
        if !in_test && self.grammar.language == Language::Go && called == "panic" {
            errors.panics += 1;
        }
        if let Some(open) = self.functions.last_mut() {
            open.called.insert(called.to_string());
        }
        let line = row(node) as u32;
        let loops = depth.min(255) as u8;
        self.facts.calls.push(Call {
            name,
            callee,
            arguments,
            line,
            function,
            loops,
            each,
            own,
            is_macro,
            in_test,
        });
    }

    fn assign(&mut self, node: Node<'t>, declares: bool) {
        let field = |names: &[&str]| names.iter().find_map(|name| node.child_by_field_name(name));
        let Some(name) = field(&["pattern", "left", "name"]) else { return };
        let value = field(&["value", "right"]).map(span).unwrap_or_default();
        let outer = self.parent().and_then(|parent| parent.child_by_field_name("type"));
        let kind = field(&["type"]).or(outer).map(span).unwrap_or_default();
        let adds = match node.kind() {
            "compound_assignment_expr" | "augmented_assignment_expression" | "augmented_assignment" => true,
            _ => node.child_by_field_name("operator").is_some_and(|operator| self.slice(operator) == "+="),
        };
        let target = self.slice(name);
        let depth = self.loop_depth();
        let own =
            self.loops.last().is_some_and(|body| depth > 0 && words(target).any(|w| body.names.contains(&w)));
        let known = self.grammar.language == Language::Python && self.known(target);
        if let Some(body) = self.loops.last_mut().filter(|_| declares && depth > 0 && !known) {
            body.names.extend(words(target));
        }
        self.discarded(node, target, value);
        self.constant_by_convention(node, name);
        self.facts.assigns.push(Assign {
            name: span(name),
            value,
            kind,
            line: row(node) as u32,
            function: self.function_index(),
            declares,
            adds,
            loops: depth.min(255) as u8,
            own,
            in_test: self.in_test(),
        });
    }

    /// Python declares by assigning: what the function assigned before the loop is not the loop's own.
    fn known(&self, target: &str) -> bool {
        let function = self.function_index();
        let earlier = self.facts.assigns.iter().rev().take_while(|assign| assign.function == function);
        earlier.into_iter().any(|assign| assign.loops == 0 && self.text_of(assign.name) == target)
    }

    fn text_of(&self, span: Span) -> &'t str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// A call's answer that is thrown away in so many words.
    fn discarded(&mut self, node: Node<'t>, target: &str, value: Span) {
        let value = self.text_of(value);
        let discards = match self.grammar.language {
            Language::Rust => target == "_" && value.contains('(') && !is_infallible(value),
            Language::Go => target == "_" && value.contains('('),
            _ => false,
        };
        if discards && !self.in_test() {
            self.facts.errors.swallowed += 1;
            self.mark(
                node,
                MarkKind::Discarded,
                super::super::facts::cut(value.lines().next().unwrap_or(""), 60),
            );
        }
    }

    /// `MAX_SIZE = 3` at the top of a Python or JavaScript module.
    fn constant_by_convention(&mut self, node: Node<'t>, name: Node<'t>) {
        let top = self.functions.is_empty() && self.owners.is_empty() && !self.in_test();
        let python = self.grammar.language == Language::Python;
        let text = self.slice(name);
        if !top || name.kind() != "identifier" || !(python || self.grammar.language.is_script()) {
            return;
        }
        let literal = node.child_by_field_name("right").or_else(|| node.child_by_field_name("value"));
        let plain =
            literal.is_some_and(|value| matches!(value.kind(), "string" | "number" | "integer" | "float"));
        let capitals = text.len() > 1 && Style::of(text) == Style::Screaming;
        if (plain && !python) || capitals {
            let name = text.to_string();
            self.facts.constants.push(Constant { name, line: row(node) });
        }
    }

    pub(super) fn mark(&mut self, node: Node<'t>, kind: MarkKind, note: String) {
        let (line, function, in_test) = (row(node) as u32, self.function_index(), self.in_test());
        self.facts.marks.push(Mark { kind, line, function, in_test, note });
    }

    pub(super) fn element(&mut self, node: Node<'t>) {
        // A component is a function that is called by its tag.
        let tag = node.child_by_field_name("open_tag").unwrap_or(node);
        if let Some(name) =
            tag.child_by_field_name("name").filter(|n| self.slice(*n).starts_with(char::is_uppercase))
        {
            let last = self.last_name(name);
            self.record(node, last, span(name), Span::default(), false);
        }
        if self.markup == 0 {
            self.facts.markup.push(Markup { span: span(node), line: row(node) as u32 });
        }
        self.markup += 1;
        self.opened(node, Opened::Markup);
    }
}

/// Writing to a string cannot fail, and a handle that is dropped on purpose is no error.
fn is_infallible(value: &str) -> bool {
    let start = value.trim_start();
    start.starts_with("write!(")
        || start.starts_with("writeln!(")
        || !start.contains('.') && start.ends_with("guard()")
}
