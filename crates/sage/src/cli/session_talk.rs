//! `sage session resume`: one turn with a session, outside of any run.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use sage_agents::session::Store;
use sage_core::approval::Rules;
use sage_core::port::{
    Asks, BoxFuture, Permission, PermissionAsk, Questions, StepCall, StepCx, StepOutcome, StopSignal,
};
use sage_core::role::{Access, Role};
use sage_core::template::{Isolation, Kind};
use serde_json::{Map, Value, json};

use super::context::{Context, runtime};
use super::failure::Failure;
use super::{print, print_json};

pub fn resume(
    context: &Context,
    store: &Store,
    name: &str,
    prompt: String,
    json: bool,
) -> Result<ExitCode, Failure> {
    let record = store.load(name)?;
    let scratch = store.path(name).join("scratch");
    std::fs::create_dir_all(&scratch)
        .map_err(|error| Failure::failed(format!("cannot create `{}`: {error}", scratch.display())))?;
    let role = record.role.as_deref().and_then(|role| Role::parse(role).ok());
    let stop = StopSignal::default();
    let cx = StepCx {
        watch: None,
        project: context.project.root.clone(),
        scratch,
        children_lock: None,
        proofs: Vec::new(),
        stop: stop.clone(),
        nudge: Default::default(),
        questions: Questions::new(Arc::new(Clerk::of(context, role))),
        crowd: Default::default(),
        progress: Arc::new(|_| {}),
    };
    let call = call(name, &record.agent, role, prompt);
    let engine = context.engine();
    let outcome = runtime()?.block_on(async {
        let mut turn = engine.executor.execute(cx, call);
        tokio::select! {
            outcome = &mut turn => outcome,
            _ = tokio::signal::ctrl_c() => {
                stop.set(sage_core::port::Stop::Graceful);
                turn.await
            }
        }
    });
    answer(name, outcome, json)
}

/// Answers what the session's agent asks: the project's rules, else whoever sits at the terminal.
struct Clerk {
    rules: Rules,
    access: Access,
    project: String,
}

impl Clerk {
    fn of(context: &Context, role: Option<Role>) -> Clerk {
        let project = context.project.root.canonicalize().unwrap_or_else(|_| context.project.root.clone());
        let access = role.unwrap_or(Role::Implementer).access();
        Clerk {
            rules: context.config.approvals.rules.clone(),
            access,
            project: project.display().to_string(),
        }
    }

    fn answer(&self, ask: &PermissionAsk) -> Permission {
        let deny = |message: String| Permission::Deny { message };
        match self.rules.decide(ask, self.access, &self.project, None) {
            Some(ruling) if ruling.allow => Permission::Allow { input: None },
            Some(ruling) => deny(ruling.why),
            None if !std::io::stdin().is_terminal() => deny("nobody is there to be asked".into()),
            None => {
                let what = ask.command.clone().unwrap_or_else(|| ask.paths.join(", "));
                eprint!("may it use {} {what}? [y/N] ", ask.tool);
                let mut line = String::new();
                let _ = std::io::stdin().read_line(&mut line);
                let yes = line.trim().eq_ignore_ascii_case("y");
                if yes { Permission::Allow { input: None } } else { deny("the user said no".into()) }
            }
        }
    }
}

impl Asks for Clerk {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        Box::pin(std::future::ready(self.answer(&ask)))
    }
}

fn call(name: &str, agent: &str, role: Option<Role>, prompt: String) -> StepCall {
    let id = ulid::Ulid::generate().to_string();
    StepCall {
        run: format!("session_{id}"),
        feature: String::new(),
        path: "session/turn".into(),
        kind: Kind::Agent,
        operation: "agent".into(),
        attempt: 1,
        key: id,
        params: Map::from_iter([("prompt".to_string(), Value::from(prompt))]),
        agent: Some(agent.to_string()),
        model: None,
        schema: None,
        role,
        session: Some(name.to_string()),
        isolation: Isolation::None,
        input: Value::Null,
        timeout_ms: None,
        idle_timeout_ms: None,
        unknown: false,
        fresh: false,
        feedback: None,
    }
}

fn answer(name: &str, outcome: StepOutcome, json: bool) -> Result<ExitCode, Failure> {
    match outcome {
        StepOutcome::Succeeded { result, usage } if json => {
            print_json(&json!({"type": "turn", "session": name, "result": result, "usage": usage}))?;
        }
        StepOutcome::Succeeded { result: Value::String(text), .. } => print(format_args!("{text}\n")),
        StepOutcome::Succeeded { result, .. } => print_json(&result)?,
        StepOutcome::Failed { class, message, .. } => {
            return Err(Failure::failed(format!("{}: {message}", class.name())));
        }
        StepOutcome::Stopped { .. } => return Ok(ExitCode::from(130)),
    }
    Ok(ExitCode::SUCCESS)
}
