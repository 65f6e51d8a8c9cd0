//! Rules that tools enforce: lines `key = value`, `key: value` and `"key": value` of their settings.
//!
//! One reader is enough for TOML, INI, YAML and JSON with comments, because a rule is always on one line.

use crate::finding::Finding;
use crate::research::library::rounded;
use crate::research::rank::Query;
use crate::walk::Tree;

use super::text;

const MAX_PER_FILE: usize = 14;

/// A file of settings.
struct File {
    path: &'static str,
    /// What people call the tool.
    tool: &'static str,
    /// Beginnings of sections that hold rules; all where empty.
    sections: &'static [&'static str],
    /// Beginnings of keys that are rules; all where empty.
    keys: &'static [&'static str],
}

const fn file(path: &'static str, tool: &'static str) -> File {
    File { path, tool, sections: &[], keys: &[] }
}

const STRICT: &[&str] = &[
    "strict",
    "noImplicit",
    "noUnused",
    "noUnchecked",
    "noFallthrough",
    "noEmit",
    "exactOptional",
    "target",
    "module",
    "isolatedModules",
    "verbatimModuleSyntax",
    "jsx",
    "allowJs",
    "checkJs",
    "forceConsistent",
];
const PYTHON: &[&str] = &[
    "tool.ruff",
    "tool.black",
    "tool.mypy",
    "tool.isort",
    "tool.pylint",
    "tool.pytest",
    "tool.pyright",
    "tool.coverage",
];
const BIOME: &[&str] = &[
    "indentStyle",
    "indentWidth",
    "lineWidth",
    "quoteStyle",
    "semicolons",
    "recommended",
    "trailing",
    "no",
    "use",
];

const FILES: &[File] = &[
    file(".editorconfig", "editorconfig"),
    file("rustfmt.toml", "rustfmt"),
    file(".rustfmt.toml", "rustfmt"),
    file("clippy.toml", "clippy"),
    file(".clippy.toml", "clippy"),
    File { path: "Cargo.toml", tool: "lints", sections: &["lints", "workspace.lints"], keys: &[] },
    File { path: "tsconfig.json", tool: "TypeScript", sections: &[], keys: STRICT },
    File { path: "tsconfig.base.json", tool: "TypeScript", sections: &[], keys: STRICT },
    file(".prettierrc", "prettier"),
    file(".prettierrc.json", "prettier"),
    file(".prettierrc.yml", "prettier"),
    file(".prettierrc.yaml", "prettier"),
    File { path: "biome.json", tool: "biome", sections: &[], keys: BIOME },
    File { path: "biome.jsonc", tool: "biome", sections: &[], keys: BIOME },
    File { path: "pyproject.toml", tool: "", sections: PYTHON, keys: &[] },
    file("ruff.toml", "ruff"),
    file(".ruff.toml", "ruff"),
    file("mypy.ini", "mypy"),
    file(".flake8", "flake8"),
    File {
        path: "setup.cfg",
        tool: "",
        sections: &["flake8", "mypy", "tool:pytest", "isort", "pycodestyle"],
        keys: &[],
    },
    File { path: "tox.ini", tool: "", sections: &["flake8", "pytest", "pycodestyle"], keys: &[] },
    file("pytest.ini", "pytest"),
];
/// ESLint's rules are names with a level, wherever they stand.
const ESLINT: &[&str] = &[
    ".eslintrc",
    ".eslintrc.json",
    ".eslintrc.js",
    ".eslintrc.cjs",
    ".eslintrc.yml",
    ".eslintrc.yaml",
    "eslint.config.js",
    "eslint.config.mjs",
    "eslint.config.cjs",
    "eslint.config.ts",
];
/// Lists of checks by name: the mark before each name.
const LISTS: &[(&str, &str, &str)] = &[
    (".golangci.yml", "golangci-lint", "- "),
    (".golangci.yaml", "golangci-lint", "- "),
    (".pre-commit-config.yaml", "pre-commit", "- id: "),
    ("checkstyle.xml", "checkstyle", "<module name=\""),
    ("config/checkstyle/checkstyle.xml", "checkstyle", "<module name=\""),
];

/// One line of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting<'a> {
    line: usize,
    section: String,
    key: &'a str,
    value: &'a str,
}

pub(super) fn rules(tree: &Tree, query: &Query) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in FILES {
        let Some(text) = text(tree, file.path) else { continue };
        let wanted = |setting: &Setting| {
            let section = file.sections.is_empty()
                || file.sections.iter().any(|start| in_section(&setting.section, start));
            let key = file.keys.is_empty() || file.keys.iter().any(|start| setting.key.starts_with(start));
            section
                && key
                && !setting.value.is_empty()
                && !["{", "[", "\"allow\"", "\"off\""].contains(&setting.value)
                && setting.key != "root"
        };
        for setting in settings(&text).into_iter().filter(wanted).take(MAX_PER_FILE) {
            let place = if file.tool.is_empty() || !file.sections.is_empty() {
                setting.section.clone()
            } else {
                file.tool.to_string()
            };
            let scope = if file.tool == "editorconfig" && !setting.section.is_empty() {
                format!(" [{}]", setting.section)
            } else {
                String::new()
            };
            let said = format!("{place}{scope}: {} = {}", setting.key, setting.value);
            found.push(rule(&said, file.path, setting.line, query));
        }
    }
    for path in ESLINT {
        let text = text(tree, path).unwrap_or_default();
        let levelled = settings(&text).into_iter().filter(|setting| level(setting.value).is_some());
        for setting in levelled.take(MAX_PER_FILE) {
            let said = format!("eslint: {} is {}", setting.key, level(setting.value).unwrap_or_default());
            found.push(rule(&said, path, setting.line, query));
        }
    }
    for (path, tool, mark) in LISTS {
        let text = text(tree, path).unwrap_or_default();
        let named =
            text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, line.trim().strip_prefix(mark)?)));
        let checks = named.filter(|(_, name)| !name.contains([':', ' ', '/']) || *tool == "checkstyle");
        for (line, name) in checks.take(MAX_PER_FILE) {
            let name = name.split('"').next().unwrap_or(name);
            found.push(rule(&format!("{tool}: {name}"), path, line, query));
        }
    }
    found
}

