//! Programs that git runs on the content of files (`filter.<name>.clean`, `smudge`, `process`).
//!
//! The user's own configuration may name them; that of a repository came with the repository. What the repository
//! sets is replaced by what the user sets, or by nothing. A checkout that needs a filter of the repository would have
//! the wrong content without it, so there no worktree is made.

use std::collections::BTreeMap;
use std::path::Path;

use super::look::{command, output};

/// What the repository sets, with the value that the user has for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters(BTreeMap<String, Option<String>>);

impl Filters {
    pub fn of(cwd: &Path) -> Result<Filters, String> {
        let list = command(cwd, ["config", "--show-scope", "-z", "--get-regexp", "^filter\\."]);
        // Without any, git prints nothing.
        Ok(Filters::read(&output(list)?.text()))
    }

    /// Fields end with a NUL: a scope, then a name and its value on a line of its own.
    fn read(text: &str) -> Filters {
        let mut fields = text.split('\0');
        let (mut own, mut users) = (Vec::new(), BTreeMap::new());
        while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
            let (name, value) = setting.split_once('\n').unwrap_or((setting, "true"));
            match scope {
                "local" | "worktree" => own.push(name.to_string()),
                _ => drop(users.insert(name.to_string(), value.to_string())),
            }
        }
        Filters(own.into_iter().map(|name| (name.clone(), users.remove(&name))).collect())
    }

    /// For git, as variables, because a name may have any character.
    pub fn variables(&self) -> Vec<(String, String)> {
        let mut all = vec![("GIT_CONFIG_COUNT".to_string(), self.0.len().to_string())];
        for (number, (name, value)) in self.0.iter().enumerate() {
            let nothing = if name.ends_with(".required") { "false" } else { "" };
            all.push((format!("GIT_CONFIG_KEY_{number}"), name.clone()));
            let value = value.clone().unwrap_or_else(|| nothing.to_string());
            all.push((format!("GIT_CONFIG_VALUE_{number}"), value));
        }
        all
    }

    /// The first filter that only the repository defines and that files of it need.
    pub fn needed(&self, top: &Path) -> Option<String> {
        let programs = self.0.iter().filter(|(_, users)| users.is_none()).filter_map(|(name, _)| {
            let (name, field) = name.strip_prefix("filter.")?.rsplit_once('.')?;
            ["clean", "smudge", "process"].contains(&field).then_some(name)
        });
        let mut names: Vec<&str> = programs.collect();
        names.dedup();
        names.into_iter().find(|name| is_used(top, name)).map(str::to_string)
    }
}

/// Whether the attributes of a file name it. A name that cannot be asked for counts as used.
fn is_used(top: &Path, name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let list = command(top, ["ls-files", "-z", "--", &format!(":(top,attr:filter={name})")]);
    !plain || output(list).map_or(true, |found| !found.succeeded() || !found.stdout.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn what_the_repository_sets_is_what_the_user_sets_or_nothing() {
        let text = "global\0filter.lfs.clean\ngit-lfs clean -- %f\0global\0filter.lfs.required\ntrue\0\
                    local\0filter.lfs.clean\n./evil\0local\0filter.x.smudge\n./evil\0\
                    worktree\0filter.x.required\0global\0filter.other.clean\nmine\0";
        let filters = Filters::read(text);
        let variables = filters.variables();
        let pairs: Vec<(&str, &str)> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("GIT_CONFIG_COUNT", "3"),
                ("GIT_CONFIG_KEY_0", "filter.lfs.clean"),
                ("GIT_CONFIG_VALUE_0", "git-lfs clean -- %f"),
                ("GIT_CONFIG_KEY_1", "filter.x.required"),
                ("GIT_CONFIG_VALUE_1", "false"),
                ("GIT_CONFIG_KEY_2", "filter.x.smudge"),
                ("GIT_CONFIG_VALUE_2", ""),
            ]
        );
    }
}
