//! Which commands are run: those that were asked for, else the first that each folder of the project names.

use std::path::Path;

use serde_json::Value;

use crate::parts::{self, Side};
use crate::request::{Request, Trouble};
use crate::research;

/// One command line in one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub line: String,
    /// Relative to the project; empty for itself.
    pub folder: String,
    /// Where the project says so; empty when it was asked for.
    pub evidence: String,
}

impl Order {
    /// The program that it starts, if that is nowhere on the path.
    pub fn missing_program(&self, project: &Path) -> Option<String> {
        let is_setting = |word: &&str| word.contains('=') && !word.starts_with(['/', '.']);
        let program = self.line.split_whitespace().find(|word| !is_setting(word))?;
        let plain = program.chars().all(|c| c.is_alphanumeric() || "._-/+".contains(c));
        // Shell words such as `(cd` or `if` are left to the shell, which says 127 for what it does not find.
        (plain && !BUILT_IN.contains(&program)).then_some(())?;
        let found = match program.contains('/') {
            true => project.join(&self.folder).join(program).exists(),
            false => path_folders().iter().any(|folder| folder.join(program).is_file()),
        };
        (!found).then(|| program.to_string())
    }
}

const BUILT_IN: &[&str] = &[
    "cd", "set", "export", "if", "for", "while", "exec", "eval", ".", "test", "true", "false", "exit",
    "ulimit", "umask", "command",
];

fn path_folders() -> Vec<std::path::PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// `params.commands` (texts), or the project's own for `params.part`.
pub fn chosen(request: &Request, what: &str, found: &[research::Command]) -> Result<Vec<Order>, Trouble> {
    if let Some(given) = request.params.get("commands").filter(|given| !given.is_null()) {
        return given_orders(given, what);
    }
    let part = part(request)?;
    let mut orders: Vec<Order> = Vec::new();
    for command in found {
        let wanted = part.is_none_or(|side| parts::folder_side(&request.project, &command.folder) == side);
        // The first of a folder is the one to run; the others say the same in another way.
        let known = orders.iter().any(|order| order.folder == command.folder && same_family(order, command));
        if wanted && !known {
            let (line, folder) = (command.line.clone(), command.folder.clone());
            orders.push(Order { line, folder, evidence: command.evidence.clone() });
        }
    }
    Ok(orders)
}

/// Wrappers (`make`, `just`, scripts) repeat the tool; two languages in one folder do not repeat each other.
fn same_family(order: &Order, command: &research::Command) -> bool {
    let family = |line: &str| -> &'static str {
        let first = line.split_whitespace().next().unwrap_or_default();
        match first {
            "cargo" => "rust",
            "go" => "go",
            "npm" | "pnpm" | "yarn" | "bun" => "node",
            _ if line.contains("python") => "python",
            _ if line.contains("mvn") || line.contains("gradle") => "jvm",
            _ => "wrapper",
        }
    };
    let (a, b) = (family(&order.line), family(&command.line));
    a == b || b == "wrapper"
}

fn given_orders(given: &Value, what: &str) -> Result<Vec<Order>, Trouble> {
    let wrong = || {
        let shape = "a list of command lines, as in `commands: [\"make test\"]`";
        Trouble::Invalid(format!("params.commands of this {what} step must be {shape}; it is `{given}`"))
    };
    let list = match given {
        Value::String(one) => vec![one.clone()],
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_string).ok_or_else(wrong))
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong()),
    };
    let lines = list.into_iter().filter(|line| !line.trim().is_empty());
    Ok(lines.map(|line| Order { line, ..Order::default() }).collect())
}

/// Nothing for `all`.
fn part(request: &Request) -> Result<Option<Side>, Trouble> {
    match request.params.get("part").and_then(Value::as_str).unwrap_or("all") {
        "all" | "" => Ok(None),
        "backend" => Ok(Some(Side::Backend)),
        "frontend" => Ok(Some(Side::Frontend)),
        other => Err(Trouble::Invalid(format!(
            "params.part is `{other}`; it can be `backend`, `frontend` or `all`"
        ))),
    }
}

/// Why nothing was run, if there was nothing to run.
pub fn none_reason(request: &Request, what: &str) -> String {
    let part =
        request.params.get("part").and_then(Value::as_str).filter(|part| *part != "all" && !part.is_empty());
    let of = part.map(|part| format!(" for the {part}")).unwrap_or_default();
    format!("no {what} command is known{of}: name one with `params: {{ commands: [\"...\"] }}`")
}
