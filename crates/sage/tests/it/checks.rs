//! A red project never ends green: the built-in templates with their default settings, an agent that does nothing, one
//! that lies, and what a person can do when a check could not be made.

use serde_json::{Value, json};

use crate::dsl::{Sage, git};
use crate::examples::copy_named;

mod chosen;
mod lost;
mod shown;
mod stale;
mod verdict;
mod weakened;

const GREEN: &str = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n";

/// A module and a test of it that passes or not.
fn python(green: bool) -> Sage {
    let sage = Sage::new();
    sage.write("cart.py", "def total(a, b):\n    return a + b\n");
    let sum = if green { 3 } else { 4 };
    sage.write(
        "test_cart.py",
        format!(
            "import unittest\nimport cart\n\n\nclass CartTest(unittest.TestCase):\n    def test_total(self):\n        \
             self.assertEqual(cart.total(1, 2), {sum})\n"
        ),
    );
    sage
}

/// Puts a scripted agent in the place of an operation.
fn scripted(sage: &Sage, operation: &str, turn: Value) {
    let text = format!("---\nagent: fake\nretry: 1\nparams: {{ script: [{turn}] }}\n---\n");
    sage.write(&format!(".sage/operations/{operation}.md"), text);
}

/// Says that all is done.
fn done(write: Value) -> Value {
    let result = json!({"summary": "all done", "filesChanged": ["cart.py"], "done": [], "open": [],
        "tests": {"ran": true, "passed": true}});
    json!({"write": write, "result": result})
}

fn result(sage: &Sage, feature: &str, step: &str) -> Value {
    let told = sage.args(["result", feature, step]).run().exit(0);
    serde_json::from_str(&told.stdout).unwrap()
}

/// The critique of `delivery` lets everything pass.
fn approved(sage: &Sage) {
    scripted(sage, "critique", json!({"result": {"verdict": "APPROVED", "summary": "fine", "issues": []}}));
}

fn reasons(sage: &Sage, feature: &str) -> String {
    sage.status(feature)["reasons"].to_string()
}

// covers: P4, R6
#[test]
fn bugfix_on_red_tests_fails_and_is_no_skill() {
    let sage = copy_named("shop");
    let path = sage.path("tests/test_shop.py");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("\n\nclass Red(unittest.TestCase):\n    def test_red(self):\n        self.fail('red')\n");
    std::fs::write(&path, text).unwrap();
    let told = sage.sage("run red -t bugfix").exit(1);
    told.stdout_has("validation/tests failed").stdout_has("test_red");
    assert_eq!(sage.state_of("red", "validation/tests"), "failed");
    sage.sage("skills save red").exit(2).stderr_has("is failed");
}

// covers: P4
#[test]
fn delivery_with_a_failing_build_stops_before_qa() {
    let sage = python(true);
    approved(&sage);
    sage.write("Makefile", "build:\n\t@echo 'cart.c:3:1: error: no' >&2; exit 2\n");
    sage.sage("run x -t delivery").exit(1).stdout_has("build/backend failed");
    assert_eq!(sage.state_of("x", "qa/backend"), "blocked");
    assert_eq!(sage.state_of("x", "build/frontend"), "skipped", "there is no frontend");
    // Builds, and its tests are red.
    let sage = python(false);
    approved(&sage);
    sage.sage("run x -t delivery").exit(1).stdout_has("qa/backend-tests failed");
    assert_eq!(sage.state_of("x", "build/backend"), "succeeded");
    assert_eq!(sage.state_of("x", "documentation/document"), "blocked");
}

