//! Files of a prompt as content blocks, as far as the agent takes them.
//!
//! Texts are told in words: Gemini drops all images of a prompt that has a resource as well.

use agent_client_protocol::v1::schema::{ContentBlock, ImageContent, PromptCapabilities};
use sage_core::port::{FileKind, PromptFile};

/// Whether a file goes as a block of its own; the others are told in words.
pub fn is_block(file: &PromptFile, agent: &PromptCapabilities) -> bool {
    file.kind == FileKind::Image && agent.image
}

pub fn blocks(files: &[PromptFile], agent: &PromptCapabilities) -> Vec<ContentBlock> {
    let images = files.iter().filter(|file| is_block(file, agent));
    images.map(|file| ContentBlock::Image(ImageContent::new(file.base64(), file.media_type()))).collect()
}
