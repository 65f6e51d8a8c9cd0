//! What other parts want to know about a script before it runs: its imports, the workflows it calls, its
//! `meta`, whose words it uses.

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk};
use oxc::span::{GetSpan, Span};
use oxc::syntax::scope::ScopeFlags;
use sage_core::diagnostic::Diagnostic;
use sage_core::port::script::Dialect;
use serde_json::Value;

use super::Form;
use super::literal;
use super::refuse::place;

/// What a script says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scan {
    /// Modules that it imports, as written; `import type` is not among them.
    pub imports: Vec<String>,
    /// What it gives to `workflow(..)` where that is known: names, and paths of `{scriptPath: ".."}`.
    pub workflows: Vec<String>,
    /// Where the first call of each of them stands, in bytes.
    pub workflow_spans: Vec<(usize, usize)>,
    /// It gives a computed name to `workflow(..)`: any workflow may be meant.
    pub calls_any: bool,
    /// `export const meta = {..}`.
    pub meta: Option<Value>,
    pub dialect: Dialect,
    /// Whether it returns at top level.
    pub returns: bool,
    /// Where its import statements stand, in bytes.
    pub import_spans: Vec<(usize, usize)>,
    /// Where the word `export` stands before `meta`.
    pub(crate) meta_export: Option<(usize, usize)>,
}

/// Looks through a program. Fails with what a workflow of its dialect may not have.
pub(super) fn scan(program: &Program<'_>, form: Form) -> Result<Scan, Vec<Diagnostic>> {
    let mut scanner = Scanner { scan: Scan::default(), depth: 0, claude: false, problems: Vec::new() };
    if form == Form::Workflow {
        scanner.claude = program.body.first().is_some_and(|first| meta_of(first).is_some())
            && !program.body.iter().any(|it| matches!(it, Statement::ExportDefaultDeclaration(_)));
        scanner.read_meta(program);
    }
    if scanner.claude {
        scanner.scan.dialect = Dialect::Claude;
    }
    scanner.visit_program(program);
    scanner.refuse_return(form, program);
    if scanner.problems.is_empty() { Ok(scanner.scan) } else { Err(scanner.problems) }
}

struct Scanner {
    scan: Scan,
    /// Functions around the place that is looked at.
    depth: u32,
    claude: bool,
    problems: Vec<Diagnostic>,
}

/// The value of `export const meta = ..`, if the statement is that.
fn meta_of<'s, 'a>(statement: &'s Statement<'a>) -> Option<(&'s Expression<'a>, Span)> {
    let Statement::ExportDeclaration(export) = statement else { return None };
    let Declaration::VariableDeclaration(variables) = &export.declaration else { return None };
    let [only] = variables.declarations.as_slice() else { return None };
    let BindingPattern::BindingIdentifier(name) = &only.id else { return None };
    let named = variables.kind == VariableDeclarationKind::Const && name.name == "meta";
    let init = only.init.as_ref().filter(|_| named)?;
    Some((init, Span::new(export.span.start, variables.span.start)))
}

impl Scanner {
    fn problem(&mut self, span: Span, message: &str, hint: &str) {
        self.problems.push(Diagnostic::error("", place(span), message).hint(hint));
    }

    fn read_meta(&mut self, program: &Program<'_>) {
        let Some((init, export)) = program.body.iter().find_map(meta_of) else { return };
        self.scan.meta_export = Some((export.start as usize, export.end as usize));
        match literal::value(init) {
            Ok(meta @ Value::Object(_)) => self.scan.meta = Some(meta),
            Ok(_) => self.problem(init.span(), "`meta` must be an object", "write `export const meta = { name: \"..\" }`"),
            Err(span) => self.problem(
                span,
                "`meta` is read without running the script, so everything in it must be written out",
                "texts, numbers, true, false, null, lists and objects of those; no names, no calls, no `${..}`",
            ),
        }
        if self.claude {
            self.check_meta(init.span());
        }
    }

    fn check_meta(&mut self, span: Span) {
        let Some(Value::Object(meta)) = &self.scan.meta else { return };
        let text =
            |name: &str| meta.get(name).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
        let missing: Vec<&str> = ["name", "description"].into_iter().filter(|name| !text(name)).collect();
        if !missing.is_empty() {
            let message = format!("`meta` needs a `{}`", missing.join("` and a `"));
            self.problem(span, &message, "write `export const meta = { name: \"..\", description: \"..\" }`");
        }
    }

