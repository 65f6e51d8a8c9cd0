//! Work without a person: the real Claude Code and the real Codex, driven by a scripted model, read, edit, test and
//! commit in a project with tests, and nobody is asked.

use sage_agents::fake_llm::{FakeLlm, Script};
use sage_core::event::Event;
use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, git, wait_until};
use crate::real_agents::project;

const SHOP: &str = "def total(prices):\n    return sum(prices) + 1\n";
const FIXED: &str = "def total(prices):\n    return sum(prices)\n";
const TEST: &str = "import unittest\nimport shop\n\n\nclass Total(unittest.TestCase):\n    def test_total(self):\n        \
                    self.assertEqual(shop.total([1, 2]), 3)\n";
const RUN_TESTS: &str = "python3 -m unittest 2>&1 | tail -5";
const COMMIT: &str = "git add -A && git commit -m \"$(cat <<'EOF'\nfix: the total is a sum (it's off by one)\n\nNo more $1.\nEOF\n)\"";

fn report() -> Value {
    let finding =
        json!({"title": "Off by one", "detail": "+ 1", "relevance": 0.9, "evidence": ["shop.py:2"]});
    json!({"summary": "It adds one.", "findings": [finding], "claims": [], "openQuestions": []})
}

fn work() -> Value {
    let tests = json!({"ran": true, "passed": true, "detail": "1 test"});
    json!({"summary": "Fixed.", "filesChanged": ["shop.py"], "done": ["fix"], "open": [], "tests": tests})
}

/// A shop whose total is wrong, in a repository of its own.
fn shop(model: &FakeLlm) -> Option<Sage> {
    let sage = project(model, "name: t\nphases: []\n")?;
    sage.write("shop.py", SHOP);
    sage.write("tests/__init__.py", "");
    sage.write("tests/test_shop.py", TEST);
    sage.write(".gitignore", ".sage\n__pycache__\n");
    git(&sage, &["init", "-q"]);
    git(&sage, &["config", "user.name", "me"]);
    git(&sage, &["config", "user.email", "me@localhost"]);
    git(&sage, &["add", "-A"]);
    git(&sage, &["commit", "-qm", "start"]);
    Some(sage)
}

fn bash(command: &str) -> Value {
    json!({"tool": {"name": "Bash", "input": {"command": command, "description": "work"}}})
}

/// What Claude Code does: an analyst looks around, the others answer at once, the implementer goes through `turns`.
fn claude_script(turns: &[Value]) -> Value {
    let answer = |with: Value| json!({"tool": {"name": "StructuredOutput", "input": with}});
    let mut look = bash("git log --oneline -3; grep -rn 'def ' . --include='*.py' | head -5; echo LOOKED");
    look["match"] = json!("Find the code that can cause this bug");
    look["times"] = json!(1);
    let mut script = vec![look];
    for needle in ["LOOKED", "two sentences"] {
        let mut turn = answer(report());
        turn["match"] = json!(needle);
        script.push(turn);
    }
    script.extend(turns.iter().cloned());
    script.push(answer(work()));
    Value::Array(script)
}

fn edits(sage_root: &str) -> [Value; 2] {
    let file = format!("{sage_root}/shop.py");
    [
        json!({"tool": {"name": "Read", "input": {"file_path": file}}}),
        json!({"tool": {"name": "Edit", "input": {"file_path": file, "old_string": "sum(prices) + 1", "new_string": "sum(prices)"}}}),
    ]
}

/// How many questions were put to people, and how many rules answered.
fn questions(sage: &Sage) -> (usize, usize) {
    let journal = sage.journal("x");
    let count =
        |wanted: fn(&Event) -> bool| journal.records.iter().filter(|entry| wanted(&entry.event)).count();
    (
        count(|event| matches!(event, Event::StepAsked(_))),
        count(|event| matches!(event, Event::StepPermitted(_))),
    )
}

