//! The languages that can be read: for each, what its kinds of syntax nodes mean.
//!
//! A language is a table `node kind -> roles`; the walk (`extract`) knows roles only, and a few fields whose
//! names grammars share (`name`, `body`, `parameters`).

mod go;
mod java;
mod python;
mod rust;
mod typescript;

use std::collections::HashMap;

/// What a node means, as bits: a `catch` is a decision, nests, and catches.
pub(super) type Roles = u32;

pub(super) const FUNCTION: Roles = 1;
/// A function without a name of its own: it may get one from where it is put.
pub(super) const CLOSURE: Roles = 1 << 1;
pub(super) const TYPE: Roles = 1 << 2;
/// Gives its name to the functions in it.
pub(super) const OWNER: Roles = 1 << 3;
pub(super) const MODULE: Roles = 1 << 4;
pub(super) const IMPORT: Roles = 1 << 5;
pub(super) const CONSTANT: Roles = 1 << 6;
pub(super) const COMMENT: Roles = 1 << 7;
pub(super) const ATTRIBUTE: Roles = 1 << 8;
pub(super) const LOOP: Roles = 1 << 9;
pub(super) const DECISION: Roles = 1 << 10;
pub(super) const NEST: Roles = 1 << 11;
pub(super) const CALL: Roles = 1 << 12;
pub(super) const CATCH: Roles = 1 << 13;
pub(super) const THROW: Roles = 1 << 14;
pub(super) const PROPAGATE: Roles = 1 << 15;
pub(super) const AWAIT: Roles = 1 << 16;
pub(super) const NUMBER: Roles = 1 << 17;
pub(super) const LITERAL: Roles = 1 << 18;
pub(super) const IDENTIFIER: Roles = 1 << 19;
pub(super) const ASSIGN: Roles = 1 << 20;
pub(super) const DECLARE: Roles = 1 << 21;
pub(super) const INDEX: Roles = 1 << 22;
pub(super) const SWITCH: Roles = 1 << 23;
pub(super) const IF: Roles = 1 << 24;
pub(super) const MARKUP: Roles = 1 << 25;
pub(super) const UNSAFE: Roles = 1 << 26;
/// `&&`, `||`, `and`, `or` make decisions; other operators do not.
pub(super) const OPERATOR: Roles = 1 << 27;
pub(super) const MACRO: Roles = 1 << 28;
/// A decision only if it does something (an arm with a block).
pub(super) const ARM: Roles = 1 << 29;

/// Languages that behave differently beyond their node kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Language {
    Rust,
    TypeScript,
    JavaScript,
    Python,
    Go,
    Java,
}

impl Language {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Language::Rust => "Rust",
            Language::TypeScript => "TypeScript",
            Language::JavaScript => "JavaScript",
            Language::Python => "Python",
            Language::Go => "Go",
            Language::Java => "Java",
        }
    }

    pub(super) fn is_script(self) -> bool {
        matches!(self, Language::TypeScript | Language::JavaScript)
    }
}

/// A language, ready to be read.
pub(super) struct Grammar {
    pub language: Language,
    pub syntax: tree_sitter::Language,
    roles: Vec<Roles>,
}

impl Grammar {
    fn new(language: Language, syntax: tree_sitter::Language, table: &[(&str, Roles)]) -> Grammar {
        let by_name: HashMap<&str, Roles> = table.iter().copied().collect();
        let roles = (0..syntax.node_kind_count())
            // A keyword may be called as its node is: `await`.
            .map(|id| u16::try_from(id).ok().filter(|id| syntax.node_kind_is_named(*id)))
            .map(|id| id.and_then(|id| syntax.node_kind_for_id(id)))
            .map(|kind| kind.and_then(|kind| by_name.get(kind)).copied().unwrap_or(0))
            .collect();
        Grammar { language, syntax, roles }
    }

    pub fn roles(&self, node: &tree_sitter::Node) -> Roles {
        self.roles.get(usize::from(node.kind_id())).copied().unwrap_or(0)
    }
}

/// Grammars by file extension, made when first needed.
#[derive(Default)]
pub(super) struct Grammars {
    made: HashMap<&'static str, Grammar>,
}

impl Grammars {
    pub fn of(&mut self, extension: &str) -> Option<&Grammar> {
        let key = canonical(extension)?;
        Some(self.made.entry(key).or_insert_with(|| make(key)))
    }
}

/// The extensions that are read, as one per grammar.
pub(super) fn canonical(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "rs" => "rs",
        "ts" | "mts" | "cts" => "ts",
        "tsx" => "tsx",
        "js" | "mjs" | "cjs" | "jsx" => "js",
        "py" | "pyi" => "py",
        "go" => "go",
        "java" => "java",
        _ => return None,
    })
}

fn make(key: &str) -> Grammar {
    use tree_sitter_typescript::{LANGUAGE_TSX, LANGUAGE_TYPESCRIPT};
    match key {
        "rs" => Grammar::new(Language::Rust, tree_sitter_rust::LANGUAGE.into(), rust::TABLE),
        "ts" => Grammar::new(Language::TypeScript, LANGUAGE_TYPESCRIPT.into(), typescript::TABLE),
        "tsx" => Grammar::new(Language::TypeScript, LANGUAGE_TSX.into(), typescript::TABLE),
        "py" => Grammar::new(Language::Python, tree_sitter_python::LANGUAGE.into(), python::TABLE),
        "go" => Grammar::new(Language::Go, tree_sitter_go::LANGUAGE.into(), go::TABLE),
        "java" => Grammar::new(Language::Java, tree_sitter_java::LANGUAGE.into(), java::TABLE),
        _ => Grammar::new(Language::JavaScript, tree_sitter_javascript::LANGUAGE.into(), typescript::TABLE),
    }
}

/// Code that is there but that nothing here can read, to say so.
pub(crate) fn unread_language(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "c" | "h" => "C",
        "cc" | "cpp" | "cxx" | "hpp" => "C++",
        "cs" => "C#",
        "rb" => "Ruby",
        "php" => "PHP",
        "kt" | "kts" => "Kotlin",
        "swift" => "Swift",
        "scala" => "Scala",
        "dart" => "Dart",
        "ex" | "exs" => "Elixir",
        "hs" => "Haskell",
        "clj" => "Clojure",
        "lua" => "Lua",
        "zig" => "Zig",
        "vue" => "Vue",
        "svelte" => "Svelte",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that a grammar does not have is a misspelling or a new version of the grammar.
    #[test]
    fn tables_name_kinds_that_exist() {
        let tables = [
            ("rs", rust::TABLE),
            ("tsx", typescript::TABLE),
            ("py", python::TABLE),
            ("go", go::TABLE),
            ("java", java::TABLE),
        ];
        for (key, table) in tables {
            let syntax = make(key).syntax;
            let known = |kind: &str| syntax.id_for_node_kind(kind, true) != 0;
            let unknown: Vec<&str> =
                table.iter().map(|(kind, _)| *kind).filter(|kind| !known(kind)).collect();
            assert_eq!(unknown, Vec::<&str>::new(), "{key}");
        }
    }
}
