use super::*;

fn commands_of(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let dir = crate::research::tests::project(files);
    let found = commands(&Tree::read(dir.path()).unwrap());
    let told = |list: &[Command]| list.iter().map(|c| format!("{} <- {}", c.shell(), c.evidence)).collect();
    (told(&found.build), told(&found.test), told(&found.lint))
}

// covers: R6
#[test]
fn a_cargo_workspace_with_recipes_and_a_script() {
    let (build, test, lint) = commands_of(&[
        ("Cargo.toml", "[package]\nname = \"x\"\n[workspace]\n[dependencies]\na = { path = \"crates/a\" }\n"),
        ("crates/a/Cargo.toml", "[package]\n"),
        ("rustfmt.toml", ""),
        (
            "justfile",
            "default: test\n\nversion := \"1\"\ntest filter='':\n    cargo test\n@lint:\n    true\n",
        ),
        ("test", "#!/bin/sh\n"),
    ]);
    assert_eq!(build, ["cargo build --workspace <- Cargo.toml:3"]);
    assert_eq!(
        test,
        ["cargo test --workspace <- Cargo.toml:3", "just test <- justfile:4", "./test <- test:1"]
    );
    assert_eq!(
        lint,
        [
            "cargo clippy --workspace --all-targets <- Cargo.toml:3",
            "cargo fmt --all --check <- rustfmt.toml:1",
            "just lint <- justfile:6"
        ]
    );
}

// covers: R6
#[test]
fn scripts_of_a_package_with_the_tool_of_its_lock_file() {
    let manifest = "{\n  \"devDependencies\": {\"test\": \"1\"},\n  \"scripts\": {\n    \"build\": \"tsc\",\n    \
                    \"test\": \"vitest\",\n    \"lint\": \"eslint .\"\n  }\n}\n";
    let (build, test, lint) = commands_of(&[("web/package.json", manifest), ("web/pnpm-lock.yaml", "")]);
    assert_eq!(build, ["cd 'web' && pnpm run build <- web/package.json:4"]);
    assert_eq!(test, ["cd 'web' && pnpm test <- web/package.json:5"]);
    assert_eq!(lint, ["cd 'web' && pnpm run lint <- web/package.json:6"]);
}

// covers: R6
#[test]
fn the_test_that_npm_init_writes_is_none() {
    let manifest = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
    assert_eq!(commands_of(&[("package.json", manifest)]), (vec![], vec![], vec![]));
}

// covers: R6
#[test]
fn python_with_pytest_and_with_unittest() {
    let (build, test, lint) = commands_of(&[
        ("pyproject.toml", "[project]\nname = 'x'\n[tool.pytest.ini_options]\n[tool.ruff]\n"),
        ("shop/cart.py", ""),
        ("tests/test_cart.py", ""),
        (".venv/bin/python", ""),
    ]);
    assert_eq!(build, [".venv/bin/python -m compileall -q shop tests <- pyproject.toml:1"]);
    assert_eq!(test, [".venv/bin/python -m pytest <- pyproject.toml:3"]);
    assert_eq!(lint, ["ruff check . <- pyproject.toml:4"]);
    let (build, test, _) = commands_of(&[("cart.py", ""), ("test_cart.py", "import unittest")]);
    assert_eq!((build.len(), test), (0, vec!["python3 -m unittest discover <- test_cart.py:1".to_string()]));
}

// covers: R6, P4
#[test]
fn unittest_runs_files_whose_name_only_begins_with_test() {
    let case = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n";
    let (_, test, _) = commands_of(&[("shop/tests.py", case), ("lib/testing.py", "x = 1\n")]);
    assert_eq!(test, ["python3 -m unittest discover -s shop <- shop/tests.py:1"]);
}

// covers: R6
#[test]
fn go_maven_gradle_and_make() {
    let (build, test, lint) = commands_of(&[("go.mod", "module x\n"), (".golangci.yml", "")]);
    assert_eq!(build, ["go build ./... <- go.mod:1"]);
    assert_eq!(test, ["go test ./... <- go.mod:1"]);
    assert_eq!(lint, ["go vet ./... <- go.mod:1", "golangci-lint run <- .golangci.yml:1"]);
    let (_, test, _) = commands_of(&[("pom.xml", "<project/>"), ("mvnw", "")]);
    assert_eq!(test, ["./mvnw -B test <- pom.xml:1"]);
    let (_, test, _) = commands_of(&[("build.gradle.kts", ""), ("gradlew", "")]);
    assert_eq!(test, ["./gradlew test <- build.gradle.kts:1"]);
    let (build, test, _) =
        commands_of(&[("Makefile", ".PHONY: test\nCC := gcc\nbuild: a.o\ncheck:\n\t./a\n")]);
    assert_eq!(
        (build, test),
        (vec!["make build <- Makefile:3".into()], vec!["make check <- Makefile:4".into()])
    );
}

// covers: R6
#[test]
fn an_empty_project_has_none_and_examples_are_not_the_project() {
    assert_eq!(commands_of(&[]), (vec![], vec![], vec![]));
    assert_eq!(commands_of(&[("examples/a/go.mod", "module x\n")]), (vec![], vec![], vec![]));
}