fn is_fixed(sage: &Sage) {
    assert_eq!(std::fs::read_to_string(sage.path("shop.py")).unwrap(), FIXED);
    let log = git(sage, &["log", "-1", "--format=%B"]);
    assert_eq!(log, "fix: the total is a sum (it's off by one)\n\nNo more $1.");
    assert_eq!(git(sage, &["status", "--short"]), "", "all of it is committed");
}

// covers: S1, S4, P3
#[test]
fn claude_fixes_a_bug_tests_and_commits_without_a_question() {
    // The script needs the project's path, which is only known after the endpoint's address.
    let model = FakeLlm::start(json!([])).unwrap();
    let Some(sage) = shop(&model) else { return };
    let mut turns = edits(&sage.root().display().to_string()).to_vec();
    turns.extend([bash("ls -la && git status --short"), bash(RUN_TESTS), bash(COMMIT)]);
    model.reset(Script::read(&claude_script(&turns)).unwrap());
    sage.args(["run", "x", "-t", "bugfix", "--agent", "claude", "--quiet"]).run().exit(0);
    let (asked, answered) = questions(&sage);
    assert_eq!(asked, 0, "{}", sage.sage("logs x").exit(0).stdout);
    assert!(answered >= 5, "every command went through the rules, but only {answered} did");
    is_fixed(&sage);
    let said = model.prompts().iter().map(Value::to_string).collect::<String>();
    assert!(said.contains("Ran 1 test"), "the tests ran: {said}");
    sage.assert_nothing_alive();
}

// covers: S1, S4, P3
#[test]
fn codex_fixes_a_bug_tests_and_commits_without_a_question() {
    let run = |cmd: &str, times: u32| json!({"match": "Fix this bug", "times": times, "tool": {"name": "exec_command", "input": {"cmd": cmd}}});
    let script = json!([
        {"match": "two sentences", "text": report().to_string()},
        run("cat shop.py && git status --short", 1),
        run("cat > shop.py <<'EOF'\ndef total(prices):\n    return sum(prices)\nEOF", 1),
        run(RUN_TESTS, 1),
        run(COMMIT, 1),
        run("echo evil >> .git/config; echo evil > .git/hooks/pre-commit; cat .git/config | tail -1", 1),
        {"text": work().to_string()},
    ]);
    let model = FakeLlm::start(script).unwrap();
    let Some(sage) = shop(&model) else { return };
    sage.args(["run", "x", "-t", "bugfix", "--agent", "codex", "--quiet"]).run().exit(0);
    assert_eq!(questions(&sage).0, 0);
    is_fixed(&sage);
    // What makes git run programs is still closed.
    assert!(!std::fs::read_to_string(sage.path(".git/config")).unwrap().contains("evil"));
    assert!(!sage.path(".git/hooks/pre-commit").exists());
    sage.assert_nothing_alive();
}

/// The same work, with a file change that only `edits` allows and a command that it does not.
// covers: P3, R17
#[test]
fn with_edits_allowed_claude_asks_for_other_commands_only() {
    let model = FakeLlm::start(json!([])).unwrap();
    let Some(sage) = shop(&model) else { return };
    let mut turns = edits(&sage.root().display().to_string()).to_vec();
    let others =
        ["mkdir -p build && echo x > build/a && rm -r build", RUN_TESTS, "python3 -c 'print(6 * 7)'", COMMIT];
    turns.extend(others.map(bash));
    model.reset(Script::read(&claude_script(&turns)).unwrap());
    let run = sage.spawn("run x -t bugfix --agent claude --quiet --allow edits");
    wait_until(|| sage.engine().latest("x").is_some() && questions(&sage).0 > 0, DEADLINE, "the question");
    let inbox = sage.sage("inbox --json").exit(0).json();
    let open = inbox["questions"].as_array().unwrap();
    assert_eq!(open.len(), 1, "{inbox:#}");
    assert_eq!(open[0]["message"], "may it use Bash: python3 -c 'print(6 * 7)'?");
    assert_eq!(open[0]["why"], "`python3` is not known to be harmless");
    assert!(open[0]["rule"].is_null(), "a pattern would allow everything that Python can do: {inbox:#}");
    sage.sage("approve x").exit(0);
    run.end().exit(0);
    assert_eq!(questions(&sage).0, 1, "nothing else was asked");
    is_fixed(&sage);
    sage.assert_nothing_alive();
}

