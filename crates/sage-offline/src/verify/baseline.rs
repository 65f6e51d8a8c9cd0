//! A project as it was when a run began: its tests, its commands, and what decides how those run.
//!
//! Tests are found by how they begin in their language; those that are switched off have no name here, or are counted
//! by what switches them off.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::decides::{self, Decides};
use crate::research::{self, Command};
use crate::walk::Tree;

/// A project with more files is sampled, and two samples cannot be compared.
const MOST_FILES: usize = 20_000;
/// How far below its attribute a test's name may stand.
const NAME_LINES: usize = 10;
const NAME_CHARS: usize = 120;

/// Taken when a run begins, compared when a check is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Nothing for a project that is too large.
    pub tests: Option<Tests>,
    /// Commands that the project's files name.
    #[serde(default)]
    pub test: Vec<Known>,
    #[serde(default)]
    pub build: Vec<Known>,
    /// Commands that a person named.
    #[serde(default)]
    pub named: Vec<Known>,
}

/// A command as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub line: String,
    /// Relative to the project.
    pub folder: String,
    pub evidence: String,
    /// What the project says that it does.
    pub definition: String,
    pub decides: Decides,
}

impl Known {
    fn of(tree: &Tree, command: Command) -> Known {
        let decides = decides::of(tree, &command.folder, &command.line);
        let Command { line, folder, evidence, definition } = command;
        Known { line, folder, evidence, definition, decides }
    }

    fn is(&self, other: &Known) -> bool {
        (&self.folder, &self.line) == (&other.folder, &other.line)
    }
}

impl Baseline {
    /// Reads the project as it is. `named` are the commands of sage.toml and of the workflow.
    pub fn take(project: &Path, named: &[String]) -> Option<Baseline> {
        let tree = Tree::read(project).ok()?;
        let commands = research::all_commands(&tree);
        let known = |commands: Vec<Command>| -> Vec<Known> {
            commands.into_iter().map(|command| Known::of(&tree, command)).collect()
        };
        let named = named.iter().map(|line| Command { line: line.clone(), ..Command::default() }).collect();
        let (test, build, named) = (known(commands.test), known(commands.build), known(named));
        Some(Baseline { tests: all(&tree), test, build, named })
    }

    /// Commands for a check, as they were.
    pub fn commands(&self, what: &str) -> &[Known] {
        if what == "build" { &self.build } else { &self.test }
    }

    /// Takes over what is different between `left` and `now`: a person changed it while the run stood still.
    pub fn follow(&mut self, left: &Baseline, now: &Baseline) {
        if let (Some(own), Some(left), Some(now)) = (&mut self.tests, &left.tests, &now.tests) {
            follow(own, left, now);
        }
        follow_commands(&mut self.test, &left.test, &now.test);
        follow_commands(&mut self.build, &left.build, &now.build);
        follow_commands(&mut self.named, &left.named, &now.named);
    }
}

fn follow<T: Clone + PartialEq>(
    own: &mut BTreeMap<String, T>,
    left: &BTreeMap<String, T>,
    now: &BTreeMap<String, T>,
) {
    let paths: BTreeSet<&String> = left.keys().chain(now.keys()).collect();
    for path in paths.into_iter().filter(|path| left.get(*path) != now.get(*path)) {
        match now.get(path) {
            Some(value) => drop(own.insert(path.clone(), value.clone())),
            None => drop(own.remove(path)),
        }
    }
}

fn follow_commands(own: &mut Vec<Known>, left: &[Known], now: &[Known]) {
    let was_removed =
        |known: &Known| left.iter().any(|it| it.is(known)) && !now.iter().any(|it| it.is(known));
    own.retain(|known| !was_removed(known));
    for now in now {
        let left = left.iter().find(|it| it.is(now));
        match own.iter_mut().find(|it| it.is(now)) {
            Some(own) => {
                let nothing = Decides::new();
                follow(&mut own.decides, left.map_or(&nothing, |left| &left.decides), &now.decides);
                own.definition.clone_from(&now.definition);
            }
            None if left.is_none() => own.push(now.clone()),
            None => {}
        }
    }
}

/// By path.
pub type Tests = BTreeMap<String, FileTests>;

