//! `sage resume`: go on with a feature's last run.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use sage_core::event::RunEdited;
use sage_core::plan::Plan;
use sage_core::run::Run;
use sage_core::template::Template;
use sage_engine::open::{Engine, OpenError, ResumeRequest, Resumed};
use serde_json::Map;

use super::background;
use super::catalog::Catalog;
use super::context::Context;
use super::drive::{self, Show};
use super::failure::Failure;
use super::flags::Limits;
use super::notes::{self, Note};
use super::preflight::{check_agents, check_programs, check_run_trust, check_trust};
use super::{diagnostics, feature, inputs, warnings};
use crate::command_line::{sage, tell};
use crate::display::template_name;
use crate::display::text::plural;

/// Between two tries of an owner in the background to open its run.
const TROUBLE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// Run this step, and everything that depends on it, again
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// Go on with a changed template: a name or a file
    #[arg(short, long)]
    template: Option<String>,
    /// Run finished steps with `cache` again if their agent or the files they declare have changed since
    #[arg(long, conflicts_with_all = ["template", "from"])]
    refresh: bool,
    /// Go on in the background; the terminal may be closed
    #[arg(short, long)]
    detach: bool,
    /// As the next owner of a run in the background, if it goes on by itself
    #[arg(long, value_name = "RUN", hide = true, conflicts_with_all = ["detach", "from", "template", "refresh"])]
    supervised: Option<String>,
    /// The machine was restarted: go on although the last owner was interrupted
    #[arg(long, hide = true, requires = "supervised")]
    after_reboot: bool,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    show: Show,
}

impl Args {
    /// What `sage run` becomes when the person chose to resume.
    pub fn of(feature: &str, args: &super::run::Args) -> Args {
        Args {
            feature: feature.into(),
            from: None,
            template: args.template.clone(),
            detach: args.detach,
            supervised: None,
            after_reboot: false,
            refresh: false,
            limits: args.limits.clone(),
            show: args.show.clone(),
        }
    }

