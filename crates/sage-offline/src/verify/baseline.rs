//! A project as it was when a run began: its tests, its commands, what decides how those run, and what they ran.
//!
//! Tests are found by how they begin in their language; those that are switched off have no name here, or are counted
//! by what switches them off. That is the second net: which tests ran before (`executed.rs`) says more, where it is known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::decides::{self, Decides};
use super::executed::Executed;
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
    /// Tests that ran before the first step that may change files.
    #[serde(default)]
    pub ran: Vec<Executed>,
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
        let decides = decides::of(tree, &command.folder, &command.line).decides;
        let Command { line, folder, evidence, definition } = command;
        Known { line, folder, evidence, definition, decides }
    }

    pub fn is(&self, other: &Known) -> bool {
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
        Some(Baseline { tests: all(&tree), test, build, named, ran: Vec::new() })
    }

    /// Commands for a check, as they were.
    pub fn commands(&self, what: &str) -> &[Known] {
        if what == "build" { &self.build } else { &self.test }
    }

    /// Names of the tests in the sources.
    pub fn literal(&self) -> BTreeSet<&str> {
        let files = self.tests.iter().flat_map(BTreeMap::values);
        files.flat_map(|file| &file.names).map(String::as_str).collect()
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
    let found = tree.files.iter().filter_map(|file| {
        let tests = match is_source(&file.path) {
            true => tests(&file.path, &tree.text(file).unwrap_or_default()),
            // Where tests do not show in the text, the file is one.
            false if is_test_file(&file.path) => {
                FileTests { names: vec![file.name().to_string()], ..FileTests::default() }
            }
            false => return None,
        };
        Some((file.path.clone(), tests))
    });
    Some(found.filter(|(_, tests)| *tests != FileTests::default()).collect())
}

/// A test by its name, in a language whose tests have no beginning that is known here.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    let folder = parts.next().unwrap_or_default();
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let stem = stem.to_lowercase();
    let named = stem.starts_with("test") || stem.ends_with("test") || stem.ends_with("tests");
    match ending {
        "t" => folder == "t",
        "c" | "cc" | "cpp" | "cxx" | "sh" | "exs" | "dart" | "swift" | "fs" | "lua" | "clj" => named,
        _ => false,
    }
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
        "cs" => (&["[Test", "[Fact", "[Theory"], &["[Ignore", "[Explicit"], &["Skip="]),
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
    let raw: Vec<&str> = text.lines().collect();
    let lines: Vec<&str> = raw.iter().map(|line| line.trim_start()).collect();
    let mut found = FileTests::default();
    let mut quote: Option<&str> = None;
    let mut defined = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if is_python && in_text(line, &mut quote) {
            continue;
        }
        let squeezed = || line.split_whitespace().collect::<String>();
        let is_off = markers.off.iter().any(|start| line.starts_with(start))
            || (!markers.within.is_empty() && markers.within.iter().any(|word| squeezed().contains(word)));
        let is_again = is_python && is_defined_again(raw[at], &mut defined);
        found.off += usize::from(is_off) + usize::from(is_again);
        if let Some(class) = line.strip_prefix("class ").filter(|_| is_python) {
            // Without its base, its methods are no tests.
            found.names.extend(class.contains("TestCase)").then(|| class.trim_end_matches(':').to_string()));
        } else if markers.begins.iter().any(|start| line.starts_with(start)) {
            found.names.push(name(&lines[at..]));
        }
    }
    found
}

/// Whether a test of this name was defined before in the same block: Python takes the last one.
fn is_defined_again<'a>(raw: &'a str, defined: &mut Vec<(usize, &'a str)>) -> bool {
    let line = raw.trim_start();
    let indent = raw.len() - line.len();
    if line.is_empty() || line.starts_with('#') {
        return false;
    }
    defined.retain(|(at, _)| *at <= indent);
    let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ");
    let Some(rest) = function.filter(|rest| rest.starts_with("test")) else {
        // `test_total = lambda self: None`
        return line.split_once('=').is_some_and(|(name, _)| defined.contains(&(indent, name.trim_end())));
    };
    let test = (indent, rest.split('(').next().unwrap_or(rest));
    let is_again = defined.contains(&test);
    defined.push(test);
    is_again
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
    let is_attribute = |line: &str| line.starts_with(['@', '#', '[']) && !line.starts_with("@test ");
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
        let twice = "class A:\n  def test_a(self):\n    pass\n  def test_a(self):\n    pass\nclass B:\n  def test_a(self):\n    pass\n";
        assert_tests("a.py", twice, &["test_a", "test_a", "test_a"], 1);
        assert_tests("a.rs", "#[test]\n#[ignore]\nfn adds() {}\n", &["adds"], 1);
        assert_tests("a_test.go", "func TestA(t *testing.T) {\n\tt.Skip()\n}\n", &["TestA"], 1);
        assert_tests("A.java", "  @Test\n  public void adds() {\n", &["adds"], 0);
        let script = "describe.skip('cart', () => {\n  it('adds', () => {});\n  it.skip('sums', f);\n});\n";
        assert_tests("a.test.js", script, &["adds"], 1);
        for option in ["{skip: true}", "{ todo: true }", "{ skip: 'later' }"] {
            assert_tests("a.test.js", &format!("test('adds', {option}, () => {{}});\n"), &["adds"], 1);
        }
        assert_tests("ATests.cs", "  [Fact]\n  public void Adds() {\n", &["Adds"], 0);
        assert_tests("ATests.cs", "  [Fact(Skip = \"x\")]\n  public void Adds() {\n", &["Adds"], 1);
        let again = "def test_a():\n  assert 0\ntest_a = print\n";
        assert_tests("a.py", again, &["test_a"], 1);
        assert_tests("a.bats", "@test \"adds up\" {\n", &["adds up"], 0);
    }

    // covers: P4, R6
    #[test]
    fn files_are_tests_where_the_text_does_not_tell() {
        let files = ["t/cart.t", "tests/test_cart.c", "cart_test.sh", "src/cart.c", "x.t", "tests/helper.sh"];
        let dir = crate::research::tests::project(&files.map(|path| (path, "x")));
        let found = all(&Tree::read(dir.path()).unwrap()).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["cart_test.sh", "t/cart.t", "tests/test_cart.c"]);
    }
}