// covers: P4, R6
#[test]
fn a_check_without_a_command_waits_for_a_person_who_names_it() {
    let sage = Sage::new();
    sage.write("notes.txt", "x");
    let told = sage.sage("run x -t bugfix").exit(4);
    let told = told.stdout_has("validation/tests unknown: No test command was found.");
    let told = told.stdout_has("paused after").stdout_has("a check could not be made");
    told.stdout_has("[checks] test = \"<command>\"").stdout_has("next: sage resume x");
    assert_eq!(sage.state_of("x", "validation/tests"), "unknown");
    assert!(
        reasons(&sage, "x").contains("validation/tests is unknown: No test command"),
        "{}",
        reasons(&sage, "x")
    );
    sage.sage("skills save x").exit(2).stderr_has("is paused");
    sage.sage("inbox").exit(0).stdout_has("validation/tests").stdout_has("Go on without this check?");
    // Nothing was named: the same again.
    sage.sage("resume x -q").exit(4);
    sage.write("sage.toml", "[checks]\ntest = \"false\"\n");
    sage.sage("resume x -q").exit(1);
    sage.write("sage.toml", "[checks]\ntest = \"true\"\n");
    let told = sage.sage("resume x").exit(3).stdout_has("nothing was implemented");
    assert!(!told.stdout.contains("analysis/code started"), "finished steps are kept: {}", told.stdout);
    assert_eq!(result(&sage, "x", "validation/tests")["passed"], true);
    sage.sage("skills save x").exit(2).stderr_has("is degraded");
}

// covers: P4, R6
#[test]
fn a_person_goes_on_without_a_check_or_ends_the_run() {
    let sage = Sage::new();
    scripted(&sage, "implement.fix", done(json!({"cart.py": "x = 1\n"})));
    sage.sage("run x -t bugfix -q").exit(4);
    sage.sage("approve x validation/tests -m none-here").exit(0);
    sage.sage("approve x validation/regression").exit(0);
    let told = sage.sage("resume x").exit(3);
    told.stdout_has("degraded, after").stdout_has("validation/tests was not checked");
    let summary = sage.sage("resume x --json").exit(3).json_lines().pop().unwrap();
    assert_eq!(summary["verdict"], "degraded");
    assert!(summary["reasons"].to_string().contains("validation/tests was not checked"), "{summary}");
    assert_eq!(
        result(&sage, "x", "validation/tests")["passed"],
        Value::Null,
        "it still does not say that it passed"
    );
    sage.sage("skills save x").exit(2).stderr_has("is degraded");

    sage.sage("run y -t bugfix -q").exit(4);
    sage.sage("reject y validation/tests -m untested").exit(0);
    sage.sage("approve y validation/regression").exit(0);
    sage.sage("resume y -q").exit(1);
    assert_eq!(sage.state_of("y", "validation/tests"), "failed");
}

// covers: P4
#[test]
fn a_project_can_say_that_it_has_nothing_to_build() {
    let sage = python(true);
    approved(&sage);
    sage.write("sage.toml", "[checks]\nbuild = false\n");
    for name in ["implement.backend", "implement.frontend"] {
        scripted(&sage, name, done(json!({"cart.py": "def total(a, b):\n    return b + a\n"})));
    }
    sage.sage("run x -t delivery -q").exit(0);
    assert_eq!(sage.state_of("x", "build/backend"), "skipped");
    assert_eq!(sage.state_of("x", "qa/backend-tests"), "succeeded");
    sage.sage("skills save x").exit(0);
    sage.sage("config").exit(0).stdout_has("checks.build");
    // Only switched off: nothing was shown to work.
    sage.write("sage.toml", "[checks]\nbuild = false\ntest = false\n");
    sage.write("cart.py", "x = 1\n");
    sage.sage("run y -t delivery -q").exit(0);
    sage.sage("skills save y").exit(2).stderr_has("whose checks ran and passed");
    sage.write("sage.toml", "[checks]\nbuild = true\n");
    sage.sage("run z -t delivery").exit(2).stderr_has("`checks.build`: `true` is not a command");
}

// covers: P4
#[test]
fn what_could_not_be_run_or_found_nothing_is_unknown() {
    let commands =
        ["no-such-program-x", "sh -c no-such-program-x", "echo 'Ran 0 tests in 0.1s'", "kill -9 $$"];
    for command in commands {
        let sage = Sage::new();
        sage.write("sage.toml", format!("[checks]\ntest = {}\n", json!(command)));
        sage.sage("run x -t bugfix -q").exit(4);
        assert_eq!(sage.state_of("x", "validation/tests"), "unknown", "{command}");
    }
    // Two languages, and a command for one of them.
    let sage = python(true);
    sage.write("web/package.json", "{}");
    sage.write("web/cart.test.ts", "");
    let told = sage.sage("run x -t bugfix").exit(4);
    told.stdout_has("No command is known that runs the JavaScript tests in `web/cart.test.ts`.");
}

