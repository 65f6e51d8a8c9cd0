//! Walks the syntax tree and blanks what is only for the type checker.
//!
//! Taking text away can join what belonged apart: `const a = b as T` before a line that begins with `(`, an
//! arrow whose return type spans lines, a class member that began with `public`. There a `;` or a parenthesis
//! is put where the types were.

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk};
use oxc::span::{GetSpan, Span};
use sage_core::diagnostic::Diagnostic;

use super::canvas::Canvas;
use super::refuse::Refused;

/// Words before a member's name that only the type checker reads.
const MODIFIERS: [&str; 7] =
    ["public", "private", "protected", "readonly", "override", "abstract", "declare"];

#[derive(Debug)]
pub(super) struct Eraser<'a> {
    pub canvas: Canvas<'a>,
    pub refused: Vec<Diagnostic>,
}

impl<'a> Eraser<'a> {
    pub fn new(text: &'a str) -> Eraser<'a> {
        Eraser { canvas: Canvas::new(text), refused: Vec::new() }
    }

    fn refuse(&mut self, what: Refused, span: Span) {
        self.refused.push(what.at(span));
    }

    /// After a statement that ends in something erased and has no `;` of its own.
    fn close(&mut self, end: u32, since: usize) {
        if let Some(start) = self.canvas.erased_until(end, since) {
            self.canvas.put(start, b';');
        }
    }

    /// Blanks modifiers from `start` up to the name. The first one becomes `;`: what follows may begin with `[`.
    fn modifiers(&mut self, start: u32, name: u32) {
        let mut at = self.canvas.token_from(start);
        while at < name {
            let word = self.canvas.word(at);
            if word.is_empty() {
                return;
            }
            if MODIFIERS.contains(&word) {
                self.canvas.erase(at, at + word.len() as u32);
                if at == start {
                    self.canvas.put(at, b';');
                }
            }
            at = self.canvas.token_from(at + word.len() as u32);
        }
    }

    /// The `?` or `!` after a member's name.
    fn mark_after_name(&mut self, key: &PropertyKey<'a>, computed: bool, mark: u8) {
        let mut at = key.span().end;
        if computed {
            let bracket = self.canvas.token_from(at);
            at = bracket + u32::from(self.canvas.byte(bracket) == Some(b']'));
        }
        self.canvas.erase_mark(at, mark);
    }

    /// `expression as T`: from the keyword to the end.
    fn cast(&mut self, expression: &Expression<'a>, end: u32) {
        let keyword = self.canvas.token_from(expression.span().end);
        self.canvas.erase(keyword, end);
        self.visit_expression(expression);
    }

    fn specifier(&mut self, span: Span) {
        self.canvas.erase(span.start, span.end);
        self.canvas.erase_mark(span.end, b',');
    }

    /// The parentheses of an arrow move over a line break, which may stand in types only.
    fn arrow_parentheses(&mut self, it: &ArrowFunctionExpression<'a>) {
        if let Some(types) = &it.type_parameters {
            let open = it.params.span.start;
            if self.canvas.has_line_break(types.span.start, open) && self.canvas.byte(open) == Some(b'(') {
                self.canvas.put(types.span.start, b'(');
                self.canvas.erase(open, open + 1);
            }
        }
        if let Some(result) = &it.return_type {
            let close = it.params.span.end - 1;
            if self.canvas.has_line_break(close, result.span.end) && self.canvas.byte(close) == Some(b')') {
                let last = self.canvas.text()[..result.span.end as usize].char_indices().next_back();
                self.canvas.erase(close, close + 1);
                self.canvas.put(last.map_or(close, |(at, _)| at as u32), b')');
            }
        }
    }

    fn class_head(&mut self, it: &Class<'a>) {
        if it.r#abstract {
            let at = self.canvas.token_from(it.span.start);
            if self.canvas.word(at) == "abstract" {
                self.canvas.erase(at, at + "abstract".len() as u32);
            }
        }
        let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) else { return };
        let before = &self.canvas.text()[..first.span.start as usize];
        if let Some(keyword) = before.rfind("implements") {
            self.canvas.erase(keyword as u32, last.span.end);
        }
    }

    /// Whether a declaration is for the type checker only; refuses those that are more.
    fn is_type_only(&mut self, it: &Declaration<'a>) -> bool {
        match it {
            Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
            Declaration::FunctionDeclaration(function) => function.declare || function.body.is_none(),
            Declaration::ClassDeclaration(class) => class.declare,
            Declaration::VariableDeclaration(variables) => variables.declare,
            Declaration::TSEnumDeclaration(it) => it.declare || self.refused_as(Refused::Enum, it.span),
            Declaration::TSNamespaceDeclaration(it) => {
                it.declare || self.refused_as(Refused::Namespace, it.span)
            }
            Declaration::TSExternalModuleDeclaration(it) => {
                it.declare || self.refused_as(Refused::Namespace, it.span)
            }
            Declaration::TSGlobalDeclaration(it) => {
                it.declare || self.refused_as(Refused::Namespace, it.span)
            }
            Declaration::TSImportEqualsDeclaration(it) => {
                it.import_kind.is_type() || self.refused_as(Refused::ImportEquals, it.span)
            }
        }
    }

    /// Nothing below it is looked at, so it counts as erased.
    fn refused_as(&mut self, what: Refused, span: Span) -> bool {
        // The first line says it; a whole enum underlined says no more.
        let text = &self.canvas.text()[span.start as usize..span.end as usize];
        let end = span.start + text.find(['{', '\n']).unwrap_or(text.len()) as u32;
        self.refuse(what, Span::new(span.start, end));
        true
    }

    /// Whether a statement is for the type checker only.
    fn is_type_statement(&mut self, it: &Statement<'a>) -> bool {
        if let Some(declaration) = it.as_declaration() {
            return self.is_type_only(declaration);
        }
        match it {
            Statement::ImportDeclaration(it) => it.import_kind.is_type(),
            Statement::ExportDeclaration(it) => self.is_type_only(&it.declaration),
            Statement::ExportNamedDeclaration(it) => it.export_kind.is_type(),
            Statement::ExportFromDeclaration(it) => it.export_kind.is_type(),
            Statement::ExportAllDeclaration(it) => it.export_kind.is_type(),
            Statement::ExportDefaultDeclaration(it) => match &it.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.body.is_none(),
                _ => false,
            },
            Statement::TSNamespaceExportDeclaration(_) => true,
            Statement::TSExportAssignment(it) => self.refused_as(Refused::ExportEquals, it.span),
            _ => false,
        }
    }
}

