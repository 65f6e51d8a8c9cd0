//! What `sage init` tells other programs of Sage: the slash command of Claude Code, the server in `.mcp.json`.
//!
//! Both belong to the user: an edited file stays, byte for byte where nothing has to be added.

use std::io::{self, Write};
use std::path::Path;

use sage_fence::Fence;
use serde_json::{Map, Value, json};

use super::super::config::MAX_BYTES;
use super::slash::{self, COMMAND, Slash};

const FILE: &str = ".mcp.json";
const SERVERS: &str = "mcpServers";
const NAME: &str = "sage";

/// What to type for programs that keep their servers elsewhere.
pub const OTHERS: [(&str, &str); 2] =
    [("Codex", "codex mcp add sage -- sage mcp"), ("Gemini", "gemini mcp add sage sage mcp")];

/// What was written, and what could not be.
#[derive(Debug, Default)]
pub struct Told {
    pub written: Vec<&'static str>,
    pub notes: Vec<String>,
}

pub fn tell(root: &Path) -> Told {
    let mut told = Told::default();
    let fence = Fence::new(root);
    // A clone may bring links that lead out of it.
    let place = |path: &str| fence.locate(Path::new(path)).map_err(|refused| refused.to_string());
    let written =
        place(COMMAND).and_then(|_| slash::write(&root.join(COMMAND)).map_err(|error| error.to_string()));
    match written {
        Ok(Slash::Written) => told.written.push(COMMAND),
        Ok(Slash::Current) => {}
        Ok(Slash::Edited) => told.notes.push(format!(
            "{COMMAND} was edited and is left as it is; delete it and run `sage init` to get the current one"
        )),
        Err(error) => told.notes.push(format!("{COMMAND} was not written: {error}")),
    }
    match place(FILE).and_then(|_| merge(&root.join(FILE))) {
        Ok(true) => told.written.push(FILE),
        Ok(false) => {}
        Err(why) => told.notes.push(format!("{FILE} is left as it is: {why}")),
    }
    told
}

/// True if the server was added. A file that is not understood is not touched.
fn merge(path: &Path) -> Result<bool, String> {
    let text = match sage_agents::text_file::read(path, MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.to_string()),
    };
    let mut all: Map<String, Value> = match text.trim() {
        "" => Map::new(),
        text => serde_json::from_str(text).map_err(|error| format!("it is no JSON object: {error}"))?,
    };
    let servers = all.entry(SERVERS).or_insert_with(|| json!({}));
    let Some(servers) = servers.as_object_mut() else { return Err(format!("its `{SERVERS}` is no object")) };
    if servers.contains_key(NAME) {
        return Ok(false);
    }
    servers.insert(NAME.into(), json!({"type": "stdio", "command": "sage", "args": ["mcp"]}));
    let mut new = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
    new.push('\n');
    replace(path, &new).map_err(|error| error.to_string())?;
    Ok(true)
}

/// Whole or not at all. A link is followed: the file that it names is the project's. One that stands where the new file
/// is written first is not.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let temporary = path.with_extension(format!("new-{}", ulid::Ulid::generate()));
    let write = |mut file: std::fs::File| {
        file.write_all(text.as_bytes())?;
        path.metadata().map_or(Ok(()), |about| file.set_permissions(about.permissions()))?;
        std::fs::rename(&temporary, &path)
    };
    let written = std::fs::File::create_new(&temporary).and_then(write);
    if written.is_err() {
        // The first failure is the one worth telling.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(before: &str) -> (Result<bool, String>, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        std::fs::write(&path, before).unwrap();
        let result = merge(&path);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
        (result, std::fs::read_to_string(&path).unwrap())
    }

    // covers: R16
    #[test]
    fn what_others_wrote_stays() {
        let before = "{\"zeta\": 1, \"mcpServers\": {\"b\": {\"command\": \"x\"}, \"a\": {\"url\": \"u\"}}, \"alpha\": [2]}";
        let (result, after) = merged(before);
        assert_eq!(result, Ok(true));
        let value: Value = serde_json::from_str(&after).unwrap();
        let names: Vec<&String> = value[SERVERS].as_object().unwrap().keys().collect();
        assert_eq!(names, ["b", "a", "sage"]);
        assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["zeta", SERVERS, "alpha"]);
        let mut without = value.clone();
        without[SERVERS].as_object_mut().unwrap().shift_remove(NAME);
        assert_eq!(without, serde_json::from_str::<Value>(before).unwrap());
        assert_eq!(merged(&after), (Ok(false), after), "again, nothing");
    }

    #[test]
    fn a_server_of_that_name_and_broken_files_are_left_alone() {
        let own = "{ \"mcpServers\" : {\"sage\": {\"command\": \"mine\"}} }";
        assert_eq!(merged(own), (Ok(false), own.to_string()));
        for broken in ["{", "[]", "{\"mcpServers\": []}", "\u{feff}{}", "// hello\n{}"] {
            let (result, after) = merged(broken);
            assert!(result.is_err(), "{broken}");
            assert_eq!(after, broken);
        }
        assert_eq!(merged("").0, Ok(true), "an empty file is a new one");
    }
}