/// The tests of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTests {
    pub names: Vec<String>,
    /// Lines that switch tests off.
    pub off: usize,
}

/// All tests of a project.
pub fn all(tree: &Tree) -> Option<Tests> {
    (tree.files.len() < MOST_FILES).then_some(())?;
    let files = tree.files.iter().filter(|file| is_source(&file.path));
    let found =
        files.map(|file| (file.path.clone(), tests(&file.path, &tree.text(file).unwrap_or_default())));
    Some(found.filter(|(_, tests)| *tests != FileTests::default()).collect())
}

/// Whether tests of this language can be found.
pub fn is_source(path: &str) -> bool {
    markers(path).is_some()
}

/// How tests begin in a language, and what switches one off.
struct Markers {
    begins: &'static [&'static str],
    off: &'static [&'static str],
    /// Off anywhere in a line, spaces left out.
    within: &'static [&'static str],
}

fn markers(path: &str) -> Option<Markers> {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let (begins, off, within): (&[&str], &[&str], &[&str]) = match ending {
        "py" => (&["def test", "async def test"], PYTHON_OFF, &[]),
        "rs" => (&["#[test]", "#[tokio::test", "#[rstest"], &["#[ignore"], &[]),
        "go" => (&["func Test", "func Fuzz"], &["t.Skip", "//go:build", "// +build"], &[]),
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => {
            (&["it(", "test(", "it.each", "test.each", "it.only(", "test.only("], SCRIPT_OFF, OPTION_OFF)
        }
        "java" | "kt" | "scala" => (&["@Test", "@ParameterizedTest"], &["@Disabled", "@Ignore"], &[]),
        "rb" => (&["it \"", "it '", "def test_", "test \""], &["skip", "pending", "xit "], &[]),
        "php" => (&["public function test", "function test"], &["$this->markTestSkipped"], &[]),
        "bats" => (&["@test "], &["skip"], &[]),
        _ => return None,
    };
    Some(Markers { begins, off, within })
}

const PYTHON_OFF: &[&str] = &[
    "@unittest.skip",
    "@unittest.expectedFailure",
    "@expectedFailure",
    "@skip",
    "@pytest.mark.skip",
    "@pytest.mark.xfail",
    "pytestmark = pytest.mark.skip",
    "pytest.skip(",
    "pytest.xfail(",
    "self.skipTest(",
    "raise unittest.SkipTest",
    "raise SkipTest",
    "def load_tests(",
    "__test__ = False",
];

/// What runs only some switches the others off.
const SCRIPT_OFF: &[&str] = &[
    "describe.skip",
    "xdescribe(",
    "suite.skip",
    "describe.only",
    "it.only(",
    "test.only(",
    "fdescribe(",
    "t.skip(",
    "t.todo(",
    "this.skip(",
];

const OPTION_OFF: &[&str] = &["skip:true", "todo:true", "skip:'", "skip:\"", "todo:'", "todo:\""];

/// The tests of a file.
pub fn tests(path: &str, text: &str) -> FileTests {
    let Some(markers) = markers(path) else { return FileTests::default() };
    let is_python = path.ends_with(".py");
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let mut found = FileTests::default();
    let mut quote: Option<&str> = None;
    for (at, line) in lines.iter().enumerate() {
        if is_python && in_text(line, &mut quote) {
            continue;
        }
        let squeezed = || line.split_whitespace().collect::<String>();
        let is_off = markers.off.iter().any(|start| line.starts_with(start))
            || (!markers.within.is_empty() && markers.within.iter().any(|word| squeezed().contains(word)));
        found.off += usize::from(is_off);
        if let Some(class) = line.strip_prefix("class ").filter(|_| is_python) {
            // Without its base, its methods are no tests.
            found.names.extend(class.contains("TestCase)").then(|| class.trim_end_matches(':').to_string()));
        } else if markers.begins.iter().any(|start| line.starts_with(start)) {
            found.names.push(name(&lines[at..]));
        }
    }
    found
}

