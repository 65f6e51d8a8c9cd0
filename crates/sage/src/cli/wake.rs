//! `sage wake`: tell the inbox that something finished, is blocked, failed or was found.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use sage_engine::inbox::{Inbox, MAX_BYTES, Origin, PostError, Wake, WakeStatus, WakeType};
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{print, print_json};

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// What it is: complete, blocked, finding or error
    #[arg(value_name = "TYPE", value_parser = wake_type, required_unless_present = "json_file")]
    kind: Option<WakeType>,
    /// Who tells it; wakes of one session keep their order
    #[arg(long, value_name = "ID", required_unless_present = "json_file")]
    session: Option<String>,
    /// The role of who tells it, e.g. implementer
    #[arg(long)]
    role: Option<String>,
    /// complete, blocked or failed; follows from the type if left out
    #[arg(long, value_parser = wake_status)]
    status: Option<WakeStatus>,
    /// What happened, in a sentence
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// A file that was made; may be repeated
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<String>,
    /// The handoff that goes with it
    #[arg(long, value_name = "ID")]
    handoff: Option<String>,
    /// Whose turn it is now
    #[arg(long, value_name = "ROLE")]
    next_role: Option<String>,
    /// 0 (first) to 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: Option<u8>,
    /// Its id; posting an id again has no second effect
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Read wakes from a file instead, one JSON object a line; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "session", "role", "status", "summary", "files", "handoff", "next_role", "priority", "id"])]
    json_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
A program that cannot call sage drops a JSON file into .sage/inbox/new instead; it needs a `session_id`
and a `type` or a `status`.";

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let inbox = context.inbox();
    let json = args.json;
    match &args.json_file {
        Some(path) => post_lines(&inbox, path, json)?,
        None => post(&inbox, &wake(args)?, json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn wake_type(text: &str) -> Result<WakeType, String> {
    WakeType::parse(text).ok_or_else(|| "it is complete, blocked, finding or error".into())
}

fn wake_status(text: &str) -> Result<WakeStatus, String> {
    WakeStatus::parse(text).ok_or_else(|| "it is complete, blocked or failed".into())
}

fn wake(args: Args) -> Result<Wake, Failure> {
    let (Some(kind), Some(session)) = (args.kind, args.session) else {
        return Err(
            Failure::usage("a wake needs a type and a session").hint("sage wake complete --session <id>")
        );
    };
    let mut wake = Wake::new(kind, session.trim());
    wake.agent_role = args.role;
    wake.status = args.status.unwrap_or(wake.status);
    wake.summary = args.summary.unwrap_or_default();
    wake.deliverables.files = args.files;
    wake.deliverables.handoff_id = args.handoff;
    wake.next_role = args.next_role;
    wake.priority = args.priority.unwrap_or(wake.priority);
    wake.wake_id = args.id.unwrap_or(wake.wake_id);
    Ok(wake)
}

/// The id is printed when the wake is durable, not before.
fn post(inbox: &Inbox, wake: &Wake, json: bool) -> Result<(), Failure> {
    let path = inbox.post(wake).map_err(failure)?;
    if json {
        return print_json(&json!({"type": "wake", "success": true, "wakeId": wake.wake_id, "file": path}));
    }
    print(format_args!("{}\n", wake.wake_id));
    Ok(())
}

pub(crate) fn failure(error: PostError) -> Failure {
    match error {
        PostError::Io { .. } => Failure::failed(error.to_string())
            .hint("nothing was posted; make room or mend the disk, then again"),
        PostError::TooLarge { .. } | PostError::Missing(_) => Failure::usage(error.to_string()),
    }
}

fn post_lines(inbox: &Inbox, path: &std::path::Path, json: bool) -> Result<(), Failure> {
    let unreadable = |error| Failure::usage(format!("cannot read `{}`: {error}", path.display()));
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(unreadable)?)
    };
    let mut input = BufReader::new(input);
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_BYTES + 1).read_until(b'\n', &mut line).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        number += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let mut wake = Wake::read(&line, Origin::default()).map_err(|why| {
            Failure::usage(format!("line {number} of `{}` is no wake: {why}", path.display()))
                .hint("{\"type\": \"COMPLETE\", \"session_id\": \"...\", \"summary\": \"...\"}, one a line")
        })?;
        if !names_itself(&line) {
            wake.wake_id = Wake::new(wake.kind, "").wake_id;
        }
        post(inbox, &wake, json)?;
    }
    Ok(())
}

/// Without an id of its own a line is a new wake, also if it was said before.
fn names_itself(line: &[u8]) -> bool {
    let value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    ["wakeId", "wake_id"].iter().any(|name| value[*name].is_string())
}
