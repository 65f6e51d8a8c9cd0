use super::*;
use crate::research::tests::project;

/// The files that decide otherwise after `edit`, as they are with `line`.
#[track_caller]
fn assert_changed(files: &[(&str, &str)], line: &str, edits: &[(&str, &str)], expected: &[&str]) {
    let dir = project(files);
    let take = || of(&Tree::read(dir.path()).unwrap(), "", line).decides;
    let then = take();
    assert_eq!(changed(&then, &take()), Vec::<String>::new(), "{line}: nothing was edited");
    for (path, text) in edits {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    assert_eq!(changed(&then, &take()), expected, "{line}");
}

// covers: P4, R6
#[test]
fn a_makefile_with_what_it_includes_and_starts_decides() {
    let files = [
        ("Makefile", "include rules/*.mk\nT = false\ntest: unit\n\t$(T)\nunit:\n\t@./browser.sh\n"),
        ("rules/a.mk", "A = 1\n"),
        ("browser.sh", "#!/bin/sh\nnode tools/run.js\n"),
        ("tools/run.js", "x\n"),
        ("src/main.c", "int main;\n"),
    ];
    for (path, text) in [
        ("Makefile", "T = true\n"),
        ("rules/a.mk", "A = 2\n"),
        ("browser.sh", "#!/bin/sh\n"),
        ("tools/run.js", "y\n"),
        ("GNUmakefile", "test:\n"),
    ] {
        assert_changed(&files, "make test", &[(path, text)], &[path]);
    }
    assert_changed(&files, "make test", &[("src/main.c", "int x;\n"), ("new.sh", "")], &[]);
}

// covers: P4, R6
#[test]
fn the_scripts_that_a_package_runs_decide_and_its_dependencies_do_not() {
    let manifest = |test: &str, unit: &str, more: &str| {
        format!(
            "{{\"scripts\": {{\"test\": \"{test}\", \"unit\": \"{unit}\", \"dev\": \"vite\"{more}}}, \"dependencies\": {{}}}}"
        )
    };
    let start = manifest("npm run unit", "node --test", "");
    let files = [("package.json", start.as_str()), ("a.test.js", "test('a', () => {})")];
    let edited =
        |text: &str| assert_changed(&files, "npm test", &[("package.json", text)], &["package.json"]);
    edited(&manifest("npm run unit", "node --version", ""));
    edited(&manifest("npm run unit", "node --test", ", \"pretest\": \"exit 0\""));
    edited(&start.replace("\"dependencies\"", "\"jest\": {\"testMatch\": []}, \"dependencies\""));
    let harmless = start.replace("vite", "vite --host").replace("{}", "{\"left\": \"1\"}");
    assert_changed(&files, "npm test", &[("package.json", &harmless), ("a.test.js", "x")], &[]);
    assert_changed(&files, "npm test", &[(".npmrc", "script-shell=/bin/true")], &[".npmrc"]);
}

// covers: P4, R6
#[test]
fn settings_of_runners_decide() {
    let python = [
        ("pyproject.toml", "[project]\nname = 'x'\n[tool.pytest.ini_options]\n"),
        ("conftest.py", "x = 1\n"),
    ];
    let line = "python3 -m pytest";
    let edit = |path: &str, text: &str, told: &[&str]| assert_changed(&python, line, &[(path, text)], told);
    edit("pytest.ini", "[pytest]\n", &["pytest.ini"]);
    edit("unittest.py", "", &["unittest.py"]);
    edit("conftest.py", "x = 1\ncollect_ignore = ['a']\n", &["conftest.py"]);
    edit("conftest.py", "x = 2\n", &[]);
    edit(
        "pyproject.toml",
        "[project]\nname = 'x'\n[tool.pytest.ini_options]\naddopts = '-k a'\n",
        &["pyproject.toml"],
    );
    edit("pyproject.toml", "[project]\nname = 'y'\ndependencies = []\n[tool.pytest.ini_options]\n", &[]);
    edit("pytest.toml", "[pytest]\n", &["pytest.toml"]);
    edit("conftest.py", "x = 1\ndef pytest_pyfunc_call(pyfuncitem): return True\n", &["conftest.py"]);
    edit("conftest.py", "x = 1\ndef pytest_configure(config):\n    config.args = ['a']\n", &["conftest.py"]);
    edit("conftest.py", "x = 1\npytest_plugins = ['own']\n", &["conftest.py"]);
    edit("conftest.py", "x = 1\ndef pytest_addoption(parser): pass\n", &[]);
    let cargo = [("Cargo.toml", "[package]\nname = 'x'\n[workspace]\nmembers = ['a']\n")];
    let edit =
        |text: &str, told: &[&str]| assert_changed(&cargo, "cargo test", &[("Cargo.toml", text)], told);
    edit("[package]\nname = 'x'\nautotests = false\n[workspace]\nmembers = ['a']\n", &["Cargo.toml"]);
    edit("[package]\nname = 'x'\n[workspace]\nmembers = []\n", &["Cargo.toml"]);
    edit("[package]\nname = 'x'\n[workspace]\nmembers = ['a', 'b']\n[dependencies]\nb = '1'\n", &[]);
    edit(
        "[package]\nname = 'x'\n[workspace]\nmembers = ['a']\n[[test]]\nname = 'b'\npath = 'c.rs'\n",
        &["Cargo.toml"],
    );
    assert_changed(
        &cargo,
        "cargo test",
        &[("rust-toolchain.toml", "[toolchain]\npath = 'x'\n")],
        &["rust-toolchain.toml"],
    );
    let cmake = [("CMakeLists.txt", "enable_testing()\nadd_subdirectory(a)\nadd_test(NAME a COMMAND a)\n")];
    for text in [
        "enable_testing()\nadd_test(NAME a COMMAND a)\n",
        "enable_testing()\nadd_subdirectory(a)\nadd_test(NAME a COMMAND a)\nset_tests_properties(a PROPERTIES WILL_FAIL TRUE)\n",
    ] {
        assert_changed(&cmake, "ctest", &[("CMakeLists.txt", text)], &["CMakeLists.txt"]);
    }
    let jest = [
        ("package.json", "{\"scripts\": {\"test\": \"jest\"}}"),
        ("jest.config.js", "module.exports = require('./tools/jest')\n"),
        ("tools/jest.js", "module.exports = {}\n"),
    ];
    assert_changed(
        &jest,
        "npm test",
        &[("tools/jest.js", "module.exports = {testMatch: []}\n")],
        &["tools/jest.js"],
    );
    for line in ["<include>A</include>", "<groups>a</groups>", "<testSourceDirectory>x</testSourceDirectory>"]
    {
        let pom = format!("<project>\n{line}\n</project>\n");
        assert_changed(
            &[("pom.xml", "<project>\n</project>\n")],
            "mvn test",
            &[("pom.xml", &pom)],
            &["pom.xml"],
        );
    }
    let maven = [("pom.xml", "<project>\n</project>\n")];
    assert_changed(
        &maven,
        "mvn test",
        &[("pom.xml", "<project>\n<skipTests>true</skipTests>\n</project>\n")],
        &["pom.xml"],
    );
}

// covers: P4, R6
#[test]
fn scripts_that_are_started_by_a_variable_or_as_a_module_decide() {
    let inner = ("tools/inner.sh", "exit 1\n");
    for (path, text) in [
        ("test.sh", "DIR=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\n\"$DIR/tools/inner.sh\"\n"),
        ("test.sh", "ROOT=$(git rev-parse --show-toplevel)\n. $ROOT/tools/inner.sh\n"),
        ("test.sh", "cd \"$(dirname \"$0\")\"; ./tools/inner.sh\n"),
        ("test.sh", "cd \"${0%/*}/tools\" && ./inner.sh\n"),
    ] {
        assert_changed(&[(path, text), inner], "./test.sh", &[("tools/inner.sh", "")], &["tools/inner.sh"]);
    }
    let make = ("Makefile", "RUN = tools/inner.sh\nX = tools/rules\ninclude $(X).mk\ntest:\n\tsh $(RUN)\n");
    let rules = ("tools/rules.mk", "A = 1\n");
    for path in ["tools/inner.sh", "tools/rules.mk"] {
        assert_changed(&[make, rules, inner], "make test", &[(path, "B = 2\n")], &[path]);
    }
    for (line, path) in [
        ("python3 -m tools.run", "tools/run.py"),
        ("node .", "index.js"),
        ("node ./run", "run.js"),
        ("./test", "test"),
        ("bin/test", "bin/test"),
    ] {
        assert_changed(&[(path, "#!/bin/sh\nx\n")], line, &[(path, "#!/bin/sh\ny\n")], &[path]);
    }
    let just = ("justfile", "set dotenv-load\ntest:\n    ./run.sh\n");
    assert_changed(&[just, (".env", "A=1\n")], "just test", &[(".env", "A=2\n")], &[".env"]);
}
