//! Files that an agent reads and writes through us: only what it reaches.

use std::path::Path;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{self, ReadTextFileRequest, WriteTextFileRequest};

use crate::agent::{AgentConfig, Reach};

pub fn read(reach: &Reach, request: &ReadTextFileRequest) -> Result<String, Error> {
    let text = reach.read(&request.path).map_err(|why| match why.is_missing() {
        true => missing(&request.path),
        false => refused(&request.path, why.to_string()),
    })?;
    let (from, limit) = (request.line.unwrap_or(1).max(1) - 1, request.limit);
    if from == 0 && limit.is_none() {
        return Ok(text);
    }
    let (from, limit) = (from as usize, limit.map_or(usize::MAX, |limit| limit as usize));
    Ok(text.split_inclusive('\n').skip(from).take(limit).collect())
}

pub fn write(reach: &Reach, request: &WriteTextFileRequest) -> Result<(), Error> {
    let written = reach.write(&request.path, &request.content);
    written.map(drop).map_err(|why| refused(&request.path, why))
}

/// Gemini CLI takes every error of a read for a failure, also that the file does not exist, and then cannot create it
/// (seen with 0.61): it reads files itself, and writes through us.
pub fn are_read_by_agent(config: &AgentConfig) -> bool {
    config.runs("gemini")
}

/// Agents read a file before they create it, and look for this very error.
fn missing(path: &Path) -> Error {
    schema::Error::resource_not_found(Some(path.to_string_lossy().into_owned())).into()
}

pub fn refused(path: &Path, why: String) -> Error {
    Error::invalid_params().data(serde_json::json!({ "path": path, "message": why }))
}

#[cfg(test)]
mod tests {
    use sage_core::role::Role;

    use super::*;

    // covers: S6
    #[test]
    fn lines_of_a_file_are_read_and_refusals_say_why() {
        let dir = tempfile::tempdir().unwrap();
        let reach = Reach::new(dir.path(), dir.path(), Role::Implementer.access());
        let deep = dir.path().canonicalize().unwrap().join("a/b/c.txt");
        write(&reach, &WriteTextFileRequest::new("s", &deep, "1\n2\n3\n")).unwrap();
        let lines = ReadTextFileRequest::new("s", "a/b/c.txt").line(2).limit(1);
        assert_eq!(read(&reach, &lines).unwrap(), "2\n");
        let refused = write(&reach, &WriteTextFileRequest::new("s", ".mcp.json", "x")).unwrap_err();
        assert!(refused.data.unwrap()["message"].as_str().unwrap().contains("protected"));
    }

    // covers: S6
    #[test]
    fn a_missing_file_is_reported_as_such_but_only_where_the_agent_may_look() {
        let dir = tempfile::tempdir().unwrap();
        let reach = Reach::new(dir.path(), dir.path(), Role::Implementer.access());
        let error = |path: &str| {
            let error = read(&reach, &ReadTextFileRequest::new("s", path)).unwrap_err();
            (i32::from(error.code), error.message)
        };
        for path in ["none.txt", "no/such/folder/none.txt"] {
            assert_eq!(error(path), (-32002, "Resource not found".into()), "{path}");
        }
        for path in ["/no/such/file", "../none.txt", ".sage/none"] {
            assert_eq!(error(path).0, -32602, "{path}");
        }
    }
}
