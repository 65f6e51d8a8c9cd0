//! `sage session`: named conversations with agents.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use sage_agents::AgentConfig;
use sage_agents::agent::adapter;
use sage_agents::session::{Record, SessionError, Store, TurnState};
use sage_core::role::Role;
use serde_json::{Value, json};

use super::context::Context;
use super::failure::{Failure, Kind};
use super::{print, print_json};
use crate::command_line::sage;
use crate::display::text::{argument, count_text};

/// Carried along with every turn, more than this is worth a word: about 100 KB of text.
const LARGE_TOKENS: u64 = 25_000;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a session that templates can name
    New {
        /// Its agent
        #[arg(long)]
        agent: String,
        /// Its role
        #[arg(long)]
        role: Option<String>,
        /// Its name; made of role, agent and an id if it is left out
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the sessions of this project
    List {
        /// Those of single steps, too
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a session's turns
    Show {
        name: String,
        /// Write all that was asked and answered into this directory, as plain files
        #[arg(long, value_name = "DIR")]
        export: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say something to a session and wait for the answer
    Resume {
        name: String,
        /// What to say
        prompt: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a session that knows all that another one knows
    Fork {
        name: String,
        /// Name of the new one
        #[arg(long = "as", value_name = "NAME")]
        new: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a session; what the agent itself keeps stays
    Delete {
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        matches!(self.what, What::List { .. } | What::Show { .. })
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let store = context.sessions();
    match args.what {
        What::New { agent, role, name, json } => {
            told(&create(context, &store, &agent, role.as_deref(), name)?, "created", json)
        }
        What::List { all, json } => list(&store, all, json),
        What::Show { name, export, json } => show(context, &store, &name, export, json),
        What::Resume { name, prompt, json } => {
            super::session_talk::resume(context, &store, &name, prompt, json)
        }
        What::Fork { name, new, json } => {
            let record = store.fork(&name, &new)?;
            told(&record, "forked", json)
        }
        What::Delete { name, json } => {
            store.delete(&name)?;
            if json {
                print_json(&json!({"type": "session", "id": name, "deleted": true}))?;
            } else {
                print(format_args!("{name} deleted\n"));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A new session that has said nothing yet.
pub fn create(
    context: &Context,
    store: &Store,
    agent: &str,
    role: Option<&str>,
    name: Option<String>,
) -> Result<Record, Failure> {
    let role = role.map(Role::parse).transpose();
    let role = role.map_err(|error| Failure::usage(error.to_string()).hint(error.hint))?;
    let known = context.config.agents();
    if !known.contains_key(agent) && sage_agents::AgentConfig::built_in(agent).is_none() {
        return Err(Failure::usage(format!("unknown agent `{agent}`")).hint("sage agents"));
    }
    if let Some(definition) = context.config.untrusted_agent(agent) {
        return Err(Failure::untrusted(vec![definition.clone()]));
    }
    let id = name.unwrap_or_else(|| {
        let id = ulid::Ulid::generate().to_string().to_lowercase();
        format!("{}-{agent}-{id}", role.map_or("session", Role::name))
    });
    let now = sage_engine::clock::Clock::System.now_ms();
    let record = Record::new(&id, agent, role.map(|role| role.name().into()), true, now);
    store.create(&record)?;
    Ok(record)
}

fn told(record: &Record, what: &str, json: bool) -> Result<ExitCode, Failure> {
    if json {
        print_json(&view(record))?;
    } else {
        print(format_args!("{}\n", record.id));
        eprintln!("{what}; a step uses it with `session: {}`", record.id);
    }
    Ok(ExitCode::SUCCESS)
}

/// As programs see it.
pub fn view(record: &Record) -> Value {
    let mut value = serde_json::to_value(record).unwrap_or_default();
    value["type"] = "session".into();
    value["large"] = record.context_tokens.is_some_and(|tokens| tokens > LARGE_TOKENS).into();
    value
}

fn list(store: &Store, all: bool, json: bool) -> Result<ExitCode, Failure> {
    let found =
        store.list().map_err(|error| Failure::failed(format!("cannot list the sessions: {error}")))?;
    let mut hidden = 0;
    for entry in found {
        match entry {
            Ok(record) if !record.named && !all => hidden += 1,
            Ok(record) if json => print_json(&view(&record))?,
            Ok(record) => print(format_args!("{}\n", row(&record))),
            Err(error) if json => {
                print_json(&json!({"type": "session", "error": error.to_string()}))?;
            }
            Err(error) => eprintln!("warning: {error}"),
        }
    }
    if hidden > 0 && !json {
        eprintln!("and {hidden} of single steps ({})", sage("session list --all"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(record: &Record) -> String {
    let now = sage_engine::clock::Clock::System.now_ms();
    let age = Duration::from_secs(now.saturating_sub(record.updated_ms) / 1000);
    let context = record.context_tokens.map_or(String::new(), |tokens| {
        let large = if tokens > LARGE_TOKENS { " (large)" } else { "" };
        format!(" · carries {} tokens{large}", count_text(tokens))
    });
    let state = record.last().map_or("new", |turn| state(turn.state));
    format!(
        "{:<32} {:<10} {state:<8} {} turns · {} tokens{context} · {} ago",
        record.id,
        record.agent,
        record.turns.len(),
        count_text(record.usage.total()),
        humantime::format_duration(age),
    )
}

fn state(state: TurnState) -> &'static str {
    match state {
        TurnState::Open => "open",
        TurnState::Done => "done",
        TurnState::Failed => "failed",
        TurnState::Stopped => "stopped",
    }
}

/// The agent's own command that goes on with the conversation, outside of Sage.
pub fn resume_command(context: &Context, record: &Record) -> Option<String> {
    let plain = |id: &&str| id.starts_with(|c: char| c.is_ascii_alphanumeric()) && argument(id) == **id;
    let conversation = record.conversation.as_deref().filter(plain)?;
    let cwd = record.cwd.as_deref().unwrap_or(&context.project.root);
    if context.config.untrusted_agent(&record.agent).is_some() || !cwd.is_dir() {
        return None;
    }
    let own = context.config.agents().remove(&record.agent);
    let config = own.or_else(|| AgentConfig::built_in(&record.agent))?;
    let words = adapter(&config.adapter)?.resume_command(&config, conversation)?;
    let words: Vec<String> = words.iter().map(|word| argument(word)).collect();
    Some(format!("cd {} && {}", argument(&cwd.display().to_string()), words.join(" ")))
}

fn show(
    context: &Context,
    store: &Store,
    name: &str,
    export: Option<PathBuf>,
    json: bool,
) -> Result<ExitCode, Failure> {
    let record = store.load(name)?;
    if let Some(dir) = export {
        return export_to(store, &record, &dir);
    }
    let resume = resume_command(context, &record);
    if json {
        let mut view = view(&record);
        view["resumeCommand"] = resume.into();
        print_json(&view)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format_args!("{}\n", row(&record)));
    if let Some(conversation) = &record.conversation {
        print(format_args!("  conversation {conversation}\n"));
    }
    if let Some(command) = resume {
        print(format_args!("  resume it in {}: {command}\n", record.agent));
    }
    if let Some(parent) = &record.parent {
        print(format_args!("  forked from {} after {} turns\n", parent.session, parent.turns));
    }
    for (number, turn) in record.turns.iter().enumerate() {
        let message = turn.message.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        let tokens = count_text(turn.usage.total());
        print(format_args!(
            "  {:>3} {:<8} {} ({} tokens){message}\n",
            number + 1,
            state(turn.state),
            turn.step,
            tokens
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// One Markdown file a turn, and the record.
fn export_to(store: &Store, record: &Record, dir: &std::path::Path) -> Result<ExitCode, Failure> {
    let wrong = |error: std::io::Error| Failure::failed(format!("cannot write `{}`: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(wrong)?;
    let text = serde_json::to_string_pretty(record)?;
    std::fs::write(dir.join("session.json"), text).map_err(wrong)?;
    for number in 1..=record.turns.len() {
        let Some(turn) = store.load_turn(&record.id, number) else { continue };
        let part = |name: &str| match &turn[name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        let answer = if turn["answer"].is_null() { part("text") } else { part("answer") };
        let page = format!("# Asked\n\n{}\n\n# Answered\n\n{answer}\n", part("prompt"));
        std::fs::write(dir.join(format!("turn-{number:03}.md")), page).map_err(wrong)?;
    }
    print(format_args!("{}\n", dir.display()));
    Ok(ExitCode::SUCCESS)
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Failure {
        match &error {
            SessionError::Unknown(_) => Failure::usage(error.to_string()).hint("sage session list --all"),
            SessionError::Exists(name) => {
                Failure::usage(error.to_string()).hint(sage("session show").arg(name))
            }
            SessionError::Busy(_) => Failure::new(Kind::Conflict, error.to_string()),
            SessionError::Name(_) | SessionError::Empty(_) => Failure::usage(error.to_string()),
            _ => Failure::failed(error.to_string()),
        }
    }
}