// covers: P4
#[test]
fn tests_of_every_layout_are_found() {
    // A plain folder, another name, and functions that unittest does not see.
    let red =
        "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.fail('red')\n";
    for path in ["tests/test_x.py", "x_test.py", "unit/deep/x_test.py"] {
        let sage = python(true);
        sage.write(path, red);
        sage.sage("run x -t bugfix -q").exit(1);
    }
    let sage = python(true);
    sage.write("tests/test_plain.py", "def test_red():\n    assert False\n");
    let done = sage.sage("run x -t bugfix -q");
    assert_ne!(
        sage.state_of("x", "validation/tests"),
        "succeeded",
        "with or without pytest: {}",
        done.stdout
    );
}

// covers: R6, P4
#[test]
fn an_agent_that_changes_nothing_is_no_plain_success() {
    let sage = python(true);
    for name in ["implement", "implement.fix"] {
        scripted(&sage, name, done(json!({})));
    }
    for template in ["feature", "bugfix", "enhancement"] {
        let told = sage.sage(&format!("run {template} -t {template} --no-cache")).exit(3);
        told.stdout_has("nothing was implemented").stdout_has("changed no file");
        let status = sage.status(template);
        assert_eq!(
            (&status["verdict"], &status["reasons"]),
            (&json!("degraded"), &json!(["no file was changed"]))
        );
    }
    assert_eq!(sage.state_of("feature", "implementation/tests"), "skipped");
}

// covers: R6, P4
#[test]
fn an_agent_that_says_done_is_tested() {
    for template in ["feature", "enhancement"] {
        let sage = python(true);
        scripted(&sage, "implement", done(json!({"cart.py": "def total(a, b):\n    return a - b\n"})));
        sage.sage(&format!("run x -t {template}")).exit(1).stdout_has("implementation/tests failed");
        assert_eq!(sage.state_of("x", "implementation/tickets"), "blocked", "nothing is done");
        scripted(&sage, "implement", done(json!({"cart.py": "def total(a, b):\n    return b + a\n"})));
        sage.sage(&format!("run y -t {template} -q")).exit(0);
        assert_eq!(result(&sage, "y", "implementation/tests")["passed"], true);
        sage.sage("skills save y").exit(0);
    }
}

// covers: R6, P4
#[test]
fn tests_that_an_agent_removes_or_makes_harmless_do_not_pass() {
    for run in ["rm test_cart.py", "git rm -q test_cart.py; git commit -qm x", "echo > test_cart.py"] {
        let sage = python(false);
        sage.write(
            "test_other.py",
            "import unittest\n\n\nclass O(unittest.TestCase):\n    def test_o(self):\n        pass\n",
        );
        git(&sage, &["init", "-q"]);
        git(&sage, &["config", "user.name", "u"]);
        git(&sage, &["config", "user.email", "u@h"]);
        git(&sage, &["add", "-A"]);
        // Before the run by more than the second that git counts in.
        let settings = ["commit", "-q", "-m", "start", "--date=@1780000000"];
        let mut command = std::process::Command::new("git");
        command.args(settings).current_dir(sage.root()).env("GIT_COMMITTER_DATE", "@1780000000 +0000");
        assert!(command.status().unwrap().success());
        let mut turn = done(json!({}));
        turn["run"] = json!(run);
        scripted(&sage, "implement.fix", turn);
        let told = sage.sage("run x -t bugfix").exit(4);
        told.stdout_has(
            "1 test was removed or switched off since the run began: `test_total` in `test_cart.py`",
        );
        assert_eq!(sage.state_of("x", "validation/tests"), "unknown", "{run}");
    }
}

