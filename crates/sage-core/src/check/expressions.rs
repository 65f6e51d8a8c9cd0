//! Expressions and schemas: do they compile, and may they see the steps that they mention?
//!
//! Equal texts are compiled once: 100,000 operations usually share a handful.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Document;
use super::ancestry::Ancestry;
use super::names::Names;
use crate::diagnostic::{Diagnostic, Diagnostics, printable};
use crate::expr::{ExprError, Jinja, Jq, Language, ResultSchema, is_dynamic, mentions};
use crate::source::{Data, Node};
use crate::template::{Kind, Operation, Source};

pub fn check(
    names: &Names<'_>,
    ancestry: Option<&Ancestry<'_, '_>>,
    document: &Document<'_, '_>,
    problems: &mut Diagnostics,
) {
    let mut check = Check {
        names,
        ancestry,
        document,
        problems,
        jq: HashSet::new(),
        jinja: HashMap::new(),
        schemas: HashSet::new(),
    };
    for step in 0..names.places.len() as u32 {
        check.operation(step);
    }
    for (p, phase) in names.template.phases.iter().enumerate() {
        if let Some(repeat) = &phase.repeat {
            let site = Site {
                field: &|| format!("phases[{p}].repeat.while"),
                name: "while",
                who: Who::EndOf(p as u32),
            };
            check.jq(&repeat.while_, &site);
        }
    }
}

struct Check<'c, 't> {
    names: &'c Names<'t>,
    ancestry: Option<&'c Ancestry<'c, 't>>,
    document: &'c Document<'c, 'c>,
    problems: &'c mut Diagnostics,
    /// Texts that compile.
    jq: HashSet<String>,
    /// With the name of the fan-out's item that is used, if any.
    jinja: HashMap<String, Option<&'static str>>,
    schemas: HashSet<String>,
}

/// Where an expression stands, and from where it looks at other steps.
struct Site<'s> {
    field: &'s dyn Fn() -> String,
    name: &'s str,
    who: Who,
}

#[derive(Clone, Copy)]
enum Who {
    /// Evaluated before the step starts.
    Before(u32),
    /// Evaluated when the step has its result.
    After(u32),
    EndOf(u32),
}

