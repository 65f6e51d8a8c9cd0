//! Isolated steps with a real git: leases in parallel, retries, crashes, and a checkout that nobody touches.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sage_agents::worktree::{LeaseState, Leases, Reaper, Record, list};
use sage_core::policy::FailureClass;
use sage_core::template::Isolation;
use serde_json::json;

use crate::bench::{Bench, key, mode, sage, until};

/// A repository with a commit, a change in the index, one in the checkout, one in the stash, a new file.
pub struct Repository {
    dir: tempfile::TempDir,
}

impl Repository {
    pub fn new() -> Repository {
        let repository = Repository { dir: tempfile::tempdir().unwrap() };
        repository.git("init -q -b main");
        repository.write("a.txt", "one\n");
        repository.write("b.txt", "two\n");
        repository.write("sub/c.txt", "three\n");
        repository.write(".gitignore", "*.log\n.sage/\n");
        repository.git("add -A");
        repository.commit("first");
        repository.write("a.txt", "stashed\n");
        repository.git("-c user.name=u -c user.email=u@h stash -q");
        repository.write("a.txt", "staged\n");
        repository.git("add a.txt");
        repository.write("b.txt", "changed\n");
        repository.write("new.txt", "untracked\n");
        repository
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn git(&self, args: &str) -> String {
        git(&self.path(), args)
    }

    fn commit(&self, message: &str) {
        self.git(&format!("-c user.name=u -c user.email=u@h commit -q -m {message}"));
    }

    /// Everything of the user's that must not change.
    fn checkout(&self) -> Vec<String> {
        let asked = [
            "status --porcelain",
            "diff",
            "diff --cached",
            "stash list",
            "stash show -p",
            "rev-parse HEAD",
            "symbolic-ref HEAD",
        ];
        let mut found: Vec<String> = asked.iter().map(|args| self.git(args)).collect();
        found.push(self.git("for-each-ref --format=%(refname)%(objectname) refs/heads/main refs/stash"));
        found.push(format!("{:?}", std::fs::read(self.path().join(".git/index")).unwrap()));
        found
    }

    fn leases(&self) -> Leases {
        list(&self.path().join(".sage/worktrees"), Some(&key())).unwrap()
    }

    fn lease(&self) -> Record {
        let leases = self.leases();
        assert!(leases.damaged.is_empty());
        assert_eq!(leases.found.len(), 1, "{leases:?}");
        leases.found[0].clone()
    }

    /// A shell step in a worktree of this repository.
    pub fn step(&self, script: &str) -> Bench {
        let mut bench = Bench::shell(script);
        bench.cx.project = self.path();
        bench.call.isolation = Isolation::Worktree;
        bench
    }

    fn show(&self, branch: &str, file: &str) -> String {
        self.git(&format!("show {branch}:{file}"))
    }
}

#[track_caller]
fn git(dir: &Path, args: &str) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(args.split(' ')).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.env("GIT_CONFIG_SYSTEM", "/dev/null").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args}: {said}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_string()
}

/// The same run and step, called again.
fn again(repository: &Repository, first: &Bench, script: &str) -> Bench {
    let mut bench = repository.step(script).attempt(first.call.attempt + 1);
    bench.call.run = first.call.run.clone();
    bench.call.path = first.call.path.clone();
    bench
}

// covers: S6, P8
#[tokio::test]
async fn a_success_is_committed_on_a_branch_and_the_checkout_is_untouched() {
    let repository = Repository::new();
    // Whoever runs the tests may have a name; this repository knows none.
    repository.git("config user.name ");
    repository.git("config user.email ");
    let (before, base) = (repository.checkout(), repository.git("rev-parse HEAD"));
    let script = "pwd; cat a.txt; git status --porcelain; git stash list >/dev/null
        echo mine > a.txt; rm b.txt; mkdir x; echo new > x/y.txt; echo noise > x/z.log";
    let bench = repository.step(script);
    let result = bench.run().await.succeeded();
    let lease = repository.lease();
    assert_eq!(result["stdout"], format!("{}\none\n", lease.path.display()), "a clean checkout of HEAD");
    assert_eq!(
        lease.path,
        repository.path().join(".sage/worktrees").join(&bench.call.run).join("build.step_2")
    );
    assert_eq!((&lease.base, lease.state), (&base, LeaseState::Committed));
    assert!(lease.branch.starts_with("sage/login-page/build.step_2-"), "{}", lease.branch);
    assert_eq!(
        lease.commit.as_deref(),
        Some(repository.git(&format!("rev-parse {}", lease.branch)).as_str())
    );
    assert_eq!(repository.git(&format!("rev-parse {}^", lease.branch)), base);
    let changed = repository.git(&format!("diff --name-status {base} {}", lease.branch));
    assert_eq!(changed, "M\ta.txt\nD\tb.txt\nA\tx/y.txt", "untracked too, ignored not");
    assert_eq!(repository.show(&lease.branch, "x/y.txt"), "new");
    let told = repository.git(&format!("log -1 --format=%an|%ae|%B {}", lease.branch));
    assert!(told.starts_with("sage|sage@localhost|login-page: build/step[2]"), "{told}");
    assert!(told.contains(&bench.call.run) && told.contains("build/step[2]"), "{told}");
    assert_eq!(repository.checkout(), before);
    assert_eq!(mode(&repository.path().join(".sage/worktrees")), 0o700);
}

