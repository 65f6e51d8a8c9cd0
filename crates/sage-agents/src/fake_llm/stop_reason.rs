//! Why an answer ends, in the words of each protocol.

use super::turn::Turn;

pub fn anthropic(turn: &Turn) -> &str {
    match turn.stop_reason.as_deref() {
        None if calls_tools(turn) => "tool_use",
        None | Some("stop" | "completed") => "end_turn",
        Some("tool_calls") => "tool_use",
        Some("length" | "max_output_tokens") => "max_tokens",
        Some("content_filter") => "refusal",
        Some(other) => other,
    }
}

pub fn chat(turn: &Turn) -> &str {
    match turn.stop_reason.as_deref() {
        None if calls_tools(turn) => "tool_calls",
        // A refusal has its own field; the answer itself is whole.
        None | Some("end_turn" | "completed" | "refusal") => "stop",
        Some("tool_use") => "tool_calls",
        Some("max_tokens" | "max_output_tokens") => "length",
        Some(other) => other,
    }
}

/// Why a response of `/v1/responses` is incomplete, if it is.
pub fn incomplete(turn: &Turn) -> Option<&str> {
    match turn.stop_reason.as_deref() {
        Some("max_tokens" | "length" | "max_output_tokens") => Some("max_output_tokens"),
        Some("content_filter") => Some("content_filter"),
        _ => None,
    }
}

pub fn refuses(turn: &Turn) -> bool {
    turn.stop_reason.as_deref() == Some("refusal")
}

fn calls_tools(turn: &Turn) -> bool {
    !turn.tools.is_empty() || turn.custom_tool.is_some()
}
