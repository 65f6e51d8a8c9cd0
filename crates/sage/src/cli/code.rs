//! `sage code run`: TypeScript that calls tools, as a model would run it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use sage_script::code::{CodeLimits, FailureKind, MAX_MESSAGE_BYTES};
use serde_json::{Map, Value, json};

use super::context::{Context, runtime};
use super::failure::Failure;
use super::{print, print_json};
use crate::code::{Author, CodeAnswer, CodeFailure, CodeMode, CodeRun, Save};
use crate::command_line::{self, sage};
use crate::display::text::clean;
use crate::trust::Definition;

/// Longer texts are data, not code.
const MAX_CODE_BYTES: u64 = 4 << 20;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run TypeScript in the sandbox; the tools of MCP servers are functions in it
    Run(RunArgs),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The file; - reads standard input
    file: String,
    /// What `input` is in the code; JSON if it reads as such, else text
    #[arg(short, long = "input", value_name = "KEY=VALUE")]
    inputs: Vec<String>,
    /// How long it may take, tools included
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: humantime::Duration,
    /// Show e-mail addresses, numbers and secrets instead of the tokens that stand for them
    #[arg(long)]
    reveal: bool,
    /// Keep the code as a skill of this name if it succeeds
    #[arg(long, value_name = "NAME", requires = "description")]
    save: Option<String>,
    /// What the skill does and when to use it
    #[arg(long, value_name = "TEXT", requires = "save")]
    description: Option<String>,
    /// Print the whole value, however large it is
    #[arg(long)]
    full: bool,
    /// Write the whole value to this file instead
    #[arg(short, long, value_name = "FILE", conflicts_with = "full")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let Action::Run(args) = args.action;
    let run = CodeRun {
        code: read(context, &args.file)?,
        session: None,
        timeout_ms: Some(Duration::from(args.timeout).as_millis() as u64),
        save: args
            .save
            .clone()
            .map(|name| Save { name, description: args.description.clone().unwrap_or_default() }),
        input: Value::Object(inputs(&args.inputs)?),
        name: Some(shown_name(&args.file)),
    };
    let whole = args.full || args.output.is_some();
    let limits = if whole { whole_value() } else { CodeLimits::default() };
    let (mode, outcome) = perform(context, run, limits)?;
    match outcome {
        Ok(answer) => tell(&mode, answer, &args),
        Err(failure) => failed(&failure, args.json),
    }
}

/// For whoever asked for the value itself, and not for what stands for it.
pub fn whole_value() -> CodeLimits {
    CodeLimits { value_bytes: MAX_MESSAGE_BYTES, ..CodeLimits::default() }
}

/// Runs code with the project's servers, and ends those that it has started.
pub fn perform(
    context: &Context,
    run: CodeRun,
    limits: CodeLimits,
) -> Result<(CodeMode, Result<CodeAnswer, CodeFailure>), Failure> {
    // Servers that the code does not name are left out with a note.
    let names = |it: &&Definition| {
        let server = it.name.strip_prefix("mcp.");
        server.is_some_and(|server| run.code.contains(&format!("servers/{server}")))
    };
    let untrusted: Vec<Definition> = context.config.untrusted.iter().filter(names).cloned().collect();
    if !untrusted.is_empty() {
        return Err(Failure::untrusted(untrusted));
    }
    let hub = context.hub();
    let author = if sage_agents::above().is_some() { Author::Model } else { Author::Person };
    let mode = context.code_mode(hub.clone(), author).with_limits(limits);
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let outcome = mode.run(run).await;
        hub.close().await;
        outcome
    });
    Ok((mode, outcome))
}

/// As it is called from here, else from the project: with `-C` a person means the latter.
pub fn located(context: &Context, file: &Path) -> PathBuf {
    let inside = context.project.root.join(file);
    if !file.exists() && inside.exists() { inside } else { file.to_path_buf() }
}

fn read(context: &Context, file: &str) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read `{file}`: {error}"));
    let mut bytes = Vec::new();
    match file {
        "-" => std::io::stdin().take(MAX_CODE_BYTES + 1).read_to_end(&mut bytes),
        _ => std::fs::File::open(located(context, Path::new(file)))
            .map_err(unreadable)?
            .take(MAX_CODE_BYTES + 1)
            .read_to_end(&mut bytes),
    }
    .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_CODE_BYTES {
        return Err(Failure::usage(format!("`{file}` has more than {} MiB", MAX_CODE_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("`{file}` is not UTF-8 text")))
}

fn shown_name(file: &str) -> String {
    let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    name.filter(|name| name != "-").unwrap_or_else(|| "code.ts".into())
}

/// `key=value`, JSON if it reads as such.
pub fn inputs(given: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut inputs = Map::new();
    for input in given {
        let Some((key, value)) = input.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failure::usage(format!("`{input}` is not KEY=VALUE")).hint("name=value"));
        };
        inputs
            .insert(key.into(), serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into())));
    }
    Ok(inputs)
}

