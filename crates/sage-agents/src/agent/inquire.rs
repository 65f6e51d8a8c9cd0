//! Questions and plans of agents, in the words of Claude Code's tools, which the scripted agent speaks as well.

use sage_core::inquiry::{AgentQuestion, AnswerOption, Inquiry, PersonAnswer, PersonAnswers};
use sage_core::port::Permission;
use serde_json::{Map, Value};

/// Asks what a person wants.
pub const ASK_TOOL: &str = "AskUserQuestion";
/// Ends planning with a plan to approve.
pub const PLAN_TOOL: &str = "ExitPlanMode";

/// What a tool call wants to hear from a person; `None` if it is an ordinary tool, or asks nothing.
pub fn inquiry(tool: &str, input: &Value) -> Option<Inquiry> {
    match tool {
        ASK_TOOL => {
            let questions: Vec<AgentQuestion> = list(input, "questions").filter_map(question).collect();
            (!questions.is_empty()).then_some(Inquiry::Questions(questions))
        }
        PLAN_TOOL => Some(Inquiry::Plan(text(input, "plan").unwrap_or_default())),
        _ => None,
    }
}

/// Answers go by the text of the question.
fn question(written: &Value) -> Option<AgentQuestion> {
    let question = text(written, "question")?;
    let option =
        |it: &Value| Some(AnswerOption { label: text(it, "label")?, description: text(it, "description") });
    Some(AgentQuestion {
        id: question.clone(),
        header: text(written, "header"),
        question,
        options: list(written, "options").filter_map(option).collect(),
        multi_select: written["multiSelect"] == true,
        free_text: true,
    })
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().filter(|text| !text.trim().is_empty()).map(str::to_string)
}

/// What the tool is given instead of `input`, now that a person has answered.
pub fn answered(tool: &str, input: &Value, permission: Permission) -> Permission {
    let Permission::Allow { input: Some(changed) } = permission else { return permission };
    let mut whole = input.clone();
    match (tool, PersonAnswers::from_input(&changed)) {
        (ASK_TOOL, Some(given)) => {
            let several = |id: &str| {
                list(input, "questions").any(|it| it["question"] == id && it["multiSelect"] == true)
            };
            let told = |(id, answer): (&String, &PersonAnswer)| {
                let text = if several(id) { joined(answer) } else { answer.told() };
                (id.clone(), text.into())
            };
            whole["answers"] = Value::Object(given.answers.iter().map(told).collect::<Map<_, _>>());
        }
        (PLAN_TOOL, _) => {
            changed.as_object().into_iter().flatten().for_each(|(name, value)| whole[name] = value.clone());
        }
        _ => whole = changed,
    }
    Permission::Allow { input: Some(whole) }
}

/// The tool takes such a text apart at its commas: an item that has one stands in quotes.
fn joined(answer: &PersonAnswer) -> String {
    let quoted = |item: &String| match item.contains([',', '"']) {
        true => Value::from(item.as_str()).to_string(),
        false => item.clone(),
    };
    answer.choices.iter().chain(&answer.text).map(quoted).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: P3
    #[test]
    fn questions_and_plans_are_read_and_answered_in_claude_codes_words() {
        let option = |label: &str| json!({"label": label, "description": "d"});
        let input = json!({"questions": [
            {"question": "Which color?", "header": "Color", "options": [option("Red"), option("Blue")]},
            {"question": "Which sizes?", "multiSelect": true, "options": [option("S"), option("L")]}, {"odd": 1}]});
        let found = inquiry(ASK_TOOL, &input).unwrap();
        assert_eq!(found.title(), "Which color? (Red, Blue) · Which sizes? (any of: S, L)");
        let choices = ["blue", "s", "l"].map(String::from);
        let given = PersonAnswers::to(found.questions(), &choices, None).unwrap().into_input();
        let Permission::Allow { input: Some(told) } =
            answered(ASK_TOOL, &input, Permission::Allow { input: Some(given) })
        else {
            panic!("not allowed")
        };
        assert_eq!(told["answers"], json!({"Which color?": "Blue", "Which sizes?": "S, L"}));
        assert_eq!(told["questions"], input["questions"]);
        let own = PersonAnswer { choices: vec!["S".into()], text: Some("XL, if there is one".into()) };
        assert_eq!(joined(&own), r#"S, "XL, if there is one""#);
        let plan = json!({"plan": "1. paint", "planFilePath": "/p"});
        assert_eq!(inquiry(PLAN_TOOL, &plan).unwrap().plan(), Some("1. paint"));
        let edited = Permission::Allow { input: Some(json!({"plan": "1. wait"})) };
        let Permission::Allow { input: Some(told) } = answered(PLAN_TOOL, &plan, edited) else { panic!() };
        assert_eq!(told, json!({"plan": "1. wait", "planFilePath": "/p"}));
        assert_eq!(inquiry("Bash", &input), None);
        assert_eq!(inquiry(ASK_TOOL, &json!({"questions": []})), None);
    }
}
