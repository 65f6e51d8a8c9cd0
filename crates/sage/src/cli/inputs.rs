//! The inputs of a run: what was typed or sent, against what the template declares and reads.

use sage_core::inputs::{InputError, Known};
use sage_core::template::Template;
use serde_json::{Map, Value};

use super::failure::Failure;

/// What was given: `KEY=VALUE` texts and values, each with a name that the template knows.
pub fn given(
    template: &Template,
    texts: &[String],
    values: Map<String, Value>,
) -> Result<Map<String, Value>, Failure> {
    let mut inputs = values;
    for text in texts {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(format!("`{text}` is not KEY=VALUE")).hint("-i name=value"));
        };
        inputs.insert(name.into(), template.inputs.parse(name, value));
    }
    match Known::of(template).check(inputs.keys()) {
        errors if errors.is_empty() => Ok(inputs),
        errors => Err(refused(template, &errors)),
    }
}

/// With the defaults; everything that is wrong is told at once, before the run starts.
pub fn complete(template: &Template, given: Map<String, Value>) -> Result<Map<String, Value>, Failure> {
    template.inputs.complete(given).map_err(|errors| refused(template, &errors))
}

fn refused(template: &Template, errors: &[InputError]) -> Failure {
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let message = match told.as_slice() {
        [one] => format!("template `{}`: {one}", template.name),
        many => format!("template `{}`: {} wrong inputs\n  {}", template.name, many.len(), many.join("\n  ")),
    };
    let mut hints: Vec<String> = errors.iter().filter_map(InputError::hint).collect();
    hints.dedup();
    hints.into_iter().fold(Failure::usage(message), Failure::hint)
}

/// Name, value and where it comes from, for people.
pub fn rows(template: &Template, inputs: &Map<String, Value>) -> Vec<[String; 3]> {
    let declared = template.inputs.iter().map(|input| &input.name);
    let others = inputs.keys().filter(|name| template.inputs.get(name).is_none());
    let row = |name: &String| {
        let value = inputs.get(name).map_or_else(String::new, short);
        let input = template.inputs.get(name);
        let by_default = input.is_some_and(|input| input.default.as_ref() == inputs.get(name));
        let source = if by_default { "default" } else { "given" };
        let about = input.and_then(|input| input.description.clone()).map(|text| format!(": {text}"));
        [name.clone(), value, format!("{source}{}", about.unwrap_or_default())]
    };
    declared.chain(others).map(row).collect()
}

/// One line of a value.
fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = sage_core::diagnostic::printable(&value.to_string());
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
