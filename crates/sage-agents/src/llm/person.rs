//! `ask_person`: a model asks a person something, in steps with `questions: true`.

use std::sync::atomic::{AtomicU32, Ordering};

use sage_core::inquiry::{AgentQuestion, AnswerOption, Inquiry, PersonAnswers};
use sage_core::port::{BoxFuture, Permission, PermissionAsk, Questions};
use serde_json::{Value, json};

use super::tools::{ToolBox, ToolSpec};

pub const ASK_PERSON: &str = "ask_person";

#[derive(Debug)]
pub struct AskPerson {
    questions: Questions,
    asked: AtomicU32,
}

impl AskPerson {
    pub fn new(questions: Questions) -> AskPerson {
        AskPerson { questions, asked: AtomicU32::new(0) }
    }

    fn question(input: &Value) -> Result<AgentQuestion, String> {
        let question = input["question"].as_str().filter(|text| !text.trim().is_empty());
        let question = question.ok_or("`question` must be text")?.to_string();
        let options = input["options"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let option = |label: &str| AnswerOption { label: label.into(), description: None };
        Ok(AgentQuestion {
            id: "answer".into(),
            header: None,
            question,
            options: options.map(option).collect(),
            multi_select: input["several"] == true,
            free_text: true,
        })
    }

    async fn ask(&self, input: &Value) -> Result<Value, String> {
        let question = AskPerson::question(input)?;
        let id = format!("ask-{}", self.asked.fetch_add(1, Ordering::SeqCst) + 1);
        let name = question.id.clone();
        let inquiry = Inquiry::Questions(vec![question]);
        let ask = PermissionAsk::of_person(&id, ASK_PERSON, input.clone(), inquiry);
        match self.questions.ask(ask).await {
            Permission::Allow { input: Some(input) } => {
                let told = PersonAnswers::from_input(&input).and_then(|given| given.told(&name));
                Ok(told.unwrap_or_else(|| input.to_string()).into())
            }
            Permission::Allow { input: None } => Ok("yes".into()),
            Permission::Deny { message } => Err(message),
        }
    }
}

impl ToolBox for AskPerson {
    fn tools(&self) -> Vec<ToolSpec> {
        let option = json!({"type": "array", "items": {"type": "string"}, "description": "Answers to choose from, if there are some"});
        let several = json!({"type": "boolean", "description": "Several options may be chosen"});
        vec![ToolSpec {
            name: ASK_PERSON.into(),
            description: "Ask the person who you work for, and wait for the answer. Only for decisions that are theirs: \
                          what neither the task nor the project tells, and where the answer changes what you do."
                .into(),
            input_schema: json!({
                "type": "object", "required": ["question"], "additionalProperties": false,
                "properties": {"question": {"type": "string"}, "options": option, "several": several},
            }),
        }]
    }

    fn call<'a>(&'a self, name: &'a str, input: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            match name {
                ASK_PERSON => self.ask(input).await,
                _ => Err(format!("there is no tool `{name}`")),
            }
        })
    }
}