// covers: S6
#[tokio::test]
async fn a_step_that_changes_nothing_makes_no_commit_and_the_users_own_name_is_used() {
    let repository = Repository::new();
    let quiet = repository.step("echo kept > only.log");
    quiet.run().await.succeeded();
    let lease = repository.lease();
    assert_eq!((lease.commit.clone(), lease.state), (None, LeaseState::Committed));
    repository.git("config user.name Ada");
    repository.git("config user.email ada@example.com");
    again(&repository, &quiet, "cat only.log; echo x > new-file").run().await.succeeded();
    assert_eq!(repository.git(&format!("log -1 --format=%an<%ae> {}", lease.branch)), "Ada<ada@example.com>");
}

// covers: S6, R21
#[tokio::test]
async fn a_worktree_in_which_nothing_changed_goes_with_its_branch() {
    let repository = Repository::new();
    let before = repository.checkout();
    for (script, class) in [
        ("cat a.txt > /dev/null", None),
        ("echo x > x.txt; rm x.txt", None),
        ("echo other > a.txt; git checkout -q a.txt; exit 1", Some(FailureClass::Failed)),
        ("git checkout -q --detach", None),
    ] {
        let outcome = repository.step(script).run().await;
        match class {
            None => drop(outcome.succeeded()),
            Some(class) => drop(outcome.failed(class)),
        }
        assert!(repository.leases().found.is_empty(), "{script}: {:?}", repository.leases());
        assert_eq!(repository.git("worktree list --porcelain").matches("worktree ").count(), 1, "{script}");
        assert_eq!(repository.git("branch --list sage/*"), "", "{script}");
    }
    // What git does not see may be what the step was asked for.
    for script in ["echo x > x.log", "mkdir empty", "git commit -q --allow-empty -m mine"] {
        let mut step = repository.step(script);
        let name = json!({"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n",
            "GIT_COMMITTER_EMAIL": "e"});
        step = step.param("env", name);
        step.run().await.succeeded();
        let lease = repository.leases().found.into_iter().find(|lease| lease.run == step.call.run);
        assert!(lease.is_some_and(|lease| lease.path.is_dir()), "{script}");
    }
    assert_eq!(repository.checkout(), before);
}

/// Killed while an unchanged worktree is removed: there are files missing in it that nobody has deleted.
// covers: S6, R5, P8
#[tokio::test]
async fn a_half_removed_worktree_is_made_anew_and_its_losses_are_no_work() {
    let repository = Repository::new();
    let first = repository.step("echo x > x.log");
    first.run().await.succeeded();
    let lease = repository.lease();
    let file = lease.path.with_file_name("build.step_2.json");
    let halve = || {
        let record = Record { state: LeaseState::Creating, ..lease.clone() };
        record.write(&file, Some(&key())).unwrap();
        std::fs::remove_file(lease.path.join("a.txt")).unwrap();
    };
    halve();
    again(&repository, &first, "cat a.txt; ls; echo y > y.txt").run().await.succeeded();
    let branch = repository.lease().branch;
    assert_eq!(repository.show(&branch, "a.txt"), "one", "nobody has deleted it");
    assert_eq!(repository.show(&branch, "y.txt"), "y");

    let other = Repository::new();
    let first = other.step("echo x > x.log");
    first.run().await.succeeded();
    let lease = Record { state: LeaseState::Creating, ..other.lease() };
    lease.write(&lease.path.with_file_name("build.step_2.json"), Some(&key())).unwrap();
    std::fs::remove_file(lease.path.join(".git")).unwrap();
    let reaper = Reaper::new(&other.path(), &other.path().join(".sage/worktrees")).unwrap();
    assert!(reaper.losses(&lease).unwrap().none());
    reaper.remove(&lease, false).unwrap();
    assert!(!lease.path.exists() && other.leases().found.is_empty());
    assert_eq!(other.git("worktree list --porcelain").matches("worktree ").count(), 1);
    assert_eq!(other.git("branch --list sage/*"), "");
}

