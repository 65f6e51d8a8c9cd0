//! Files of a prompt as content blocks, as far as the agent takes them.

use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, PromptCapabilities,
    TextResourceContents,
};
use sage_core::port::{FileKind, PromptFile};

/// Whether a file goes as a block of its own; the others are told in words.
pub fn is_block(file: &PromptFile, agent: &PromptCapabilities) -> bool {
    match file.kind {
        FileKind::Text => agent.embedded_context,
        FileKind::Image => agent.image,
        FileKind::Pdf => false,
    }
}

pub fn blocks(files: &[PromptFile], agent: &PromptCapabilities) -> Vec<ContentBlock> {
    files.iter().filter(|file| is_block(file, agent)).map(block).collect()
}

fn block(file: &PromptFile) -> ContentBlock {
    if file.kind == FileKind::Image {
        return ContentBlock::Image(ImageContent::new(file.base64(), file.media_type()));
    }
    let contents = TextResourceContents::new(file.text(), format!("file:///{}", file.path));
    let contents = contents.mime_type(file.media_type().to_string());
    ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(contents)))
}
