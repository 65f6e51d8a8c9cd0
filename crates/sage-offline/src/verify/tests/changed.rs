//! Tests and commands that are not what they were when the run began.

use super::*;

/// Changes a project, given the text of its test file.
type Edit<'a> = &'a dyn Fn(&TempDir, &str);
/// The files of a project; the one that changes, its new text, and what the check then says.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, &'a str);

/// The check of a project after `edit`, compared with how it was before.
fn after(
    dir: &TempDir,
    operation: &str,
    named: Option<Vec<String>>,
    edit: impl FnOnce(),
) -> Result<Value, Trouble> {
    let baseline = Baseline::take(dir.path(), named.as_deref().unwrap_or_default()).unwrap();
    edit();
    let before = Before::Known(Box::new(baseline));
    crate::perform(&Request { before, named, ..request(operation, dir, json!({}), json!({})) })
}

fn write(dir: &TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn commit(dir: &TempDir) -> String {
    git(dir, BEFORE_S, &["init", "-q"]);
    git(dir, BEFORE_S, &["add", "-A"]);
    git(dir, BEFORE_S, &["commit", "-q", "-m", "start"]);
    crate::git::git(dir.path(), &["rev-parse", "HEAD"]).unwrap().trim().to_string()
}

// covers: P4, R6
#[test]
fn tests_that_were_removed_or_switched_off_are_not_a_pass() {
    let dir = python(true);
    let start = commit(&dir);
    for operation in ["test.run", "test.regression"] {
        let check = || {
            let before = Before::Commit(start.clone());
            crate::perform(&Request { before, ..request(operation, &dir, json!({}), json!({})) })
        };
        failed(check());
        let path = dir.path().join("tests/test_cart.py");
        let text = std::fs::read_to_string(&path).unwrap();
        let off = text.replace("    def test_total", "    @unittest.skip('later')\n    def test_total");
        std::fs::write(&path, off).unwrap();
        let told = unknown(check());
        assert!(told.contains("1 test was removed or switched off since commit"), "{told}");
        assert!(told.contains("switched off in `tests/test_cart.py`"), "{told}");
        std::fs::remove_file(&path).unwrap();
        let told = unknown(check());
        assert!(told.contains("removed or switched off since commit"), "{told}");
        std::fs::write(&path, text).unwrap();
    }
    // A commit hides nothing, and what is not known is not a pass.
    std::fs::remove_file(dir.path().join("tests/test_cart.py")).unwrap();
    git(&dir, BEFORE_S, &["add", "-A"]);
    git(&dir, BEFORE_S + 100, &["commit", "-q", "-m", "clean up"]);
    for (before, why) in [
        (Before::Commit(start), "removed or switched off since commit"),
        (Before::Commit("0".repeat(40)), "It is not known which tests there were"),
        (Before::Lost, "It is not known which tests there were"),
    ] {
        let asked = Request { before, ..request("test.run", &dir, json!({}), json!({})) };
        let told = unknown(crate::perform(&asked));
        assert!(told.contains(why), "{told}");
    }
}

// covers: P4, R6
#[test]
fn tests_that_are_no_longer_loaded_are_missed() {
    let edits: [Edit; 3] = [
        &|dir, text| {
            std::fs::remove_file(dir.path().join("tests/test_cart.py")).unwrap();
            write(dir, "tests/cart_cases.py", text);
        },
        &|dir, text| write(dir, "tests/test_cart.py", &format!("\"\"\"\n{text}\"\"\"\n")),
        &|dir, text| write(dir, "tests/test_cart.py", &text.replace("(unittest.TestCase)", "(object)")),
    ];
    for edit in edits {
        let dir = python(true);
        let text = std::fs::read_to_string(dir.path().join("tests/test_cart.py")).unwrap();
        let told = unknown(after(&dir, "test.run", None, || edit(&dir, &text)));
        assert!(told.contains("removed or switched off since the run began"), "{told}");
    }
}

// covers: P4, R6
#[test]
fn a_command_that_is_not_what_it_was_is_not_a_pass() {
    let ok = "echo '1 passing'";
    let cases: [Case; 5] = [
        (
            &[("Makefile", "test:\n\t@./all.sh\n"), ("all.sh", "exit 1\n")],
            "Makefile",
            "test:\n\t@echo 1 passing\n",
            "What `make test` does was changed since the run began: `Makefile`.",
        ),
        (
            &[("Makefile", "test:\n\t@sh all.sh\n"), ("all.sh", "exit 1\n")],
            "all.sh",
            ok,
            "What `make test` does was changed since the run began: `all.sh`.",
        ),
        (
            &[("Makefile", "include a.mk\ntest:\n\t@$(T)\n"), ("a.mk", "T = false\n")],
            "a.mk",
            "T = echo 1 passing\n",
            "What `make test` does was changed since the run began: `a.mk`.",
        ),
        (
            &[("test.sh", "#!/bin/sh\nexit 1\n")],
            "test.sh",
            "#!/bin/sh\necho 1 passing\n",
            "What `./test.sh` does was changed since the run began: `test.sh`.",
        ),
        (
            &[("package.json", "{\"scripts\": {\"test\": \"npm run unit\", \"unit\": \"exit 1\"}}")],
            "package.json",
            "{\"scripts\": {\"test\": \"npm run unit\", \"unit\": \"echo 1 passing\"}}",
            "What `npm test` does was changed since the run began: `package.json`.",
        ),
    ];
    for (files, path, text, why) in cases {
        let dir = project(files);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::read_dir(dir.path()).unwrap().flatten().for_each(|entry| {
            std::fs::set_permissions(entry.path(), Clone::clone(&mode)).unwrap();
        });
        let told = unknown(after(&dir, "test.run", None, || write(&dir, path, text)));
        assert!(told.contains(why), "{told}");
    }
}

// covers: P4, R6
#[test]
fn commands_that_were_known_are_still_run() {
    // A wrapper that is new hides nothing.
    let dir = python(true);
    let wrapper = "test:\n\t@python3 -m unittest tests.test_stock\n";
    failed(after(&dir, "test.run", None, || write(&dir, "Makefile", wrapper)));
    // One that is gone is missed.
    let dir = python(false);
    write(&dir, "Makefile", "test:\n\t@false\n");
    let told =
        unknown(after(&dir, "test.run", None, || std::fs::remove_file(dir.path().join("Makefile")).unwrap()));
    assert!(told.contains("`make test` (`Makefile`) is gone since the run began."), "{told}");
    // Another interpreter is another command.
    let dir = python(true);
    let told = unknown(after(&dir, "test.run", None, || {
        write(&dir, ".venv/bin/python", "#!/bin/sh\necho 'Ran 2 tests in 0.1s'\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(dir.path().join(".venv/bin/python"), mode).unwrap();
    }));
    assert!(
        told.contains("has become `.venv/bin/python -m unittest discover` since the run began."),
        "{told}"
    );
    // More of the same is fine.
    let dir = python(false);
    let test = std::fs::read_to_string(dir.path().join("tests/test_cart.py")).unwrap();
    let added = test.replace("CartTest", "MoreTest").replace("test_total", "test_more");
    passed(after(&dir, "test.run", None, || write(&dir, "unit/more_test.py", &added)));
    let dir = project(&[("Makefile", "test:\n\t@echo 1 passing\n"), ("src/a.c", "")]);
    passed(after(&dir, "test.run", None, || write(&dir, "src/a.c", "int x;\n")));
}

// covers: P4, R6
#[test]
fn what_a_named_command_runs_is_compared_as_well() {
    for (line, files, path, text) in [
        ("make test", vec![("Makefile", "test:\n\t@false\n")], "Makefile", "test:\n\t@true\n"),
        ("sh run.sh", vec![("run.sh", "exit 1\n")], "run.sh", "exit 0\n"),
        ("cd web && sh run.sh", vec![("web/run.sh", "exit 1\n")], "web/run.sh", "exit 0\n"),
    ] {
        let dir = project(&files);
        let told = unknown(after(&dir, "test.run", Some(vec![line.into()]), || write(&dir, path, text)));
        assert!(
            told.contains(&format!("What `{line}` does was changed since the run began: `{path}`.")),
            "{told}"
        );
        let dir = project(&files);
        let told = unknown(after(&dir, "build.verify", Some(vec![line.into()]), || write(&dir, path, text)));
        assert!(told.contains("since the run began"), "{told}");
        let dir = project(&[files[0], ("other.txt", "x")]);
        failed(after(&dir, "test.run", Some(vec![line.into()]), || write(&dir, "other.txt", "y")));
    }
}

// covers: P4, R6
#[test]
fn another_change_of_a_person_does_not_excuse_that_of_a_run() {
    let all = "test:\n\t@echo 2 passing\n";
    let files = [("Makefile", all), ("cases/a.py", "def test_a(): pass\ndef test_b(): pass\n")];
    let dir = project(&files);
    let take = || Baseline::take(dir.path(), &[]).unwrap();
    let check = |own: &Baseline| {
        let before = Before::Known(Box::new(own.clone()));
        crate::perform(&Request { before, ..request("test.run", &dir, json!({}), json!({})) })
    };
    let restore = || files.iter().for_each(|(path, text)| write(&dir, path, text));
    // The run narrows the recipe and removes a test; the person adds a line and a test beside them.
    for (path, by_run, by_person, why) in [
        ("Makefile", "test:\n\t@echo 1 passing\n", "test:\n\t@echo 1 passing\n# x\n", "`Makefile`"),
        ("cases/a.py", "def test_a(): pass\n", "def test_a(): pass\ndef test_c(): pass\n", "`test_b`"),
    ] {
        let mut own = take();
        write(&dir, path, by_run);
        let left = take();
        write(&dir, path, by_person);
        own.follow(&left, &take(), &[]);
        let told = unknown(check(&own));
        assert!(told.contains(why), "{told}");
        restore();
    }
    // What another run changed is not a person's change.
    let (began, left) = (take(), take());
    write(&dir, "Makefile", "test:\n\t@echo 1 passing\n");
    write(&dir, "cases/a.py", "def test_a(): pass\n");
    let followed = |others: &[Stretch]| {
        let mut own = began.clone();
        own.follow(&left, &take(), others);
        check(&own)
    };
    passed(followed(&[]));
    let told = unknown(followed(&[Stretch { began: &began, left: &take() }]));
    assert!(told.contains("`Makefile`"), "{told}");
    write(&dir, "Makefile", all);
    let told = unknown(followed(&[Stretch { began: &began, left: &take() }]));
    assert!(told.contains("`test_b`"), "{told}");
}

// covers: P4, R6
#[test]
fn what_a_person_changed_while_the_run_stood_still_is_taken_over() {
    let dir = project(&[
        ("Makefile", "test:\n\t@echo 1 passing\n"),
        ("a.sh", "x"),
        ("cases/a.py", "def test_a(): pass\n"),
    ]);
    let take = || Baseline::take(dir.path(), &["sh a.sh".to_string()]).unwrap();
    let mut own = take();
    write(&dir, "a.sh", "by the run");
    let left = take();
    write(&dir, "Makefile", "test:\n\t@echo 2 passing\n");
    write(&dir, "cases/a.py", "");
    own.follow(&left, &take(), &[]);
    let check = |named: Option<Vec<String>>| {
        let before = Before::Known(Box::new(own.clone()));
        crate::perform(&Request { before, named, ..request("test.run", &dir, json!({}), json!({})) })
    };
    passed(check(None));
    let told = unknown(check(Some(vec!["sh a.sh".into()])));
    assert!(told.contains("`a.sh`"), "{told}");
}