/// Nobody is there: the model is told why, and goes on another way.
// covers: P3
#[test]
fn a_denied_command_tells_the_model_what_it_may_do() {
    let model = FakeLlm::start(json!([])).unwrap();
    let Some(sage) = shop(&model) else { return };
    let mut turns = edits(&sage.root().display().to_string()).to_vec();
    turns.extend([bash("pip install left-pad"), bash(RUN_TESTS), bash(COMMIT)]);
    model.reset(Script::read(&claude_script(&turns)).unwrap());
    sage.args(["run", "x", "-t", "bugfix", "--agent", "claude", "--quiet", "--yes"]).run().exit(0);
    is_fixed(&sage);
    let said = model.prompts().iter().map(Value::to_string).collect::<String>();
    for part in ["`pip` is not known to be harmless", "Without a person you can", "python3 -m unittest"] {
        assert!(said.contains(part), "{part}");
    }
    sage.assert_nothing_alive();
}

/// `cd` lasts for one command, so that what is relative means the same to the rules and to the shell.
// covers: R17
#[test]
fn every_command_of_claude_begins_in_the_project() {
    let model = FakeLlm::start(json!([])).unwrap();
    let Some(sage) = shop(&model) else { return };
    let turns = [bash("cd tests && ls"), bash("echo x > here.txt"), bash("pwd")];
    model.reset(Script::read(&claude_script(&turns)).unwrap());
    sage.args(["run", "x", "-t", "bugfix", "--agent", "claude", "--quiet", "--yes"]).run();
    assert!(sage.path("here.txt").exists() && !sage.path("tests/here.txt").exists());
}

/// Implementers in worktrees of their own run the tests there.
// covers: S1, P3
#[test]
fn implementers_in_worktrees_test_without_a_question() {
    let answer = |with: Value| json!({"tool": {"name": "StructuredOutput", "input": with}});
    let matched = |mut turn: Value, needle: &str| {
        turn["match"] = json!(needle);
        turn
    };
    let task = json!({"id": "T1", "title": "Sum", "detail": "x", "files": ["shop.py"], "dependsOn": [], "acceptance": [], "priority": "P1"});
    let part = |n: u32| json!({"id": format!("part-{n}"), "title": format!("Part {n}"), "files": ["shop.py"], "tasks": [task]});
    let plan = json!({"summary": "Two parts.", "document": "# Plan\n", "parts": [part(1), part(2)]});
    let fix = format!("cat > shop.py <<'EOF'\n{FIXED}EOF\n{RUN_TESTS}; echo TESTED");
    let script = json!([
        matched(answer(report()), "two sentences"),
        matched(bash(&fix), "You are one of several implementers"),
        matched(answer(work()), "TESTED"),
        matched(answer(work()), "Clean up after"),
        answer(plan),
    ]);
    let model = FakeLlm::start(script).unwrap();
    let Some(sage) = shop(&model) else { return };
    let ran = sage.args(["run", "x", "-t", "swarm", "--agent", "claude", "--quiet"]).run();
    assert_eq!(questions(&sage).0, 0, "{}", ran.stdout);
    let branches = git(&sage, &["for-each-ref", "--format=%(refname:short)", "refs/heads/sage"]);
    assert_eq!(branches.lines().count(), 2, "{branches}");
    for branch in branches.lines() {
        assert_eq!(git(&sage, &["show", &format!("{branch}:shop.py")]), FIXED.trim_end());
    }
    sage.assert_nothing_alive();
}