    fn refuse_return(&mut self, form: Form, program: &Program<'_>) {
        let allowed = self.claude || form == Form::Body;
        if self.scan.returns && !allowed {
            let at = program.body.iter().find(|it| matches!(it, Statement::ReturnStatement(_)));
            let span = at.map_or(program.span, GetSpan::span);
            let hint = "put it into a function: `export default async (sage, input) => { .. return .. }`";
            self.problem(span, "`return` outside of a function", hint);
        }
    }

    fn refuse_import(&mut self, span: Span, what: &str) {
        if self.claude {
            let message = format!("a script with `meta` and globals cannot use {what}");
            let hint = "write `export default async (sage, input) => { .. }` to import modules";
            self.problem(span, &message, hint);
        }
    }

    fn imported(&mut self, span: Span, source: &str, statement: bool) {
        self.refuse_import(span, "`import`");
        if !self.scan.imports.iter().any(|known| known == source) {
            self.scan.imports.push(source.to_owned());
        }
        if statement {
            self.scan.import_spans.push((span.start as usize, span.end as usize));
        }
    }

    fn other_export(&mut self, span: Span) {
        if self.claude && self.scan.meta_export.is_none_or(|(start, _)| start != span.start as usize) {
            let hint = "the result of such a script is what it returns: `return { .. }`";
            self.problem(span, "only `meta` can be exported here", hint);
        }
    }

    fn called_workflow(&mut self, it: &CallExpression<'_>) {
        let Some(first) = it.arguments.first().and_then(Argument::as_expression) else { return };
        let named = literal::text(first).or_else(|| {
            let Expression::ObjectExpression(object) = first else { return None };
            object.properties.iter().find_map(|property| match property {
                ObjectPropertyKind::ObjectProperty(property)
                    if property.key.static_name().as_deref() == Some("scriptPath") =>
                {
                    literal::text(&property.value)
                }
                _ => None,
            })
        });
        match named {
            Some(name) if !self.scan.workflows.contains(&name) => {
                self.scan.workflows.push(name);
                self.scan.workflow_spans.push((first.span().start as usize, first.span().end as usize));
            }
            Some(_) => {}
            // A computed path is not a name: what lies there nobody knows before the run.
            None => self.scan.calls_any |= !matches!(first, Expression::ObjectExpression(_)),
        }
    }
}

impl<'a> Visit<'a> for Scanner {
    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        if !it.import_kind.is_type() {
            self.imported(it.span, &it.source.value, true);
        }
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        if !it.export_kind.is_type() {
            self.imported(it.span, &it.source.value, false);
        }
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        if !it.export_kind.is_type() {
            self.imported(it.span, &it.source.value, false);
        }
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        self.refuse_import(it.span, "`import()`");
        if let Some(source) = literal::text(&it.source) {
            self.imported_dynamically(source);
        }
        walk::walk_import_expression(self, it);
    }

    fn visit_export_declaration(&mut self, it: &ExportDeclaration<'a>) {
        let types = matches!(
            it.declaration,
            Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_)
        );
        if !types {
            self.other_export(it.span);
        }
        walk::walk_export_declaration(self, it);
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        if !it.export_kind.is_type() {
            self.other_export(it.span);
        }
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        match it.callee.without_parentheses() {
            Expression::Identifier(name) if name.name == "require" => {
                self.refuse_import(it.span, "`require`")
            }
            Expression::Identifier(name) if name.name == "workflow" => self.called_workflow(it),
            Expression::StaticMemberExpression(member) if member.property.name == "workflow" => {
                self.called_workflow(it);
            }
            _ => {}
        }
        walk::walk_call_expression(self, it);
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        self.scan.returns |= self.depth == 0;
        walk::walk_return_statement(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.depth += 1;
        walk::walk_function(self, it, flags);
        self.depth -= 1;
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.depth += 1;
        walk::walk_arrow_function_expression(self, it);
        self.depth -= 1;
    }
}

impl Scanner {
    fn imported_dynamically(&mut self, source: String) {
        if !self.scan.imports.contains(&source) {
            self.scan.imports.push(source);
        }
    }
}
