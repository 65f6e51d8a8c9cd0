//! `sage tools`: what the MCP servers of the project can do: search, describe, call, approve.

mod approve;
mod listing;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use sage_agents::mcp::{Hub, ToolFailure};
use sage_core::policy::FailureClass;
use serde_json::{Map, Value, json};

use super::config::duration;
use super::context::{Context, runtime};
use super::failure::{Failure, Kind};
use super::{print, print_json};
use crate::code::Guard;
use crate::display::text::clean;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Find tools by what they are about; without words, all of them
    Search(listing::Args),
    /// Show one tool: what it does, what it takes, what it gives
    Describe {
        /// The tool, as `server/tool`
        #[arg(value_parser = tool_name)]
        tool: (String, String),
    },
    /// Call a tool and print what it answers
    Call(CallArgs),
    /// Review and approve new and changed tools of a server
    Approve {
        /// The server's name
        server: String,
        /// Only this tool
        tool: Option<String>,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
struct CallArgs {
    /// The tool, as `server/tool`
    #[arg(value_parser = tool_name)]
    tool: (String, String),
    /// An argument; JSON where it can be read as such, a text elsewhere
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    one: Vec<String>,
    /// All arguments, as a JSON object
    #[arg(long = "args", value_name = "JSON")]
    all: Option<String>,
    /// How long it may take, such as 90s
    #[arg(long, value_name = "TIME", value_parser = limit)]
    timeout: Option<u64>,
}

fn tool_name(text: &str) -> Result<(String, String), String> {
    let (server, tool) = text.split_once('/').ok_or("a tool is named as `server/tool`")?;
    if server.is_empty() || tool.is_empty() {
        return Err("a tool is named as `server/tool`".into());
    }
    Ok((server.to_owned(), tool.to_owned()))
}

fn limit(text: &str) -> Result<u64, String> {
    duration(text).map_err(|failure| failure.message)
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    context.project.prepare(context.disk.as_ref()).map_err(|error| Failure::failed(error.to_string()))?;
    let hub = context.hub();
    runtime()?.block_on(async {
        let acting = act(context, &hub, args);
        let outcome = tokio::select! {
            outcome = acting => outcome,
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(130)),
        };
        for note in hub.take_notes() {
            eprintln!("note: {}", clean(&note));
        }
        hub.close().await;
        outcome
    })
}

async fn act(context: &Context, hub: &Arc<Hub>, args: Args) -> Result<ExitCode, Failure> {
    if let Action::Call(CallArgs { tool: (server, _), .. }) | Action::Approve { server, .. } = &args.action
        && let Some(definition) = context.config.untrusted_server(server)
    {
        return Err(Failure::untrusted(vec![definition.clone()]));
    }
    match args.action {
        Action::Search(search) => listing::search(context, hub, &search, args.json).await,
        Action::Describe { tool: (server, tool) } => {
            listing::describe(context, hub, &server, &tool, args.json).await
        }
        Action::Call(call) => self::call(context, hub, call, args.json).await,
        Action::Approve { server, tool, yes } => {
            let review = approve::Review { server: &server, tool: tool.as_deref(), yes, json: args.json };
            review.run(context, hub).await
        }
    }
}

async fn call(context: &Context, hub: &Arc<Hub>, args: CallArgs, json: bool) -> Result<ExitCode, Failure> {
    let arguments = arguments(&args)?;
    let (server, tool) = &args.tool;
    let timeout = args.timeout.map(Duration::from_millis);
    let guard = Guard::new(Arc::clone(hub), context.limits());
    let answer = guard.call(server, tool, arguments, timeout).await;
    let answer = answer.map_err(|failure| told(context, failure))?;
    hub.note(answer.notes.clone());
    if json {
        print_json(&json!({"value": answer.value, "text": answer.text, "isError": answer.is_error}))?;
    } else if answer.is_error {
        return Err(Failure::failed(format!("`{tool}` of server `{server}`: {}", answer.text)));
    } else if let Value::String(text) = &answer.value {
        print(format_args!("{text}\n"));
    } else {
        print(format_args!("{}\n", serde_json::to_string_pretty(&answer.value)?));
    }
    Ok(if answer.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn arguments(args: &CallArgs) -> Result<Map<String, Value>, Failure> {
    let mut arguments = match &args.all {
        None => Map::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            Failure::usage(format!("--args is not a JSON object: {error}"))
                .hint("--args '{\"path\": \"README.md\"}'")
        })?,
    };
    for given in &args.one {
        let (name, value) = given.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            Failure::usage(format!("--arg `{given}` has no `=`")).hint("--arg path=README.md")
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        arguments.insert(name.to_owned(), value);
    }
    Ok(arguments)
}

/// What is not known or does not fit is the caller's affair; everything else is a failure.
fn told(context: &Context, failure: ToolFailure) -> Failure {
    let kind = match failure.class {
        FailureClass::Invalid => Kind::Usage,
        _ => Kind::Failed,
    };
    let unknown = failure.message.starts_with("unknown server");
    let told = Failure::new(kind, failure.message);
    let notes = if unknown { context.config.servers.notes.as_slice() } else { &[] };
    notes.iter().fold(told, |told, note| told.hint(note.clone()))
}
