//! Go.

use super::*;

pub(super) const TABLE: &[(&str, Roles)] = &[
    ("function_declaration", FUNCTION),
    ("method_declaration", FUNCTION),
    ("func_literal", CLOSURE),
    ("type_spec", TYPE),
    ("type_alias", TYPE),
    ("import_spec", IMPORT),
    ("const_spec", CONSTANT),
    ("comment", COMMENT),
    ("for_statement", LOOP | DECISION | NEST),
    ("if_statement", IF | DECISION | NEST),
    ("expression_switch_statement", SWITCH | NEST),
    ("type_switch_statement", SWITCH | NEST),
    ("select_statement", NEST),
    ("expression_case", DECISION),
    ("type_case", DECISION),
    ("communication_case", DECISION),
    ("binary_expression", OPERATOR),
    ("call_expression", CALL),
    ("short_var_declaration", ASSIGN | DECLARE),
    ("var_spec", ASSIGN | DECLARE),
    ("assignment_statement", ASSIGN),
    ("index_expression", INDEX),
    ("int_literal", NUMBER | LITERAL),
    ("float_literal", NUMBER | LITERAL),
    ("interpreted_string_literal_content", LITERAL),
    ("raw_string_literal_content", LITERAL),
    ("rune_literal", LITERAL),
    ("identifier", IDENTIFIER),
];
