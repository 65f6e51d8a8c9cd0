//! What waits for a person, in all open runs of the project: one list, whatever asks.

use sage_core::inquiry::{AgentQuestion, Inquiry};
use sage_core::run::{OpenAsk, Run, State, StepId};
use sage_core::wire::rfc3339;
use sage_engine::open::{Engine, Snapshot};
use serde::Serialize;

use super::answer::answer_command;
use crate::command_line::sage;
use crate::display::why::unknown_question;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// `approval`; of an agent `permission`, `question` or `plan`; `unknown` for an attempt that was cut off and for a
    /// check that could not be made.
    pub kind: &'static str,
    pub feature: String,
    pub step: String,
    /// Which question of an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    pub message: String,
    /// What an agent wants to know, with the options.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AgentQuestion>,
    /// What an agent would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
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

impl Question {
    /// What an agent wants to hear, where it is more than a permission.
    pub fn inquiry(&self) -> Option<Inquiry> {
        let questions = || (!self.questions.is_empty()).then(|| Inquiry::Questions(self.questions.clone()));
        self.plan.clone().map(Inquiry::Plan).or_else(questions)
    }

    /// In a line, where the rest follows below it.
    pub fn headline(&self) -> String {
        match self.kind {
            "question" => "the agent asks".into(),
            "plan" => "may it carry out this plan?".into(),
            _ => self.message.clone(),
        }
    }
}

/// Of all features, by name. A run that cannot be read asks nothing; `sage list` shows it.
pub fn all(engine: &Engine) -> Vec<Question> {
    let open = engine.index().into_iter().filter(|(_, newest)| newest.may_be_open());
    let runs = open.filter_map(|(feature, newest)| engine.snapshot_of(&feature, &newest.run?).ok());
    // Questions of a foreign run are not this user's to answer.
    let open = |snapshot: &Snapshot| snapshot.run.status.open() && !snapshot.is_foreign;
    let default = if engine.approvals.allow_by_default { "allowed" } else { "denied" };
    let told = |question: Question| match question.kind {
        "permission" | "plan" => Question { default: Some(default.into()), ..question },
        "question" => Question { default: Some("the agent decides".into()), ..question },
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
                questions: Vec::new(),
                plan: None,
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
            questions: Vec::new(),
            plan: None,
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
    let inquiry = open.ask.inquiry.as_ref();
    let kind = match inquiry {
        None => {
            commands.insert(1, named.arg("--always").comment("and from now on").into());
            "permission"
        }
        Some(Inquiry::Plan(_)) => "plan",
        Some(Inquiry::Questions(questions)) => {
            commands[0] = answer_command(&run.feature, &step, Some(&open.ask.id), questions).into();
            "question"
        }
    };
    Question {
        kind,
        questions: inquiry.map(|inquiry| inquiry.questions().to_vec()).unwrap_or_default(),
        plan: inquiry.and_then(Inquiry::plan).map(str::to_string),
        feature: run.feature.clone(),
        step,
        ask: Some(open.ask.id.clone()),
        message: open.ask.question(),
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
