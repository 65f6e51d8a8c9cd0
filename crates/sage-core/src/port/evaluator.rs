//! Where expressions are evaluated that may need more time or memory than there is.

use serde_json::Value;

use crate::expr::Order;

/// Evaluates an expression and can stop it. Blocks; called off the loop, from many threads.
pub trait Evaluator: Send + Sync + std::fmt::Debug {
    fn evaluate(&self, order: &Order<'_>) -> Result<Value, NoValue>;
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoValue {
    /// It is wrong, or goes beyond its limits: repeating does not help.
    #[error("{0}")]
    Invalid(String),
    /// The machine has no process or memory to evaluate it.
    #[error("{0}")]
    System(String),
}

impl NoValue {
    /// Says which expression it is about.
    #[must_use]
    pub fn within(self, what: &str) -> NoValue {
        match self {
            NoValue::Invalid(why) => NoValue::Invalid(format!("{what}: {why}")),
            NoValue::System(why) => NoValue::System(format!("{what}: {why}")),
        }
    }
}

/// Evaluates in this process, without limits: for expressions that are known to be harmless, and for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl Evaluator for Unguarded {
    fn evaluate(&self, order: &Order<'_>) -> Result<Value, NoValue> {
        order.evaluate().map_err(|error| NoValue::Invalid(error.to_string()))
    }
}
