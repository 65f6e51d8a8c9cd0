//! `expect`: what must be true after a step, whatever its program or agent says.

use crate::dsl::{DEADLINE, Sage, git, wait_until};

fn template(fields: &str, run: &str) -> String {
    format!(
        "name: t\nphases:\n  - id: p\n    operations:\n      id: x\n      type: shell\n      {fields}\n      params:\n        run: |\n          {run}\n"
    )
}

fn repository() -> Sage {
    let sage = Sage::new();
    git(&sage, &["init", "-q", "-b", "main"]);
    git(&sage, &["config", "user.name", "u"]);
    git(&sage, &["config", "user.email", "u@h"]);
    sage
}

fn commit(sage: &Sage) {
    git(sage, &["commit", "-q", "--allow-empty", "-m", "x"]);
}

const MOVED: &str = "expect: { headMoved: true }";

// covers: R6
#[test]
fn head_has_to_move() {
    let runs = [
        ("true", 1, "expected a new commit, but there is none: HEAD is at "),
        ("git commit -q --allow-empty -m new", 0, ""),
        ("git commit -q --allow-empty --amend -m other", 0, ""),
        ("git commit -q --allow-empty -m gone && git reset -q --hard HEAD~1", 1, "HEAD is at "),
        ("git reset -q --hard HEAD~1", 1, "HEAD is at "),
    ];
    for (run, code, why) in runs {
        let sage = repository().template("t", &template(MOVED, run));
        commit(&sage);
        commit(&sage);
        sage.sage("run x -t t").exit(code).stdout_has(why);
    }
}

// covers: R6
#[test]
fn a_commit_that_was_there_before_is_not_new() {
    for run in ["git checkout -q other", "git merge -q --ff-only other", "git reset -q --hard old"] {
        let sage = repository().template("t", &template(MOVED, run));
        commit(&sage);
        git(&sage, &["checkout", "-q", "-b", "other"]);
        commit(&sage);
        git(&sage, &["tag", "old"]);
        git(&sage, &["checkout", "-q", "main"]);
        sage.sage("run x -t t").exit(1).stdout_has("expected a new commit, but there is none: HEAD is at ");
    }
}

// covers: R6
#[test]
fn the_first_commit_of_a_repository_moves_head() {
    let runs = [
        (true, "git commit -q --allow-empty -m first", 0, ""),
        (true, "true", 1, "expected a new commit, but the repository has no commit"),
        (
            false,
            "git init -q && git -c user.name=u -c user.email=u@h commit -q --allow-empty -m first",
            0,
            "",
        ),
        (false, "true", 1, "expected a new commit, but the step did not work in a git repository"),
    ];
    for (made, run, code, why) in runs {
        let sage = if made { repository() } else { Sage::new() };
        let sage = sage.template("t", &template(MOVED, run));
        sage.sage("run x -t t").exit(code).stdout_has(why);
    }
}

// covers: R6, S6
#[test]
fn in_a_worktree_the_steps_own_branch_has_to_move() {
    let isolated = "isolation: worktree\n      expect: { headMoved: true }";
    let runs = [
        ("true", 1, "HEAD is at "),
        ("git commit -q --allow-empty -m own", 0, ""),
        // What it leaves is committed.
        ("echo x > x.txt", 0, ""),
    ];
    for (run, code, why) in runs {
        let sage = repository().template("t", &template(isolated, run));
        commit(&sage);
        let before = git(&sage, &["rev-parse", "main"]);
        sage.sage("run x -t t").exit(code).stdout_has(why);
        assert_eq!(git(&sage, &["rev-parse", "main"]), before);
    }
}

// covers: R6, R5
#[test]
fn what_an_attempt_did_before_it_was_killed_counts() {
    let run = "test -e .git/done && exit 0; git commit -q --allow-empty -m new; touch .git/done; sleep 300";
    let sage = repository().template("t", &template(MOVED, run));
    commit(&sage);
    let running = sage.spawn("run x -t t -q");
    wait_until(|| sage.path(".git/done").exists(), DEADLINE, "the commit");
    running.kill();
    wait_until(|| sage.alive().is_empty(), DEADLINE, "the killed run's processes");
    sage.sage("resume x -q").exit(0);
    // Asked to run again, it has to commit again.
    sage.sage("resume x --from p/x").exit(1).stdout_has("HEAD is at ");
}

// covers: R6
#[test]
fn files_have_to_change() {
    let runs = [
        ("expect: { changes: true }", "true", 1, "expected a changed file, but no file changed"),
        ("expect: { changes: true }", "echo x > a.txt", 0, ""),
        (
            "expect: { changes: true }",
            "echo x > .git/x; mkdir -p .sage/x; echo x > .sage/x/y",
            1,
            "no file changed",
        ),
        ("expect: { changes: false }", "true", 0, ""),
        ("role: implementer", "true", 3, "nothing was implemented"),
        ("role: implementer\n      expect: { changes: false }", "true", 0, ""),
    ];
    for (fields, run, code, why) in runs {
        let sage = repository().template("t", &template(fields, run));
        sage.write("a.txt", "a\n");
        sage.sage("run x -t t").exit(code).stdout_has(why);
    }
}

// covers: R6
#[test]
fn files_and_commands_are_checked_and_other_kinds_are_refused() {
    let runs = [
        ("expect: { files: [a.md] }", 1, "expected file `a.md` does not exist"),
        ("expect: { files: [../a.md] }", 1, "`../a.md` is not a path inside the project"),
        ("expect: { command: 'exit 3' }", 1, "expected command `exit 3` to pass"),
        ("expect: { command: 'true', files: [sage.toml] }", 0, ""),
        ("expect: { passed: true }", 4, "the result does not say whether the check passed"),
    ];
    for (fields, code, why) in runs {
        let sage = Sage::new().template("t", &template(fields, "true"));
        sage.write("sage.toml", "");
        sage.sage("run x -t t").exit(code).stdout_has(why);
    }
    for operation in [
        "type: sleep, params: { ms: 1 }",
        "type: approval, params: { message: m }",
        "type: workflow, params: { template: u }",
    ] {
        let text = format!(
            "name: t\nphases:\n  - id: p\n    operations: {{ id: x, {operation}, expect: {{ command: 'false' }} }}\n"
        );
        let sage = Sage::new().template("t", &text).template("u", &template("retry: 1", "true"));
        sage.sage("run x -t t").exit(2).stderr_has("`expect` is not checked on a step of the kind");
    }
}
