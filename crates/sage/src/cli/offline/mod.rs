//! `sage __offline <operation>`: the process behind the `offline` agent.
//!
//! Most of what it can do is in `sage-offline`; what needs Sage's own stores (skills, tickets, runs) is here. It is
//! started for every such step and must be quick, so it comes before the command line is parsed.

pub mod skills;
mod statistics;
mod tickets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sage_agents::OfflineAnswer as Answer;
use sage_core::run::State;
use sage_core::template::Isolation;
use sage_offline::{Before, Request, Trouble};
use serde_json::{Map, Value};

use super::baseline;
use super::context::Context;

/// Entry of the process; `args` are those after `__offline`.
pub fn main(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let operation = args.next().and_then(|name| name.into_string().ok()).unwrap_or_default();
    let answer = request(operation).and_then(|request| perform(&request)).unwrap_or_else(told);
    super::print(format_args!("{}\n", serde_json::json!(answer)));
    ExitCode::from(u8::from(answer.result.is_none()))
}

fn perform(request: &Request) -> Result<Answer, Trouble> {
    let own = |done: Result<Value, String>| done.map_err(Trouble::Invalid);
    let result = match request.operation.as_str() {
        "tickets.create" => own(tickets::create(&request.project, &run(), &request.feature, &request.steps))?,
        "tickets.update" => own(tickets::update(&request.project, &run(), &request.steps))?,
        "skills.discover" => own(skills::discover(&request.project, &request.title, &request.params))?,
        "test.baseline" => own(baseline::measure(&context(request)?, &run(), &request.feature))?,
        "statistics" => own(statistics::count(&context(request)?, &request.feature))?,
        _ => sage_offline::perform(&with_commands(request)?)?,
    };
    Ok(Answer { result: Some(result), ..Answer::default() })
}

/// The entry of `[checks]` that an operation runs.
pub fn checked_by(operation: &str) -> Option<&'static str> {
    match operation {
        "build.verify" => Some("build"),
        "test.run" | "test.regression" => Some("test"),
        _ => None,
    }
}

/// Checks are told which commands sage.toml names, as it is now: a person may have named them since the run began.
fn with_commands(request: &Request) -> Result<Request, Trouble> {
    let Some(what) = checked_by(&request.operation) else { return Ok(request.clone()) };
    let text = |name: &str| request.params.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let context = context(request)?;
    let named = context.config.file.check_commands(what, text("part").unwrap_or("all"));
    let (before, doubt) = baseline::of(&context.project, &run(), context.key.as_ref());
    let untrusted = context.config.untrusted_checks().map(|_| {
        "The check was not made: [checks] of sage.toml is not trusted. Look at it with `sage trust checks`, and resume."
            .to_string()
    });
    let doubt = doubt.or(untrusted);
    let mut request = Request { named, run_began_s: began_s(&run()), before, doubt, ..request.clone() };
    if let Some(step) = text("of") {
        match worktree_of(&context, &request.feature, step)? {
            // It has what was committed, not all that was in the project.
            Worktree::At { path, base } => {
                if let Before::Known(known) = &request.before {
                    request.ran.clone_from(&known.ran);
                }
                (request.project, request.before) = (path, Before::Commit(base));
            }
            Worktree::Unchanged => request.absent = Some(format!("`{step}` left no worktree")),
            Worktree::Unknown(why) => request.unplaced = Some(why),
        }
    }
    Ok(request)
}

/// Where a step worked that `of` names.
enum Worktree {
    At {
        path: PathBuf,
        /// The commit that it began at.
        base: String,
    },
    /// One in which nothing was changed is gone.
    Unchanged,
    Unknown(String),
}

fn worktree_of(context: &Context, feature: &str, step: &str) -> Result<Worktree, Trouble> {
    let worktrees = context.project.dir.join("worktrees");
    let unreadable = |source| Trouble::Unreadable { path: worktrees.clone(), source };
    let leases =
        sage_agents::worktree::list_of(&worktrees, &run(), context.key.as_ref()).map_err(unreadable)?;
    let Some(lease) = leases.found.into_iter().find(|lease| lease.step == step) else {
        return Ok(without_lease(context, feature, step));
    };
    // The project may be a folder of its repository.
    let root = &context.project.root;
    let top = sage_agents::worktree::top(root).unwrap_or_else(|_| root.clone());
    let within = root.strip_prefix(&top).unwrap_or(Path::new("")).to_path_buf();
    let path = lease.path.join(within);
    Ok(match path.is_dir() {
        true => Worktree::At { path, base: lease.base },
        false => Worktree::Unknown(format!("The check was not made: the worktree of `{step}` is gone.")),
    })
}

