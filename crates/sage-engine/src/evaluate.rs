//! Expressions run here: on threads of their own, never on the loop.
//!
//! Tame ones are evaluated in this process: their cost is bounded by what they see. All others go to the evaluator,
//! which stops them at its limits of time and memory.

use sage_core::expr::Order;
use sage_core::port::{Evaluator, NoValue, Unguarded};
use serde_json::Value;

/// Evaluates an expression, guarded if it needs to be.
pub fn evaluate(order: &Order<'_>, evaluator: &dyn Evaluator) -> Result<Value, NoValue> {
    if order.is_tame() { Unguarded.evaluate(order) } else { evaluator.evaluate(order) }
}

pub async fn off_loop<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(why)) => Err(format!("{what}: {why}")),
        Err(_) => Err(format!("{what}: the evaluation broke off")),
    }
}
