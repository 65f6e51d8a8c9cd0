//! The lines of functions as hashes of their tokens, with variable names and literals taken out: two places with
//! the same lines were copied, whatever the variables are called. Names of what is called and of fields stay.

use std::hash::{DefaultHasher, Hash, Hasher};

use tree_sitter::Node;

use super::super::facts::{Number, ShapeLine};
use super::super::grammar::*;
use super::{Walk, row, span};

impl<'t> Walk<'_, 't> {
    pub(super) fn token(&mut self, node: Node<'t>, roles: Roles) {
        if roles & COMMENT != 0 || node.start_byte() == node.end_byte() || self.in_test() {
            return;
        }
        let Some(open) = self.functions.last() else { return };
        let function = open.index as u32;
        // Signatures that override each other are the same, and must be.
        if node.start_byte() < open.body_start {
            return;
        }
        let token = if roles & LITERAL != 0 {
            "0"
        } else if roles & IDENTIFIER != 0 && !self.is_telling(node) {
            "x"
        } else {
            self.slice(node)
        };
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        let hash = hasher.finish();
        let line = row(node) as u32;
        match self.facts.shape.last_mut() {
            Some(last) if last.line == line && last.function == function => {
                last.hash = last.hash.rotate_left(5) ^ hash;
                last.tokens = last.tokens.saturating_add(1);
            }
            _ => self.facts.shape.push(ShapeLine { line, hash, tokens: 1, function }),
        }
    }

    /// Names of functions, attributes and macros say what a line does; names of variables do not.
    fn is_telling(&self, node: Node<'t>) -> bool {
        self.parent().is_some_and(|parent| {
            let field = |name| parent.child_by_field_name(name).is_some_and(|child| child.id() == node.id());
            match parent.kind() {
                "call_expression" | "call" => field("function"),
                "method_invocation" | "scoped_identifier" => field("name"),
                "attribute" => field("attribute"),
                "macro_invocation" => field("macro"),
                _ => false,
            }
        })
    }

    /// A number in the middle of code, where nobody gave it a name.
    pub(super) fn number(&mut self, node: Node<'t>) {
        let named = self.ancestors.iter().rev().take(3).any(|around| {
            let roles = self.grammar.roles(around);
            roles & CONSTANT != 0
                || matches!(around.kind(), "enum_variant" | "enum_assignment" | "range_expression")
        });
        if !named && !self.in_test() && self.functions.last().is_some() {
            self.facts.numbers.push(Number { span: span(node), line: row(node) as u32 });
        }
    }
}
