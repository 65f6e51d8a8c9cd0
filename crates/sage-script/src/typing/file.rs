//! The texts that are made of a tool: its file, its line, and the module that code really imports.

use serde_json::Value;

use super::doc;
use super::name::{Function, Server};
use super::schema::{Form, Types, required};
use crate::tools::ToolDef;

/// Of a file: definitions that are longer lose what is described last.
const MAX_FILE_BYTES: usize = 64 << 10;
/// Of a signature.
const MAX_SIGNATURE_CHARS: usize = 400;

/// `servers/<server>/<function>.ts`: the types of a tool and the function that calls it.
pub fn declare(tool: &ToolDef, function: &Function) -> String {
    let prefix = &function.type_name;
    let mut types = Types::new(&tool.input_schema, prefix, Form::Lines);
    let input = input_type(&types.root());
    let mut others = types.declarations();
    let output = match &tool.output_schema {
        Some(schema) => {
            types.turn_to(schema);
            let output = types.root();
            others += &types.declarations();
            output
        }
        None => "unknown".into(),
    };
    let (server, name) = (Value::from(tool.server.as_str()), Value::from(tool.name.as_str()));
    let said = doc::comment(&told(tool), doc::MAX_TOOL_CHARS, 0);
    let default = if all_optional(&tool.input_schema) { " = {}" } else { "" };
    let types =
        format!("export type {prefix}Input = {input};\n\nexport type {prefix}Output = {output};\n\n{others}");
    let types = match types.len() > MAX_FILE_BYTES {
        true => format!(
            "// Its schema is too big to be shown.\nexport type {prefix}Input = Record<string, unknown>;\n\nexport type {prefix}Output = unknown;\n\n"
        ),
        false => types,
    };
    format!(
        "import {{ callTool }} from \"sage\";\n\n{types}{said}export async function {function}(input: {prefix}Input{default}): Promise<{prefix}Output> {{\n  return await callTool({server}, {name}, input) as {prefix}Output;\n}}\n",
        function = function.name,
    )
}

/// One line for a model that has found the tool and wants to call it.
pub fn signature(tool: &ToolDef, server: &Server, function: &Function) -> String {
    let input = input_type(&Types::new(&tool.input_schema, &function.type_name, Form::Inline).root());
    let output = tool.output_schema.as_ref().map_or_else(
        || "unknown".to_string(),
        |schema| Types::new(schema, &function.type_name, Form::Inline).root(),
    );
    let cut = |text: String| match text.char_indices().nth(MAX_SIGNATURE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    let mark = if all_optional(&tool.input_schema) { "?" } else { "" };
    let said = doc::sentence(&tool.description, 120);
    let said = if said.is_empty() { said } else { format!("  // {said}") };
    let (input, output) = (cut(input), cut(output));
    format!("servers/{}: {}(input{mark}: {input}): Promise<{output}>{said}", server.module, function.name)
}

/// `servers/<server>/index.ts`: all functions of a server with the types of their ends.
pub fn index(server: &Server) -> String {
    let line = |function: &Function| {
        let (name, types) = (&function.name, &function.type_name);
        format!(
            "export {{ {name} }} from \"./{name}.ts\";\nexport type {{ {types}Input, {types}Output }} from \"./{name}.ts\";\n"
        )
    };
    server.functions.iter().map(line).collect()
}

/// What code gets when it imports the server: the functions alone.
pub fn script(server: &Server, catalogue: &[ToolDef]) -> String {
    let mut out = String::from("import { callTool } from \"sage\";\n");
    for function in &server.functions {
        let name = Value::from(catalogue[function.index].name.as_str());
        let (server, function) = (Value::from(server.name.as_str()), &function.name);
        out += &format!("export const {function} = async (input) => callTool({server}, {name}, input);\n");
    }
    out
}

fn told(tool: &ToolDef) -> String {
    let mut text = tool.description.clone();
    if tool.destructive {
        text += "\nThe server says that this may destroy something.";
    } else if tool.read_only {
        text += "\nThe server says that this changes nothing.";
    }
    text
}

/// An input is always an object, whatever the schema forgets to say.
fn input_type(text: &str) -> String {
    if text == "unknown" { "Record<string, unknown>".into() } else { text.into() }
}

fn all_optional(schema: &Value) -> bool {
    let plain = !["oneOf", "anyOf", "allOf", "$ref"].iter().any(|word| schema.get(*word).is_some());
    plain && schema.as_object().is_none_or(|map| required(map).next().is_none())
}
