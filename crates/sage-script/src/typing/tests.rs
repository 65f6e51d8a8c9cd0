//! Real and hostile definitions.

use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;
use crate::tools::ToolDef;

fn tool(input: Value, output: Option<Value>) -> ToolDef {
    ToolDef {
        server: "github".into(),
        name: "list-issues".into(),
        description: "Lists issues. Ends a comment: */ no".into(),
        input_schema: input,
        output_schema: output,
        read_only: true,
        destructive: false,
    }
}

fn declared(tool: &ToolDef) -> String {
    let all = servers(std::slice::from_ref(tool));
    declare(tool, &all[0].functions[0])
}

fn signed(tool: &ToolDef) -> String {
    let all = servers(std::slice::from_ref(tool));
    signature(tool, &all[0], &all[0].functions[0])
}

fn input(schema: Value) -> String {
    let text = declared(&tool(schema, None));
    let from = text.find("Input = ").unwrap() + "Input = ".len();
    let end = text.find(";\n\nexport type ListIssuesOutput").unwrap();
    text[from..end].to_string()
}

// covers: R21
#[test]
fn a_tool_becomes_a_file() {
    let schema = json!({"type": "object", "required": ["owner"], "properties": {
        "owner": {"type": "string", "description": "Who owns it"},
        "state": {"enum": ["open", "closed", null], "default": "open"},
        "per-page": {"type": "integer", "minimum": 1, "maximum": 100},
        "labels": {"type": "array", "items": {"type": ["string", "number"]}}}});
    let output = json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "required": ["kids"], "properties": {
            "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}});
    assert_snapshot!(declared(&tool(schema, Some(output))), @r#"
    import { callTool } from "sage";

    export type ListIssuesInput = {
      /** Who owns it */
      owner: string;
      /** @default "open" */
      state?: "open" | "closed" | null;
      /** @minimum 1 @maximum 100 */
      "per-page"?: number;
      labels?: (string | number)[];
    };

    export type ListIssuesOutput = {
      tree?: ListIssuesNode;
    };

    export type ListIssuesNode = {
      kids: ListIssuesNode[];
    };

    /**
     * Lists issues. Ends a comment: *\/ no
     * The server says that this changes nothing.
     */
    export async function listIssues(input: ListIssuesInput): Promise<ListIssuesOutput> {
      return await callTool("github", "list-issues", input) as ListIssuesOutput;
    }
    "#);
}

#[test]
fn a_tool_becomes_a_line() {
    let schema = json!({"type": "object", "required": ["owner"], "properties": {
        "owner": {"type": "string"}, "state": {"enum": ["open", "closed"]}}});
    let output =
        json!({"type": "array", "items": {"type": "object", "properties": {"title": {"type": "string"}}}});
    assert_snapshot!(signed(&tool(schema, Some(output))), @r#"servers/github: listIssues(input: { owner: string; state?: "open" | "closed" }): Promise<{ title?: string }[]>  // Lists issues"#);
    assert_snapshot!(signed(&tool(json!({"type": "object"}), None)), @"servers/github: listIssues(input?: Record<string, unknown>): Promise<unknown>  // Lists issues");
}

#[test]
fn every_word_of_a_schema_has_a_type() {
    let cases = [
        (json!({}), "Record<string, unknown>"),
        (json!(true), "Record<string, unknown>"),
        (json!(false), "never"),
        (json!({"type": "object", "additionalProperties": {"type": "number"}}), "Record<string, number>"),
        (json!({"type": "object", "additionalProperties": false}), "Record<string, never>"),
        (json!({"patternProperties": {"^x": {"type": "string"}}}), "Record<string, unknown>"),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 1, "items": false}),
            "[string, number?]",
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "null"}}),
            "[string, ...null[]]",
        ),
        (json!({"oneOf": [{"type": "string"}, {"type": "string"}, {"const": 3}]}), "string | 3"),
        (
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}),
            "(string | null)[]",
        ),
        (json!({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}]}), "string & (\"a\" | \"b\")"),
        (json!({"type": "string", "nullable": true}), "string | null"),
        (json!({"$ref": "https://elsewhere/x"}), "Record<string, unknown>"),
        (json!({"$ref": "#/nowhere"}), "Record<string, unknown>"),
        (json!({"type": "odd"}), "Record<string, unknown>"),
        (json!({"enum": []}), "never"),
        (json!({"enum": [{"a": 1}, "b"]}), "Record<string, unknown>"),
    ];
    for (schema, expected) in cases {
        assert_eq!(input(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn hostile_names_are_quoted() {
    let schema = json!({"type": "object", "properties": {
        "a\"; evil(); //": {"type": "string", "description": "x */ y"}, "__proto__": {}, "ok": {}, "1": {}}});
    let text = input(schema);
    assert!(text.contains(r#""a\"; evil(); //"?: string"#), "{text}");
    assert!(text.contains(r#""__proto__"?: unknown"#) && text.contains(r#""1"?: unknown"#), "{text}");
    assert!(text.contains("/** x *\\/ y */"), "{text}");
}

// covers: R21
#[test]
fn hostile_schemas_end_in_bounded_time_and_space() {
    let mut deep = json!({"type": "string"});
    for _ in 0..120 {
        deep =
            json!({"type": "object", "properties": {"a": deep.clone(), "b": {"anyOf": [{"type": "null"}]}}});
    }
    let wide: serde_json::Map<String, Value> =
        (0..50_000).map(|number| (format!("f{number}"), json!({"type": "string"}))).collect();
    // Each refers twice to the next: 2^40 if it were written out.
    let bomb: serde_json::Map<String, Value> = (0..40)
        .map(|number| {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            (format!("d{number}"), json!({"type": "object", "properties": {"l": next, "r": next}}))
        })
        .collect();
    let texts: Vec<Value> = (0..5_000).map(|number| json!(format!("choice {number}"))).collect();
    let all = [
        deep,
        json!({"type": "object", "properties": wide}),
        json!({"$ref": "#/$defs/d0", "$defs": bomb}),
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}]}),
        json!({"enum": texts}),
        json!({"type": "string", "description": "x".repeat(1 << 20)}),
    ];
    for schema in all {
        let begun = Instant::now();
        let tool = tool(schema.clone(), Some(schema));
        let (file, line) = (declared(&tool), signed(&tool));
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert!(file.len() < 150_000 && line.len() < 2_000, "{} {}", file.len(), line.len());
    }
}
