//! `sage handoff`: create, accept, reject, complete, list, show.

mod draft;
pub(crate) mod view;

use std::process::ExitCode;

use clap::Subcommand;
use sage_core::handoff::{Handoff, Status};
use sage_engine::clock::Clock;
use sage_engine::handoff::{Done, HandoffError, Store};
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{print, print_json};
use crate::command_line::{sage, tell};

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
    /// Hand work over; what is incomplete is refused with everything that it lacks
    Create(Box<draft::Flags>),
    /// Take over what was handed to your role
    Accept {
        /// The handoff's id, or the end of it
        id: String,
    },
    /// Send it back, with a reason
    Reject {
        /// The handoff's id, or the end of it
        id: String,
        /// What has to be done first
        #[arg(long)]
        reason: String,
    },
    /// Say that the work that it asked for is done
    Complete {
        /// The handoff's id, or the end of it
        id: String,
    },
    /// Show what was handed to whom, how long ago, and what is stuck
    List(view::Filter),
    /// Show one handoff
    Show {
        /// The handoff's id, or the end of it
        id: String,
    },
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        matches!(self.action, Action::List(_) | Action::Show { .. })
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let store = Store::new(&context.project, context.disk.clone(), Clock::System);
    let json = args.json;
    match args.action {
        Action::Create(flags) => create(&store, &flags, json),
        Action::Accept { id } => advance(&store, &id, Status::Accepted, None, json),
        Action::Reject { id, reason } => advance(&store, &id, Status::Rejected, Some(&reason), json),
        Action::Complete { id } => advance(&store, &id, Status::Completed, None, json),
        Action::List(filter) => {
            let listed = told(store.list().map_err(failure)?);
            view::list(listed, &filter, store.now_ms(), json)
        }
        Action::Show { id } => {
            let handoff = told(store.show(&id).map_err(failure)?);
            view::show(&handoff, store.now_ms(), json)
        }
    }
}

fn create(store: &Store, flags: &draft::Flags, json: bool) -> Result<ExitCode, Failure> {
    let draft = flags.draft()?;
    match store.create(&draft) {
        Ok(done) => changed(&told(done), json),
        Err(HandoffError::Incomplete(problems)) if json => {
            print_json(&json!({"type": "handoff", "success": false, "problems": problems}))?;
            Ok(ExitCode::from(2))
        }
        Err(error) => Err(failure(error)),
    }
}

fn advance(
    store: &Store,
    id: &str,
    to: Status,
    reason: Option<&str>,
    json: bool,
) -> Result<ExitCode, Failure> {
    changed(&told(store.advance(id, to, reason).map_err(failure)?), json)
}

fn changed(handoff: &Handoff, json: bool) -> Result<ExitCode, Failure> {
    if json {
        print_json(&json!({"type": "handoff", "success": true, "handoff": handoff}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let header = &handoff.handoff;
    print(format_args!("{}: {} ({})\n", header.handoff_id, view::way(handoff), header.status.name()));
    match header.status {
        Status::Pending => tell(sage("handoff accept").arg(&header.handoff_id)),
        Status::Accepted => tell(sage("handoff complete").arg(&header.handoff_id)),
        Status::Rejected | Status::Completed => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn told<T>(done: Done<T>) -> T {
    done.notes.iter().for_each(|note| eprintln!("note: {note}"));
    done.value
}

pub(crate) fn failure(error: HandoffError) -> Failure {
    let message = error.to_string();
    match error {
        HandoffError::Incomplete(problems) => {
            let list: Vec<String> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
            Failure::usage(format!("{message}{}", list.join(""))).hint("sage handoff create --help")
        }
        HandoffError::Refused(refusal) => Failure::usage(message).hint(refusal.hint),
        HandoffError::Unknown { near, .. } => {
            Failure::usage(message).hint(near.unwrap_or_else(|| "sage handoff list --all".into()))
        }
        HandoffError::Exists(_) => Failure::usage(message).hint("leave `handoffId` out: it gets one"),
        HandoffError::Io { .. } | HandoffError::Project(_) => Failure::failed(message),
    }
}
