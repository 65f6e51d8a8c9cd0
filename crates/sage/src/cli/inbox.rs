//! `sage inbox`: what waits for a person, wakes that nobody has handled, and dead letters.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Subcommand;
use sage_core::diagnostic::did_you_mean;
use sage_engine::inbox::{DeadLetter, Delivered, Delivery, Inbox, Recorded, RetryError};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::{inbox_view, print, print_json};
use crate::command_line;
use crate::display::text::{clean, plural};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Handled wakes, too
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show one wake: all of it, and what became of it
    Show {
        /// The wake's id
        id: String,
    },
    /// Put dead letters back, with all tries anew
    Retry {
        /// The dead letter's id
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// All of them
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Deliver what is there now; runs do so by themselves
    Handle {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        matches!(self.action, None | Some(Action::Show { .. }))
    }
}

/// Five tries of something that never works take two seconds, a slow writer a second; more is somebody else's turn.
const DELIVERY_TIME: Duration = Duration::from_secs(30);

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let inbox = context.inbox();
    match args.action {
        None => inbox_view::show(context, &inbox, args.all, args.json)?,
        Some(Action::Show { id }) => show(&inbox, &id)?,
        Some(Action::Retry { id, json, .. }) => retry(&inbox, id.as_deref(), json)?,
        Some(Action::Handle { json }) => return handle(&inbox, json),
    }
    Ok(ExitCode::SUCCESS)
}

fn unreadable(inbox: &Inbox) -> impl Fn(std::io::Error) -> Failure {
    let dir = inbox.dir().display().to_string();
    move |error| Failure::failed(format!("cannot read `{dir}`: {error}"))
}

fn show(inbox: &Inbox, id: &str) -> Result<(), Failure> {
    let (handled, dead) =
        (inbox.handled().map_err(unreadable(inbox))?, inbox.dead().map_err(unreadable(inbox))?);
    let waiting = inbox.unhandled().map_err(unreadable(inbox))?;
    let found = if let Some(letter) = waiting.iter().find(|letter| letter.id == id) {
        let body = letter.wake.as_ref().map_or_else(|why| json!({"unreadable": why}), |wake| json!(wake));
        json!({"type": "wake", "state": letter.place.name(), "tries": letter.tries, "file": letter.path, "wake": body})
    } else if let Some(letter) = dead.iter().rev().find(|letter| letter.id == id) {
        dead_json(letter)
    } else if let Some(handled) = handled.iter().rev().find(|handled| handled.wake_id == id) {
        json!({"type": "wake", "state": "handled", "at": handled.at, "wake": handled.wake})
    } else {
        let known = waiting.iter().map(|letter| letter.id.as_str());
        let known = known.chain(dead.iter().map(|letter| letter.id.as_str()));
        let near = did_you_mean(id, known.chain(handled.iter().map(|handled| handled.wake_id.as_str())));
        return Err(Failure::usage(format!("no wake `{}`", id.escape_debug()))
            .hint(near.unwrap_or_else(|| "sage inbox --all".into())));
    };
    print(format_args!("{}\n", serde_json::to_string_pretty(&found)?));
    Ok(())
}

pub fn dead_json(letter: &DeadLetter) -> Value {
    json!({
        "type": "wake", "state": "dead", "wakeId": letter.id, "reason": letter.reason.reason,
        "tries": letter.reason.tries, "at": letter.reason.at, "file": letter.path, "wake": letter.wake,
    })
}

fn retry(inbox: &Inbox, id: Option<&str>, json: bool) -> Result<(), Failure> {
    let back = inbox.retry(id).map_err(|error| match error {
        RetryError::Unknown(ref id) => {
            let dead = inbox.dead().unwrap_or_default();
            let near = did_you_mean(id, dead.iter().map(|letter| letter.id.as_str()));
            Failure::usage(error.to_string()).hint(near.unwrap_or_else(|| "sage inbox".into()))
        }
        RetryError::Io(_) => Failure::failed(error.to_string()),
    })?;
    if json {
        return print_json(&json!({"type": "retried", "success": true, "wakeIds": back}));
    }
    match back.len() {
        0 => eprintln!("no dead letters"),
        count => {
            print(format_args!("{} put back\n", plural(count as u64, "wake")));
            command_line::tell("sage inbox handle    # running runs do it by themselves");
        }
    }
    Ok(())
}

fn handle(inbox: &Inbox, json: bool) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let mut delivery = Delivery::new(inbox.clone(), Arc::new(Recorded));
    let done = delivery
        .until_quiet(DELIVERY_TIME)
        .map_err(|error| Failure::failed(error.to_string()).hint("nothing is lost; mend it, then again"))?;
    if json {
        print_json(&json!({
            "type": "delivered", "success": done.left == 0 && !done.busy, "handled": done.handled, "repeated": done.repeated,
            "failed": done.failed, "dead": done.dead, "left": done.left, "ms": started.elapsed().as_millis() as u64,
        }))?;
    } else {
        tell(&done, inbox);
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(done: &Delivered, inbox: &Inbox) {
    print(format_args!("{} handled\n", plural(done.handled as u64, "wake")));
    if done.busy {
        eprintln!("note: another process is delivering; the rest is its");
    }
    if done.dead > 0 {
        eprintln!("warning: {} given up:", plural(done.dead as u64, "wake"));
        let dead = inbox.dead().unwrap_or_default();
        for letter in dead.iter().rev().take(done.dead).rev() {
            eprintln!("  {}: {}", clean(&letter.id), clean(&letter.reason.reason));
        }
        command_line::tell("sage inbox show ID    # then sage inbox retry ID");
    }
}
