//! Built-in tools: `read_file` and `list_files`, and `write_file` for roles that may write. All of them stay
//! inside of what the agent reaches, wherever links lead.

use std::path::Path;

use sage_core::port::BoxFuture;
use serde_json::{Value, json};

use super::tools::{ToolBox, ToolSpec};
use crate::agent::Reach;

/// Most entries that a list shows.
const LIST_ENTRIES: usize = 2_000;

#[derive(Clone, Debug)]
pub struct FileTools {
    reach: Reach,
}

impl FileTools {
    pub fn new(reach: Reach) -> FileTools {
        FileTools { reach }
    }

    fn read(&self, input: &Value) -> Result<Value, String> {
        let whole = self.reach.read(Path::new(text(input, "path")?)).map_err(|why| why.to_string())?;
        let (first, count) = (count(input, "offset")?.unwrap_or(1).max(1), count(input, "limit")?);
        if first == 1 && count.is_none() {
            return Ok(whole.into());
        }
        let lines = whole.split_inclusive('\n').skip(first - 1).take(count.unwrap_or(usize::MAX));
        Ok(lines.collect::<String>().into())
    }

    fn list(&self, input: &Value) -> Result<Value, String> {
        let path = input["path"].as_str().unwrap_or(".");
        let folder = self.reach.folder(Path::new(path))?;
        let recursive = input["recursive"].as_bool().unwrap_or(false);
        let (mut found, mut open) = (Vec::new(), vec![folder.clone()]);
        while let Some(dir) = open.pop() {
            let entries = std::fs::read_dir(&dir).map_err(|error| format!("`{path}`: {error}"))?;
            for entry in entries.flatten() {
                // Links are shown, not followed: there is no way out and no way round.
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let path = entry.path();
                let shown = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
                found.push(if is_dir { format!("{shown}/") } else { shown });
                let enters = recursive && is_dir && entry.file_name() != ".git" && self.reach.may_read(&path);
                if enters && found.len() <= LIST_ENTRIES {
                    open.push(path);
                }
            }
        }
        found.sort();
        let more = found.len() > LIST_ENTRIES;
        found.truncate(LIST_ENTRIES);
        if more {
            found.push(format!("[only the first {LIST_ENTRIES} are shown]"));
        }
        Ok(found.join("\n").into())
    }

    fn write(&self, input: &Value) -> Result<Value, String> {
        let (path, content) = (text(input, "path")?, text(input, "content")?);
        let inside = self.reach.write(Path::new(path), content)?;
        Ok(format!("wrote {} bytes to {}", content.len(), inside.display()).into())
    }
}

impl ToolBox for FileTools {
    fn tools(&self) -> Vec<ToolSpec> {
        let spec = |name: &str, description: &str, properties: Value, required: &[&str]| ToolSpec {
            name: name.into(),
            description: description.into(),
            input_schema: json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            }),
        };
        let path = json!({"type": "string", "description": "Path in the project"});
        let line = json!({"type": "integer", "minimum": 1, "description": "First line, from 1"});
        let lines = json!({"type": "integer", "minimum": 1, "description": "How many lines"});
        let deep = json!({"type": "boolean", "description": "Also what is in its folders"});
        let mut tools = vec![
            spec(
                "read_file",
                "Read a text file of the project, whole or some of its lines.",
                json!({"path": path, "offset": line, "limit": lines}),
                &["path"],
            ),
            spec(
                "list_files",
                "List a folder of the project; folders end with a slash.",
                json!({"path": path, "recursive": deep}),
                &[],
            ),
        ];
        if self.reach.access.write {
            tools.push(spec(
                "write_file",
                "Write a text file of the project, new or instead of what is there.",
                json!({"path": path, "content": {"type": "string"}}),
                &["path", "content"],
            ));
        }
        tools
    }

    fn call<'a>(&'a self, name: &'a str, input: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        let result = match name {
            "read_file" => self.read(input),
            "list_files" => self.list(input),
            "write_file" if self.reach.access.write => self.write(input),
            _ => Err(format!("there is no tool `{name}`")),
        };
        Box::pin(std::future::ready(result))
    }
}

fn text<'a>(input: &'a Value, name: &str) -> Result<&'a str, String> {
    input[name].as_str().ok_or_else(|| format!("`{name}` must be text"))
}

