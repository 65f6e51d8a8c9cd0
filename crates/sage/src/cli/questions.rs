//! What waits for a person, in all open runs of the project: one list, whatever asks.

use sage_core::run::{OpenAsk, Run, State, StepId};
use sage_core::wire::rfc3339;
use sage_engine::open::{Engine, Snapshot};
use serde::Serialize;

use crate::command_line::sage;
use crate::display::why::unknown_question;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// `approval`, `permission` for what an agent asks, or `unknown` for an attempt that was cut off and for a check that
    /// could not be made.
    pub kind: &'static str,
    pub feature: String,
    pub step: String,
    /// Which question of an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    pub message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What is taken at the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Why no rule answered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// A line for sage.toml that would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What to type, the first being a yes.
    pub commands: Vec<String>,
}

/// Of all features, by name. A run that cannot be read asks nothing; `sage list` shows it.
pub fn all(engine: &Engine) -> Vec<Question> {
    let open = engine.index().into_iter().filter(|(_, newest)| newest.may_be_open());
    let runs = open.filter_map(|(feature, newest)| engine.snapshot_of(&feature, &newest.run?).ok());
    // Questions of a foreign run are not this user's to answer.
    let open = |snapshot: &Snapshot| snapshot.run.status.open() && !snapshot.is_foreign;
    let default = if engine.approvals.allow_by_default { "allowed" } else { "denied" };
    let told = |question: Question| match question.kind {
        "permission" => Question { default: Some(default.into()), ..question },
        _ => question,
    };
    runs.filter(open).flat_map(|snapshot| of_run(&snapshot.run)).map(told).collect()
}

pub fn of_run(run: &Run) -> Vec<Question> {
    let question = |id: StepId| match run.shown_state(id) {
        State::Running(running) => {
            let (ask, step) = (running.ask.as_ref()?, run.step(id));
            let commands = approval_commands(&run.feature, &step.path, &ask.choices, None);
            Some(Question {
                kind: "approval",
                feature: run.feature.clone(),
                step: step.path.to_string(),
                ask: None,
                message: ask.message.clone(),
                choices: ask.choices.clone(),
                default: ask.default.clone(),
                deadline: running.until.map(rfc3339),
                why: None,
                rule: None,
                commands,
            })
        }
        State::Unknown => Some(Question {
            kind: "unknown",
            feature: run.feature.clone(),
            step: run.step(id).path.to_string(),
            ask: None,
            message: unknown_question(run, id),
            choices: Vec::new(),
            default: None,
            deadline: None,
            why: None,
            rule: None,
            commands: approval_commands(&run.feature, &run.step(id).path, &["approve".into()], None),
        }),
        _ => None,
    };
    let permissions = run.asks.iter().map(|open| permission(run, open));
    run.step_ids().filter_map(question).chain(permissions).collect()
}

/// A running agent asks. With its id, because it may ask for several things at once.
fn permission(run: &Run, open: &OpenAsk) -> Question {
    let step = run.step(open.step).path.to_string();
    let mut commands = approval_commands(&run.feature, &step, &["approve".into()], Some(&open.ask.id));
    let named = sage("approve").arg(&run.feature).arg(&step).option("--ask", &open.ask.id);
    commands.insert(1, named.arg("--always").comment("and from now on").into());
    Question {
        kind: "permission",
        feature: run.feature.clone(),
        step,
        ask: Some(open.ask.id.clone()),
        message: format!("may it use {}?", open.ask.title()),
        choices: Vec::new(),
        default: None,
        deadline: open.until.map(rfc3339),
        why: open.ask.why.clone(),
        rule: open.ask.rule.as_ref().map(|rule| format!("[approvals] commands = [{rule:?}]")),
        commands,
    }
}

/// `ask`: which of an agent's questions is meant.
fn approval_commands(feature: &str, step: &str, choices: &[String], ask: Option<&str>) -> Vec<String> {
    let named = |command: &str| sage(command).arg(feature).arg(step).option_if("--ask", ask);
    let yes = |choice: &String| match choice.as_str() {
        "approve" => Some(named("approve").into()),
        "reject" => None,
        other => Some(named("approve").option("-c", other).into()),
    };
    let mut commands: Vec<String> = choices.iter().filter_map(yes).collect();
    commands.push(named("reject").into());
    commands
}
