//! Whether arguments are what a tool takes: found out before its server is asked.

use sage_core::expr::ResultSchema;
use serde_json::{Map, Value};

use super::answer::{ToolAnswer, ToolFailure};
use super::tool::Tool;

/// A schema that cannot be understood is its server's affair: it has the last word on what it takes.
pub fn check(tool: &Tool, arguments: &Map<String, Value>) -> Result<(), ToolFailure> {
    let Ok(schema) = ResultSchema::compile(&tool.input_schema) else { return Ok(()) };
    let given = Value::Object(arguments.clone());
    schema.check_named(&given, "the arguments").map_err(|problems| {
        let Tool { server, name, .. } = tool;
        ToolFailure::invalid(format!(
            "`{name}` of server `{server}` does not take these arguments: {}; see: sage tools describe {server}/{name}",
            problems.join("; ")
        ))
    })
}

/// Notes what an answer should have been and is not. It is used nevertheless.
pub fn look_at(tool: &Tool, answer: &mut ToolAnswer) {
    let Some(schema) = tool.output_schema.as_ref().filter(|_| !answer.is_error) else { return };
    let Tool { server, name, .. } = tool;
    let problems = match ResultSchema::compile(schema) {
        Err(error) => vec![error.to_string()],
        Ok(schema) => schema.check_named(&answer.value, "the answer").err().unwrap_or_default(),
    };
    if !problems.is_empty() {
        let problems = problems.join("; ");
        answer.notes.push(format!("`{name}` of server `{server}` breaks its own output schema: {problems}"));
    }
}
