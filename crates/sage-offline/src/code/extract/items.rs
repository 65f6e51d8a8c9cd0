//! Functions, types, constants and imports.

use std::collections::HashSet;

use tree_sitter::Node;

use super::super::facts::{Constant, Function, Import, Type, cut};
use super::super::grammar::*;
use super::lead::{Lead, first_sentence};
use super::parameters::children;
use super::{Opened, Owner, Walk, row};

/// What decorates a function without anybody else calling it.
const PASSIVE: &[&str] = &[
    "inline",
    "allow",
    "expect",
    "must_use",
    "cfg",
    "doc",
    "track_caller",
    "cold",
    "deprecated",
    "staticmethod",
    "classmethod",
    "property",
    "override",
    "cached_property",
    "lru_cache",
    "functools",
    "abstractmethod",
    "contextmanager",
    "SuppressWarnings",
    "Deprecated",
    "Nullable",
    "Nonnull",
    "instrument",
];

const JAVA_TESTS: &[&str] = &["Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate"];

impl<'t> Walk<'_, 't> {
    pub(super) fn item(&mut self, node: Node<'t>, roles: Roles) {
        if roles & IMPORT != 0 {
            return self.import(node);
        }
        if roles & CONSTANT != 0 {
            return self.constant(node);
        }
        if roles & MODULE != 0 {
            return self.module(node);
        }
        if roles & FUNCTION != 0
            && let Some(name) = node.child_by_field_name("name")
        {
            return self.function(node, node, self.slice(name).to_string(), false);
        }
        if roles & CLOSURE != 0 {
            return self.closure(node);
        }
        if roles & TYPE != 0 {
            self.type_item(node);
        }
        if roles & OWNER != 0 {
            self.owner(node);
        }
    }

    /// `whole` is what the reader sees as the function: with the name that it is given.
    fn function(&mut self, node: Node<'t>, whole: Node<'t>, name: String, named_test: bool) {
        let lead = self.lead.take(first_row(whole, self.parent()));
        let mut shape = self.signature_shape(node);
        if whole.id() != node.id() && whole.child_by_field_name("type").is_some() {
            // `const add: Add = (a, b) => ..`
            (shape.typed, shape.returns_typed) = (shape.params, true);
        }
        let is_test = named_test || self.is_test_function(node, &name, &lead);
        let body = node.child_by_field_name("body");
        let signature = self.signature(whole, body);
        let line = row(node.child_by_field_name("name").unwrap_or(whole));
        let function = Function {
            owner: self.owner_name(node),
            line,
            lines: whole.end_position().row + 2 - line,
            params: shape.params,
            typed_params: shape.typed,
            returns_typed: shape.returns_typed,
            complexity: 1,
            doc: self.doc(node, &lead),
            is_test,
            in_test: is_test || self.in_test(),
            is_public: self.is_public(node, &name),
            is_async: signature.split_whitespace().take(6).any(|word| word == "async" || word == "(async"),
            is_expected: self.is_expected(node, &name, &lead),
            is_fallible: shape.fallible,
            name,
            signature,
            ..Function::default()
        };
        let index = self.facts.functions.len();
        self.facts.functions.push(function);
        let loops_before = self.loops.len();
        let body_start = body.map_or(usize::MAX, |body| body.start_byte());
        self.functions.push(super::OpenFunction {
            index,
            nesting: 0,
            loops_before,
            body_start,
            called: HashSet::new(),
            refers: HashSet::new(),
        });
        self.opened(node, Opened::Function);
    }

    fn signature(&self, whole: Node<'t>, body: Option<Node<'t>>) -> String {
        let end = body.map_or(whole.end_byte(), |body| body.start_byte());
        let text = self.text.get(whole.start_byte()..end).unwrap_or_default();
        // Annotations that stand alone say nothing about the shape.
        let words = text.split_whitespace().skip_while(|word| word.starts_with('@') && !word.contains('('));
        let text = words.collect::<Vec<_>>().join(" ");
        let text = text.replace("( ", "(").replace(", )", ")").replace(" )", ")");
        let text = text.trim_end_matches([':', '{', ' ', ';']).trim_end_matches("=>").trim_end();
        cut(text, 160)
    }

    /// Functions without a name that are given one, and tests that are called with one.
    fn closure(&mut self, node: Node<'t>) {
        let Some(parent) = self.parent() else { return };
        if !self.grammar.language.is_script() {
            return;
        }
        let field = match parent.kind() {
            "variable_declarator" | "public_field_definition" => "name",
            "field_definition" => "property",
            "pair" => "key",
            "assignment_expression" => "left",
            "arguments" => return self.named_test(node),
            _ => return,
        };
        if let Some(name) = parent.child_by_field_name(field) {
            let name = self.slice(name).rsplit('.').next().unwrap_or_default().to_string();
            if !name.is_empty() && !name.contains(char::is_whitespace) {
                self.function(node, parent, name, false);
            }
        }
    }

    /// `it("adds", () => ...)`
    fn named_test(&mut self, node: Node<'t>) {
        let Some(call) = self.ancestors.iter().rev().nth(1).copied() else { return };
        let callee = call.child_by_field_name("function").map_or("", |callee| self.slice(callee));
        let base = callee.split(['.', '(']).next().unwrap_or_default();
        let name = call.child_by_field_name("arguments").and_then(|arguments| arguments.named_child(0));
        if let (true, Some(name)) = (["it", "test", "fit", "xit", "specify"].contains(&base), name)
            && matches!(name.kind(), "string" | "template_string")
        {
            let name = cut(self.slice(name).trim_matches(['"', '\'', '`']), 100);
            self.function(node, call, name, true);
        }
    }

    fn doc(&self, node: Node<'t>, lead: &Lead) -> Option<String> {
        if self.grammar.language == Language::Python {
            let first = node.child_by_field_name("body")?.named_child(0)?;
            let text = first.named_child(0).filter(|child| child.kind() == "string")?;
            return first_sentence(self.slice(text));
        }
        lead.doc(self.grammar.language == Language::Go)
    }

    fn is_test_function(&self, node: Node<'t>, name: &str, lead: &Lead) -> bool {
        match self.grammar.language {
            Language::Rust => lead.attributes().iter().any(|attribute| {
                let inner = attribute.trim_start_matches("#[").split(['(', ']']).next().unwrap_or_default();
                let last = inner.rsplit("::").next().unwrap_or_default().trim();
                last == "test" || last == "rstest" || last == "test_case"
            }),
            Language::Python => self.facts.is_test && name.starts_with("test"),
            Language::Go => {
                self.facts.path.ends_with("_test.go")
                    && ["Test", "Fuzz", "Example"].iter().any(|start| name.starts_with(start))
            }
            Language::Java => super::words(self.modifiers(node)).any(|word| JAVA_TESTS.contains(&word)),
            _ => false,
        }
    }

    fn modifiers(&self, node: Node<'t>) -> &'t str {
        children(node).find(|child| child.kind() == "modifiers").map_or("", |child| self.slice(child))
    }

    fn is_public(&self, node: Node<'t>, name: &str) -> bool {
        match self.grammar.language {
            Language::Rust => {
                children(node).any(|c| c.kind() == "visibility_modifier" && self.slice(c) == "pub")
            }
            Language::Python => !name.starts_with('_'),
            Language::Go => name.starts_with(char::is_uppercase),
            Language::Java => self.modifiers(node).contains("public"),
            _ if node.kind() == "method_definition" => {
                let hidden = children(node)
                    .any(|child| child.kind() == "accessibility_modifier" && self.slice(child) != "public");
                !hidden && !name.starts_with(['#', '_'])
            }
            _ => {
                let exported = |around: &&Node| around.kind() == "export_statement";
                self.ancestors.iter().rev().take(3).find(exported).is_some()
                    || self.parent().is_some_and(|parent| {
                        parent.kind() == "assignment_expression" && self.slice(parent).contains("exports.")
                    })
            }
        }
    }

    fn is_expected(&self, node: Node<'t>, name: &str, lead: &Lead) -> bool {
        let active = |text: &str| {
            let inner = text.trim_start_matches(['#', '[', '@', '!']);
            let word = inner.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            !PASSIVE.contains(&word)
        };
        let dunder = name.starts_with("__") && name.ends_with("__");
        let annotated =
            self.modifiers(node).split_whitespace().any(|word| word.starts_with('@') && active(word));
        matches!(name, "main" | "init" | "constructor" | "default" | "setup" | "teardown")
            || dunder
            || annotated
            || lead.attributes().iter().any(|text| active(text))
            || self.owners.last().is_some_and(|owner| owner.inherits)
            || node.child_by_field_name("body").is_none()
            || self.parent().is_some_and(|parent| matches!(parent.kind(), "pair" | "object"))
    }

    fn owner_name(&self, node: Node<'t>) -> Option<String> {
        let Some(receiver) = node.child_by_field_name("receiver") else {
            return self.owners.last().filter(|_| self.functions.is_empty()).map(|owner| owner.name.clone());
        };
        super::words(self.slice(receiver)).last().map(str::to_string)
    }

    fn owner(&mut self, node: Node<'t>) {
        let field = |name| node.child_by_field_name(name).map(|child| self.slice(child));
        let name = field("name").or_else(|| field("type")).unwrap_or_default();
        let name = name.split('<').next().unwrap_or_default().trim().to_string();
        let bases = ["trait", "superclass", "superclasses", "interfaces"];
        let heritage = children(node).any(|child| child.kind() == "class_heritage");
        let inherits = heritage || bases.iter().any(|base| node.child_by_field_name(base).is_some());
        self.owners.push(Owner { name, inherits: inherits || node.kind() == "trait_item" });
        self.opened(node, Opened::Owner);
    }

    fn type_item(&mut self, node: Node<'t>) {
        let Some(name) = node.child_by_field_name("name") else { return };
        let name = self.slice(name).to_string();
        let lead = self.lead.take(first_row(node, self.parent()));
        let kind = match node.kind() {
            "type_spec" => match node.child_by_field_name("type").map(|inner| inner.kind()) {
                Some("struct_type") => "struct",
                Some("interface_type") => "interface",
                _ => "type",
            },
            kind => ["struct", "enum", "union", "trait", "class", "interface", "record", "annotation"]
                .into_iter()
                .find(|word| kind.contains(word))
                .unwrap_or("type"),
        };
        self.facts.types.push(Type {
            kind,
            line: row(node),
            lines: node.end_position().row - node.start_position().row + 1,
            doc: self.doc(node, &lead),
            is_public: self.is_public(node, &name),
            in_test: self.in_test(),
            name,
        });
    }

    fn module(&mut self, node: Node<'t>) {
        let lead = self.lead.take(node.start_position().row);
        let test = lead
            .attributes()
            .iter()
            .any(|text| text.contains("cfg(") && super::words(text).any(|w| w == "test"));
        if test && node.child_by_field_name("body").is_some() {
            self.tests += 1;
            self.opened(node, Opened::TestModule);
        }
    }

    fn constant(&mut self, node: Node<'t>) {
        if self.in_test() {
            return;
        }
        let java = self.grammar.language == Language::Java;
        let modifiers = self.modifiers(node);
        if java
            && node.kind() == "field_declaration"
            && !(modifiers.contains("static") && modifiers.contains("final"))
        {
            return;
        }
        let named = node.child_by_field_name("declarator").unwrap_or(node);
        if let Some(name) = named.child_by_field_name("name") {
            let name = self.slice(name).to_string();
            if name != "_" {
                self.facts.constants.push(Constant { name, line: row(node) });
            }
        }
    }

    fn import(&mut self, node: Node<'t>) {
        let fields = ["argument", "source", "module_name", "path", "name"];
        let path = fields.iter().find_map(|field| node.child_by_field_name(field));
        let path = path.or_else(|| node.named_child(0)).map_or("", |path| self.slice(path));
        let path = path.trim_matches(['"', '\'', '`']).split_whitespace().collect::<Vec<_>>().join(" ");
        self.facts.imports.push(Import { path: cut(&path, 200), line: row(node) });
    }
}

/// An item starts where its `export` or its decorators' item starts.
fn first_row(node: Node, parent: Option<Node>) -> usize {
    let wrapped = parent.filter(|parent| {
        matches!(parent.kind(), "export_statement" | "lexical_declaration" | "type_declaration")
    });
    wrapped.unwrap_or(node).start_position().row
}
