//! `sage fork`: go on from a step of a run in another way, under another name, and keep both.

use std::io::IsTerminal;
use std::process::ExitCode;

use sage_core::diagnostic::did_you_mean;
use sage_core::run::Run;
use sage_core::slug::Feature;
use sage_engine::open::{Engine, ForkRequest, OpenError};

use super::context::Context;
use super::drive::{self, Show};
use super::failure::Failure;
use super::flags::Limits;
use super::preflight::check_run_trust;
use super::{background, feature, list, notes, resume};
use crate::command_line::sage;
use crate::display::text::plural;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The title or slug of the feature whose last run is forked, or a run of it (cart@2); it may be running, and is
    /// not touched
    feature: String,
    /// Run this step, and everything that depends on it, again; all else that is finished is taken over
    #[arg(long, value_name = "STEP")]
    from: String,
    /// What the fork is called: a title that no feature has yet
    #[arg(long = "as", value_name = "NAME")]
    name: String,
    /// Go on with a changed template: a name or a file
    #[arg(short, long)]
    template: Option<String>,
    /// Go on in the background; the terminal may be closed
    #[arg(short, long)]
    detach: bool,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    show: Show,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let (mut source, fork) = (feature(&args.feature)?, Feature::from_title(&args.name)?);
    args.limits.refuse_steps(&sage("fork").arg(&args.feature).to_string(), false)?;
    let mut engine = context.engine();
    let mut run = None;
    if let Some((feature, named)) = engine.meant(&source, &args.feature)? {
        (source, run) = (feature, Some(named));
    }
    if let Some(cache) = &mut engine.cache {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        cache.asks = terminal && !args.show.json && !args.detach;
    }
    let edited = args.template.is_some() || !args.limits.inputs.is_empty();
    let untrusted = !context.config.untrusted.is_empty();
    let before = match edited || args.limits.given() || untrusted {
        true => Some(engine.read_named(&source, &args.feature).map_err(|error| unknown(&engine, error))?.run),
        false => None,
    };
    let silent = args.show.json || args.show.quiet;
    let edit = match &before {
        Some(run) if edited => {
            let edit = resume::edit(context, args.template.as_deref(), &args.limits, args.show.json, run)?;
            if !silent {
                resume::tell_edit(run, &edit);
            }
            Some(edit)
        }
        _ => None,
    };
    let settings = match &before {
        Some(run) if args.limits.given() => Some(args.limits.change(run)?),
        _ => None,
    };
    if let Some(run) = before.as_ref().filter(|_| edit.is_none()) {
        check_run_trust(context, run)?;
    }
    let no_wait = args.limits.no_wait;
    let request = ForkRequest {
        source,
        run,
        from: args.from,
        feature: fork.slug().into(),
        title: fork.title().into(),
        edit,
        settings,
        no_wait,
    };
    let owned = engine.fork(request).map_err(|error| unknown(&engine, error))?;
    if !silent {
        tell(owned.run_loop.run(), edited);
    }
    if background::wanted(context, args.detach) {
        notes::print(&notes::of_notices(&owned.notices));
        let record = engine.detach(owned, no_wait)?;
        return background::launch(context, &record, &args.show);
    }
    drive::drive(&engine, owned, &args.show, no_wait)
}

/// With the nearest name of a feature that there is.
fn unknown(engine: &Engine, error: OpenError) -> Failure {
    let near = match &error {
        OpenError::Unknown(name) => {
            let features = list::features(engine);
            did_you_mean(name, features.iter().map(String::as_str))
        }
        _ => None,
    };
    let failure = Failure::from(error);
    match near {
        Some(near) => failure.hint(near),
        None => failure,
    }
}

fn tell(run: &Run, edited: bool) {
    let Some(from) = run.forked_from() else { return };
    if edited {
        // What is the same is only known when its turn has come.
        eprintln!("forked from {}: {} and what depends on it runs again", from.feature, from.step);
        return;
    }
    let steps = plural(u64::from(run.tally.total), "step");
    eprintln!(
        "forked from {}: {} of {steps} taken over; {} and what depends on it runs again",
        from.feature, run.tally.reused, from.step
    );
}
