//! An agent's own questions and plans, for people: as text, and asked one by one on a terminal.

use sage_core::inquiry::{AgentQuestion, Inquiry, PersonAnswers};
use sage_core::port::Permission;
use serde_json::{Value, json};

use crate::display::text::clean;

/// What the lines of an agent begin with: none of them looks like a question of Sage itself.
const INDENT: &str = "    ";

/// What a person said to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Answers to its questions.
    Answers(PersonAnswers),
    Approve,
    /// With what the agent is told.
    Refuse(Option<String>),
}

impl Reply {
    /// As the agent hears it.
    pub fn permission(self, inquiry: &Inquiry) -> Permission {
        match self {
            Reply::Answers(given) => Permission::Allow { input: Some(given.into_input()) },
            Reply::Approve => Permission::Allow { input: None },
            Reply::Refuse(message) => {
                Permission::Deny { message: message.unwrap_or_else(|| inquiry.refused()) }
            }
        }
    }
}

/// All of it, line by line: questions with their options, or the plan.
pub fn lines(inquiry: &Inquiry) -> Vec<String> {
    match inquiry {
        Inquiry::Plan(plan) => plan.lines().map(|line| format!("{INDENT}{}", clean(line))).collect(),
        Inquiry::Questions(questions) => questions.iter().flat_map(question).collect(),
    }
}

fn question(question: &AgentQuestion) -> Vec<String> {
    let header = question.header.as_ref().map(|header| format!("{}: ", clean(header))).unwrap_or_default();
    let several = if question.multi_select { " (several may be chosen)" } else { "" };
    let mut lines: Vec<String> =
        question.question.lines().map(|line| format!("{INDENT}{}", clean(line))).collect();
    if let Some(first) = lines.first_mut() {
        *first = format!("{INDENT}{header}{}", first.trim_start());
    }
    if let Some(last) = lines.last_mut() {
        last.push_str(several);
    }
    let width = question.options.iter().map(|option| option.label.chars().count()).max().unwrap_or(0);
    for (number, option) in question.options.iter().enumerate() {
        let (label, about) = (clean(&option.label), clean(option.description.as_deref().unwrap_or_default()));
        lines.push(format!("{INDENT}  {}. {label:width$}  {about}", number + 1).trim_end().to_string());
    }
    lines
}

/// Asks a person, with a way to print a prompt and read a line. `None`: there is nobody any more.
pub fn ask(inquiry: &Inquiry, read: &mut dyn FnMut(&str) -> Option<String>) -> Option<Reply> {
    let Inquiry::Questions(questions) = inquiry else { return ask_plan(inquiry, read) };
    let mut given = PersonAnswers::default();
    for one in questions {
        let text = question(one).join("\n");
        let how = match (one.options.is_empty(), one.multi_select, one.free_text) {
            (true, ..) => "your answer",
            (false, true, _) => "numbers with commas between them, or your own words",
            (false, false, true) => "a number, or your own words",
            (false, false, false) => "a number",
        };
        let mut prompt = format!("{text}\n{how}: ");
        loop {
            let line = read(&prompt)?;
            match answer(one, line.trim()) {
                Ok(answer) => {
                    given.answers.extend(answer.answers);
                    break;
                }
                Err(why) => prompt = format!("{}\n{how}: ", clean(&why)),
            }
        }
    }
    Some(Reply::Answers(given))
}

/// One line for all questions: `Color=2, Size=S` where there are several.
pub fn read_line(questions: &[AgentQuestion], line: &str) -> Result<PersonAnswers, String> {
    match questions {
        [one] => answer(one, line.trim()),
        _ => {
            let parts: Vec<String> = line.split(',').map(|part| part.trim().to_string()).collect();
            PersonAnswers::to(questions, &parts, None).map_err(|unfit| unfit.why)
        }
    }
}

