//! Files that belong to a step's prompt: found in the project, kept as blobs, part of the step's key.
//!
//! What an agent is given is what the key says, also if the file changes while the step waits.

use std::path::Path;
use std::sync::Arc;

use sage_core::digest::Digest;
use sage_core::key::KeyParts;
use sage_core::port::{FileKind, PromptFile};
use sage_fence::Fence;
use serde_json::{Map, Value, json};

use crate::blobs::Blobs;
use crate::results::ResultError;
use crate::trouble::Refused;

pub const FILES: &str = "files";

/// The files that the parameters name, without their content.
pub fn attach(
    params: &Map<String, Value>,
    project: &Path,
    blobs: &Blobs,
) -> Result<Vec<PromptFile>, Refused> {
    let paths = match params.get(FILES) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(list)) => {
            let paths: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            paths.ok_or("`files` must be a list of paths")?
        }
        Some(_) => return Err("`files` must be a list of paths".into()),
    };
    if paths.len() > PromptFile::MOST {
        return Err(format!(
            "`files` names {} files; a prompt takes at most {}",
            paths.len(),
            PromptFile::MOST
        )
        .into());
    }
    let fence = Fence::new(project);
    paths.into_iter().map(|path| one(path, &fence, blobs)).collect()
}

fn one(path: &str, fence: &Fence, blobs: &Blobs) -> Result<PromptFile, Refused> {
    let refused = |why: &str| Refused::from(format!("`files`: `{path}` {why}"));
    let content =
        fence.read(Path::new(path), PromptFile::MOST_BYTES).map_err(|why| match why.is_missing() {
            true => refused("does not exist"),
            false => Refused::from(format!("`files`: {why}")),
        })?;
    let (kind, _) =
        FileKind::of(&content).ok_or_else(|| refused("is neither text nor an image nor a PDF"))?;
    if content.len() > kind.most_bytes() {
        let most = kind.most_bytes() >> 20;
        return Err(refused(&format!(
            "has {} bytes; at most {most} MiB of its kind fit a prompt",
            content.len()
        )));
    }
    let sha = blobs.put(&content).map_err(ResultError::from)?;
    Ok(PromptFile { path: path.to_string(), sha, kind, content: Arc::new([]) })
}

/// Their names and contents determine the result.
pub fn add_to_key(files: &[PromptFile], parts: &mut KeyParts) {
    if !files.is_empty() {
        let all: Vec<Value> = files.iter().map(|file| json!([file.path, file.sha])).collect();
        parts.add(FILES, Digest::of_json(&Value::Array(all)));
    }
}

/// With their content, for an attempt that begins.
pub fn load(files: &mut [PromptFile], blobs: &Blobs) -> Result<(), Refused> {
    for file in files {
        file.content = blobs.get(&file.sha).map_err(ResultError::from)?.into();
    }
    Ok(())
}
