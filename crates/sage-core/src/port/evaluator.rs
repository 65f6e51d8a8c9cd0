//! Where expressions are evaluated that may need more time or memory than there is.

use serde_json::Value;

use crate::expr::Order;

/// Evaluates an expression and can stop it. Blocks; called off the loop, from many threads.
pub trait Evaluator: Send + Sync + std::fmt::Debug {
    fn evaluate(&self, order: &Order<'_>) -> Result<Value, String>;
}

/// Evaluates in this process, without limits: for expressions that are known to be harmless, and for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl Evaluator for Unguarded {
    fn evaluate(&self, order: &Order<'_>) -> Result<Value, String> {
        order.evaluate().map_err(|error| error.to_string())
    }
}
