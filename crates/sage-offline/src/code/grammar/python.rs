//! Python.

use super::*;

pub(super) const TABLE: &[(&str, Roles)] = &[
    ("function_definition", FUNCTION),
    ("lambda", CLOSURE),
    ("class_definition", TYPE | OWNER),
    ("import_statement", IMPORT),
    ("import_from_statement", IMPORT),
    ("comment", COMMENT),
    ("decorator", ATTRIBUTE),
    ("for_statement", LOOP | DECISION | NEST),
    ("while_statement", LOOP | DECISION | NEST),
    ("if_statement", IF | DECISION | NEST),
    ("elif_clause", DECISION),
    ("match_statement", NEST),
    ("case_clause", DECISION),
    ("conditional_expression", DECISION),
    ("boolean_operator", OPERATOR),
    ("comparison_operator", OPERATOR),
    ("except_clause", CATCH | DECISION | NEST),
    ("with_statement", NEST),
    ("raise_statement", THROW),
    ("call", CALL),
    ("await", AWAIT),
    ("assignment", ASSIGN | DECLARE),
    ("augmented_assignment", ASSIGN),
    ("subscript", INDEX),
    ("integer", NUMBER | LITERAL),
    ("float", NUMBER | LITERAL),
    ("string_content", LITERAL),
    ("identifier", IDENTIFIER),
];
