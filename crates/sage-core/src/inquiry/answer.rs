//! What a person chose and said, brought to the questions that it answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::AgentQuestion;
use crate::diagnostic::did_you_mean;

/// What models add to the option that they would take.
const RECOMMENDED: &str = "(recommended)";

/// The answers, by the ids of the questions. On its way to the agent it is the `input` of a permission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonAnswers {
    pub answers: BTreeMap<String, PersonAnswer>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersonAnswer {
    /// Labels of options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Own words: instead of an option, or about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Why something is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    pub why: String,
    pub hint: Option<String>,
}

impl Unfit {
    fn new(why: String) -> Unfit {
        Unfit { why, hint: None }
    }
}

impl PersonAnswer {
    /// As a text for the agent: `S, L`, or `Red (dark red, please)`.
    pub fn told(&self) -> String {
        let chosen = self.choices.join(", ");
        match &self.text {
            None => chosen,
            Some(text) if chosen.is_empty() => text.clone(),
            Some(text) => format!("{chosen} ({text})"),
        }
    }
}

impl PersonAnswers {
    /// `choices` are labels (or numbers of options), each also as `question=label`; `text` answers the question that
    /// has no choice, or is a comment on the only one. Every question must be answered.
    pub fn to(
        questions: &[AgentQuestion],
        choices: &[String],
        text: Option<&str>,
    ) -> Result<PersonAnswers, Unfit> {
        let mut given = PersonAnswers::default();
        for choice in choices {
            let (at, answer) = chosen(questions, choice)?;
            let question = &questions[at];
            let known = given.answers.entry(question.id.clone()).or_default();
            known.text = answer.text.or(known.text.take());
            let new = answer.choices.into_iter().filter(|label| !known.choices.contains(label));
            known.choices = known.choices.iter().cloned().chain(new).collect();
            if known.choices.len() > 1 && !question.multi_select {
                return Err(Unfit::new(format!("`{}` takes one option", question.name())));
            }
        }
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            given.say(questions, text)?;
        }
        let open = |question: &&AgentQuestion| !given.answers.contains_key(&question.id);
        let missing: Vec<&str> = questions.iter().filter(open).map(AgentQuestion::name).collect();
        match missing.is_empty() {
            true => Ok(given),
            false => Err(Unfit::new(format!("no answer to: {}", missing.join(", ")))),
        }
    }

    fn say(&mut self, questions: &[AgentQuestion], text: &str) -> Result<(), Unfit> {
        let open: Vec<&AgentQuestion> =
            questions.iter().filter(|question| !self.answers.contains_key(&question.id)).collect();
        match (open.as_slice(), questions) {
            ([one], _) if one.free_text => {
                let answer = PersonAnswer { choices: Vec::new(), text: Some(text.into()) };
                self.answers.insert(one.id.clone(), answer);
                Ok(())
            }
            ([one], _) => Err(Unfit::new(format!("`{}` takes only one of its options", one.name()))),
            ([], [one]) => {
                self.answers.entry(one.id.clone()).or_default().text = Some(text.into());
                Ok(())
            }
            _ => {
                Err(Unfit::new("the text could answer several questions: name the one that is meant".into()))
            }
        }
    }

    /// From the input of a permission.
    pub fn from_input(input: &Value) -> Option<PersonAnswers> {
        serde_json::from_value(input.clone()).ok()
    }

    pub fn into_input(self) -> Value {
        json!(self)
    }

    /// The answer to a question, as a text.
    pub fn told(&self, id: &str) -> Option<String> {
        self.answers.get(id).map(PersonAnswer::told)
    }
}

/// The question that a choice is about, and the answer that it is.
fn chosen(questions: &[AgentQuestion], choice: &str) -> Result<(usize, PersonAnswer), Unfit> {
    let named = choice.split_once('=').and_then(|(name, rest)| Some((find(questions, name)?, rest.trim())));
    if let Some((at, rest)) = named {
        return match option(&questions[at], rest) {
            Some(label) => Ok((at, PersonAnswer { choices: vec![label], text: None })),
            None if questions[at].free_text && !rest.is_empty() => {
                Ok((at, PersonAnswer { choices: Vec::new(), text: Some(rest.into()) }))
            }
            None => Err(unknown(&questions[at..=at], rest)),
        };
    }
    let fits = |(at, question): (usize, &AgentQuestion)| Some((at, option(question, choice)?));
    let found: Vec<(usize, String)> = questions.iter().enumerate().filter_map(fits).collect();
    match found.as_slice() {
        [] => Err(unknown(questions, choice)),
        [(at, label)] => Ok((*at, PersonAnswer { choices: vec![label.clone()], text: None })),
        [(first, _), ..] => {
            let name = questions[*first].name();
            let why = format!("`{choice}` is an option of {} questions", found.len());
            Err(Unfit { why, hint: Some(format!("--choice \"{name}={choice}\"")) })
        }
    }
}

