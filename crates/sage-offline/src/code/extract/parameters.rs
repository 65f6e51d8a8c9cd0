//! What a function takes and gives, and how much of it has a type.

use tree_sitter::Node;

use super::super::grammar::Language;
use super::Walk;

#[derive(Default)]
pub(super) struct Shape {
    pub params: usize,
    pub typed: usize,
    pub returns_typed: bool,
    pub fallible: bool,
}

impl<'t> Walk<'_, 't> {
    pub(super) fn signature_shape(&self, node: Node<'t>) -> Shape {
        let mut shape = Shape::default();
        if let Some(parameters) = node.child_by_field_name("parameters") {
            let mut cursor = parameters.walk();
            for parameter in parameters.named_children(&mut cursor) {
                let (count, typed) = self.parameter(parameter);
                shape.params += count;
                shape.typed += if typed { count } else { 0 };
            }
        } else if node.child_by_field_name("parameter").is_some() {
            shape.params = 1;
        }
        let field = match self.grammar.language {
            Language::Go => "result",
            Language::Java => "type",
            _ => "return_type",
        };
        let returns = node.child_by_field_name(field).map_or("", |returns| self.slice(returns));
        // A function without a type there gives nothing, and the compiler knows.
        let implied = matches!(self.grammar.language, Language::Rust | Language::Go | Language::Java);
        shape.returns_typed = implied || !returns.is_empty();
        shape.fallible = match self.grammar.language {
            Language::Go => super::words(returns).any(|word| word == "error"),
            Language::Java => children(node).any(|child| child.kind() == "throws"),
            Language::Rust => super::words(returns).any(|word| word.ends_with("Result")),
            _ => returns.contains("Result<") || returns.contains("ResultAsync<"),
        };
        shape
    }

    /// How many parameters a node declares, and whether with a type.
    fn parameter(&self, node: Node<'t>) -> (usize, bool) {
        let text = self.slice(node);
        match node.kind() {
            "self_parameter"
            | "keyword_separator"
            | "positional_separator"
            | "receiver_parameter"
            | "attribute_item"
            | "line_comment"
            | "block_comment"
            | "comment" => (0, false),
            _ if self.grammar.language == Language::Python && matches!(text, "self" | "cls") => (0, false),
            _ if self.grammar.language.is_script() && text.starts_with("this:") => (0, false),
            "spread_parameter" => (1, true),
            "parameter_declaration" => {
                let mut cursor = node.walk();
                (node.children_by_field_name("name", &mut cursor).count().max(1), true)
            }
            _ => (1, node.child_by_field_name("type").is_some()),
        }
    }
}

pub(super) fn children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    (0..node.child_count()).filter_map(move |index| node.child(index))
}
