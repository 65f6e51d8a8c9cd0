//! From a syntax tree to facts, in one pass that does not recurse: a deep tree must not overflow the stack.
//!
//! ```text
//! enter(node) -> items   functions, types, constants, imports      the walk keeps what is open: functions,
//!             -> flow    loops, calls, assignments, errors         loops, owners, test modules
//!             -> shape   the lines of functions, without names
//! leave(node) -> closes what the node had opened
//! ```

mod calls;
mod flow;
mod items;
mod lead;
mod parameters;
mod paths;
mod shape;

pub(crate) use paths::is_test_path;

use std::collections::HashSet;

use tree_sitter::Node;

use super::facts::{FileFacts, Note, Span, Todo};
use super::grammar::*;
use lead::Lead;

/// Reads one parsed file.
pub(super) fn extract(path: &str, grammar: &Grammar, tree: &tree_sitter::Tree, text: String) -> FileFacts {
    let mut walk = Walk::new(path, grammar, &text);
    walk.all(tree);
    let mut facts = walk.facts;
    facts.broken = tree.root_node().has_error();
    facts.text = text;
    facts
}

/// What is open around the node at hand.
struct Walk<'g, 't> {
    grammar: &'g Grammar,
    text: &'t str,
    facts: FileFacts,
    ancestors: Vec<Node<'t>>,
    open: Vec<Open>,
    functions: Vec<OpenFunction>,
    owners: Vec<Owner>,
    loops: Vec<LoopBody<'t>>,
    /// Bodies of loops whose header is being read.
    pending: Vec<(usize, LoopBody<'t>)>,
    tests: usize,
    markup: usize,
    lead: Lead<'t>,
}

/// A node that opened something, to be closed when it is left.
struct Open {
    node: usize,
    what: Opened,
}

#[derive(Clone, Copy)]
enum Opened {
    Function,
    Owner,
    TestModule,
    Nest,
    Loop,
    Markup,
}

struct OpenFunction {
    index: usize,
    nesting: usize,
    /// Loops around the function are not around what it does.
    loops_before: usize,
    body_start: usize,
    called: HashSet<String>,
    refers: HashSet<String>,
}

struct Owner {
    name: String,
    /// Its methods may be called by whoever knows the trait or base class.
    inherits: bool,
}

struct LoopBody<'t> {
    /// Names that get a new value in each round.
    names: Vec<&'t str>,
    /// Over the items of something that may be long, not until something happens.
    each: bool,
}

impl<'g, 't> Walk<'g, 't> {
    fn new(path: &str, grammar: &'g Grammar, text: &'t str) -> Walk<'g, 't> {
        let facts = FileFacts {
            path: path.to_string(),
            language: grammar.language.name(),
            lines: text.lines().count(),
            is_test: is_test_path(path),
            ..FileFacts::default()
        };
        Walk {
            grammar,
            text,
            facts,
            ancestors: Vec::new(),
            open: Vec::new(),
            functions: Vec::new(),
            owners: Vec::new(),
            loops: Vec::new(),
            pending: Vec::new(),
            tests: 0,
            markup: 0,
            lead: Lead::default(),
        }
    }