impl<'a> Visit<'a> for Eraser<'a> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        if self.is_type_statement(it) {
            return self.canvas.erase_statement(it.span());
        }
        let since = self.canvas.erasures();
        walk::walk_statement(self, it);
        self.close(it.span().end, since);
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.canvas.erase(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.canvas.erase(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.canvas.erase(it.span.start, it.span.end);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.specifier(it.span);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.cast(&it.expression, it.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.cast(&it.expression, it.span.end);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.canvas.erase(it.span.end - 1, it.span.end);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.refuse(Refused::AngleAssertion, Span::new(it.span.start, it.expression.span().start));
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(Refused::Decorator, it.span);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.canvas.erase_mark(it.id.span().end, b'!');
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(Refused::ParameterProperty, it.span);
        }
        if it.optional {
            self.canvas.erase_mark(it.pattern.span().end, b'?');
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.arrow_parentheses(it);
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        self.class_head(it);
        walk::walk_class(self, it);
    }

    fn visit_ts_class_implements_list(&mut self, _: &oxc::allocator::Vec<'a, TSClassImplements<'a>>) {}

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        let type_only = match it {
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::MethodDefinition(it) => it.r#type.is_abstract() || it.value.body.is_none(),
            ClassElement::PropertyDefinition(it) => it.r#type.is_abstract() || it.declare,
            ClassElement::AccessorProperty(it) => it.r#type.is_abstract(),
            ClassElement::StaticBlock(_) => false,
        };
        if type_only {
            return self.canvas.erase_statement(it.span());
        }
        walk::walk_class_element(self, it);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        self.modifiers(it.span.start, it.key.span().start);
        if it.optional {
            self.mark_after_name(&it.key, it.computed, b'?');
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        let since = self.canvas.erasures();
        self.modifiers(it.span.start, it.key.span().start);
        if it.optional {
            self.mark_after_name(&it.key, it.computed, b'?');
        }
        if it.definite {
            self.mark_after_name(&it.key, it.computed, b'!');
        }
        walk::walk_property_definition(self, it);
        self.close(it.span.end, since);
    }

    fn visit_accessor_property(&mut self, it: &AccessorProperty<'a>) {
        self.refuse(Refused::Accessor, it.span);
    }

    fn visit_import_specifier(&mut self, it: &ImportSpecifier<'a>) {
        if it.import_kind.is_type() {
            self.specifier(it.span);
        }
    }

    fn visit_export_specifier(&mut self, it: &ExportSpecifier<'a>) {
        if it.export_kind.is_type() {
            self.specifier(it.span);
        }
    }
}
