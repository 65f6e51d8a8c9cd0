//! What a person types at a question of the agent: the same answers as `sage approve` and `sage reject`.

use sage_core::inquiry::{Inquiry, PersonAnswers};

use super::super::answer::{self, Said};
use super::super::context::Context;
use super::super::failure::Failure;
use super::super::inquire;
use super::super::keep::{self, Scope};
use crate::trust::Door;
use crate::trust::person::refuse_steps;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    /// From now on in this project.
    Always,
    No(Option<String>),
    /// Of an approval.
    Choice(String),
    /// To an agent that wants to know something.
    Words(String),
}

impl Answer {
    /// `None` for everything that is no answer: it is said to the agent.
    pub fn read(text: &str) -> Option<Answer> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let why = Some(rest.trim().to_string()).filter(|rest| !rest.is_empty());
        match (word.to_ascii_lowercase().as_str(), why) {
            ("y" | "yes", None) => Some(Answer::Yes),
            ("a" | "always", None) => Some(Answer::Always),
            // `no` begins sentences, too.
            ("n", why) => Some(Answer::No(why)),
            ("no", None) => Some(Answer::No(None)),
            _ => None,
        }
    }
}

/// Gives it, and says what else there is to know.
pub fn give(
    context: &Context,
    feature: &str,
    step: &str,
    ask: Option<String>,
    answer: Answer,
) -> Result<Vec<String>, Failure> {
    refuse_steps("answer a question", &answer::command("approve", feature, Some(step)))?;
    let (choices, message, input) = match &answer {
        Answer::Yes | Answer::Always => (Vec::new(), None, None),
        Answer::No(why) => (vec!["reject".to_string()], why.clone(), None),
        Answer::Choice(choice) => (vec![choice.clone()], None, None),
        Answer::Words(text) => {
            let given = answers(context, feature, step, ask.as_deref(), text)?;
            (Vec::new(), Some(text.clone()), Some(given.into_input()))
        }
    };
    let kept = match answer {
        Answer::Always => {
            let run = context.engine().read(feature)?.run;
            Some(keep::keep(context, &run, Some(step), ask.as_deref(), &Scope::Same)?)
        }
        _ => None,
    };
    let said = Said { choices, message, ask, input, ..Said::default() };
    let given = answer::say(context, feature, Some(step.into()), said, Door::of_command().by());
    match (given, kept) {
        (Ok(_), kept) => Ok(kept.map(|kept| kept.lines()).unwrap_or_default()),
        (Err(failure), kept) => {
            kept.iter().for_each(keep::Keeping::undo);
            Err(failure)
        }
    }
}

/// What the line says to the questions of the agent.
fn answers(
    context: &Context,
    feature: &str,
    step: &str,
    ask: Option<&str>,
    text: &str,
) -> Result<PersonAnswers, Failure> {
    let run = context.engine().read(feature)?.run;
    let open = run.find(step).and_then(|id| run.asks_of(id).find(|open| Some(open.ask.id.as_str()) == ask));
    let questions =
        open.and_then(|open| open.ask.inquiry.as_ref()).map(Inquiry::questions).unwrap_or_default();
    inquire::read_line(questions, text).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: P3
    #[test]
    fn only_an_answer_is_taken_for_one() {
        assert_eq!(Answer::read("y"), Some(Answer::Yes));
        assert_eq!(Answer::read("Always"), Some(Answer::Always));
        assert_eq!(Answer::read("n not today"), Some(Answer::No(Some("not today".into()))));
        assert_eq!(Answer::read("no"), Some(Answer::No(None)));
        for text in ["yes, but not there", "no problem", "always run the tests first", "please stop", ""] {
            assert_eq!(Answer::read(text), None, "{text}");
        }
    }
}
