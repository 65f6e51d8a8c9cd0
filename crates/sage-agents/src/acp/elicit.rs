//! `elicitation/create`: what an agent wants to know, as a form with fields.
//!
//! Agents put a question into a field's title or description, or, where there is only one, into the message. A text
//! field beside a choice (`<name>_custom`, or one that names its question in `_meta`) is for an answer in own words.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction, ElicitationAction,
    ElicitationContentValue, ElicitationMode,
};
use sage_core::inquiry::{AgentQuestion, AnswerOption, Inquiry, PersonAnswer, PersonAnswers};
use sage_core::port::Permission;
use serde_json::{Map, Value};

const CUSTOM: &str = "_custom";

/// The fields, in the order of the questions.
#[derive(Debug)]
pub struct Form(Vec<Field>);

#[derive(Debug)]
struct Field {
    name: String,
    takes: Takes,
    /// The field for an answer in own words.
    own: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Text,
    Number,
    Flag,
    One,
    Several,
}

/// `None` if it is no form, or one without a field that a person could fill in.
pub fn read(request: &CreateElicitationRequest) -> Option<(Form, Inquiry)> {
    let ElicitationMode::Form(form) = &request.mode else { return None };
    let schema = serde_json::to_value(&form.requested_schema).ok()?;
    let properties = schema["properties"].as_object()?;
    let companions: BTreeMap<String, String> =
        properties.iter().filter_map(|it| companion(it, properties)).collect();
    let own = |name: &str| companions.iter().find(|(_, of)| *of == name).map(|(name, _)| name.clone());
    let mut fields = Vec::new();
    let mut questions = Vec::new();
    for (name, property) in properties.iter().filter(|(name, _)| !companions.contains_key(*name)) {
        let (takes, options) = takes(property)?;
        let own = own(name);
        let (header, question) = words(name, property);
        let free_text = own.is_some() || matches!(takes, Takes::Text | Takes::Number);
        let multi_select = takes == Takes::Several;
        questions.push(AgentQuestion {
            id: name.clone(),
            header,
            question,
            options,
            multi_select,
            free_text,
        });
        fields.push(Field { name: name.clone(), takes, own });
    }
    match questions.as_mut_slice() {
        [] => return None,
        [one] if text(&properties[&one.id], "description").is_none() => {
            one.question = request.message.clone()
        }
        [first, ..] => first.question = format!("{}\n{}", request.message.trim(), first.question),
    }
    Some((Form(fields), Inquiry::Questions(questions)))
}

/// A field for own words, and the one that it belongs to.
fn companion((name, property): (&String, &Value), all: &Map<String, Value>) -> Option<(String, String)> {
    let by_name = name.strip_suffix(CUSTOM).map(str::to_string);
    let of = by_name.or_else(|| property["_meta"]["codex"]["questionId"].as_str().map(str::to_string));
    let of = of.filter(|of| of != name && all.contains_key(of) && property["type"] == "string")?;
    Some((name.clone(), of))
}

