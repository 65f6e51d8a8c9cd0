//! The names of inputs that a template can use: those it declares and those that its expressions mention.
//!
//! A step that gets all inputs may read any of them: code without an `input` of its own, `{{ inputs }}`, a
//! script that reads the file `$SAGE_INPUT`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::InputError;
use crate::expr::{Language, inputs_of, is_dynamic};
use crate::template::{Kind, Operation, Template};

/// The variable with the path of a step's input file.
const INPUT_FILE: &str = "SAGE_INPUT";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub names: BTreeSet<String>,
    /// Something reads all of them: any name will do.
    pub any: bool,
}

impl Known {
    pub fn of(template: &Template) -> Known {
        let mut known = Known::default();
        known.names.extend(template.inputs.iter().map(|input| input.name.clone()));
        for phase in &template.phases {
            if let Some(repeat) = &phase.repeat {
                known.read(&repeat.while_.text, Language::Jq);
            }
            phase.operations.iter().for_each(|operation| known.operation(operation));
        }
        known
    }

    /// Names that nothing in the template reads.
    pub fn check<'a>(&self, given: impl IntoIterator<Item = &'a String>) -> Vec<InputError> {
        let unknown = |name: &&String| !self.any && !self.names.contains(*name);
        let error = |name: &String| {
            let known = self.names.iter().cloned().collect();
            InputError::Unknown { name: name.clone(), known }
        };
        given.into_iter().filter(unknown).map(error).collect()
    }

    fn operation(&mut self, operation: &Operation) {
        for source in [&operation.when, &operation.foreach, &operation.filter].into_iter().flatten() {
            self.read(&source.text, Language::Jq);
        }
        for source in [&operation.session, &operation.output].into_iter().flatten() {
            self.read(&source.text, Language::Jinja);
        }
        match operation.kind {
            // Without an input of its own, code gets them all.
            Kind::Script if !operation.params.contains_key("input") => self.any = true,
            Kind::Shell => self.script(&operation.params),
            _ => {}
        }
        operation.params.values().for_each(|value| self.rendered(value));
        if let Some(command) = operation.expect.as_ref().and_then(|expect| expect.get("command")) {
            self.script_text(command);
        }
    }

    fn script(&mut self, params: &Map<String, Value>) {
        for name in ["run", "argv"] {
            params.get(name).into_iter().for_each(|value| self.script_text(value));
        }
    }

    /// A script is not rendered; what it reads it reads from the file.
    fn script_text(&mut self, value: &Value) {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if text.contains(INPUT_FILE) {
            let before = (self.names.len(), self.any);
            self.read(&text, Language::Jq);
            // A program that is given the file, and does not say what it reads.
            self.any |= before == (self.names.len(), self.any) && !text.contains("inputs");
        }
    }

    fn rendered(&mut self, value: &Value) {
        match value {
            Value::String(text) if is_dynamic(text) => self.read(text, Language::Jinja),
            Value::Array(items) => items.iter().for_each(|item| self.rendered(item)),
            Value::Object(map) => map.values().for_each(|item| self.rendered(item)),
            _ => {}
        }
    }

    fn read(&mut self, text: &str, language: Language) {
        for name in inputs_of(text, language) {
            match name {
                Some(name) => drop(self.names.insert(name.to_string())),
                None => self.any = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Frozen;
    use crate::source::Format;

    fn known(operation: &str) -> (Vec<String>, bool) {
        let text = format!("name: t\ninputs: {{ a: 1 }}\nphases:\n  - id: p\n    operations: {operation}\n");
        let template = crate::load::reload(&Frozen::new("t", Format::Yaml, text)).unwrap();
        let known = Known::of(&template);
        (known.names.into_iter().collect(), known.any)
    }

    // covers: R6
    #[test]
    fn names_come_from_declarations_and_expressions() {
        let table = [
            ("{ type: shell, params: { run: echo } }", vec!["a"], false),
            ("{ type: shell, when: inputs.b, params: { run: echo } }", vec!["a", "b"], false),
            (
                "{ type: shell, params: { run: echo, env: { X: '{{ inputs[\"c\"] }}' } } }",
                vec!["a", "c"],
                false,
            ),
            ("{ type: shell, params: { run: 'jq -r .inputs.d \"$SAGE_INPUT\"' } }", vec!["a", "d"], false),
            ("{ type: shell, params: { run: './x.py \"$SAGE_INPUT\"' } }", vec!["a"], true),
            ("{ type: agent, agent: x, prompt: 'all: {{ inputs | tojson }}' }", vec!["a"], true),
            ("{ type: script, params: { code: 'export default async () => 1;' } }", vec!["a"], true),
            (
                "{ type: script, params: { code: 'export default async () => 1;', input: '{{ inputs.e }}' } }",
                vec!["a", "e"],
                false,
            ),
        ];
        for (operation, names, any) in table {
            let names: Vec<String> = names.into_iter().map(str::to_string).collect();
            assert_eq!(known(operation), (names, any), "{operation}");
        }
    }
}
