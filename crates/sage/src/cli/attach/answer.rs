//! What a person types at a question of the agent: the same answers as `sage approve` and `sage reject`.

use serde_json::json;

use super::super::answer::{self, Said};
use super::super::context::Context;
use super::super::failure::Failure;
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
    let (choice, message, input) = match &answer {
        Answer::Yes | Answer::Always => (None, None, None),
        Answer::No(why) => (Some("reject".to_string()), why.clone(), None),
        Answer::Choice(choice) => (Some(choice.clone()), None, None),
        Answer::Words(text) => (None, None, Some(json!({"answer": text}))),
    };
    let kept = match answer {
        Answer::Always => {
            let run = context.engine().read(feature)?.run;
            Some(keep::keep(context, &run, Some(step), ask.as_deref(), &Scope::Same)?)
        }
        _ => None,
    };
    let said = Said { choice, message, ask, input };
    let given = answer::say(context, feature, Some(step.into()), said, Door::of_command().by());
    match (given, kept) {
        (Ok(_), kept) => Ok(kept.map(|kept| kept.lines()).unwrap_or_default()),
        (Err(failure), kept) => {
            kept.iter().for_each(keep::Keeping::undo);
            Err(failure)
        }
    }
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
