//! An expression with everything it sees: data that can be evaluated here or in another process.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ExprError, Jq, jinja, tame};
use crate::template::Kind;

/// What to evaluate, and on what.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order<'a> {
    /// A jq program with exactly one value.
    Value { program: Cow<'a, str>, context: Cow<'a, Value> },
    /// A jq program over a result: its value, or null.
    Filter { program: Cow<'a, str>, input: Cow<'a, Value>, context: Cow<'a, Value> },
    /// A Jinja text.
    Text { text: Cow<'a, str>, context: Cow<'a, Value> },
    /// All Jinja texts in the parameters of a step.
    Params { kind: Kind, params: Cow<'a, Map<String, Value>>, context: Cow<'a, Value> },
}

impl<'a> Order<'a> {
    pub fn value(program: &'a str, context: &'a Value) -> Order<'a> {
        Order::Value { program: program.into(), context: Cow::Borrowed(context) }
    }

    pub fn filter(program: &'a str, input: &'a Value, context: &'a Value) -> Order<'a> {
        let (input, context) = (Cow::Borrowed(input), Cow::Borrowed(context));
        Order::Filter { program: program.into(), input, context }
    }

    pub fn text(text: &'a str, context: &'a Value) -> Order<'a> {
        Order::Text { text: text.into(), context: Cow::Borrowed(context) }
    }

    pub fn params(kind: Kind, params: &'a Map<String, Value>, context: &'a Value) -> Order<'a> {
        Order::Params { kind, params: Cow::Borrowed(params), context: Cow::Borrowed(context) }
    }

    /// Evaluates it, however long that takes and however much memory it needs.
    pub fn evaluate(&self) -> Result<Value, ExprError> {
        match self {
            Order::Value { program, context } => Jq::compile(program)?.one(context, context),
            Order::Filter { program, input, context } => Jq::compile(program)?.one_or_null(input, context),
            Order::Text { text, context } => jinja::render(text, context).map(Value::String),
            Order::Params { kind, params, context } => {
                jinja::render_params(*kind, params, context).map(Value::Object)
            }
        }
    }

    /// Whether its time and memory are bounded by the size of what it sees, so that it needs no guard.
    pub fn is_tame(&self) -> bool {
        match self {
            Order::Value { program, .. } | Order::Filter { program, .. } => tame::jq(program),
            Order::Text { text, .. } => tame::jinja(text),
            Order::Params { kind, params, .. } => {
                jinja::rendered_texts(*kind, params).into_iter().all(tame::jinja)
            }
        }
    }
}
