//! Tests that are outside of every command's reach.

use super::*;

const RED: &str = "require('node:test')('a', () => { throw 1 })\n";
const GREEN: &str = "require('node:test')('b', () => {})\n";

fn lines(files: &[(&str, &str)]) -> Vec<String> {
    let dir = project(files);
    orders(&Tree::read(dir.path()).unwrap(), &dir, "test", "all")
}

// covers: P4
#[test]
fn packages_of_a_workspace_are_tested_unless_the_root_does_so() {
    let own = ("packages/a/package.json", "{\"scripts\": {\"test\": \"node --test\", \"build\": \"tsc\"}}");
    let root = |script: &str| {
        format!("{{\"workspaces\": [\"packages/*\"], \"scripts\": {{\"test\": \"{script}\"}}}}")
    };
    let with = |script: &str| lines(&[("package.json", &root(script)), own]);
    assert_eq!(with("node --test test/"), [":npm test", "packages/a:npm test"]);
    for script in [
        "npm test --workspaces",
        "npm test -w packages/a --workspace=a",
        "turbo run test",
        "jest",
        "node --test",
    ] {
        assert_eq!(with(script), [":npm test"], "{script}");
    }
    // One that the list does not name, and one that the script does not.
    let other = ("other/package.json", own.1);
    assert_eq!(lines(&[("package.json", &root("jest")), own, other]), [":npm test", "other:npm test"]);
    let second = ("packages/b/package.json", own.1);
    let named = root("npm test --workspace=a");
    assert_eq!(lines(&[("package.json", &named), own, second]), [":npm test", "packages/b:npm test"]);
    let dir = project(&[("package.json", &root("node --test test/")), own]);
    assert_eq!(orders(&Tree::read(dir.path()).unwrap(), &dir, "build", "all"), Vec::<String>::new());
    // One without a command of its own.
    let files = [
        ("package.json", root("node --test test/")),
        ("packages/b/b.test.js", RED.into()),
        ("packages/b/package.json", "{}".into()),
        ("test/ok.test.js", GREEN.into()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let told = unknown(ask("test.run", &project(&files), json!({}), json!({})));
    assert!(
        told.contains("No command is known that runs the JavaScript tests in `packages/b/b.test.js`."),
        "{told}"
    );
}

// covers: P4
#[test]
fn crates_outside_of_the_workspace_and_deep_packages_are_tested() {
    let listed =
        ("Cargo.toml", "[workspace]\nmembers = ['crates/*']\n[workspace.dependencies]\nb = { path = 'b' }\n");
    let own = |path| (path, "[package]\nname = 'x'\n");
    assert_eq!(
        lines(&[listed, own("crates/a/Cargo.toml"), own("b/Cargo.toml"), own("crates/a/deep/Cargo.toml")]),
        [":cargo test --workspace", "crates/a/deep:cargo test"]
    );
    let manifest =
        "[package]\nname = 'r'\n[workspace]\nexclude = ['tools']\n[dependencies]\na = { path = 'a' }\n";
    let root = ("Cargo.toml", manifest);
    assert_eq!(lines(&[root, own("b/Cargo.toml")]), [":cargo test --workspace", "b:cargo test"]);
    let member = ("a/Cargo.toml", "[package]\nname = 'a'\n");
    assert_eq!(
        lines(&[root, member, ("tools/Cargo.toml", "[package]\nname = 't'\n")]),
        [":cargo test --workspace", "tools:cargo test"]
    );
    assert_eq!(
        lines(&[root, member, ("own/Cargo.toml", "[package]\nname = 't'\n[workspace]\n")]),
        [":cargo test --workspace", "own:cargo test --workspace"]
    );
    let script = "{\"scripts\": {\"test\": \"node test/cart.js\"}}";
    assert_eq!(lines(&[("svc/web/app/package.json", script)]), ["svc/web/app:npm test"]);
    let many: Vec<(String, &str)> = (0..20).map(|n| (format!("p{n:02}/package.json"), script)).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    assert_eq!(lines(&many).len(), 20);
}

// covers: P4
#[test]
fn tests_beside_the_folders_that_a_command_names_are_missed() {
    let uncovered = |files: &[(&str, &str)]| {
        let dir = project(files);
        let tree = Tree::read(dir.path()).unwrap();
        let all = order::select(&order::all(&tree, "test"), &tree, "test", None);
        uncovered::uncovered(&tree, &all, None)
    };
    let tests = [("unit/a.test.js", GREEN), ("integration/b.test.js", RED)];
    let script = |script: &str| format!("{{\"scripts\": {{\"test\": \"{script}\"}}}}");
    let with = |test: &str| uncovered(&[("package.json", &script(test)), tests[0], tests[1]]);
    let missed = ["No command is known that runs the JavaScript tests in `integration/b.test.js`."];
    assert_eq!(with("node --test unit/"), missed);
    assert_eq!(with("node --test 'unit/**/*.test.js'"), missed);
    for some in [
        "cd unit && node --test",
        "jest unit/",
        "vitest run --dir unit",
        "npm run some",
        "mocha unit/a.test.js",
    ] {
        let manifest = format!("{{\"scripts\": {{\"test\": \"{some}\", \"some\": \"node --test unit\"}}}}");
        assert_eq!(uncovered(&[("package.json", &manifest), tests[0], tests[1]]), missed, "{some}");
    }
    assert_eq!(with("mocha").len(), 1, "it looks into `test` only");
    // Helpers have no tests, whatever their name.
    let python =
        [("pytest.ini", "[pytest]\ntestpaths = tests\n"), ("tests/test_a.py", "def test_a(): pass\n")];
    let beside = |text| uncovered(&[python[0], python[1], ("src/test_utils.py", text)]).len();
    assert_eq!((beside("def test_b(): pass\n"), beside("x = 1\n")), (1, 0));
    for (path, text) in [
        ("web/test/cart.js", "it('adds', () => {})\n"),
        ("src/TestCart.java", ""),
        ("src/CartIT.java", ""),
        ("cli/a.bats", ""),
        ("t/a.t", ""),
    ] {
        assert_eq!(uncovered(&[python[0], python[1], (path, text)]).len(), 1, "{path}");
    }
    for all in [
        "node --test",
        "node --test unit/ && node --test integration",
        "node --test '**/*.test.js'",
        "./all.sh",
    ] {
        assert_eq!(with(all), Vec::<String>::new(), "{all}");
    }
    // A wrapper that runs one language does not run another, and one that runs nothing covers nothing.
    let both = [("a_test.py", ""), ("tests/a.rs", ""), ("Cargo.toml", "[package]\nname = 'x'\n")];
    let make = |recipe: &str| {
        let text = format!("test:\n\t{recipe}\n");
        let mut files = both.to_vec();
        files.push(("Makefile", &text));
        let dir = project(&files);
        let tree = Tree::read(dir.path()).unwrap();
        let wrapper: Vec<Order> =
            order::all(&tree, "test").into_iter().filter(|order| order.line == "make test").collect();
        uncovered::uncovered(&tree, &wrapper, None).len()
    };
    assert_eq!(
        [make("cargo test"), make("cargo test && pytest"), make("./all"), make("@echo none")],
        [1, 0, 0, 2]
    );
    assert_eq!(uncovered(&[("__tests__/a.js", RED)]).len(), 1);
}

// covers: P4
#[test]
fn modules_that_the_root_does_not_run_are_tested() {
    let module = |path| (path, "module x\n");
    let work = ("go.work", "use (\n\t.\n\t./b\n)\n");
    assert_eq!(lines(&[work, module("go.mod"), module("b/go.mod")]), [":go test ./...", "b:go test ./..."]);
    let root = ("pom.xml", "<project><modules><module>a</module></modules></project>\n");
    let nested = ("a/pom.xml", "<project><modules><module>c</module></modules></project>\n");
    let pom = |path| (path, "<project></project>\n");
    assert_eq!(
        lines(&[root, nested, pom("a/c/pom.xml"), pom("b/pom.xml")]),
        [":mvn -B test", "b:mvn -B test"]
    );
    let project = |path| (path, "[project]\nname = 'x'\n[tool.pytest.ini_options]\n");
    let test = |path| (path, "def test_a(): pass\n");
    let paths = ("pyproject.toml", "[tool.pytest.ini_options]\ntestpaths = ['tests', 'b']\n");
    let files = [paths, test("tests/test_a.py"), project("b/pyproject.toml"), test("b/test_b.py")];
    assert_eq!(lines(&files), [":python3 -m pytest"]);
    let files = [files[0], files[1], project("c/pyproject.toml"), test("c/test_c.py")];
    assert_eq!(lines(&files), [":python3 -m pytest", "c:python3 -m pytest"]);
}