    fn all(&mut self, tree: &'t tree_sitter::Tree) {
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            self.enter(node);
            if cursor.goto_first_child() {
                self.ancestors.push(node);
                continue;
            }
            self.leave(node);
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.ancestors.pop();
                self.leave(cursor.node());
            }
        }
    }

    fn enter(&mut self, node: Node<'t>) {
        if self.pending.last().is_some_and(|(body, _)| *body == node.id())
            && let Some((_, body)) = self.pending.pop()
        {
            self.loops.push(body);
            self.opened(node, Opened::Loop);
        }
        let roles = self.grammar.roles(&node);
        if node.child_count() == 0 {
            self.token(node, roles);
        }
        if roles == 0 {
            return;
        }
        if roles & (COMMENT | ATTRIBUTE) != 0 {
            self.note(node, roles);
        }
        if roles & (FUNCTION | CLOSURE | TYPE | OWNER | MODULE | IMPORT | CONSTANT) != 0 {
            self.item(node, roles);
        }
        if roles & (LOOP | DECISION | NEST | CATCH | THROW | PROPAGATE | AWAIT | ARM | OPERATOR) != 0
            || roles & (SWITCH | IF | INDEX | UNSAFE) != 0
        {
            self.flow(node, roles);
        }
        if roles & (CALL | ASSIGN | IDENTIFIER) != 0 {
            self.uses(node, roles);
        }
        if roles & MARKUP != 0 {
            self.element(node);
        }
        if roles & NUMBER != 0 {
            self.number(node);
        }
    }

    fn leave(&mut self, node: Node<'t>) {
        while self.open.last().is_some_and(|open| open.node == node.id()) {
            let Some(open) = self.open.pop() else { return };
            match open.what {
                Opened::Function => self.close_function(),
                Opened::Owner => drop(self.owners.pop()),
                Opened::TestModule => self.tests -= 1,
                Opened::Nest => {
                    if let Some(function) = self.functions.last_mut() {
                        function.nesting = function.nesting.saturating_sub(1);
                    }
                }
                Opened::Loop => drop(self.loops.pop()),
                Opened::Markup => self.markup -= 1,
            }
        }
    }

    fn opened(&mut self, node: Node<'t>, what: Opened) {
        self.open.push(Open { node: node.id(), what });
    }

    fn close_function(&mut self) {
        let Some(function) = self.functions.pop() else { return };
        let mut calls: Vec<String> = function.called.into_iter().collect();
        calls.sort();
        let facts = &mut self.facts.functions[function.index];
        facts.calls = calls;
        facts.refers = function.refers.into_iter().collect();
        facts.refers.sort();
    }

    /// Comments and attributes: documentation, and what is left to do.
    fn note(&mut self, node: Node<'t>, roles: Roles) {
        self.lead.extend(node, self.text, roles & COMMENT != 0);
        if roles & COMMENT != 0 {
            let text = self.slice(node);
            let first = row(node);
            self.comment(node, text);
            for (offset, line) in text.lines().enumerate() {
                if let Some(mark) = todo(line) {
                    let text = super::facts::cut(line.trim().trim_start_matches(['/', '#', '*', ' ']), 100);
                    self.facts.todos.push(Todo { mark, line: first + offset, text });
                }
            }
        }
    }

    /// Keeps a comment; one that goes on where another ended, on a line of its own, is the same.
    fn comment(&mut self, node: Node<'t>, text: &str) {
        let span =
            Span { start: node.start_byte() as u32, end: (node.start_byte() + text.trim_end().len()) as u32 };
        let (line, in_test) = (row(node), self.in_test());
        let last = line + text.trim_end().lines().count().max(1) - 1;
        let before = |from: usize| self.text.get(from..node.start_byte()).unwrap_or_default();
        let goes_on =
            self.facts.notes.last().is_some_and(|note| {
                note.last + 1 == line && before(note.span.end as usize).trim().is_empty()
            });
        match self.facts.notes.last_mut().filter(|_| goes_on) {
            Some(note) => (note.span.end, note.last) = (span.end, last),
            None => self.facts.notes.push(Note { span, line, last, in_test }),
        }
    }

    fn slice(&self, node: Node) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn parent(&self) -> Option<Node<'t>> {
        self.ancestors.last().copied()
    }

    fn in_test(&self) -> bool {
        self.facts.is_test || self.tests > 0 || self.current().is_some_and(|function| function.in_test)
    }

    fn current(&self) -> Option<&super::facts::Function> {
        self.functions.last().and_then(|open| self.facts.functions.get(open.index))
    }

    fn function_index(&self) -> Option<u32> {
        self.functions.last().map(|open| open.index as u32)
    }

    /// How many loops of the function at hand are open.
    fn loop_depth(&self) -> usize {
        self.loops.len() - self.functions.last().map_or(0, |open| open.loops_before)
    }
}

/// The marks people leave, as words of their own and with the punctuation that they have.
fn todo(line: &str) -> Option<&'static str> {
    ["TODO", "FIXME", "HACK", "XXX"].into_iter().find(|mark| {
        line.match_indices(mark).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + mark.len()..].chars().next();
            let leads = line[..at].trim_matches(['/', '#', '*', ' ', '!', '@', '<', '-', '\t']).is_empty();
            let ends = after.is_none_or(|c| ":( ".contains(c));
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '`')
                && ends
                && (leads || after == Some(':'))
        })
    })
}

fn span(node: Node) -> Span {
    Span { start: node.start_byte() as u32, end: node.end_byte() as u32 }
}

/// The line of a node, from 1.
fn row(node: Node) -> usize {
    node.start_position().row + 1
}

/// The words of an expression that are names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
