//! A file of the project that belongs to a prompt: a text, an image, a PDF. What it is follows from its content.

use std::sync::Arc;

use crate::digest::Digest;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptFile {
    /// As the step names it.
    pub path: String,
    /// Of its content, which is part of the step's key.
    pub sha: Digest,
    pub kind: FileKind,
    /// Empty until the attempt begins.
    pub content: Arc<[u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Text,
    /// PNG, JPEG, GIF or WebP.
    Image,
    Pdf,
}

impl FileKind {
    /// With its media type; `None` for what no agent reads.
    pub fn of(content: &[u8]) -> Option<(FileKind, &'static str)> {
        let starts = |magic: &[u8]| content.starts_with(magic);
        let found = match () {
            () if starts(b"\x89PNG\r\n\x1a\n") => (FileKind::Image, "image/png"),
            () if starts(b"\xff\xd8\xff") => (FileKind::Image, "image/jpeg"),
            () if starts(b"GIF87a") || starts(b"GIF89a") => (FileKind::Image, "image/gif"),
            () if starts(b"RIFF") && content.get(8..12) == Some(b"WEBP") => (FileKind::Image, "image/webp"),
            () if starts(b"%PDF-") => (FileKind::Pdf, "application/pdf"),
            () if std::str::from_utf8(content).is_ok() && !content.contains(&0) => {
                (FileKind::Text, "text/plain")
            }
            () => return None,
        };
        Some(found)
    }

    /// Most bytes of such a file in a prompt.
    pub fn most_bytes(self) -> usize {
        match self {
            FileKind::Text => 1 << 20,
            FileKind::Image => 5 << 20,
            FileKind::Pdf => 20 << 20,
        }
    }
}

impl PromptFile {
    /// Of any kind.
    pub const MOST_BYTES: u64 = 20 << 20;
    /// In one prompt.
    pub const MOST: usize = 20;

    pub fn media_type(&self) -> &'static str {
        FileKind::of(&self.content).map_or("application/octet-stream", |(_, media)| media)
    }

    /// Of a text; empty for all others.
    pub fn text(&self) -> &str {
        let text = std::str::from_utf8(&self.content).unwrap_or_default();
        if self.kind == FileKind::Text { text } else { "" }
    }

    pub fn base64(&self) -> String {
        let mut text = String::with_capacity(self.content.len().div_ceil(3) * 4);
        for chunk in self.content.chunks(3) {
            let bits = chunk.iter().fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte))
                << (8 * (3 - chunk.len()));
            for place in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
                text.push(if place <= chunk.len() { digit.into() } else { '=' });
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> PromptFile {
        let kind = FileKind::of(content).map_or(FileKind::Text, |(kind, _)| kind);
        PromptFile { path: "x".into(), sha: Digest::of(content), kind, content: content.into() }
    }

    #[test]
    fn a_file_is_what_its_content_says() {
        let kind = |content: &[u8]| FileKind::of(content);
        assert_eq!(kind(b"\x89PNG\r\n\x1a\nrest"), Some((FileKind::Image, "image/png")));
        assert_eq!(kind(b"RIFF1234WEBPVP8 "), Some((FileKind::Image, "image/webp")));
        assert_eq!(kind(b"%PDF-1.7"), Some((FileKind::Pdf, "application/pdf")));
        assert_eq!(kind("grün".as_bytes()), Some((FileKind::Text, "text/plain")));
        assert_eq!((kind(b"\x00\x01"), kind(b"\xff\xfe"), kind(b"a\0b")), (None, None, None));
        assert_eq!(file(b"hello").text(), "hello");
        assert_eq!(file(b"%PDF-1.7").text(), "");
    }

    #[test]
    fn base64_is_as_everywhere() {
        for (content, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(file(content.as_bytes()).base64(), encoded);
        }
        assert_eq!(file(&[0xfb, 0xff, 0xbf]).base64(), "+/+/");
    }
}