impl<'t> Check<'_, 't> {
    fn operation(&mut self, step: u32) {
        let operation: &'t Operation = self.names.operation(step);
        let (p, position) = self.names.places[step as usize];
        let field = |name: &str| format!("phases[{p}].operations[{position}].{name}");
        for (name, source, who) in [
            ("when", &operation.when, Who::Before(step)),
            ("foreach", &operation.foreach, Who::Before(step)),
            ("filter", &operation.filter, Who::After(step)),
        ] {
            if let Some(source) = source {
                self.jq(source, &Site { field: &|| field(name), name, who });
            }
        }
        if let Some(source) = &operation.session {
            self.jinja(
                source,
                &Site { field: &|| field("session"), name: "session", who: Who::Before(step) },
            );
        }
        if let Some(source) = &operation.output {
            self.jinja(source, &Site { field: &|| field("output"), name: "output", who: Who::After(step) });
        }
        if let Some(schema) = &operation.schema {
            self.schema(schema, operation, step);
        }
        if operation.dynamic {
            self.params(operation, step);
        }
    }

    fn jq(&mut self, source: &Source, site: &Site<'_>) {
        if !self.jq.contains(&source.text) {
            match Jq::compile(&source.text) {
                Ok(_) => {
                    self.jq.insert(source.text.clone());
                }
                Err(error) => return self.invalid("jq", source, error, site),
            }
        }
        self.mentions(source, Language::Jq, site);
    }

    fn jinja(&mut self, source: &Source, site: &Site<'_>) {
        if !is_dynamic(&source.text) {
            return;
        }
        if !self.jinja.contains_key(&source.text) {
            match Jinja::compile(&source.text) {
                Ok(jinja) => {
                    let of_item = ["item", "index"].into_iter().find(|name| jinja.uses(name));
                    self.jinja.insert(source.text.clone(), of_item);
                }
                Err(error) => return self.invalid("Jinja", source, error, site),
            }
        }
        let of_item = self.jinja.get(&source.text).copied().flatten();
        if let (Some(name), Who::Before(step) | Who::After(step)) = (of_item, site.who)
            && self.names.operation(step).foreach.is_none()
        {
            let error = ExprError::new(format!("`{name}` is only known in an operation with `foreach`"));
            return self.invalid("Jinja", source, error, site);
        }
        self.mentions(source, Language::Jinja, site);
    }

    fn invalid(&mut self, language: &str, source: &Source, error: ExprError, site: &Site<'_>) {
        let span = self.document.part(source, error.range);
        let message = format!("invalid {language} in `{}`: {}", site.name, error.message);
        self.problems.push(Diagnostic::error((site.field)(), span, message).hint_if(error.hint));
    }

    fn schema(&mut self, schema: &Value, operation: &Operation, step: u32) {
        let text = schema.to_string();
        if self.schemas.contains(&text) {
            return;
        }
        match ResultSchema::compile(schema) {
            Ok(_) => {
                self.schemas.insert(text);
            }
            Err(error) => {
                let (p, position) = self.names.places[step as usize];
                let node = self.document.operation_field(p as usize, position as usize, "schema");
                let span = node.map_or(operation.span, |node| node.span);
                let field = format!("phases[{p}].operations[{position}].schema");
                self.problems.push(Diagnostic::error(field, span, error.message));
            }
        }
    }

    /// Every string of `params` that will be rendered.
    fn params(&mut self, operation: &Operation, step: u32) {
        let (p, position) = self.names.places[step as usize];
        let (document, place) = (self.document, (p as usize, position as usize));
        let written = document.operation_field(place.0, place.1, "params");
        for (name, value) in &operation.params {
            if matches!((operation.kind, &**name), (Kind::Shell, "run") | (Kind::Script, "code")) {
                continue;
            }
            let beside = document.operation_field(place.0, place.1, name).filter(|_| name == "prompt");
            let node = written.and_then(|node| node.get(name)).or(beside);
            let field = format!("phases[{p}].operations[{position}].params.{name}");
            self.texts(value, node, &field, name, operation, step);
        }
    }

    fn texts(
        &mut self,
        value: &Value,
        node: Option<&Node<'_>>,
        field: &str,
        name: &str,
        operation: &Operation,
        step: u32,
    ) {
        match value {
            Value::String(text) if is_dynamic(text) => {
                let span = node.map_or(operation.span, |node| node.span);
                let source = Source { text: text.clone(), span };
                let site = Site { field: &|| field.to_owned(), name, who: Who::Before(step) };
                self.jinja(&source, &site);
            }
            Value::Array(items) => {
                let nodes = node.and_then(|node| match &node.data {
                    Data::Seq(nodes) => Some(nodes.as_slice()),
                    _ => None,
                });
                for (index, item) in items.iter().enumerate() {
                    let node = nodes.and_then(|nodes| nodes.get(index));
                    self.texts(item, node, &format!("{field}[{index}]"), name, operation, step);
                }
            }
            Value::Object(map) => {
                for (key, item) in map.iter().filter(|(key, _)| *key != "run") {
                    let node = node.and_then(|node| node.get(key));
                    self.texts(item, node, &format!("{field}.{key}"), name, operation, step);
                }
            }
            _ => {}
        }
    }

    fn mentions(&mut self, source: &Source, language: Language, site: &Site<'_>) {
        for mention in mentions(&source.text, language) {
            let span = self.document.part(source, Some(mention.range));
            let path = printable(mention.path);
            let Some(step) = self.names.find_path(mention.path) else {
                let message = format!("unknown step `{path}`");
                let hint = self.problems.wants_hints().then(|| self.names.path_hint(mention.path)).flatten();
                self.problems.push(Diagnostic::error((site.field)(), span, message).hint_if(hint));
                continue;
            };
            let Some(message) = self.out_of_sight(step, site.who) else { continue };
            let problem = Diagnostic::error((site.field)(), span, message);
            let hint = match site.who {
                Who::Before(own) | Who::After(own) if own != step => Some(format!("needs: [{path}]")),
                _ => None,
            };
            self.problems.push(problem.hint_if(hint));
        }
    }

    /// Why an expression cannot see a step, if so.
    fn out_of_sight(&self, step: u32, who: Who) -> Option<String> {
        // With a cycle nothing is before anything; the cycle has been reported.
        let ancestry = self.ancestry?;
        let path = self.names.path(step);
        match who {
            Who::After(own) if own == step => None,
            Who::Before(own) if own == step && !ancestry.is_in_loop(own, step) => {
                Some(format!("`{path}` has no result before it runs"))
            }
            Who::Before(own) | Who::After(own) => (!ancestry.has(own, step)
                && !ancestry.is_in_loop(own, step))
            .then(|| format!("`{path}` is used here, but this operation does not depend on it")),
            Who::EndOf(phase) => (!ancestry.has_by_end_of(phase, step))
                .then(|| format!("`{path}` is used here, but this phase does not depend on it")),
        }
    }
}