/// Whether a line begins inside of a text in three quotes; `quote` is the one that is open after it.
fn in_text(line: &str, quote: &mut Option<&'static str>) -> bool {
    let was_in = quote.is_some();
    let mut rest = line;
    loop {
        let next = match *quote {
            Some(own) => rest.find(own).map(|at| (at, own)),
            None => ["\"\"\"", "'''"].into_iter().filter_map(|own| Some((rest.find(own)?, own))).min(),
        };
        let Some((at, own)) = next else { return was_in };
        *quote = if quote.is_some() { None } else { Some(own) };
        rest = &rest[at + 3..];
    }
}

/// Whether a runner loads a file by its name, where the language has such a rule.
pub fn is_loaded(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, "py")) => stem.starts_with("test") || stem.ends_with("_test") || stem == "conftest",
        Some((stem, "go")) => stem.ends_with("_test"),
        _ => true,
    }
}

/// The name of the test that begins in the first of these lines: its function's, or its text.
fn name(lines: &[&str]) -> String {
    let first = lines[0];
    let is_attribute = |line: &str| line.starts_with(['@', '#']) && !line.starts_with("@test ");
    let named = lines.iter().take(NAME_LINES).find(|line| !is_attribute(line) && !line.is_empty());
    let line = named.copied().unwrap_or(first);
    let is_call = first.starts_with("it") || first.starts_with("test");
    let function = ["def ", "fn ", "func ", "function "].iter().find_map(|word| line.split_once(word));
    let text = match function.filter(|_| !is_call) {
        Some((_, rest)) => rest.split(['(', '<', '[', ':']).next().unwrap_or(rest),
        None if is_attribute(first) => {
            let before = line.split('(').next().unwrap_or(line);
            before.rsplit(char::is_whitespace).next().unwrap_or(before)
        }
        None => quoted(line).unwrap_or(line),
    };
    text.trim().chars().take(NAME_CHARS).collect()
}

fn quoted(line: &str) -> Option<&str> {
    let from = line.find(['"', '\'', '`'])?;
    let quote = line[from..].chars().next()?;
    line[from + 1..].split(quote).next()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[track_caller]
    fn assert_tests(path: &str, text: &str, names: &[&str], off: usize) {
        let found = tests(path, text);
        assert_eq!(
            (found.names.iter().map(String::as_str).collect::<Vec<_>>(), found.off),
            (names.to_vec(), off)
        );
    }

    // covers: P4, R6
    #[test]
    fn tests_are_known_by_name_and_by_what_switches_them_off() {
        assert_tests("a.py", "class A:\n  def test_a(self):\n    pass\n", &["test_a"], 0);
        let case = "class A(unittest.TestCase):\n  def test_a(self):\n    \"\"\"Adds.\"\"\"\n  def test_b(self):\n    x = '''y'''\n";
        assert_tests("a.py", case, &["A(unittest.TestCase)", "test_a", "test_b"], 0);
        assert_tests("a.py", &format!("\"\"\"\n{case}\"\"\"\n").replace("\"\"\"Adds.\"\"\"", ""), &[], 0);
        assert_tests("a.py", "\"\"\"About.\n\ndef test_x\n\"\"\"\ndef test_a(): pass\n", &["test_a"], 0);
        for off in ["@unittest.skipIf(True, 'x')", "@unittest.expectedFailure", "@pytest.mark.skipif(True)"] {
            assert_tests("a.py", &format!("{off}\ndef test_a(): pass\n"), &["test_a"], 1);
        }
        assert_tests("a.rs", "#[test]\n#[ignore]\nfn adds() {}\n", &["adds"], 1);
        assert_tests("a_test.go", "func TestA(t *testing.T) {\n\tt.Skip()\n}\n", &["TestA"], 1);
        assert_tests("A.java", "  @Test\n  public void adds() {\n", &["adds"], 0);
        let script = "describe.skip('cart', () => {\n  it('adds', () => {});\n  it.skip('sums', f);\n});\n";
        assert_tests("a.test.js", script, &["adds"], 1);
        for option in ["{skip: true}", "{ todo: true }", "{ skip: 'later' }"] {
            assert_tests("a.test.js", &format!("test('adds', {option}, () => {{}});\n"), &["adds"], 1);
        }
        assert_tests("a.bats", "@test \"adds up\" {\n", &["adds up"], 0);
    }
}
