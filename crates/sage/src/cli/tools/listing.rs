//! Tools as people see them: found by words, one line each or more, and one with all that is known of it.

use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use sage_agents::mcp::{Hub, Tool, untrusted};
use sage_script::tools::{self, ToolDef};
use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::table::print_table;
use crate::cli::{print, print_json};
use crate::code::definition;
use crate::display::text::clean;

/// Of a description in a list.
const SUMMARY_CHARS: usize = 80;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it is about; the best come first
    words: Vec<String>,
    /// How much to tell of each
    #[arg(long, value_enum, default_value = "names")]
    detail: Detail,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Detail {
    Names,
    Signatures,
    Full,
}

impl Detail {
    fn of_code(self) -> tools::Detail {
        match self {
            Detail::Names => tools::Detail::Names,
            Detail::Signatures => tools::Detail::Signatures,
            Detail::Full => tools::Detail::Full,
        }
    }
}

pub async fn search(context: &Context, hub: &Arc<Hub>, args: &Args, json: bool) -> Result<ExitCode, Failure> {
    let (mut all, mut silent) = (Vec::new(), Vec::new());
    for (server, answer) in hub.tools().await {
        match answer {
            Ok(tools) => all.extend(tools.iter().cloned()),
            Err(failure) => silent.push((server, failure.message)),
        }
    }
    silent.extend(hub.untrusted().map(|server| (server.to_string(), untrusted(server))));
    let catalogue: Vec<ToolDef> = all.iter().map(definition).collect();
    let hits = tools::search(&catalogue, &args.words.join(" "), args.detail.of_code(), args.limit);
    let more = hits.total.saturating_sub(hits.hits.len());
    let found: Vec<(&Tool, &str)> =
        hits.hits.iter().map(|hit| (&all[hit.index], hit.text.as_str())).collect();
    if json {
        let tools: Vec<Value> = found.iter().map(|(tool, text)| shown(tool, text, args.detail)).collect();
        let silent: Vec<Value> =
            silent.iter().map(|(server, why)| json!({"server": server, "error": why})).collect();
        print_json(&json!({"tools": tools, "more": more, "unreachable": silent}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (_, why) in &silent {
        eprintln!("warning: {}", clean(why));
    }
    if found.is_empty() {
        print(nothing(context, args));
    }
    match args.detail {
        Detail::Names => {
            let row = |(tool, _): &(&Tool, &str)| {
                [format!("{}/{}", tool.server, clean(&tool.name)), clean(&tool.summary(SUMMARY_CHARS))]
            };
            print_table(&found.iter().map(row).collect::<Vec<_>>());
        }
        Detail::Signatures => found.iter().for_each(|(_, text)| print(format_args!("{}\n", clean(text)))),
        Detail::Full => found.iter().for_each(|(tool, _)| print_full(tool)),
    }
    if more > 0 {
        eprintln!("and {more} more: --limit {}", args.limit + more);
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn describe(
    context: &Context,
    hub: &Hub,
    server: &str,
    tool: &str,
    json: bool,
) -> Result<ExitCode, Failure> {
    let tool = hub.tool(server, tool).await.map_err(|failure| super::told(context, failure))?;
    if json {
        print_json(&shown(&tool, &signature(&tool), Detail::Full))?;
    } else {
        print_full(&tool);
    }
    Ok(ExitCode::SUCCESS)
}

fn nothing(context: &Context, args: &Args) -> String {
    if context.config.servers.defined.is_empty() {
        return "this project has no MCP servers: [mcp.<name>] command = \"...\" in sage.toml\n".into();
    }
    format!("no tool fits: {}\n", args.words.join(" "))
}

fn parameters(tool: &Tool) -> impl Iterator<Item = (&String, &Value)> {
    tool.input_schema["properties"].as_object().into_iter().flatten()
}

/// `files/read(path: string, lines?: integer)`
fn signature(tool: &Tool) -> String {
    let required = |name: &str| {
        let needed = tool.input_schema["required"].as_array();
        needed.is_some_and(|needed| needed.iter().any(|it| it == name))
    };
    let parameter = |(name, schema): (&String, &Value)| {
        let mark = if required(name) { "" } else { "?" };
        let kind = schema["type"].as_str().unwrap_or("any");
        format!("{}{mark}: {}", clean(name), clean(kind))
    };
    let parameters: Vec<String> = parameters(tool).map(parameter).collect();
    format!("{}/{}({})", tool.server, clean(&tool.name), parameters.join(", "))
}

fn hints(tool: &Tool) -> String {
    let mut hints = Vec::new();
    hints.push(match (tool.read_only, tool.destructive) {
        (true, _) => "only reads",
        (false, true) => "may destroy",
        (false, false) => "only adds",
    });
    if tool.idempotent && !tool.read_only {
        hints.push("twice is as good as once");
    }
    if !tool.open_world {
        hints.push("knows nobody outside");
    }
    hints.join(", ")
}

fn print_full(tool: &Tool) {
    print(format_args!("{}\n", signature(tool)));
    if let Some(title) = &tool.title {
        print(format_args!("  {}\n", clean(title)));
    }
    for line in tool.description.lines() {
        print(format_args!("  {}\n", clean(line)));
    }
    for (name, schema) in parameters(tool) {
        let about = schema["description"].as_str().unwrap_or_default();
        if !about.is_empty() {
            print(format_args!("  {}: {}\n", clean(name), clean(about)));
        }
    }
    print(format_args!("  it says of itself: {}\n", hints(tool)));
    let schema = |name: &str, schema: &Value| {
        let text = serde_json::to_string_pretty(schema).unwrap_or_default();
        print(format_args!("  {name} {}\n", text.replace('\n', "\n  ")));
    };
    schema("takes", &tool.input_schema);
    if let Some(output) = &tool.output_schema {
        schema("gives", output);
    }
    print(format_args!("  pinned {}\n", &tool.hash[..12]));
    if let Some(why) = &tool.refused {
        print(format_args!("  refused: {}\n", clean(why)));
    }
}

fn shown(tool: &Tool, text: &str, detail: Detail) -> Value {
    let mut shown = json!({"server": tool.server, "name": tool.name, "summary": tool.summary(SUMMARY_CHARS)});
    if detail != Detail::Names {
        shown["signature"] = if detail == Detail::Full { signature(tool) } else { text.to_owned() }.into();
    }
    if detail == Detail::Full {
        shown["title"] = json!(tool.title);
        shown["description"] = json!(tool.description);
        shown["inputSchema"] = tool.input_schema.clone();
        shown["outputSchema"] = json!(tool.output_schema);
        shown["readOnly"] = tool.read_only.into();
        shown["destructive"] = tool.destructive.into();
        shown["idempotent"] = tool.idempotent.into();
        shown["openWorld"] = tool.open_world.into();
        shown["hash"] = json!(tool.hash);
    }
    if let Some(why) = &tool.refused {
        shown["refused"] = json!(why);
    }
    shown
}