/// What may be put into a field, with the options that it has.
fn takes(property: &Value) -> Option<(Takes, Vec<AnswerOption>)> {
    let listed = |of: &Value| {
        let titled = ["oneOf", "anyOf"].iter().find_map(|name| of[*name].as_array()).into_iter().flatten();
        let titled = titled.filter_map(|it| {
            let description =
                text(it, "description").or_else(|| text(it, "title").filter(|t| it["const"] != **t));
            Some(AnswerOption { label: text(it, "const")?, description })
        });
        let plain = of["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let plain = plain.map(|label| AnswerOption { label: label.into(), description: None });
        titled.chain(plain).collect::<Vec<_>>()
    };
    Some(match property["type"].as_str()? {
        "string" => match listed(property) {
            options if options.is_empty() => (Takes::Text, options),
            options => (Takes::One, options),
        },
        "array" => (Takes::Several, listed(&property["items"])),
        "number" | "integer" => (Takes::Number, Vec::new()),
        "boolean" => {
            let option = |label: &str| AnswerOption { label: label.into(), description: None };
            (Takes::Flag, vec![option("yes"), option("no")])
        }
        _ => return None,
    })
}

/// The longer of title and description is the question, the other one its name.
fn words(name: &str, property: &Value) -> (Option<String>, String) {
    match (text(property, "title"), text(property, "description")) {
        (Some(title), Some(about)) if about.len() >= title.len() => (Some(title), about),
        (Some(title), Some(about)) => (Some(about), title),
        (Some(title), None) => (Some(title.clone()), title),
        (None, Some(about)) => (None, about),
        (None, None) => (None, name.to_string()),
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().filter(|text| !text.trim().is_empty()).map(str::to_string)
}

impl Form {
    /// An agent that nobody answers is told so in words where a field takes them: the protocol has no others.
    pub fn response(&self, permission: Permission) -> CreateElicitationResponse {
        let content = match permission {
            Permission::Allow { input: Some(input) } => {
                PersonAnswers::from_input(&input).and_then(|given| self.filled(&given))
            }
            Permission::Allow { input: None } => None,
            Permission::Deny { message } => {
                let in_words = |field: &Field| {
                    field.own.clone().or((field.takes == Takes::Text).then(|| field.name.clone()))
                };
                let words: Option<BTreeMap<String, _>> =
                    self.0.iter().map(|field| Some((in_words(field)?, message.as_str().into()))).collect();
                words
            }
        };
        CreateElicitationResponse::new(match content {
            Some(content) => ElicitationAction::Accept(ElicitationAcceptAction::new().content(content)),
            None => ElicitationAction::Decline,
        })
    }

    fn filled(&self, given: &PersonAnswers) -> Option<BTreeMap<String, ElicitationContentValue>> {
        let mut content = BTreeMap::new();
        for field in &self.0 {
            let PersonAnswer { choices, text } = given.answers.get(&field.name)?;
            let chosen = choices.first();
            let value = match (field.takes, chosen, text) {
                (Takes::Several, Some(_), _) => Some(ElicitationContentValue::StringArray(choices.clone())),
                (Takes::One, Some(label), _) => Some(label.as_str().into()),
                (Takes::Flag, Some(label), _) => Some((label == "yes").into()),
                (Takes::Text, _, Some(text)) => Some(text.as_str().into()),
                (Takes::Number, _, Some(text)) => Some(number(text)?),
                _ => None,
            };
            content.extend(value.map(|value| (field.name.clone(), value)));
            if let (Some(own), Some(text)) = (&field.own, text) {
                content.insert(own.clone(), text.as_str().into());
            }
        }
        Some(content)
    }
}

fn number(text: &str) -> Option<ElicitationContentValue> {
    let whole = text.trim().parse::<i64>().map(ElicitationContentValue::Integer);
    whole.or_else(|_| text.trim().parse().map(ElicitationContentValue::Number)).ok()
}

/// The turn is over before anybody has answered.
pub fn cancelled() -> CreateElicitationResponse {
    CreateElicitationResponse::new(ElicitationAction::Cancel)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(message: &str, properties: Value) -> CreateElicitationRequest {
        let schema = json!({"type": "object", "properties": properties});
        serde_json::from_value(
            json!({"mode": "form", "sessionId": "s", "message": message, "requestedSchema": schema}),
        )
        .unwrap()
    }

    fn said(form: &Form, permission: Permission) -> Value {
        serde_json::to_value(form.response(permission)).unwrap()
    }

    fn answers(inquiry: &Inquiry, choices: &[&str], text: Option<&str>) -> Permission {
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        let given = PersonAnswers::to(inquiry.questions(), &choices, text).unwrap();
        Permission::Allow { input: Some(given.into_input()) }
    }

    fn option(label: &str) -> Value {
        json!({"const": label, "title": label, "description": format!("the {label} one")})
    }

    // covers: P3
    #[test]
    fn questions_in_the_form_of_claude_agent_acp() {
        let one = json!({"question_0": {"type": "string", "title": "Color", "oneOf": [option("Red"), option("Blue")]},
            "question_0_custom": {"type": "string", "title": "Other", "description": "Type your own answer"}});
        let (form, inquiry) = read(&request("Which color?", one)).unwrap();
        assert_eq!(inquiry.title(), "Which color? (Red, Blue)");
        assert_eq!(inquiry.questions()[0].header.as_deref(), Some("Color"));
        let accepted = said(&form, answers(&inquiry, &["blue"], Some("navy")));
        assert_eq!(accepted["content"], json!({"question_0": "Blue", "question_0_custom": "navy"}));
        let denied = said(&form, Permission::Deny { message: "decide yourself".into() });
        assert_eq!(denied["content"], json!({"question_0_custom": "decide yourself"}));
        let several = json!({
            "question_0": {"type": "string", "title": "Color", "description": "Which color?", "oneOf": [option("Red")]},
            "question_1": {"type": "array", "title": "Size", "description": "Which sizes?", "items": {"anyOf": [option("S"), option("L")]}}});
        let (form, inquiry) = read(&request("Please answer.", several)).unwrap();
        assert_eq!(inquiry.title(), "Please answer. ⏎ Which color? (Red) · Which sizes? (any of: S, L)");
        let accepted = said(&form, answers(&inquiry, &["red", "s", "l"], None));
        assert_eq!(accepted["content"], json!({"question_0": "Red", "question_1": ["S", "L"]}));
        assert_eq!(said(&form, Permission::Deny { message: "x".into() })["action"], "decline");
    }

    // covers: P3
    #[test]
    fn questions_in_the_form_of_codex_acp_and_of_mcp_servers() {
        let note = json!({"type": "string", "title": "Additional", "_meta": {"codex": {"questionId": "db", "role": "user_note"}}});
        let codex = json!({"db": {"type": "string", "title": "Which database?", "description": "DB", "oneOf": [option("A")]}, "db_note": note});
        let (form, inquiry) = read(&request("Codex needs your input.", codex)).unwrap();
        assert_eq!(inquiry.questions()[0].header.as_deref(), Some("DB"));
        assert!(inquiry.questions()[0].question.ends_with("Which database?"), "{inquiry:?}");
        assert_eq!(
            said(&form, answers(&inquiry, &["A"], Some("12")))["content"],
            json!({"db": "A", "db_note": "12"})
        );
        let server = json!({"age": {"type": "integer"}, "ok": {"type": "boolean", "title": "Sure?"}, "way": {"type": "string", "enum": ["x", "y"]}});
        let (form, inquiry) = read(&request("Register", server)).unwrap();
        let accepted = said(&form, answers(&inquiry, &["ok=yes", "way=y", "age=42"], None));
        assert_eq!(accepted["content"], json!({"age": 42, "ok": true, "way": "y"}));
        let odd = said(&form, answers(&inquiry, &["ok=no", "way=y", "age=old"], None));
        assert_eq!(odd["action"], "decline");
        assert!(read(&request("empty", json!({}))).is_none());
        let url = json!({"mode": "url", "sessionId": "s", "message": "m", "url": "https://x", "elicitationId": "1"});
        assert!(read(&serde_json::from_value(url).unwrap()).is_none());
    }
}