    pub fn is_supervised(&self) -> bool {
        self.supervised.is_some()
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let mut engine = context.engine();
    if let Some(run) = args.supervised {
        return supervised(&engine, &feature, run, args.limits.no_wait, args.after_reboot);
    }
    if let Some(cache) = &mut engine.cache {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        cache.asks = terminal && !args.show.json && !args.detach;
    }
    args.limits.refuse_steps(&sage("resume").arg(&feature).to_string(), false)?;
    let edited = args.template.is_some() || !args.limits.inputs.is_empty();
    let untrusted = !context.config.untrusted.is_empty();
    // Read only where something of the old run is needed: a large journal is not folded twice for nothing.
    let needed = edited || args.limits.given() || untrusted;
    let before = if needed { Some(engine.read(&feature)?.run) } else { None };
    let edit = match &before {
        Some(run) if edited => {
            Some(edit(context, args.template.as_deref(), &args.limits, args.show.json, run)?)
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
    if let (Some(edit), Some(run), false) = (&edit, &before, args.show.json || args.show.quiet) {
        tell_edit(run, edit);
    }
    let no_wait = args.limits.no_wait;
    let request = ResumeRequest {
        edit,
        from: args.from,
        settings,
        no_wait,
        refresh: args.refresh,
        ..ResumeRequest::default()
    };
    match engine.resume(&feature, request)? {
        Resumed::Owned(owned) if background::wanted(context, args.detach) => {
            notes::print(&notes::of_notices(&owned.notices));
            tell_if_changed(context, owned.run_loop.run(), edited);
            let record = engine.detach(*owned, no_wait)?;
            background::launch(context, &record, &args.show)
        }
        Resumed::Owned(owned) => {
            tell_if_changed(context, owned.run_loop.run(), edited);
            drive::drive(&engine, *owned, &args.show, no_wait)
        }
        Resumed::Complete { run, notices } => {
            notes::print(&notes::of_notices(&notices));
            eprintln!("nothing left to do");
            let again = sage("resume").arg(&feature).option("--from", "STEP").comment("runs a step again");
            tell(again);
            tell_if_changed(context, &run, edited);
            drive::finish(&engine, &run, &args.show)
        }
    }
}

/// The owner of a run in the background: no terminal, nobody to ask. What it says goes to the run's log.
fn supervised(
    engine: &Engine,
    feature: &str,
    run: String,
    no_wait: bool,
    after_reboot: bool,
) -> Result<ExitCode, Failure> {
    background::leave_terminal()?;
    let unattended = Some(run.clone());
    let request = ResumeRequest { no_wait, unattended, after_reboot, ..ResumeRequest::default() };
    let show = Show { quiet: true, unattended: true, ..Show::default() };
    let ended = match open_patiently(engine, feature, &request) {
        Ok(Resumed::Owned(owned)) => {
            let now = sage_core::wire::rfc3339(engine.clock.now_ms());
            eprintln!("{now} {run} is run by process {}", std::process::id());
            drive::drive(engine, *owned, &show, no_wait)
        }
        // Somebody else has it, or has decided about it.
        Ok(_) | Err(OpenError::Owned { .. } | OpenError::NotAlone(_)) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error.into()),
    };
    engine.leave(feature)?;
    ended
}

/// A full disk or a machine without processes is waited for: nobody else would try again as often.
fn open_patiently(engine: &Engine, feature: &str, request: &ResumeRequest) -> Result<Resumed, OpenError> {
    let mut told = false;
    loop {
        match engine.resume(feature, request.clone()) {
            Err(error) if !request.no_wait && error.trouble().is_some() => {
                if !told {
                    eprintln!("warning: {error}; trying again");
                }
                told = true;
                std::thread::sleep(TROUBLE);
            }
            resumed => return resumed,
        }
    }
}

/// What a changed template or changed inputs make of a run.
pub(super) fn edit(
    context: &Context,
    template: Option<&str>,
    limits: &Limits,
    json: bool,
    run: &Run,
) -> Result<RunEdited, Failure> {
    let catalog = Catalog::of(context);
    let changed = |template: &Template| {
        let mut inputs = run.inputs.clone();
        inputs.extend(inputs::given(template, &limits.inputs, Map::new())?);
        inputs::complete(template, inputs)
    };
    let Some(name) = template else {
        let (template, templates) = (run.template.clone(), run.templates.clone());
        return Ok(RunEdited { template, templates, inputs: changed(&run.plan().template)? });
    };
    let ready = catalog.load(name, &mut diagnostics::reporter(json))?;
    let default = limits.agent.as_deref().or(run.settings.agent.as_deref());
    check_agents(context, &ready, default)?;
    check_trust(context, &ready, default, Some(name))?;
    check_programs(context, &ready, default)?;
    if !json {
        notes::print(&warnings::before_run(context, &ready, Some(name)));
    }
    let inputs = changed(&ready.template)?;
    Ok(RunEdited { template: ready.frozen, templates: ready.others, inputs })
}

/// Before an edited run goes on: what of the old one is still in the plan, what is new, what is gone.
pub(super) fn tell_edit(run: &Run, edit: &RunEdited) {
    let Some(plan) = sage_core::load::reload(&edit.template).ok().and_then(|t| Plan::new(t).ok()) else {
        return;
    };
    let old = run.plan();
    let kept = plan.steps.iter().filter(|step| old.find(&step.path).is_some()).count();
    let gone: Vec<&str> =
        old.steps.iter().map(|s| s.path.as_ref()).filter(|path| plan.find(path).is_none()).collect();
    eprintln!(
        "edited: {} as before (reused where nothing that determines them changed), {} new",
        plural(kept as u64, "step"),
        plan.steps.len() - kept
    );
    if !gone.is_empty() {
        eprintln!("edited: no longer in the plan: {}", gone.join(", "));
    }
}

fn tell_if_changed(context: &Context, run: &Run, edited: bool) {
    if !edited {
        notes::print(changed_template(context, run).as_slice());
    }
}

/// A run keeps the template that it started with, also where the file has changed since.
pub(crate) fn changed_template(context: &Context, run: &Run) -> Option<Note> {
    let name = template_name(&run.template);
    let text = format!("`{name}` has changed since this run started; the run continues with the old one");
    let note = || Note::new(text).hint(sage("resume").arg(&run.feature).option("-t", name));
    Catalog::of(context).has_changed(&run.template).then(note)
}
