//! Python: settings of pytest, tox and nox, hooks that choose tests, and whatever stands in the interpreter's place.

use super::Gather;
use crate::shell::{Words, joined_path};

const SETTINGS: &[&str] =
    &["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "noxfile.py", ".coveragerc"];
/// Modules of the project that are loaded in the place of the runner, or before it.
const SHADOWS: &[&str] = &[
    "unittest.py",
    "unittest/__init__.py",
    "pytest.py",
    "pytest/__init__.py",
    "pluggy.py",
    "pluggy/__init__.py",
    "iniconfig.py",
    "pygments.py",
    "pygments/__init__.py",
    "sitecustomize.py",
    "usercustomize.py",
];
/// Parts of lines that leave tests out or change how a test or the run ends.
const HOOKS: &[&str] = &[
    "collect_ignore",
    "def pytest_",
    "pytest_plugins",
    "config.option",
    "config.args",
    "exitstatus",
    "os._exit",
];
/// Hooks that only add something.
const HARMLESS: &[&str] =
    &["pytest_addoption", "pytest_configure", "pytest_generate_tests", "pytest_report_header"];

impl Gather<'_> {
    pub(super) fn python(&mut self, folder: &str, words: &Words) {
        self.whole_of(folder, SETTINGS);
        self.whole_of(folder, SHADOWS);
        self.sections(folder);
        for path in self.below(folder, "conftest.py") {
            let text = self.text(&path).unwrap_or_default();
            let any = |words: &[&str], line: &str| words.iter().any(|word| line.contains(word));
            let hooks = text.lines().filter(|line| any(HOOKS, line) && !any(HARMLESS, line));
            let facts = self.facts(&path);
            hooks.for_each(|line| facts.bar(line.trim()));
        }
        for word in words.iter().filter(|word| word.contains("/bin/")) {
            self.program(&joined_path(folder, word));
        }
        // `python3 -m tools.run` may be a module of the project.
        let module = words.iter().position(|word| word == "-m").and_then(|at| words.get(at + 1));
        if let Some(path) = module.map(|name| joined_path(folder, &name.replace('.', "/"))) {
            self.whole(&format!("{path}.py"));
            self.whole(&format!("{path}/__main__.py"));
        }
    }

    /// Of files that also say other things.
    fn sections(&mut self, folder: &str) {
        let path = joined_path(folder, "pyproject.toml");
        let table = self.text(&path).and_then(|text| text.parse::<toml::Table>().ok());
        let tools = table.as_ref().and_then(|table| table.get("tool")).and_then(toml::Value::as_table);
        for name in ["pytest", "tox", "nox", "hatch", "pdm", "poe"] {
            if let Some(value) = tools.and_then(|tools| tools.get(name)) {
                self.facts(&path).fix(format!("{name}={value:?}"));
            }
        }
        let path = joined_path(folder, "setup.cfg");
        let text = self.text(&path).unwrap_or_default();
        let section =
            text.split("\n[").find(|section| section.trim_start_matches('[').starts_with("tool:pytest]"));
        if let Some(section) = section {
            self.facts(&path).fix(section.trim());
        }
    }
}