fn in_section(section: &str, start: &str) -> bool {
    section.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn rule(said: &str, path: &str, line: usize, query: &Query) -> Finding {
    Finding {
        title: said.to_string(),
        detail: format!("set in {path}, so a tool checks it"),
        relevance: rounded(0.25 + 0.5 * query.share(said)),
        evidence: vec![format!("{path}:{line}")],
        kind: "setting".into(),
        confidence: 1.0,
    }
}

/// The level of an ESLint rule that is on.
fn level(value: &str) -> Option<&'static str> {
    let value = value.trim_start_matches('[').trim_start_matches(['"', '\'']);
    match () {
        () if value.starts_with("error") || value.starts_with('2') => Some("an error"),
        () if value.starts_with("warn") || value.starts_with('1') => Some("a warning"),
        () => None,
    }
}

fn settings(text: &str) -> Vec<Setting<'_>> {
    let mut found = Vec::new();
    let mut section = String::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let header = line.strip_prefix('[').and_then(|rest| rest.trim_end().strip_suffix(']'));
        if let Some(name) = header.filter(|name| !name.contains(['"', '\'', '='])) {
            section = name.trim_matches(['[', ']']).to_string();
        } else if let Some((key, value)) = split(line) {
            found.push(Setting { line: at + 1, section: section.clone(), key, value });
        }
    }
    found
}

/// `key = value`, `key: value`, `"key": value,`; comments are nothing.
fn split(line: &str) -> Option<(&str, &str)> {
    if line.starts_with(['#', ';', '/', '*', '-']) {
        return None;
    }
    let (key, value) = match line.strip_prefix(['"', '\'']) {
        Some(rest) => {
            let (key, after) = rest.split_once(['"', '\''])?;
            (key, after.trim_start().strip_prefix([':', '='])?)
        }
        None => line.split_once(['=', ':'])?,
    };
    let key = key.trim();
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.@/".contains(c));
    let value = value.split(" #").next().unwrap_or(value).split(" //").next().unwrap_or(value);
    plain.then(|| (key, value.trim().trim_end_matches(',')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::research::tests::project;

    // covers: R6
    #[test]
    fn settings_of_many_tools_with_their_lines() {
        let dir = project(&[
            (".editorconfig", "root = true\n\n[*.py]\nindent_size = 4 # four\n"),
            ("rustfmt.toml", "max_width = 110\n"),
            ("Cargo.toml", "[package]\nname = 'x'\n[workspace.lints.clippy]\nunwrap_used = \"warn\"\n"),
            (
                "tsconfig.json",
                "{\n  // strict\n  \"compilerOptions\": {\n    \"strict\": true,\n    \"baseUrl\": \".\"\n  }\n}\n",
            ),
            (
                "eslint.config.js",
                "export default [{ rules: {\n  'no-console': ['error', {}],\n  \"semi\": \"off\",\n} }];\n",
            ),
            (
                "pyproject.toml",
                "[project]\nname = 'x'\n[tool.ruff]\nline-length = 100\n[tool.ruff.lint]\nselect = ['E']\n",
            ),
            (".pre-commit-config.yaml", "repos:\n- repo: x\n  hooks:\n  - id: black\n"),
            (".golangci.yml", "linters:\n  enable:\n    - errcheck\n"),
            ("checkstyle.xml", "<module name=\"LineLength\">\n"),
        ]);
        let found = rules(&Tree::read(dir.path()).unwrap(), &Query::new(&["line length"]));
        let told: Vec<String> =
            found.iter().map(|f| format!("{} {} {}", f.evidence[0], f.title, f.relevance)).collect();
        assert_eq!(
            told,
            [
                ".editorconfig:4 editorconfig [*.py]: indent_size = 4 0.25",
                "rustfmt.toml:1 rustfmt: max_width = 110 0.25",
                "Cargo.toml:4 workspace.lints.clippy: unwrap_used = \"warn\" 0.25",
                "tsconfig.json:4 TypeScript: strict = true 0.25",
                "pyproject.toml:4 tool.ruff: line-length = 100 0.75",
                "pyproject.toml:6 tool.ruff.lint: select = ['E'] 0.25",
                "eslint.config.js:2 eslint: no-console is an error 0.25",
                ".golangci.yml:3 golangci-lint: errcheck 0.25",
                ".pre-commit-config.yaml:4 pre-commit: black 0.25",
                "checkstyle.xml:1 checkstyle: LineLength 0.75",
            ]
        );
    }
}