// covers: S6, R5
#[tokio::test]
async fn a_failure_keeps_its_work_and_the_next_attempt_goes_on_with_it() {
    let repository = Repository::new();
    let before = repository.checkout();
    let first = repository.step("echo half > half.txt; git add half.txt; echo rest > rest.txt; exit 1");
    first.run().await.failed(FailureClass::Failed);
    let failed = repository.lease();
    assert_eq!((failed.state, failed.commit.clone()), (LeaseState::Failed, None));
    assert_eq!(git(&failed.path, "status --porcelain"), "A  half.txt\n?? rest.txt");
    let second = again(&repository, &first, "cat half.txt rest.txt; echo whole > half.txt");
    assert_eq!(second.run().await.succeeded()["stdout"], "half\nrest\n");
    let lease = repository.lease();
    assert_eq!(
        (&lease.branch, &lease.base, lease.state),
        (&failed.branch, &failed.base, LeaseState::Committed)
    );
    assert_eq!(repository.show(&lease.branch, "half.txt"), "whole");
    assert_eq!(repository.show(&lease.branch, "rest.txt"), "rest");
    assert_eq!(repository.checkout(), before);
}

// covers: S6, P8
#[tokio::test]
async fn six_leases_at_once_do_not_collide() {
    let repository = Repository::new();
    let before = repository.checkout();
    let benches: Vec<Bench> = (0..6)
        .map(|n| {
            let mut bench =
                repository.step(&format!("echo {n} > a.txt; git stash -q; git stash pop -q; cat a.txt"));
            bench.call.path = format!("build/step[{n}]");
            bench.call.run = "run_SIX".to_string() + &std::process::id().to_string();
            bench
        })
        .collect();
    let all: Vec<_> = benches.iter().map(|bench| tokio::spawn(bench.start())).collect();
    for handle in all {
        crate::bench::Outcome(tokio::time::timeout(crate::bench::DEADLINE, handle).await.unwrap().unwrap())
            .succeeded();
    }
    let leases = repository.leases().found;
    assert_eq!(leases.len(), 6);
    for (n, lease) in leases.iter().enumerate() {
        assert_eq!(repository.show(&lease.branch, "a.txt"), n.to_string());
    }
    assert_eq!(repository.checkout(), before);
}