fn count(input: &Value, name: &str) -> Result<Option<usize>, String> {
    match &input[name] {
        Value::Null => Ok(None),
        value => {
            value.as_u64().map(|number| Some(number as usize)).ok_or(format!("`{name}` must be a number"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use sage_core::role::Role;

    use super::*;

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("p/src/deep")).unwrap();
        std::fs::create_dir_all(dir.path().join("p/.git/hooks")).unwrap();
        std::fs::write(dir.path().join("p/src/a.txt"), "1\n2\n3\n").unwrap();
        std::fs::write(dir.path().join("p/src/deep/b.bin"), [0xff, 0xfe]).unwrap();
        std::fs::write(dir.path().join("secret"), "hush").unwrap();
        symlink(dir.path(), dir.path().join("p/out")).unwrap();
        symlink(dir.path().join("nowhere"), dir.path().join("p/dangling")).unwrap();
        dir
    }

    fn tools(dir: &tempfile::TempDir, cwd: &str, role: Role) -> FileTools {
        let project = dir.path().join("p");
        FileTools::new(Reach::new(&project, &project.join(cwd), role.access()))
    }

    // covers: S6
    #[test]
    fn files_are_read_and_listed_inside_of_the_project_only() {
        let dir = project();
        let files = tools(&dir, "src", Role::Auditor);
        let read = |input: Value| files.read(&input);
        assert_eq!(read(json!({"path": "a.txt"})).unwrap(), "1\n2\n3\n");
        assert_eq!(read(json!({"path": "../src/a.txt", "offset": 2, "limit": 1})).unwrap(), "2\n");
        assert_eq!(read(json!({"path": dir.path().join("p/src/a.txt")})).unwrap(), "1\n2\n3\n");
        for (path, why) in [
            ("../../secret", "outside the project"),
            ("../out/secret", "outside the project"),
            ("/etc/passwd", "outside the project"),
            ("nothing", "No such file"),
            ("deep/b.bin", "not text"),
            ("deep", "not a regular file"),
        ] {
            let told = read(json!({"path": path})).unwrap_err();
            assert!(told.contains(why), "{path}: {told}");
        }
        assert!(read(json!({"path": 7})).unwrap_err().contains("`path` must be text"));
        assert_eq!(files.list(&json!({})).unwrap(), "a.txt\ndeep/");
        let all = files.list(&json!({"path": "..", "recursive": true})).unwrap();
        assert_eq!(all, ".git/\ndangling\nout\nsrc/\nsrc/a.txt\nsrc/deep/\nsrc/deep/b.bin");
        assert!(files.list(&json!({"path": "../out"})).is_err());
        assert_eq!(files.tools().len(), 2, "an auditor has nothing to write with");
    }

    // covers: S6
    #[test]
    fn files_are_written_where_the_role_may_write() {
        let dir = project();
        let write = |role: Role, path: &str| {
            tools(&dir, "", role).write(&json!({"path": path, "content": "new"})).map(|told| told.to_string())
        };
        write(Role::Implementer, "src/new/file.txt").unwrap();
        write(Role::Implementer, "src/a.txt").unwrap();
        write(Role::Planner, "docs/../docs/plan.md").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("p/src/a.txt")).unwrap(), "new");
        assert!(dir.path().join("p/docs/plan.md").exists() && dir.path().join("p/src/new/file.txt").exists());
        for (role, path) in [
            (Role::Planner, "src/a.txt"),
            (Role::Planner, "docs/../src/a.txt"),
            (Role::Auditor, "docs/plan.md"),
            (Role::Implementer, "../secret"),
            (Role::Implementer, "out/secret"),
            (Role::Implementer, "dangling"),
            (Role::Implementer, "x/../../secret"),
            (Role::Implementer, ".git/hooks/pre-commit"),
            (Role::Implementer, "src/../.sage/state/x"),
            (Role::Implementer, "."),
            (Role::Implementer, "/etc/sage-was-here"),
        ] {
            let told = write(role, path).unwrap_err();
            let reasons = ["your role may", "outside", "protected", "broken link", "not a regular file"];
            assert!(reasons.iter().any(|reason| told.contains(reason)), "{path}: {told}");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "hush");
    }
}
