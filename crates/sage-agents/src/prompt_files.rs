//! Files of a prompt on their way to an agent.
//!
//! | agent              | texts                          | images                    | PDFs             |
//! |--------------------|--------------------------------|---------------------------|------------------|
//! | `claude`           | in the prompt                  | image blocks              | document blocks  |
//! | `codex`            | in the prompt                  | `--image`                 | by path          |
//! | ACP                | in the prompt                  | image blocks, or by path  | by path          |
//! | `llm`              | in the prompt                  | image blocks              | file blocks      |
//! | `command`, others  | by path: `files` of `SAGE_INPUT`                                                |
//!
//! Copies of them are in the attempt's scratch directory, so that a path works wherever the agent does.

use std::path::{Path, PathBuf};

use sage_core::port::{FileKind, PromptFile, StepCall, StepCx};
use sage_fence::private;
use serde_json::{Value, json};

use crate::outcome::Miss;

/// Writes the copies, and names them in what the step is given.
pub fn lay_out(cx: &StepCx, call: &mut StepCall) -> Result<(), Miss> {
    let mut listed = Vec::new();
    for (number, file) in call.files.iter().enumerate() {
        let copy = copy(&cx.scratch, number, file);
        let made = copy.parent().map_or(Ok(()), private::create_dir_all);
        let made = made.and_then(|()| private::write(&copy, &file.content));
        made.map_err(|error| Miss::of_io(&error, format!("cannot write `{}`: {error}", copy.display())))?;
        listed.push(json!({"path": file.path, "file": copy, "mediaType": file.media_type()}));
    }
    if let Some(input) = call.input.as_object_mut().filter(|_| !listed.is_empty()) {
        input.insert("files".into(), Value::Array(listed));
    }
    Ok(())
}

/// Where the copy of a file is.
pub fn copy(scratch: &Path, number: usize, file: &PromptFile) -> PathBuf {
    let name = Path::new(&file.path).file_name().unwrap_or(file.path.as_ref());
    scratch.join("files").join(number.to_string()).join(name)
}

/// Files as words: texts whole, all others by the place of their copy. Those that go another way are left out.
pub fn in_words(scratch: &Path, files: &[PromptFile], otherwise: impl Fn(&PromptFile) -> bool) -> String {
    let mut words = String::new();
    for (number, file) in files.iter().enumerate().filter(|(_, file)| !otherwise(file)) {
        let path = &file.path;
        words.push_str(&match file.kind {
            FileKind::Text => {
                format!("\n\n<file path=\"{path}\">\n{}\n</file>", file.text().trim_end_matches('\n'))
            }
            FileKind::Image | FileKind::Pdf => {
                format!("\n\nThe file `{path}` is at {}", copy(scratch, number, file).display())
            }
        });
    }
    words
}

#[cfg(test)]
mod tests {
    use sage_core::digest::Digest;

    use super::*;

    #[test]
    fn texts_are_told_whole_and_others_by_their_place() {
        let file = |path: &str, content: &[u8]| {
            let (kind, _) = FileKind::of(content).unwrap();
            PromptFile { path: path.into(), sha: Digest::of(content), kind, content: content.into() }
        };
        let files =
            [file("docs/a.md", b"# A\n"), file("b.pdf", b"%PDF-1"), file("c.png", b"\x89PNG\r\n\x1a\n")];
        let words = in_words(Path::new("/s"), &files, |file| file.kind == FileKind::Image);
        assert_eq!(
            words,
            "\n\n<file path=\"docs/a.md\">\n# A\n</file>\n\nThe file `b.pdf` is at /s/files/1/b.pdf"
        );
    }
}