/// Only a step that had a worktree and changed nothing in it leaves nothing to check.
fn without_lease(context: &Context, feature: &str, step: &str) -> Worktree {
    let unknown = |why: &str| {
        Worktree::Unknown(format!(
            "The check was not made: `of` names `{step}`, {why}. Correct it and resume."
        ))
    };
    let Ok(snapshot) = context.engine().read(feature) else { return unknown("and the run cannot be read") };
    let run = &snapshot.run;
    let Some(id) = run.find(step) else { return unknown("which is no step of this run") };
    let isolated = run.operation(id).isolation == Isolation::Worktree;
    match &run.step(id).state {
        _ if !isolated => unknown("which has no worktree of its own (`isolation: worktree`)"),
        State::Skipped => Worktree::Unchanged,
        State::Succeeded if run.step(id).children.is_none() => Worktree::Unchanged,
        _ => unknown("which left no worktree"),
    }
}

/// A run's id begins with its time.
fn began_s(run: &str) -> Option<u64> {
    let id: ulid::Ulid = run.strip_prefix("run_")?.parse().ok()?;
    Some(id.timestamp_ms() / 1_000)
}

fn run() -> String {
    std::env::var("SAGE_RUN").unwrap_or_default()
}

/// What has stores is never isolated: the working directory is the project.
fn context(request: &Request) -> Result<Context, Trouble> {
    Context::find(Some(&request.project)).map_err(|failure| Trouble::Invalid(failure.message))
}

fn told(trouble: Trouble) -> Answer {
    let invalid = matches!(trouble, Trouble::UnknownOperation(_) | Trouble::Invalid(_));
    let mut message = trouble.to_string();
    if let Trouble::UnknownOperation(_) = trouble {
        message.push_str("; choose an agent: `sage agents` shows who is there, `--agent NAME` takes one");
    }
    Answer { result: None, error: Some(message), invalid, partial: None }
}

/// What the engine wrote for this attempt.
fn request(operation: String) -> Result<Request, Trouble> {
    let path = std::env::var_os("SAGE_INPUT").map(PathBuf::from);
    let path =
        path.ok_or_else(|| Trouble::Invalid("there is no SAGE_INPUT: this is for steps of a run".into()))?;
    let text = std::fs::read_to_string(&path)
        .map_err(|source| Trouble::Unreadable { path: path.clone(), source })?;
    let input: Value = serde_json::from_str(&text)
        .map_err(|error| Trouble::Invalid(format!("`{}` is not JSON: {error}", path.display())))?;
    let project =
        std::env::current_dir().map_err(|source| Trouble::Unreadable { path: ".".into(), source })?;
    Ok(read(operation, &project, &input))
}

fn read(operation: String, project: &Path, input: &Value) -> Request {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
    let map = |name: &str| input.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    // A filter is for prompts: a ticket for every task of a plan, also of one that is too long for a prompt.
    let face = if operation.starts_with("tickets.") { "full" } else { "result" };
    let steps: Map<String, Value> = map("steps")
        .into_iter()
        .map(|(path, step)| (path, step.get(face).cloned().unwrap_or(Value::Null)))
        .collect();
    Request {
        operation,
        project: project.to_path_buf(),
        feature: text("feature"),
        title: text("title"),
        params: map("params"),
        inputs: map("inputs"),
        steps,
        item: input.get("item").cloned(),
        ..Request::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R22
    #[test]
    fn tickets_are_made_of_the_whole_plan_and_not_of_what_a_filter_left() {
        let step = json!({"result": {"tasks": [1]}, "full": {"tasks": [1, 2]}, "state": "succeeded"});
        let input = json!({"steps": {"p/plan": step}});
        let seen = |operation: &str| {
            let request = read(operation.into(), Path::new("/project"), &input);
            request.steps["p/plan"]["tasks"].as_array().map_or(0, Vec::len)
        };
        assert_eq!((seen("tickets.create"), seen("tickets.update"), seen("specify")), (2, 2, 1));
    }
}
