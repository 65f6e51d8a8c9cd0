//! What an agent wants to hear from a person, beside a permission: answers to its questions, or a yes to its plan.
//!
//! Agents ask in many protocols; here is one form for all of them. The adapter of an agent makes it and turns the
//! answer back. No rule and no mode answers an inquiry: only a person knows what a person wants.

mod answer;

use serde::{Deserialize, Serialize};

pub use answer::{PersonAnswer, PersonAnswers, Unfit};

/// An agent that gets no answer is told this.
pub const DECIDE: &str = "Decide yourself: take the option that fits the task and the project best, and state in your \
                          answer what you assumed";
/// An agent whose plan nobody has seen is told this.
pub const KEEP_PLAN: &str = "Nobody has approved the plan, so do not carry it out: change nothing, and give the whole \
                             plan as your final answer";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Inquiry {
    Questions(Vec<AgentQuestion>),
    /// What it would do; it begins after a yes.
    Plan(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentQuestion {
    /// The agent finds its answer by it.
    pub id: String,
    /// A word or two that name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    pub question: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<AnswerOption>,
    /// Several options are one answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multi_select: bool,
    /// An answer in other words than those of the options is taken as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerOption {
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Inquiry {
    pub fn questions(&self) -> &[AgentQuestion] {
        match self {
            Inquiry::Questions(questions) => questions,
            Inquiry::Plan(_) => &[],
        }
    }

    pub fn plan(&self) -> Option<&str> {
        match self {
            Inquiry::Questions(_) => None,
            Inquiry::Plan(plan) => Some(plan),
        }
    }

    /// `Which color? (Red, Blue)`; of a plan its first line.
    pub fn title(&self) -> String {
        match self {
            Inquiry::Questions(questions) => {
                questions.iter().map(AgentQuestion::line).collect::<Vec<_>>().join(" · ")
            }
            Inquiry::Plan(plan) => {
                let first = plan.lines().map(|line| line.trim_start_matches('#').trim());
                first.into_iter().find(|line| !line.is_empty()).unwrap_or("(empty)").to_string()
            }
        }
    }

    /// All of its text, for whoever has to know how much it is or to take something out of it.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Inquiry::Plan(plan) => vec![plan],
            Inquiry::Questions(questions) => {
                questions.iter_mut().flat_map(AgentQuestion::texts_mut).collect()
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.clone().texts_mut().iter().map(|text| text.len()).sum()
    }

    /// What the agent is told of a person who says no without a word.
    pub fn refused(&self) -> String {
        match self {
            Inquiry::Questions(_) => format!("the person does not answer it. {DECIDE}"),
            Inquiry::Plan(_) => "the person does not approve the plan: make another one".into(),
        }
    }

    /// What the agent is told if nobody answers.
    pub fn otherwise(&self) -> &'static str {
        match self {
            Inquiry::Questions(_) => DECIDE,
            Inquiry::Plan(_) => KEEP_PLAN,
        }
    }
}

impl AgentQuestion {
    /// With its options, in a line.
    pub fn line(&self) -> String {
        let labels: Vec<&str> = self.options.iter().map(|option| option.label.as_str()).collect();
        let question = self.question.trim().replace('\n', " ⏎ ");
        match (labels.is_empty(), self.multi_select) {
            (true, _) => question,
            (false, true) => format!("{question} (any of: {})", labels.join(", ")),
            (false, false) => format!("{question} ({})", labels.join(", ")),
        }
    }

    /// What people call it: its header, else the question itself.
    pub fn name(&self) -> &str {
        self.header.as_deref().unwrap_or(&self.question)
    }

    fn texts_mut(&mut self) -> Vec<&mut String> {
        let AgentQuestion { id, header, question, options, .. } = self;
        let own = [id, question].into_iter().chain(header);
        own.chain(options.iter_mut().flat_map(|it| [Some(&mut it.label), it.description.as_mut()]).flatten())
            .collect()
    }
}
