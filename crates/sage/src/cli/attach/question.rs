//! The open question of a step, as a person reads it, and the meaning of a line that is typed while it is open.

use sage_core::event::AskedFor;
use sage_core::inquiry::Inquiry;
use sage_core::run::{OpenAsk, Run, StepId};
use serde_json::Value;

use super::super::{inquire, questions};
use super::answer::Answer;
use crate::display::text::{Line, Tone};

#[derive(Debug)]
pub struct Question {
    /// Tells it from the step's next one.
    pub id: String,
    /// Which question of an agent; approvals have none.
    pub ask: Option<String>,
    pub prompt: &'static str,
    lines: Vec<Line>,
    /// The command that answers it from another terminal.
    command: Option<String>,
    takes: Takes,
}

/// What it can be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// An agent wants to use a tool.
    Permission,
    /// An agent wants to know something: every line is an answer.
    Words,
    /// An approval, or a step that needs a decision.
    Choice,
}

impl Question {
    /// The first one that is open.
    pub fn of(run: &Run, step: StepId) -> Option<Question> {
        let path = &run.step(step).path;
        let found = questions::of_run(run).into_iter().find(|question| *question.step == **path)?;
        let attempt = run.step(step).attempts;
        let command = found.commands.into_iter().next();
        let open = run.asks_of(step).next();
        if let Some(open) = open.filter(|open| found.ask.as_ref() == Some(&open.ask.id)) {
            return Some(Question::of_agent(open, command));
        }
        let title = if found.kind == "unknown" { "decision" } else { found.kind };
        let mut lines = vec![Line::of(Tone::Warn, "? ").with(Tone::Bold, title)];
        lines.extend(indented(&found.message));
        let yes_or_no = found.choices.is_empty() || found.choices == ["approve", "reject"];
        if !yes_or_no {
            lines.push(Line::of(Tone::Dim, &format!("  choices: {}", found.choices.join(", "))));
        }
        let prompt = if yes_or_no { "approve? [y/n] " } else { "choose: " };
        Some(Question { id: attempt.to_string(), ask: None, prompt, lines, command, takes: Takes::Choice })
    }

    fn of_agent(open: &OpenAsk, command: Option<String>) -> Question {
        let ask = &open.ask;
        let (takes, prompt, title) = match &ask.inquiry {
            Some(Inquiry::Questions(_)) => {
                (Takes::Words, "answer: ", "the agent needs an answer".to_string())
            }
            Some(Inquiry::Plan(_)) => {
                (Takes::Permission, "approve? [y/n] ", "may it carry out its plan?".into())
            }
            None => (Takes::Permission, "allow? [y/n/always] ", format!("may it use {}?", ask.tool)),
        };
        let mut lines = vec![Line::of(Tone::Warn, "? ").with(Tone::Bold, &title)];
        match &ask.inquiry {
            Some(inquiry) => {
                lines.extend(inquire::lines(inquiry).iter().map(|line| Line::of(Tone::Plain, line)));
            }
            None => lines.extend(indented(&subject(ask))),
        }
        lines.extend(ask.why.iter().map(|why| Line::of(Tone::Dim, &format!("  asked because {why}"))));
        let id = format!("{} {}", open.attempt, ask.id);
        Question { id, ask: Some(ask.id.clone()), prompt, lines, command, takes }
    }

    /// With the command to type elsewhere, if it cannot be answered here.
    pub fn lines(mut self, answers_here: bool) -> Vec<Line> {
        if let Some(command) = self.command.filter(|_| !answers_here) {
            self.lines.push(Line::of(Tone::Plain, "  → ").with(Tone::Bold, &command));
        }
        self.lines
    }

    /// `None` for a line that is no answer: it is a message to the agent.
    pub fn read(&self, text: &str) -> Option<Answer> {
        match (self.takes, Answer::read(text)) {
            (Takes::Words, _) => Some(Answer::Words(text.to_string())),
            (Takes::Permission, answer) => answer,
            (Takes::Choice, None | Some(Answer::Always)) => Some(Answer::Choice(text.to_string())),
            (Takes::Choice, answer) => answer,
        }
    }
}

/// What the tool is to be used for: the whole command, its paths, or its input.
fn subject(ask: &AskedFor) -> String {
    match &ask.command {
        Some(command) => command.clone(),
        None if !ask.paths.is_empty() => ask.paths.join("\n"),
        None => {
            let input =
                ask.input.json.as_deref().and_then(|json| serde_json::from_str::<Value>(json.get()).ok());
            let input = input.filter(|input| !input.is_null() && *input != Value::Object(Default::default()));
            input.and_then(|input| serde_json::to_string_pretty(&input).ok()).unwrap_or_default()
        }
    }
}

/// Every line of words that are not our own is indented: none of them looks like the question itself.
fn indented(text: &str) -> impl Iterator<Item = Line> {
    text.lines().map(|line| Line::of(Tone::Plain, "    ").with(Tone::Plain, line))
}