// covers: S6
#[tokio::test]
async fn hooks_and_the_callers_repository_have_no_part_in_it() {
    let repository = Repository::new();
    for hook in ["post-checkout", "pre-commit", "commit-msg", "post-commit", "reference-transaction"] {
        let path = repository.path().join(".git/hooks").join(hook);
        std::fs::write(
            &path,
            format!("#!/bin/sh\necho {hook} >> {}/hooked\nexit 1\n", repository.path().display()),
        )
        .unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    repository.step("echo x > x.txt").run().await.succeeded();
    assert_eq!(repository.show(&repository.lease().branch, "x.txt"), "x");
    assert!(!repository.path().join("hooked").exists());
}

// covers: S6
#[tokio::test]
async fn the_users_stash_and_branch_are_out_of_reach() {
    let repository = Repository::new();
    let before = repository.checkout();
    let script = "echo mine > a.txt; git stash 2>said; cat said a.txt; git checkout -q a.txt
        git stash pop -q; git stash drop -q; git stash clear
        git commit -q --allow-empty -m mine; git update-ref refs/heads/main HEAD && echo moved
        git init -q own; cd own; git commit -q --allow-empty -m x; echo x > x; git add x; git stash -q && echo stashed";
    let mut bench = repository.step(script);
    bench = bench.param("env", json!({"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e"}));
    let said = bench.run().await.succeeded()["stdout"].as_str().unwrap().to_string();
    assert!(said.starts_with("sage: refs/stash belongs to the user's checkout"), "{said}");
    assert!(said.ends_with("\nmine\nstashed\n"), "its own repository is its own: {said}");
    assert_eq!(repository.checkout(), before);
    assert_eq!(repository.lease().stash, []);
}

// covers: S6
#[tokio::test]
async fn a_step_that_removes_its_git_file_does_not_commit_to_the_users_repository() {
    let repository = Repository::new();
    let before = repository.checkout();
    let bench = repository.step("rm .git; echo x > x.txt; if git status 2>/dev/null; then exit 3; fi");
    bench.run().await.succeeded();
    assert_eq!(repository.show(&repository.lease().branch, "x.txt"), "x");
    assert_eq!(repository.checkout(), before);
    again(&repository, &bench, "git log --oneline | wc -l; cat x.txt").run().await.succeeded();
}

// covers: S6
#[tokio::test]
async fn a_step_that_leaves_its_branch_takes_the_branch_with_it() {
    let repository = Repository::new();
    let bench = repository.step("git checkout -q -b other; echo x > x.txt");
    bench.run().await.succeeded();
    let lease = repository.lease();
    assert_eq!(repository.show(&lease.branch, "x.txt"), "x");
    let away = "git checkout -q --orphan alone; git rm -rqf .; echo y > y.txt";
    again(&repository, &bench, away).run().await.succeeded();
    let moved = repository.lease();
    assert_eq!((moved.branch.as_str(), repository.show("alone", "y.txt").as_str()), ("alone", "y"));
    assert_eq!(repository.show(&lease.branch, "x.txt"), "x", "what was there stays");
}

// covers: S6, R5
#[tokio::test]
async fn what_a_crash_or_a_person_broke_is_repaired_without_losing_anything() {
    let repository = Repository::new();
    let first = repository.step("echo kept > kept.txt");
    first.run().await.succeeded();
    let lease = repository.lease();
    let file = lease.path.with_extension("").with_file_name("build.step_2.json");
    let git_dir = PathBuf::from(git(&lease.path, "rev-parse --absolute-git-dir"));

    // Locks of a git that was killed.
    std::fs::write(git_dir.join("index.lock"), "").unwrap();
    std::fs::write(repository.path().join(format!(".git/refs/heads/{}.lock", lease.branch)), "").unwrap();
    again(&repository, &first, "echo more > more.txt").run().await.succeeded();
    assert_eq!(repository.show(&lease.branch, "more.txt"), "more");

    // A record that is damaged, or says that nobody had worked there yet while the branch has commits.
    std::fs::write(&file, "{").unwrap();
    assert_eq!(repository.leases().damaged, std::slice::from_ref(&file));
    again(&repository, &first, "cat kept.txt more.txt").run().await.succeeded();
    assert_eq!(repository.lease().base, lease.base);
    let mut record = repository.lease();
    record.state = LeaseState::Creating;
    record.write(&file, Some(&key())).unwrap();
    again(&repository, &first, "cat kept.txt more.txt").run().await.succeeded();

    // A git that was killed while it registered the worktree, and another step that needs git meanwhile.
    let halved = |state: LeaseState| {
        let git_dir = PathBuf::from(git(&lease.path, "rev-parse --absolute-git-dir"));
        Record { state, ..repository.lease() }.write(&file, Some(&key())).unwrap();
        std::fs::write(git_dir.join("locked"), "initializing").unwrap();
        std::fs::write(git_dir.join("commondir"), "").unwrap();
    };
    halved(LeaseState::Creating);
    let mut other = again(&repository, &first, "true");
    other.call.path = "build/other".into();
    other.run().await.succeeded();
    again(&repository, &first, "cat kept.txt more.txt").run().await.succeeded();

    // The folder is gone; then its registration is, with work in the folder.
    std::fs::remove_dir_all(&lease.path).unwrap();
    again(&repository, &first, "cat kept.txt more.txt; echo loose > loose.txt; false")
        .run()
        .await
        .failed(FailureClass::Failed);
    let git_dir = PathBuf::from(git(&lease.path, "rev-parse --absolute-git-dir"));
    std::fs::remove_dir_all(git_dir).unwrap();
    again(&repository, &first, "cat kept.txt more.txt").run().await.succeeded();
    let aside = lease.path.with_file_name("build.step_2.aside-1");
    assert_eq!(std::fs::read_to_string(aside.join("loose.txt")).unwrap(), "loose\n");
}

// covers: S6
#[tokio::test]
async fn what_cannot_be_done_is_said_clearly() {
    let mut bench = Bench::shell("true");
    bench.call.isolation = Isolation::Worktree;
    git(bench.dir.path(), "init -q");
    bench.run().await.failed(FailureClass::Invalid).says("has no commit yet; git add -A");

    let repository = Repository::new();
    let bench = repository.step("echo x > x.log");
    bench.run().await.succeeded();
    let lease = repository.lease();
    repository.git(&format!("worktree remove --force {}", lease.path.display()));
    std::fs::remove_file(lease.path.with_file_name("build.step_2.json")).unwrap();
    let exists = bench.run().await.failed(FailureClass::Invalid);
    exists.says(&format!("the branch `{}` exists already", lease.branch)).says("git branch -m");
    repository.git(&format!("branch -q -D {}", lease.branch));
    std::fs::create_dir_all(&lease.path).unwrap();
    bench.run().await.failed(FailureClass::Invalid).says("is in the way");
    std::fs::remove_dir(&lease.path).unwrap();
    repository.git("branch sage");
    bench.run().await.failed(FailureClass::Failed).says("'refs/heads/sage' exists");
}

// covers: S6
#[tokio::test]
async fn agents_and_projects_in_a_folder_of_their_repository_are_isolated_too() {
    let repository = Repository::new();
    let before = repository.checkout();
    let mut bench = Bench::fake(json!([{"write": {"made.txt": "by the agent"}, "result": {"ok": true}}]));
    bench.cx.project = repository.path().join("sub");
    bench.call.isolation = Isolation::Worktree;
    bench.config.worktrees = Some(repository.path().join(".sage/worktrees"));
    bench.run().await.succeeded();
    assert_eq!(repository.show(&repository.lease().branch, "sub/made.txt"), "by the agent");
    assert_eq!(repository.checkout(), before);
}

/// Kills the owner while the worktree is made, while the step works, while its work is committed.
// covers: S6, R5, P8
#[tokio::test]
async fn a_killed_owner_loses_nothing_whenever_it_dies() {
    let repository = Repository::new();
    // Enough files that making the worktree takes its time.
    for n in 0..600 {
        repository.write(&format!("many/{n}.txt"), &"x".repeat(2_000));
    }
    repository.git("add many");
    repository.commit("many");
    let before = repository.checkout();
    let moments = [
        "../phase.step.json",
        ".",
        ".git",
        "many/1.txt",
        "many/399.txt",
        "early.txt",
        "late.txt",
        "index.lock",
    ];
    for (round, moment) in moments.into_iter().enumerate() {
        let run = format!("run_KILL{round}x{}", std::process::id());
        let tree = repository.path().join(".sage/worktrees").join(&run).join("phase.step");
        let git_dir = |name: &str| {
            let dir = std::fs::read_to_string(tree.join(".git")).unwrap_or_default();
            Path::new(dir.trim_start_matches("gitdir: ").trim_end()).join(name)
        };
        let has_come = || match moment {
            "index.lock" => tree.join("late.txt").exists() && git_dir(moment).exists(),
            "../phase.step.json" => tree.with_extension("step.json").exists(),
            "early.txt" => std::fs::read(tree.join(moment)).is_ok_and(|text| text == b"early\n"),
            _ => tree.join(moment).exists(),
        };
        kill_owner(&repository, &run, has_come).await;
        let early = std::fs::read(tree.join("early.txt")).is_ok_and(|text| text == b"early\n");
        assert!(early || round < 5, "{moment}");
        let mut resumed = repository.step("cat early.txt 2>/dev/null; ls many | wc -l; echo done > done.txt");
        resumed.call.run.clone_from(&run);
        resumed.call.path = "phase/step".into();
        resumed.call.feature = "owned".into();
        let said = resumed.run().await.succeeded()["stdout"].as_str().unwrap().replace(' ', "");
        assert_eq!(said, format!("{}600\n", if early { "early\n" } else { "" }), "{moment}");
        let lease = repository.leases().found.into_iter().find(|lease| lease.run == run).unwrap();
        assert_eq!((lease.state, lease.path.as_path()), (LeaseState::Committed, tree.as_path()));
        assert_eq!(repository.show(&lease.branch, "done.txt"), "done");
        let files = repository.git(&format!("ls-tree --name-only {} early.txt", lease.branch));
        assert_eq!(files == "early.txt", early, "{moment}");
    }
    std::fs::remove_file(repository.path().join("lock")).unwrap();
    std::fs::remove_dir_all(repository.path().join("scratch")).unwrap();
    assert_eq!(repository.checkout(), before);
}

/// Starts an isolated step in a process of its own, which is killed as soon as `has_come` says so.
async fn kill_owner(repository: &Repository, run: &str, has_come: impl Fn() -> bool) {
    let script = "echo early > early.txt; sleep 0.3; echo late > late.txt; dd if=/dev/zero of=big bs=1M count=40 2>/dev/null";
    let mut command = std::process::Command::new(sage());
    command.arg("own").arg(repository.path()).args([script, run]).stdout(Stdio::null());
    let mut owner = command.spawn().unwrap();
    let deadline = std::time::Instant::now() + crate::bench::DEADLINE;
    while !has_come() && owner.try_wait().unwrap().is_none() && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    let lock = std::fs::File::open(repository.path().join("lock")).unwrap();
    until("the killed owner's processes to be gone", || lock.try_lock().is_ok()).await;
}
