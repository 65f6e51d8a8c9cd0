//! Code that worked, kept as a skill in the Agent Skills format. Nobody else uses it before it is approved.

use std::fmt::Write;

use crate::command_line::sage;
use sage_core::skill::scan::{FindingKind, Known, scan};
use sage_core::skill::{FILE, MAX_DESCRIPTION, is_name};
use sage_engine::skills::{Draft, Origin, SCRIPT_FILE, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the code is to be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Save {
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SavedSkill {
    pub name: String,
    pub version: u32,
    /// How other code imports it.
    pub module: String,
    pub approved: bool,
    /// What a person types.
    pub next: String,
}

impl Save {
    pub fn check(&self) -> Result<(), String> {
        if !is_name(&self.name) {
            return Err(format!(
                "`{}` cannot be a skill's name: 1 to 64 small letters a-z, digits and -, no - at its ends",
                self.name.escape_debug()
            ));
        }
        let length = self.description.trim().chars().count();
        match (1..=MAX_DESCRIPTION).contains(&length) {
            true => Ok(()),
            false => {
                Err(format!("the description must have 1 to {MAX_DESCRIPTION} characters, not {length}"))
            }
        }
    }
}

/// Writes the skill, unless there is something in it that must not be kept.
pub fn write(store: &Store, save: &Save, code: &str, known: &[Known]) -> Result<SavedSkill, String> {
    save.check()?;
    let text = skill_text(save, code);
    let mut found = Vec::new();
    for (file, text) in [(FILE, text.as_str()), (SCRIPT_FILE, code)] {
        let findings = scan(text, known).findings.into_iter();
        // Orders to agents are told before an approval; secrets are never written.
        let secrets = findings.filter(|finding| finding.kind == FindingKind::Secret);
        found.extend(secrets.map(|finding| format!("{file}:{}: {}", finding.line, finding.why)));
    }
    if !found.is_empty() {
        return Err(format!("it would hold secrets ({})", found.join("; ")));
    }
    let origin = Origin { template: "code".into(), ..Origin::default() };
    let (name, script) = (save.name.clone(), Some(code.to_string()));
    let draft = Draft { name, text, result: None, script, tags: Vec::new(), origin };
    let saved = store.save(&draft).map_err(|error| error.to_string())?;
    let index = store.index();
    let approved = index.find(&save.name).is_ok_and(|listed| listed.approved());
    Ok(SavedSkill {
        name: save.name.clone(),
        version: saved.version,
        module: format!("skills/{}", save.name),
        approved,
        next: sage("skills approve").arg(&save.name).into(),
    })
}

fn skill_text(save: &Save, code: &str) -> String {
    let Save { name, description } = save;
    let mut out = String::new();
    // JSON's quoted text is YAML's, too. Writing to a string cannot fail.
    let _ =
        write!(out, "---\nname: {name}\ndescription: {}\n---\n# {name}\n\n", Value::from(description.trim()));
    let exports = exports(code);
    let import = match exports.is_empty() {
        true => format!("import run from \"skills/{name}\";\n\nreturn await run({{ /* its input */ }});"),
        false => format!("import {{ {} }} from \"skills/{name}\";", exports.join(", ")),
    };
    let _ = write!(
        out,
        "Code that worked before, in `{SCRIPT_FILE}`. In code mode:\n\n```ts\n{import}\n```\n\nBy hand: `sage skills run {name} [key=value ...]`\n"
    );
    out
}

/// Names that the code exports by their declarations.
fn exports(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in code.lines() {
        let Some(rest) = line.trim_start().strip_prefix("export ") else { continue };
        let rest = rest.trim_start_matches("async ");
        let kinds = ["function ", "const ", "let ", "class "];
        let Some(rest) = kinds.iter().find_map(|kind| rest.strip_prefix(kind)) else { continue };
        let name: String =
            rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '$').collect();
        if !name.is_empty() {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R12
    #[test]
    fn a_skill_says_how_it_is_imported() {
        let save = Save { name: "rank".into(), description: "Ranks \"things\"\n: by age".into() };
        let text =
            skill_text(&save, "export async function rank() {}\n export const BEST = 1;\nexport default 1");
        let (skill, problems) = sage_core::skill::read(&text, "rank");
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(skill.unwrap().description, "Ranks \"things\"\n: by age");
        assert!(text.contains("import { rank, BEST } from \"skills/rank\";"), "{text}");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", "../x", "A", "a/b", "-a"] {
            assert!(Save { name: name.into(), description: "x".into() }.check().is_err(), "{name}");
        }
    }
}
