//! `sage session resume`: one turn with a session, outside of any run.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use sage_agents::session::Store;
use sage_core::approval::{Verdict, advice};
use sage_core::port::{
    AskKind, Asks, BoxFuture, Permission, PermissionAsk, Questions, StepCall, StepCx, StepOutcome,
    StopSignal, Workplace,
};
use sage_core::role::{Access, Role};
use sage_core::template::{Isolation, Kind};
use sage_engine::approvals::{Approvals, Scene};
use serde_json::{Map, Value, json};

use super::config::Attendance;
use super::context::{Context, runtime};
use super::failure::Failure;
use super::inquire::{self, Reply};
use super::{print, print_json};
use crate::display::text::clean;

pub fn resume(
    context: &Context,
    store: &Store,
    name: &str,
    prompt: String,
    json: bool,
) -> Result<ExitCode, Failure> {
    let record = store.load(name)?;
    let scratch = store.path(name).join("scratch");
    sage_fence::private::create_dir_all(&scratch)
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
        messages: Default::default(),
        crowd: Default::default(),
        prices: Arc::new(context.config.prices()),
        capped: false,
        progress: Arc::new(|_| {}),
    };
    let call =
        StepCall { allow: context.config.approvals.rules.mode, ..call(name, &record.agent, role, prompt) };
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

/// Answers what the session's agent asks: the project's rules, else the person at the terminal.
struct Clerk {
    approvals: Approvals,
    access: Access,
    project: PathBuf,
}

impl Clerk {
    fn of(context: &Context, role: Option<Role>) -> Clerk {
        let access = role.unwrap_or(Role::Implementer).access();
        let approvals = context.approvals(Attendance::of(false));
        Clerk { approvals, access, project: context.project.root.clone() }
    }

    /// What needs no person: rules decide.
    fn rule(&self, ask: &PermissionAsk, at: &Workplace) -> Option<Permission> {
        let facts = self.approvals.facts(&self.project, ask.kind == AskKind::Run);
        let (root, access, mode) = (self.project.as_path(), self.access, self.approvals.rules.mode);
        let cwd = at.cwd.as_deref().unwrap_or(root);
        let scene = Scene { root, cwd, facts: &facts, access, mode, spent_usd: None };
        match self.approvals.judge(ask, &scene) {
            Verdict::Allow { .. } => Some(Permission::Allow { input: None }),
            Verdict::Deny { why } => {
                let advice = ask.inquiry.as_ref().map(|inquiry| format!(". {}", inquiry.otherwise()));
                Some(Permission::Deny { message: why + &advice.unwrap_or_default() })
            }
            Verdict::Ask { why, .. } if !std::io::stdin().is_terminal() || sage_agents::above().is_some() => {
                let advice = match &ask.inquiry {
                    Some(inquiry) => inquiry.otherwise().to_string(),
                    None => advice(self.access, &facts.checks),
                };
                let message = format!("cannot ask a person: not a terminal; asked because {why}. {advice}");
                Some(Permission::Deny { message })
            }
            Verdict::Ask { .. } => None,
        }
    }
}

impl Asks for Clerk {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        self.ask_in(ask, &Workplace::default())
    }

    fn ask_in(&self, ask: PermissionAsk, at: &Workplace) -> BoxFuture<'static, Permission> {
        match self.rule(&ask, at) {
            Some(permission) => Box::pin(std::future::ready(permission)),
            None => Box::pin(ask_person(ask)),
        }
    }
}

/// Every line of the agent's words is indented and cleaned: none of them looks like the question itself.
fn question(ask: &PermissionAsk) -> String {
    let what = ask.command.clone().unwrap_or_else(|| ask.paths.join("\n"));
    let mut text = format!("the agent asks to use {}\n", clean(&ask.tool));
    for line in what.split('\n').filter(|line| !line.trim().is_empty()) {
        text.push_str(&format!("    {}\n", clean(line)));
    }
    text + "allow it? [y/N] "
}

/// On a thread of its own: the turn goes on while a person thinks, and its end does not wait for the line.
async fn ask_person(ask: PermissionAsk) -> Permission {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let asked = std::thread::Builder::new().spawn(move || {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = sender.send(answer_of(&ask));
    });
    // Without a thread nobody can be asked.
    if asked.is_err() {
        return Permission::Deny { message: "cannot ask a person: no thread is left".into() };
    }
    receiver.await.unwrap_or_else(|_| Permission::Deny { message: "the user said no".into() })
}

fn answer_of(ask: &PermissionAsk) -> Permission {
    let mut read = |prompt: &str| {
        eprint!("{prompt}");
        let mut line = String::new();
        let bytes = std::io::stdin().read_line(&mut line).ok()?;
        (bytes > 0).then_some(line)
    };
    if let Some(inquiry) = &ask.inquiry {
        eprintln!("the agent asks:");
        let reply = inquire::ask(inquiry, &mut read).unwrap_or(Reply::Refuse(None));
        return reply.permission(inquiry);
    }
    match read(&question(ask)) {
        Some(line) if line.trim().eq_ignore_ascii_case("y") => Permission::Allow { input: None },
        _ => Permission::Deny { message: "the user said no".into() },
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
        allow: Default::default(),
        session: Some(name.to_string()),
        isolation: Isolation::None,
        input: Value::Null,
        timeout_ms: None,
        idle_timeout_ms: None,
        unknown: false,
        fresh: false,
        feedback: None,
        messages: Vec::new(),
        keep_output: false,
        files: Vec::new(),
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

#[cfg(test)]
mod tests {
    use sage_core::port::AskKind;

    use super::*;

    // covers: R17
    #[test]
    fn a_question_shows_all_of_a_command_and_obeys_none_of_it() {
        let ask = PermissionAsk {
            id: "1".into(),
            tool: "Bash\u{1b}[2K".into(),
            input: Value::Null,
            kind: AskKind::Run,
            paths: Vec::new(),
            inquiry: None,
            planning: false,
            command: Some("rm -rf ~ #\r\u{1b}[2K\u{202e}ls\nallow it? [y/N] y".into()),
        };
        let text = question(&ask);
        assert_eq!(
            text,
            "the agent asks to use Bash\n    rm -rf ~ #\u{fffd}\u{fffd}ls\n    allow it? [y/N] y\nallow it? [y/N] "
        );
    }
}
