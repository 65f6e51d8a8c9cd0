//! Environment variables that the code reads, and whether anything tells people about them.

use super::project::{Project, function_at};

/// How each language asks for one; the name follows.
const READS: &[&str] = &[
    "os.environ[",
    "os.environ.get(",
    "os.getenv(",
    "process.env.",
    "process.env[",
    "env::var(",
    "env::var_os(",
    "os.Getenv(",
    "os.LookupEnv(",
    "System.getenv(",
    "env!(",
    "option_env!(",
];
/// Set by systems and build tools, not by the people who run the project.
const EVERYWHERE: &[&str] = &[
    "PATH", "HOME", "USER", "PWD", "SHELL", "TERM", "LANG", "TMPDIR", "TEMP", "CI", "NODE_ENV", "NO_COLOR",
    "EDITOR", "VISUAL", "COLUMNS", "LINES", "HOSTNAME",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    /// Where it is read first.
    pub place: String,
    /// Where it is told of: a document, an example file, a workflow.
    pub told_in: Option<String>,
}

/// All of the product, by name. `more` are hidden files that may speak of them: path and text.
pub fn read(project: &Project, more: &[(String, String)]) -> Vec<Setting> {
    let mut found: Vec<Setting> = Vec::new();
    for (_, file) in project.products() {
        for (at, line) in file.text.lines().enumerate() {
            let in_test = || function_at(file, at + 1).is_some_and(|function| function.in_test);
            for name in names(line) {
                if !found.iter().any(|known| known.name == name) && !in_test() {
                    let told_in = told_in(project, more, &name);
                    found.push(Setting { name, place: file.at(at + 1), told_in });
                }
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn names(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    if line.trim_start().starts_with("//") || line.trim_start().starts_with('#') {
        return found;
    }
    for read in READS {
        for (at, _) in line.match_indices(read) {
            let rest = line[at + read.len()..].trim_start_matches(['"', '\'']);
            let name: String = rest
                .chars()
                .take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_')
                .collect();
            let build = name.starts_with("CARGO_") || name.starts_with("npm_");
            if name.len() > 1 && !build && !EVERYWHERE.contains(&name.as_str()) {
                found.push(name);
            }
        }
    }
    found
}

fn told_in(project: &Project, more: &[(String, String)], name: &str) -> Option<String> {
    let whole =
        |text: &str| text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name);
    let document = project.documents.iter().find(|document| whole(&document.text)).map(|d| d.path.clone());
    document.or_else(|| more.iter().find(|(_, text)| whole(text)).map(|(path, _)| path.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R6
    #[test]
    fn names_are_read_in_each_language() {
        assert_eq!(names("key = os.environ[\"PAY_KEY\"]"), ["PAY_KEY"]);
        assert_eq!(names("const k = process.env.PAY_KEY ?? process.env['OTHER'];"), ["PAY_KEY", "OTHER"]);
        assert_eq!(names("env::var(\"HOME\"), env!(\"CARGO_PKG_NAME\")"), Vec::<String>::new());
        assert_eq!(names("# os.getenv('X_Y')"), Vec::<String>::new());
    }
}
