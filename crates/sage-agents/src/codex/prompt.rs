//! What codex is told, and by which way.
//!
//! A new thread hears the system prompt as its developer instructions. A thread that goes on keeps the ones it
//! began with, whatever it is told then; so another system prompt comes before the words of the turn.

use std::path::Path;

use super::{rollout, strict, toml_text};
use crate::agent::{Conversation, Order};

/// An argument of Linux ends at 128 KiB.
const ARGUMENT_BYTES: usize = 100 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub text: String,
    /// As TOML.
    pub developer_instructions: Option<String>,
    /// The schema goes to the decoder; else it is in the text.
    pub decodes_schema: bool,
}

/// `files` are those of the prompt, as words.
pub fn of(order: &Order, home: Option<&Path>, files: &str) -> Prompt {
    let system = order.system.as_deref().filter(|system| !is_told(order, system, home));
    let new = matches!(order.conversation, Conversation::New { .. });
    let developer_instructions =
        system.filter(|_| new).map(toml_text::text).filter(|quoted| quoted.len() < ARGUMENT_BYTES);
    let mut text = match system.filter(|_| developer_instructions.is_none()) {
        Some(system) => format!("{system}\n\n{}{files}", order.prompt),
        None => format!("{}{files}", order.prompt),
    };
    let decodes_schema = order.schema.as_ref().is_some_and(strict::is_strict);
    if let Some(schema) = order.schema.as_ref().filter(|_| !decodes_schema) {
        text.push_str(&format!(
            "\n\nYour final answer must be JSON that fits this JSON Schema, and nothing else:\n{schema}"
        ));
    }
    Prompt { text, developer_instructions, decodes_schema }
}

/// Whether the thread has heard it already.
fn is_told(order: &Order, system: &str, home: Option<&Path>) -> bool {
    let thread = match &order.conversation {
        Conversation::New { .. } => return false,
        Conversation::Resume { id, .. } => id,
        Conversation::Fork { of, .. } => of,
    };
    home.is_some_and(|home| rollout::mentions(home, thread, system))
}
