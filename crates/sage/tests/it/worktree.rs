//! `isolation: worktree` through the binary: steps side by side, a kill in the middle, the user's checkout.

use crate::dsl::{DEADLINE, Sage, git, wait_until};

const TEMPLATE: &str = "
name: team
phases:
  - id: build
    operations:
      - id: one
        type: shell
        isolation: worktree
        expect: { files: [one.txt], command: 'grep -q first one.txt' }
        params: { run: 'echo first >> one.txt; while ! test -e \"$GO\"; do sleep 0.01; done; cat one.txt', env: { GO: '{{ inputs.go }}' } }
      - id: two
        type: agent
        agent: fake
        role: implementer
        isolation: worktree
        prompt: work
        params: { script: [{ write: { two.txt: made }, result: { ok: true } }] }
  - id: after
    dependencies: [build]
    operations: { id: missing, type: shell, isolation: worktree, expect: { files: [nowhere.txt] }, params: { run: 'echo x > x.txt' } }
";

// covers: S6, R5, P8
#[test]
fn isolated_steps_survive_a_kill_and_leave_the_checkout_alone() {
    let sage = Sage::new().template("team", TEMPLATE);
    git(&sage, &["init", "-q", "-b", "main"]);
    sage.write("a.txt", "one\n");
    git(&sage, &["add", "a.txt"]);
    git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "-m", "first"]);
    sage.write("a.txt", "changed\n");
    // Whoever has a `.gitignore` of his own in `.sage` does not see the worktrees either.
    sage.write(".sage/.gitignore", "/state/\n/inbox/\n/logs/\n/history.db*\n");
    let checkout =
        || [git(&sage, &["status", "--porcelain", "-uall"]), git(&sage, &["rev-parse", "HEAD", "main"])];
    let before = checkout();

    let go = sage.outside().join("go");
    let input = format!("go={}", go.display());
    let mut running = sage.args(["run", "team", "-t", "team", "-i", &input]).spawn();
    let worktrees = sage.path(".sage/worktrees");
    let tree = || {
        let mut runs = std::fs::read_dir(&worktrees).into_iter().flatten().flatten().map(|run| run.path());
        runs.find(|run| run.is_dir()).map(|run| run.join("build.one"))
    };
    running.until(
        || {
            tree()
                .is_some_and(|tree| std::fs::read(tree.join("one.txt")).is_ok_and(|text| text == b"first\n"))
        },
        "work in the worktree",
    );
    assert!(running.kill());
    let tree = tree().unwrap();
    wait_until(|| sage.alive().is_empty(), DEADLINE, "the killed run's processes");

    std::fs::write(&go, "").unwrap();
    let resumed = sage.sage("resume team");
    let resumed = resumed.exit(1).stdout_has("expected file `nowhere.txt` does not exist");
    resumed
        .stderr_has("3 steps have work in worktrees of their own")
        .stderr_has("build/one: branch sage/team/");
    assert_eq!(
        std::fs::read_to_string(tree.join("one.txt")).unwrap(),
        "first\nfirst\n",
        "found as it was left"
    );
    let leases = sage_agents::worktree::list(&worktrees, sage.key().as_ref()).unwrap().found;
    let states: Vec<String> = leases.iter().map(|it| format!("{} {:?}", it.step, it.state)).collect();
    assert_eq!(states, ["after/missing Failed", "build/one Committed", "build/two Committed"]);
    assert_eq!(git(&sage, &["show", &format!("{}:one.txt", leases[1].branch)]), "first\nfirst");
    assert_eq!(git(&sage, &["show", &format!("{}:two.txt", leases[2].branch)]), "made");
    assert_eq!(git(&sage, &["log", "-1", "--format=%an <%ae>", &leases[1].branch]), "sage <sage@localhost>");
    assert_eq!(checkout(), before);
    sage.assert_nothing_alive();
}

const ISOLATED: &str = "name: t\nphases: [{id: p, operations: {id: x, type: shell, isolation: worktree, params: {run: 'echo x > x'}}}]";

// covers: S6, R17, R23
#[test]
fn without_a_repository_an_isolated_step_is_refused_before_the_run() {
    let sage = Sage::new().template("t", ISOLATED);
    let refused = || {
        let refused = sage.sage("run t -t t").exit(2);
        assert!(sage.engine().latest("t").is_none(), "nothing was started");
        refused.stderr_has("step `x` works in a git worktree of its own")
    };
    refused().stderr_has("is not in a git repository").stderr_has("hint: git init");
    // An empty folder of that name is none.
    std::fs::create_dir(sage.path(".git")).unwrap();
    refused().stderr_has("is not in a git repository");
    let doctor = sage.sage("doctor").stdout_has("is not in a git repository");
    assert!(!doctor.stdout.contains("ok    repository"), "{}", doctor.stdout);
    std::fs::remove_dir(sage.path(".git")).unwrap();
    git(&sage, &["init", "-q"]);
    refused().stderr_has("has no commit yet").stderr_has("hint: git add -A");
    // Worktrees are the project's: where else a repository is does not matter.
    let elsewhere = Sage::new();
    git(&elsewhere, &["init", "-q"]);
    git(
        &elsewhere,
        &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "--allow-empty", "-m", "x"],
    );
    let dir = elsewhere.path(".git");
    sage.args(["run", "t", "-t", "t"]).env("GIT_DIR", &dir).run().exit(2).stderr_has("has no commit yet");
    sage.args(["doctor"]).env("GIT_DIR", &dir).run().stdout_has("has no commit yet");
    git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "--allow-empty", "-m", "x"]);
    sage.args(["run", "t", "-t", "t", "-q"]).env("GIT_DIR", &dir).run().exit(0);
    assert_eq!(git(&elsewhere, &["branch", "--list", "sage/*"]), "");
}

// covers: S6, R23
#[test]
fn a_template_that_makes_the_repository_itself_can_run() {
    let text = "
name: t
phases:
  - id: make
    operations: { id: repository, type: shell, params: { run: 'git init -q && git -c user.name=u -c user.email=u@h commit -q --allow-empty -m start' } }
  - id: work
    dependencies: [make]
    operations: { id: x, type: shell, isolation: worktree, params: { run: 'echo x > x.txt' } }
";
    let sage = Sage::new().template("t", text);
    sage.sage("run t -t t -q").exit(0);
    assert_eq!(git(&sage, &["log", "--all", "--format=%s"]).lines().count(), 2);
}
