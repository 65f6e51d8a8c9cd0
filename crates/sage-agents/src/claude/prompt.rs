//! A prompt with its files, as a user message of Anthropic's Messages: Claude Code takes it on its standard input.

use std::path::Path;

use sage_core::port::{FileKind, PromptFile};
use serde_json::{Value, json};

use crate::prompt_files::in_words;

/// Plain text where there is nothing else.
pub fn content(prompt: &str, files: &[PromptFile], scratch: &Path) -> Value {
    let text = format!("{prompt}{}", in_words(scratch, files, |file| file.kind != FileKind::Text));
    let blocks: Vec<Value> = files.iter().filter_map(block).collect();
    if blocks.is_empty() {
        return text.into();
    }
    Value::Array([json!({"type": "text", "text": text})].into_iter().chain(blocks).collect())
}

/// An image or a PDF.
pub fn block(file: &PromptFile) -> Option<Value> {
    let kind = match file.kind {
        FileKind::Text => return None,
        FileKind::Image => "image",
        FileKind::Pdf => "document",
    };
    let source = json!({"type": "base64", "media_type": file.media_type(), "data": file.base64()});
    Some(json!({"type": kind, "source": source}))
}
