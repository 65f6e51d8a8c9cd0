//! What a check needs so that it is a pass: a test that ran, the commands that were there, all tests in reach.

use super::*;

/// The scripted implementer of `bugfix` writes a note.
fn noted(sage: &Sage) {
    scripted(sage, "implement.fix", done(json!({"note.txt": "x"})));
}

// covers: P4, R6
#[test]
fn a_test_command_that_shows_no_test_waits_for_a_person_who_vouches_for_it() {
    let sage = Sage::new();
    sage.write("Makefile", "test:\n\t@echo \"no tests yet\"\n");
    noted(&sage);
    let told = sage.sage("run x -t bugfix").exit(4);
    told.stdout_has("its output shows no test that ran").stdout_has("[checks] test = \"make test\"");
    sage.write("sage.toml", "[checks]\ntest = \"make test\"\n");
    sage.sage("resume x -q").exit(0);
    // One that says itself that nothing ran is no test, whoever named it.
    sage.write("Makefile", "test:\n\t@echo '0 runs, 0 assertions, 0 failures, 0 errors, 0 skips'\n");
    sage.sage("run y -t bugfix -q").exit(4);
}

// covers: P4, R6
#[test]
fn usual_projects_are_asked_nothing() {
    let script = "#!/bin/sh\npython3 -m unittest discover\n";
    let files: [&[(&str, &str)]; 4] = [
        &[],
        &[(
            "Makefile",
            ".PHONY: test unit\ntest: unit ## all tests\nunit:\n\t@python3 -m unittest discover\n",
        )],
        &[("test.sh", script)],
        &[("pyproject.toml", "[project]\nname = \"x\"\n"), ("Makefile", "build:\n\t@true\n")],
    ];
    for files in files {
        let sage = python(true);
        for (path, text) in files {
            let path = sage.write(path, text);
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        // It adds a test of its own, in a folder that is new.
        let test = GREEN.replace("class A", "class Added").replace("test_a", "test_added");
        scripted(
            &sage,
            "implement.fix",
            done(json!({"cart.py": "def total(a, b):\n    return b + a\n", "unit/test_added.py": test})),
        );
        sage.sage("run x -t bugfix -q").exit(0);
        assert_eq!(result(&sage, "x", "validation/tests")["passed"], true, "{files:?}");
    }
}

// covers: P4, R6
#[test]
fn a_wrapper_that_only_mentions_a_tool_hides_no_red_test() {
    for recipe in
        ["@echo \"1 passing; please run pytest yourself\"", "@# unittest is broken\n\t@echo 1 passing"]
    {
        let sage = python(false);
        sage.write("Makefile", format!("test:\n\t{recipe}\n"));
        noted(&sage);
        sage.sage("run x -t bugfix").exit(1).stdout_has("validation/tests failed");
    }
}

// covers: P4
#[test]
fn tests_that_no_command_runs_are_named() {
    let sage = Sage::new();
    sage.write("package.json", "{\"scripts\": {\"test\": \"node --test unit/\"}}");
    sage.write("unit/a.test.js", "require('node:test')('a', () => {})\n");
    sage.write("integration/b.test.js", "require('node:test')('b', () => { throw 1 })\n");
    noted(&sage);
    let told = sage.sage("run x -t bugfix").exit(4);
    told.stdout_has("No command is known that runs the JavaScript tests in `integration/b.test.js`.");
}

// covers: P4, R6
#[test]
fn delivery_that_checked_nothing_is_no_plain_success() {
    let sage = Sage::new();
    approved(&sage);
    sage.write("README.md", "x");
    for name in ["implement.backend", "implement.frontend"] {
        scripted(&sage, name, done(json!({"notes.md": "x"})));
    }
    sage.sage("run x -t delivery").exit(3).stdout_has("no check ran");
    assert_eq!(sage.state_of("x", "qa/backend-tests"), "skipped");
    // A person who says that there is nothing to check has decided it.
    sage.write("sage.toml", "[checks]\nbuild = false\ntest = false\n");
    scripted(&sage, "implement.backend", done(json!({"more.md": "x"})));
    sage.sage("run y -t delivery -q").exit(0);
    // Scripts without an ending are code.
    let sage = Sage::new();
    approved(&sage);
    sage.write("bin/tool", "#!/bin/sh\nexit 1\n");
    for name in ["implement.backend", "implement.frontend"] {
        scripted(&sage, name, done(json!({"notes.md": "x"})));
    }
    sage.sage("run x -t delivery -q").exit(4);
    assert_eq!(sage.state_of("x", "build/backend"), "unknown");
}