/// A run of `bugfix` whose implementer runs this command.
fn fixed_by(sage: &Sage, run: &str) {
    let mut turn = done(json!({}));
    turn["run"] = json!(run);
    scripted(sage, "implement.fix", turn);
}

// covers: R6, P4
#[test]
fn tests_that_were_never_committed_are_missed_as_well() {
    let removed = "removed or switched off since the run began";
    let dummy = "sed -i s/test_total/test_nothing/ test_cart.py; sed -i s/assertEqual.*/assertTrue\\(True\\)/ test_cart.py";
    let off =
        "sed -i 's/    def test_total/    @unittest.skipIf(True, 1)\\n    def test_total/' test_cart.py";
    for (repository, run) in [(false, dummy), (false, off), (true, "rm -rf .git test_cart.py")] {
        let sage = python(false);
        sage.write("test_other.py", GREEN);
        if repository {
            git(&sage, &["init", "-q"]);
        }
        fixed_by(&sage, run);
        sage.sage("run x -t bugfix").exit(4).stdout_has(removed);
        assert_eq!(sage.state_of("x", "validation/tests"), "unknown", "{run}");
    }
    // What is not known is not a pass.
    let sage = python(true);
    fixed_by(&sage, "echo x > a.txt; rm .sage/state/runs/*/baseline.json");
    sage.sage("run x -t bugfix").exit(4).stdout_has("It is not known which tests there were");
}

// covers: R6, P4
#[test]
fn an_agent_does_not_choose_the_command_that_judges_it() {
    for value in ["\"true\"", "false"] {
        let sage = python(false);
        fixed_by(&sage, &format!("echo '[checks]' >> sage.toml; echo 'test = {value}' >> sage.toml"));
        let told = sage.sage("run x -t bugfix").exit(4);
        told.stdout_has("[checks] of sage.toml changed while the run was under way");
        // Nobody has looked at it since.
        sage.sage("resume x -q").exit(4);
        sage.write("sage.toml", "");
        sage.sage("resume x").exit(1).stdout_has("validation/tests failed");
    }
}

// covers: R6
#[test]
fn a_file_that_is_only_touched_is_no_implementation() {
    let sage = python(true);
    fixed_by(&sage, "touch cart.py test_cart.py");
    sage.sage("run x -t bugfix").exit(3).stdout_has("nothing was implemented");
    fixed_by(&sage, "echo >> cart.py");
    sage.sage("run y -t bugfix -q").exit(0);
}

// covers: R4, P4
#[test]
fn a_check_that_passed_is_made_again_after_the_project_changed() {
    let text = "name: t\nphases:\n  - { id: p, operations: { id: tests, type: test.run } }\n  \
                - { id: q, dependencies: [p], operations: { id: ship, type: shell, params: { run: test -e shipped } } }\n";
    let sage = python(true).template("t", text);
    sage.sage("run x -t t -q").exit(1);
    let told = sage.sage("resume x").exit(1);
    assert!(!told.stdout.contains("p/tests started"), "nothing changed: {}", told.stdout);
    sage.write("cart.py", "def total(a, b):\n    return a - b\n");
    sage.write("shipped", "");
    let told = sage.sage("resume x").exit(1).stdout_has("p/tests failed");
    told.stderr_has("files of the project changed; these checks are made again: p/tests");
    sage.write("cart.py", "def total(a, b):\n    return b + a\n");
    sage.sage("resume x -q").exit(0);
}