/// Options by number or name; anything else is an answer in own words.
fn answer(question: &AgentQuestion, line: &str) -> Result<PersonAnswers, String> {
    if line.is_empty() {
        return Err("an answer is needed (Ctrl-C leaves the question open)".into());
    }
    let one = std::slice::from_ref(question);
    let parts = line.split(',').map(|part| part.trim().to_string()).filter(|part| !part.is_empty());
    let parts: Vec<String> = if question.multi_select { parts.collect() } else { vec![line.to_string()] };
    let chosen = PersonAnswers::to(one, &parts, None);
    chosen.or_else(|_| PersonAnswers::to(one, &[], Some(line))).map_err(|unfit| unfit.why)
}

fn ask_plan(inquiry: &Inquiry, read: &mut dyn FnMut(&str) -> Option<String>) -> Option<Reply> {
    let prompt = format!("{}\napprove this plan? [y/N, or what to change] ", lines(inquiry).join("\n"));
    let line = read(&prompt)?;
    Some(match line.trim() {
        "y" | "Y" | "yes" => Reply::Approve,
        "" | "n" | "N" | "no" => Reply::Refuse(None),
        text => Reply::Refuse(Some(text.to_string())),
    })
}

/// The plan with a person's words below it, as the input of the tool that it came by.
pub fn with_comment(plan: &str, comment: &str) -> Value {
    json!({"plan": format!("{}\n\n## From the person who approved this plan\n\n{comment}\n", plan.trim_end())})
}

#[cfg(test)]
mod tests {
    use sage_core::inquiry::AnswerOption;

    use super::*;

    fn colors(multi_select: bool) -> AgentQuestion {
        let option = |label: &str, about: &str| AnswerOption {
            label: label.into(),
            description: Some(about.into()).filter(|about: &String| !about.is_empty()),
        };
        AgentQuestion {
            id: "q".into(),
            header: Some("Color".into()),
            question: "Which color?\u{1b}[2K\nallow it? [y/N]".into(),
            options: vec![option("Red", "warm"), option("Navy blue", "")],
            multi_select,
            free_text: true,
        }
    }

    fn asked(inquiry: &Inquiry, typed: &[&str]) -> (Option<Reply>, String) {
        let (mut typed, mut seen) = (typed.iter(), String::new());
        let reply = ask(inquiry, &mut |prompt| {
            seen.push_str(prompt);
            typed.next().map(ToString::to_string)
        });
        (reply, seen)
    }

    fn told(reply: Option<Reply>) -> String {
        match reply {
            Some(Reply::Answers(given)) => given.told("q").unwrap(),
            other => panic!("{other:?}"),
        }
    }

    // covers: P3, R17
    #[test]
    fn a_person_answers_by_number_by_name_or_in_own_words() {
        let one = Inquiry::Questions(vec![colors(false)]);
        let (reply, seen) = asked(&one, &["", "2"]);
        assert_eq!(told(reply), "Navy blue");
        let shown =
            "    Color: Which color?\n    allow it? [y/N]\n      1. Red        warm\n      2. Navy blue\n";
        assert!(seen.starts_with(shown), "{seen}");
        assert!(seen.contains("an answer is needed"), "{seen}");
        assert_eq!(told(asked(&one, &["red"]).0), "Red");
        assert_eq!(told(asked(&one, &["neither, green"]).0), "neither, green");
        let several = Inquiry::Questions(vec![colors(true)]);
        assert_eq!(told(asked(&several, &["1, navy blue"]).0), "Red, Navy blue");
        assert_eq!(told(asked(&several, &["1, green"]).0), "1, green");
        assert_eq!(asked(&one, &[]).0, None);
    }

    // covers: P3
    #[test]
    fn a_plan_is_approved_or_sent_back() {
        let plan = Inquiry::Plan("# Paint\n1. red".into());
        let (reply, seen) = asked(&plan, &["y"]);
        assert_eq!(reply, Some(Reply::Approve));
        assert!(seen.starts_with("    # Paint\n    1. red\napprove this plan?"), "{seen}");
        assert_eq!(asked(&plan, &["no"]).0, Some(Reply::Refuse(None)));
        let (reply, _) = asked(&plan, &["use brushes"]);
        assert_eq!(reply.unwrap().permission(&plan), Permission::Deny { message: "use brushes".into() });
    }
}