fn tell(mode: &CodeMode, mut answer: CodeAnswer, args: &RunArgs) -> Result<ExitCode, Failure> {
    if args.reveal {
        let (session, _) = mode.session(Some(&answer.session));
        answer.ran.value = session.reveal(answer.ran.value);
        answer.ran.console.text = session.reveal_text(answer.ran.console.text);
    }
    let unsaved = matches!(answer.saved, Some(Err(_)));
    let code = if unsaved { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    // Nobody can take it up when this process has ended.
    let cut = answer.ran.handle.take().is_some();
    if let Some(map) = answer.ran.value.as_object_mut().filter(|_| cut) {
        map.remove("handle");
    }
    let written = args.output.as_deref().map(|file| write(file, &answer.ran.value)).transpose()?;
    if written.is_some() {
        answer.ran.value = Value::Null;
    }
    if args.json {
        let mut told = json!(answer.ran);
        if cut {
            told["cut"] = true.into();
        }
        if let Some(file) = &args.output {
            told["file"] = json!(file);
        }
        told["type"] = "code".into();
        told["success"] = true.into();
        told["notes"] = json!(answer.notes);
        match &answer.saved {
            Some(Ok(saved)) => told["saved"] = json!(saved),
            Some(Err(why)) => told["notSaved"] = json!(why),
            None => {}
        }
        print_json(&told)?;
        return Ok(code);
    }
    answer.notes.iter().for_each(|note| eprintln!("note: {}", clean(note)));
    printed(&answer.ran.console.told());
    match (&args.output, written) {
        (Some(file), Some(bytes)) => eprintln!("note: wrote {bytes} bytes to `{}`", file.display()),
        _ => show(&answer.ran.value, answer.ran.nothing),
    }
    if cut {
        let limit = CodeLimits::default().value_bytes >> 10;
        let bytes = &answer.ran.value["bytes"];
        eprintln!("note: the value has {bytes} bytes; over {limit} KiB only its shape is shown");
        command_line::tell(sage("code run").arg(&args.file).arg("--full").comment("or -o value.json"));
    }
    match &answer.saved {
        Some(Ok(saved)) if !saved.approved => {
            eprintln!("note: saved as the skill `{}`; nobody uses it before it is approved", saved.name);
            command_line::tell(&saved.next);
        }
        Some(Err(why)) => eprintln!("error: the skill was not saved: {why}"),
        _ => {}
    }
    Ok(code)
}

/// A text as it is, anything else as JSON; how many bytes that were.
fn write(file: &Path, value: &Value) -> Result<usize, Failure> {
    let text = match value {
        Value::String(text) => text.clone(),
        value => format!("{value:#}\n"),
    };
    std::fs::write(file, &text)
        .map_err(|error| Failure::failed(format!("cannot write `{}`: {error}", file.display())))?;
    Ok(text.len())
}

/// What code printed goes where people look; stdout is for its value.
pub fn printed(text: &str) {
    text.lines().for_each(|line| eprintln!("{}", clean(line)));
}

pub fn show(value: &Value, nothing: bool) {
    match value {
        _ if nothing => eprintln!("note: the code returned nothing; end it with `return value`"),
        Value::String(text) => print(format_args!("{text}\n")),
        value => print(format_args!("{value:#}\n")),
    }
}

/// A wrong text is usage, like a wrong template; all else is a failure.
pub fn failed(failure: &CodeFailure, json: bool) -> Result<ExitCode, Failure> {
    let usage = matches!(failure.kind, FailureKind::Syntax | FailureKind::Import | FailureKind::Invalid);
    if json {
        let mut told = json!(failure);
        told["type"] = "code".into();
        told["success"] = false.into();
        print_json(&told)?;
        return Ok(ExitCode::from(if usage { 2 } else { 1 }));
    }
    printed(&failure.console.told());
    // A syntax error comes with its own `error:`.
    let message = failure.message.trim_start_matches("error: ");
    let told = if usage { Failure::usage(message) } else { Failure::failed(message) };
    Err(match &failure.hint {
        Some(hint) => told.hint(hint.clone()),
        None => told,
    })
}