// covers: R6
#[test]
fn an_agent_that_admits_red_tests_is_no_plain_success() {
    let sage = Sage::new();
    git(&sage, &["init", "-q"]);
    git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "--allow-empty", "-m", "x"]);
    let mut turn = done(json!({"a.txt": "x"}));
    turn["result"]["tests"] = json!({"ran": true, "passed": false});
    scripted(&sage, "swarm.implement", turn);
    let plan = json!({"document": "d", "summary": "s", "parts": [{"id": "a", "title": "a", "files": [], "tasks": []}]});
    scripted(&sage, "swarm.plan", json!({"result": plan}));
    sage.write("sage.toml", "[checks]\ntest = \"true\"\n");
    sage.sage("run x -t swarm").exit(3).stdout_has("implementation/implement[0] says that tests fail");
    sage.write("sage.toml", "");
    // One that says the opposite is tested where it worked.
    sage.write("test_a.py", GREEN);
    git(&sage, &["add", "test_a.py"]);
    git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "-m", "tests"]);
    scripted(&sage, "swarm.implement", done(json!({"test_a.py": GREEN.replace("pass", "self.fail('red')")})));
    sage.sage("run z -t swarm").exit(1).stdout_has("audit/tests[0] failed");
    assert_eq!(std::fs::read_to_string(sage.path("test_a.py")).unwrap(), GREEN, "the checkout is as it was");
    scripted(&sage, "swarm.implement", done(json!({"b.py": "x = 1\n"})));
    sage.sage("run w -t swarm -q").exit(0);
    // And one whose parts changed nothing.
    scripted(&sage, "swarm.implement", done(json!({})));
    sage.sage("run y -t swarm").exit(3).stdout_has("nothing was implemented");
}

// covers: P4
#[test]
fn a_check_of_ones_own_has_to_say_that_it_passed() {
    let verdicts = [
        (json!({"ran": true, "passed": true, "summary": "ok"}), 3, "succeeded"),
        (json!({"ran": true, "passed": false, "summary": "two are red"}), 1, "failed"),
        (json!({"ran": false, "passed": null, "summary": "no network"}), 4, "unknown"),
        (json!({"summary": "looks fine to me"}), 4, "unknown"),
        (json!({"ran": false, "passed": true, "summary": "ok"}), 4, "unknown"),
        (json!({"ran": true, "passed": true, "failures": ["a"], "summary": "ok"}), 4, "unknown"),
        (json!("all green"), 4, "unknown"),
    ];
    for (said, code, state) in verdicts {
        let sage = python(true);
        for name in ["test.run", "test.regression"] {
            scripted(&sage, name, json!({"result": said}));
        }
        sage.sage("run x -t bugfix -q").exit(code);
        assert_eq!(sage.state_of("x", "validation/tests"), state, "{said}");
    }
    // A command says it by its end.
    for (command, code) in [("true", 3), ("false", 1)] {
        let sage = Sage::new();
        for name in ["test.run", "test.regression"] {
            sage.write(&format!(".sage/operations/{name}.md"), format!("---\nkind: shell\n---\n{command}\n"));
        }
        sage.sage("run x -t bugfix -q").exit(code);
    }
}

// covers: P4
#[test]
fn a_check_is_made_again_after_an_edit() {
    let text = |message: &str| {
        format!(
            "name: t\nphases:\n  - id: p\n    operations: {{ id: make, type: shell, params: {{ run: '{message}' }} }}\n  \
             - {{ id: q, dependencies: [p], operations: {{ id: tests, type: test.run, params: {{ commands: ['test -e good'] }} }} }}\n"
        )
    };
    let sage = Sage::new().template("t", &text("touch good"));
    sage.sage("run x -t t -q").exit(0);
    let sage = sage.template("t", &text("rm -f good"));
    // Both commands print nothing: by what it was asked, the check would be the same.
    sage.sage("resume x -t t -q").exit(1);
}

// covers: P4, R21
#[test]
fn a_check_that_code_calls_waits_as_well() {
    let text = "export default async (sage) => { const done = await sage.run(\"test.run\"); return { passed: done.passed }; };\n";
    let sage = Sage::new().code("t", text);
    sage.sage("run x -t t -q").exit(4);
    sage.write("sage.toml", "[checks]\ntest = \"true\"\n");
    sage.sage("resume x -q").exit(0);
    assert_eq!(result(&sage, "x", "main/script")["passed"], true);
    sage.write("sage.toml", "");
    sage.sage("run y -t t -q").exit(4);
    sage.sage("approve y").exit(0);
    sage.sage("resume y -q").exit(3);
    assert_eq!(result(&sage, "y", "main/script")["passed"], Value::Null);
}
