//! The scripts of a `package.json`, with the tool whose lock file is there.

use serde_json::Value;

use super::{Command, Commands, Place, line_of, workspace};

pub(super) fn add(place: &Place, found: &mut Commands) {
    let Some(text) = place.text("package.json") else { return };
    let Ok(manifest) = serde_json::from_str::<Value>(&text) else { return };
    let tool = tool(place, &manifest);
    let script = |names: &[&str]| -> Vec<Command> {
        let scripts = manifest.get("scripts");
        let mut commands = Vec::new();
        for name in names {
            let Some(body) = scripts.and_then(|scripts| scripts.get(name)).and_then(Value::as_str) else {
                continue;
            };
            if does_something(body) {
                // `bun test` is bun's own runner, whatever the script says.
                let short = *name == "test" && tool != "bun";
                let line = if short { format!("{tool} test") } else { format!("{tool} run {name}") };
                let command = place.command(&line, "package.json", script_line(&text, name));
                commands.push(Command { definition: body.to_string(), ..command });
            }
        }
        commands
    };
    found.test.extend(script(&["test", "test:unit", "tests"]).into_iter().take(1));
    if !place.folder.is_empty() && workspace::is_member(&place.tree.root, &place.folder) {
        // It is built with the project, in an order that only the project knows.
        return;
    }
    found.build.extend(script(&["build", "compile"]).into_iter().take(1));
    found.lint.extend(script(&["lint", "typecheck", "type-check", "check", "format:check"]));
}

/// What `npm init` writes is no test, and neither is a script that only says that it succeeded.
fn does_something(body: &str) -> bool {
    let talks = |part: &str| {
        let first = part.split_whitespace().next().unwrap_or_default();
        ["", "true", ":", "echo", "exit"].contains(&first)
    };
    !body.contains("no test specified") && !body.split(['&', ';']).map(str::trim).all(talks)
}

/// The line of the script, not of a dependency with its name.
fn script_line(text: &str, name: &str) -> usize {
    let start = line_of(text, "\"scripts\"");
    let quoted = format!("\"{name}\"");
    let after = text.lines().skip(start - 1).position(|line| line.contains(&quoted));
    after.map_or(start, |at| start + at)
}

fn tool(place: &Place, manifest: &Value) -> &'static str {
    let named = manifest.get("packageManager").and_then(Value::as_str).unwrap_or_default();
    let locks =
        [("pnpm", "pnpm-lock.yaml"), ("yarn", "yarn.lock"), ("bun", "bun.lock"), ("bun", "bun.lockb")];
    let said = locks.iter().find(|(tool, _)| named.starts_with(tool));
    let found = said.or_else(|| locks.iter().find(|(_, lock)| place.has(lock)));
    found.map_or("npm", |(tool, _)| tool)
}