/// By its number from 1, its header, its id or its text.
fn find(questions: &[AgentQuestion], name: &str) -> Option<usize> {
    let name = name.trim();
    let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let is = |question: &AgentQuestion| {
        let names = [question.header.as_deref(), Some(&question.id), Some(&question.question)];
        names.into_iter().flatten().any(|it| it.trim().eq_ignore_ascii_case(name))
    };
    questions.iter().position(is).or(number.filter(|at| *at < questions.len()))
}

/// The label that is meant: as it is written, in other letters, without the recommendation, or by its number.
fn option(question: &AgentQuestion, wanted: &str) -> Option<String> {
    let wanted = bare(wanted);
    let labels = || question.options.iter().map(|option| &option.label);
    let number = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let found = labels().find(|label| bare(label) == wanted);
    found.or_else(|| labels().nth(number?)).cloned()
}

fn bare(label: &str) -> String {
    let label = label.trim().to_lowercase();
    label.strip_suffix(RECOMMENDED).map_or(label.clone(), |rest| rest.trim_end().to_string())
}

fn unknown(questions: &[AgentQuestion], choice: &str) -> Unfit {
    let labels = || questions.iter().flat_map(|it| &it.options).map(|option| option.label.as_str());
    let known: Vec<String> = labels().map(|label| format!("`{label}`")).collect();
    let why = match known.is_empty() {
        true => format!("`{choice}` is no option: the question takes an answer in your own words"),
        false => format!("`{choice}` is no option; there are {}", known.join(", ")),
    };
    let own =
        || questions.iter().any(|question| question.free_text).then(|| "-m \"your own words\"".to_string());
    Unfit { why, hint: did_you_mean(choice, labels()).or_else(own) }
}

#[cfg(test)]
mod tests {
    use super::super::AnswerOption;
    use super::*;

    fn question(header: &str, labels: &[&str], multi_select: bool) -> AgentQuestion {
        let option = |label: &&str| AnswerOption { label: label.to_string(), description: None };
        AgentQuestion {
            id: format!("Which {header}?"),
            header: Some(header.into()),
            question: format!("Which {header}?"),
            options: labels.iter().map(option).collect(),
            multi_select,
            free_text: true,
        }
    }

    fn two() -> Vec<AgentQuestion> {
        vec![
            question("Color", &["Red (Recommended)", "Blue"], false),
            question("Size", &["S", "M", "Blue"], true),
        ]
    }

    fn given(
        questions: &[AgentQuestion],
        choices: &[&str],
        text: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        let given = PersonAnswers::to(questions, &choices, text).map_err(|unfit| unfit.why)?;
        assert_eq!(PersonAnswers::from_input(&given.clone().into_input()).as_ref(), Some(&given));
        Ok(questions.iter().map(|question| given.told(&question.id).unwrap()).collect())
    }

    // covers: P3
    #[test]
    fn a_choice_finds_the_question_that_it_answers() {
        let two = two();
        assert_eq!(given(&two, &["red", "s", "M"], None).unwrap(), ["Red (Recommended)", "S, M"]);
        assert_eq!(given(&two, &["Color=blue", "2=blue"], None).unwrap(), ["Blue", "Blue"]);
        assert_eq!(given(&two, &["S"], Some("green")).unwrap(), ["green", "S"]);
        assert_eq!(given(&two, &["color=green", "size=2"], None).unwrap(), ["green", "M"]);
        assert_eq!(given(&two[..1], &["2"], Some("dark")).unwrap(), ["Blue (dark)"]);
        assert_eq!(given(&two[..1], &[], Some("none of them")).unwrap(), ["none of them"]);
    }

    // covers: P3
    #[test]
    fn what_could_mean_something_else_is_no_answer() {
        let two = two();
        let why = |choices: &[&str], text| given(&two, choices, text).unwrap_err();
        assert_eq!(why(&["blue", "S"], None), "`blue` is an option of 2 questions");
        assert_eq!(why(&["Red"], None), "no answer to: Size");
        assert_eq!(why(&["Red", "color=blue", "S"], None), "`Color` takes one option");
        assert_eq!(
            why(&["Red", "XL"], None),
            "`XL` is no option; there are `Red (Recommended)`, `Blue`, `S`, `M`, `Blue`"
        );
        assert!(why(&[], Some("x")).contains("several questions"));
        assert!(why(&["Red", "S"], Some("x")).contains("several questions"));
        let strict = AgentQuestion { free_text: false, ..two[0].clone() };
        assert!(given(&[strict], &[], Some("green")).unwrap_err().contains("only one of its options"));
        let open = AgentQuestion { options: Vec::new(), ..two[0].clone() };
        assert!(given(&[open], &["x"], None).unwrap_err().contains("own words"));
    }
}
