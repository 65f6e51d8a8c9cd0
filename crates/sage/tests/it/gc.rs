//! `sage gc`: what goes, what stays, and that nothing is half gone.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::dsl::{DEADLINE, Sage, git, long, wait_until};

const FINE: &str = "
name: fine
phases: [{ id: p, operations: { id: a, type: shell, params: { run: 'echo done' } } }]
";
const FAILS: &str = "
name: fails
phases: [{ id: p, operations: { id: a, type: shell, retry: { attempts: 1 }, params: { run: 'exit 1' } } }]
";
const ASKS: &str = "
name: asks
phases: [{ id: p, operations: { id: a, type: approval, params: { message: 'well?' } } }]
";
const WAITS: &str = "
name: waits
phases: [{ id: p, operations: { id: a, type: shell, params: { run: 'while ! test -e go; do sleep 0.01; done' } } }]
";
const BRANCH: &str = "
name: branch
phases:
  - id: p
    operations: { id: a, type: shell, isolation: worktree, params: { run: 'test -n \"$FILE\" && echo x > \"$FILE\"; true', env: { FILE: '{{ inputs.file }}' } } }
inputs: { file: '' }
";

fn sage() -> Sage {
    let sage = Sage::new().template("fine", FINE).template("fails", FAILS);
    sage.template("asks", ASKS).template("waits", WAITS).template("branch", BRANCH)
}

fn gc(sage: &Sage, flags: &str) -> Value {
    sage.sage(&format!("gc --json {flags}")).exit(0).json()
}

fn count(report: &Value, category: &str) -> u64 {
    let rows = report["categories"].as_array().unwrap();
    rows.iter().find(|row| row["category"] == category).unwrap()["count"].as_u64().unwrap()
}

fn features(sage: &Sage) -> Vec<String> {
    let list = sage.sage("list --json").exit(0).json();
    let rows = list["workflows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["status"] != "damaged"), "{list}");
    rows.iter().map(|row| row["feature"].as_str().unwrap().to_string()).collect()
}

/// Makes files look as if nobody had touched them for so long.
fn age(path: &Path, days: u64) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            age(&entry.path(), days);
        }
    }
    let then = SystemTime::now() - Duration::from_secs(days * 86_400);
    std::fs::File::open(path).unwrap().set_modified(then).unwrap();
}

fn repository(sage: &Sage) {
    git(sage, &["init", "-q", "-b", "main"]);
    git(sage, &["config", "user.name", "u"]);
    git(sage, &["config", "user.email", "u@h"]);
    sage.write("a.txt", "one\n");
    git(sage, &["add", "a.txt"]);
    git(sage, &["commit", "-q", "-m", "first"]);
}

// covers: R4
#[test]
fn closed_runs_go_and_open_ones_stay() {
    let sage = sage();
    sage.sage("run done -t fine").exit(0);
    sage.sage("run done -t fine").exit(0);
    sage.sage("run broken -t fails").exit(1);
    sage.sage("run asked -t asks").exit(4);
    let running = sage.spawn("run busy -t waits");
    wait_until(|| sage.engine().read("busy").is_ok(), DEADLINE, "the run");
    assert_eq!(count(&gc(&sage, ""), "runs"), 0, "nothing is old yet");
    let dry = gc(&sage, "--older-than 0s --dry-run");
    assert_eq!((count(&dry, "runs"), features(&sage).len()), (3, 4));
    sage.sage("gc --older-than 0s -n").exit(0).stdout_has("would go: 3 items").stdout_has("broken  run_");
    let report = gc(&sage, "--older-than 0s");
    assert_eq!(count(&report, "runs"), 3, "{report}");
    assert_eq!(features(&sage), ["asked", "busy"]);
    let state: Vec<_> = std::fs::read_dir(sage.path(".sage/state")).unwrap().flatten().collect();
    let about = |feature: &str| state.iter().any(|e| e.file_name().to_string_lossy().contains(feature));
    assert!(!about("done") && !about("broken"), "{state:?}");
    sage.sage("status done").exit(2);
    sage.sage("approve asked").exit(0);
    sage.sage("resume asked").exit(0);
    sage.write("go", "");
    running.end().exit(0);
    // What is gone can begin anew.
    sage.sage("run done -t fine").exit(0);
}

// covers: R4
#[test]
fn a_plain_gc_keeps_what_the_project_wants_to_keep() {
    let sage = sage();
    for feature in ["one", "two", "three"] {
        sage.args(["run", feature, "-t", "fine"]).run().exit(0);
    }
    sage.write("sage.toml", "[gc]\nolderThan = \"1ms\"\nkeep = 2\n");
    sage.sage("config").exit(0).stdout_has("gc.olderThan").stdout_has("gc.maxSize");
    assert_eq!((count(&gc(&sage, ""), "runs"), features(&sage)), (1, vec!["three".into(), "two".into()]));
    sage.write("sage.toml", "[gc]\nolderThan = \"30d\"\nmaxSize = 1\n");
    assert_eq!(count(&gc(&sage, "--max-size 0"), "runs"), 0);
    assert_eq!((count(&gc(&sage, ""), "runs"), features(&sage).len()), (2, 0));
    sage.write("sage.toml", "[gc]\nmaxSize = \"a lot\"\n");
    sage.sage("gc").exit(2).stderr_has("`gc.maxSize`");
    sage.write("sage.toml", "[gc]\nolderthan = \"1d\"\n");
    sage.sage("gc").exit(2);
    sage.write("sage.toml", "");
    sage.sage("gc --older-than 30").exit(2).stderr_has("has no unit").stderr_has("--older-than 30d");
}

// covers: R4
#[test]
fn damaged_runs_are_for_a_person() {
    let sage = sage();
    sage.sage("run x -t fine").exit(0);
    let journal = sage.latest_dir("x").join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replace("step.started", "step.started!")).unwrap();
    let report = gc(&sage, "--older-than 0s");
    assert_eq!(count(&report, "runs"), 0);
    assert!(report["kept"][0]["why"].as_str().unwrap().contains("sage verify"), "{report}");
    assert!(journal.exists());
    assert_eq!(count(&gc(&sage, "--older-than 0s --force"), "runs"), 1);
    assert!(features(&sage).is_empty());
}

// covers: R4
#[test]
fn killed_at_any_moment_it_leaves_whole_runs() {
    let sage = sage();
    for round in 0..if long() { 40_u32 } else { 5 } {
        for feature in ["a", "b", "c"] {
            sage.args(["run", feature, "-t", "fine", "--quiet"]).run().exit(0);
        }
        sage.sage("run asked --new -t asks --quiet").exit(4);
        let cleaning = sage.spawn("gc --older-than 0s");
        // A moment of its work, not of ours: as many entries gone as the round says.
        let runs = sage.path(".sage/state/runs");
        let before = std::fs::read_dir(&runs).unwrap().count();
        let gone = || before - std::fs::read_dir(&runs).unwrap().count() >= round as usize % 4;
        wait_until(gone, DEADLINE, "runs to go");
        cleaning.kill();
        assert!(features(&sage).contains(&"asked".to_string()));
        sage.sage("verify").exit(0);
    }
    sage.sage("gc --older-than 0s").exit(0);
    assert_eq!(features(&sage), ["asked"]);
    let trash = std::fs::read_dir(sage.path(".sage/state/trash")).unwrap().count();
    assert_eq!(trash, 0);
}

// covers: R4
#[test]
fn once_a_day_a_run_cleans_up_by_itself_unless_that_is_off() {
    let sage = sage();
    sage.write("sage.toml", "[gc]\nolderThan = \"1ms\"\nkeep = 1\nauto = false\n");
    sage.sage("run old -t fine").exit(0);
    sage.sage("run new -t fine").exit(0).stderr_lacks("cleaned up");
    assert_eq!(features(&sage), ["new", "old"]);
    sage.write("sage.toml", "[gc]\nolderThan = \"1ms\"\nkeep = 1\n");
    sage.sage("run fail -t fails").exit(1).stderr_lacks("cleaned up");
    sage.sage("run newer -t fine").exit(0).stderr_has("note: cleaned up 3 items");
    assert_eq!(features(&sage), ["newer"]);
    sage.sage("run newest -t fine").exit(0).stderr_lacks("cleaned up");
    assert_eq!(features(&sage).len(), 2, "not twice a day");
}

// covers: R4
#[test]
fn worktrees_go_when_nothing_in_them_would_be_lost() {
    let sage = sage();
    repository(&sage);
    for (feature, file) in [("empty", ""), ("merged", "m.txt"), ("unmerged", "u.txt"), ("dirty", "d.txt")] {
        sage.args(["run", feature, "-t", "branch", "-i", &format!("file={file}")]).run().exit(0);
    }
    let branch = |feature: &str| {
        let all =
            git(&sage, &["branch", "--list", "--format=%(refname:short)", &format!("sage/{feature}/*")]);
        all.lines().next().map(str::to_string)
    };
    for feature in ["merged", "dirty"] {
        git(&sage, &["merge", "-q", "--no-edit", &branch(feature).unwrap()]);
    }
    let worktrees = || git(&sage, &["worktree", "list", "--porcelain"]).matches("worktree ").count() - 1;
    assert_eq!((worktrees(), branch("empty")), (3, None), "where nothing changed, nothing stays");
    let dirty = git(&sage, &["worktree", "list", "--porcelain"]);
    let run = sage.engine().latest("dirty").unwrap();
    let tree = dirty.lines().find_map(|line| line.strip_prefix("worktree ").filter(|it| it.contains(&run)));
    let extra = Path::new(tree.unwrap()).join("notes.txt");
    std::fs::write(&extra, "not committed").unwrap();

    let dry = gc(&sage, "--older-than 0s -n");
    assert_eq!((count(&dry, "worktrees"), worktrees()), (1, 3));
    let report = gc(&sage, "--older-than 0s");
    assert_eq!((count(&report, "worktrees"), worktrees()), (1, 2), "{report}");
    let kept: Vec<&str> =
        report["kept"].as_array().unwrap().iter().map(|row| row["why"].as_str().unwrap()).collect();
    assert_eq!(kept, ["its commits are merged nowhere", "1 file is not committed"]);
    assert_eq!(branch("merged"), None);
    assert!(branch("unmerged").is_some() && extra.exists());
    assert_eq!(
        git(&sage, &["status", "--porcelain", "--untracked-files=no"]),
        "",
        "the checkout is as it was"
    );

    // The runs are gone, the work is still there, and only force removes it: never the commits.
    assert_eq!(features(&sage).len(), 0);
    assert_eq!(count(&gc(&sage, "--older-than 0s"), "worktrees"), 0);
    assert_eq!((count(&gc(&sage, "--older-than 0s --force"), "worktrees"), worktrees()), (2, 0));
    assert!(branch("unmerged").is_some(), "commits that are nowhere else stay on their branch");
    let left: Vec<_> = std::fs::read_dir(sage.path(".sage/worktrees")).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| entry.file_name() == ".gitignore"), "{left:?}");
}

// covers: R4
#[test]
fn a_record_that_points_elsewhere_removes_nothing_there() {
    let sage = sage();
    repository(&sage);
    sage.sage("run x -t branch -i file=x.txt").exit(0);
    let outside = sage.outside().join("precious");
    std::fs::create_dir(&outside).unwrap();
    let run = sage.path(".sage/worktrees").join(sage.engine().latest("x").unwrap());
    let record = run.join("p.a.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let path = run.canonicalize().unwrap().join("p.a");
    std::fs::write(&record, text.replace(path.to_str().unwrap(), outside.to_str().unwrap())).unwrap();
    let report = gc(&sage, "--older-than 0s --force");
    assert_eq!(count(&report, "worktrees"), 0, "{report}");
    assert!(outside.exists() && path.exists());
}

/// As a clone can bring it: a record of a run that never was, behind a link.
// covers: R4, R17
#[test]
fn a_forged_record_behind_a_link_removes_nothing() {
    let sage = sage();
    repository(&sage);
    let outside = sage.outside().join("precious");
    std::fs::create_dir_all(outside.join("thesis")).unwrap();
    std::fs::create_dir_all(sage.path(".sage/worktrees/run_A")).unwrap();
    std::os::unix::fs::symlink(&outside, sage.path(".sage/worktrees/RUN")).unwrap();
    let path = sage.path(".sage/worktrees").canonicalize().unwrap().join("RUN/thesis");
    let record = format!(
        r#"{{"branch": "sage/x", "base": "0", "path": {path:?}, "commit": null, "step": "p/x", "run": "RUN", "feature": "f", "state": "creating"}}"#
    );
    sage.write(".sage/worktrees/run_A/x.json", &record);
    sage.write("sage.toml", "[gc]\nolderThan = \"1s\"\n");
    age(&sage.path(".sage/worktrees/run_A/x.json"), 400);
    std::fs::write(outside.join("thesis.json"), &record).unwrap();
    age(&outside.join("thesis.json"), 400);
    sage.sage("run done -t fine").exit(0);
    let report = gc(&sage, "--older-than 0s --force");
    assert_eq!(count(&report, "worktrees"), 0, "{report}");
    assert!(outside.join("thesis").exists(), "{report}");
}

// covers: R4, R17
#[test]
fn a_directory_of_worktrees_that_became_a_link_is_left_alone() {
    let sage = sage();
    repository(&sage);
    sage.sage("run x -t branch -i file=x.txt").exit(0);
    let run = sage.path(".sage/worktrees").join(sage.engine().latest("x").unwrap());
    let outside = sage.outside().join("moved");
    std::fs::rename(&run, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &run).unwrap();
    let report = gc(&sage, "--older-than 0s --force");
    assert_eq!(count(&report, "worktrees"), 0, "{report}");
    assert!(outside.join("p.a/x.txt").exists() && outside.join("p.a.json").exists(), "{report}");
}

// covers: R4, R17
#[test]
fn looking_for_losses_runs_no_filter_of_the_repository() {
    let sage = sage();
    repository(&sage);
    sage.sage("run x -t branch -i file=x.txt").exit(0);
    let run = sage.path(".sage/worktrees").join(sage.engine().latest("x").unwrap());
    let trace = sage.outside().join("filtered");
    let program = format!("touch {}; cat", trace.display());
    git(&sage, &["config", "filter.evil.clean", &program]);
    git(&sage, &["config", "filter.evil.required", "true"]);
    sage.write(".git/info/attributes", "* filter=evil\n");
    // Of another size than in the index, so that its content is looked at.
    std::fs::write(run.join("p.a/a.txt"), "two\n\n").unwrap();
    let report = gc(&sage, "--older-than 0s -n");
    assert_eq!(
        report["kept"][0]["why"], "1 file is not committed, its commits are merged nowhere",
        "{report}"
    );
    gc(&sage, "--older-than 0s");
    assert!(!trace.exists(), "a filter of the repository ran");
}

/// A clone may bring links: whatever they lead to is not ours.
// covers: R4
#[test]
fn nothing_is_cleaned_up_through_a_link() {
    let sage = sage();
    sage.sage("run x -t fine").exit(0);
    let outside = sage.outside().join("precious");
    std::fs::create_dir_all(outside.join("dead/deep")).unwrap();
    let entry = format!("{}.json", "cd".repeat(32));
    for name in ["a.log", "1-a.json", "x.tmp", "dead/1-a.json", "dead/deep/file", &entry] {
        std::fs::write(outside.join(name), "precious").unwrap();
    }
    age(&outside, 400);
    for link in ["state/trash", "logs", "inbox", "cache", "tickets"] {
        let link = sage.path(".sage").join(link);
        let _ = std::fs::remove_dir_all(&link);
        std::os::unix::fs::symlink(&outside, &link).unwrap();
    }
    // The run cannot go through the trash, and says so.
    let report = gc(&sage, "--older-than 0s");
    assert_eq!(count(&report, "runs"), 0, "{report}");
    for name in ["a.log", "1-a.json", "x.tmp", "dead/1-a.json", "dead/deep/file", &entry] {
        assert!(outside.join(name).exists(), "{name}: {report}");
    }
    assert_eq!(features(&sage), ["x"]);
}

// covers: R4
#[test]
fn logs_letters_blobs_and_leftovers_go_by_age() {
    let sage = sage();
    sage.sage("run x -t fine").exit(0);
    let dir = sage.latest_dir("x");
    let blob = "ab".repeat(32);
    std::fs::create_dir_all(dir.join("blobs")).unwrap();
    std::fs::write(dir.join("blobs").join(&blob), "nobody names it").unwrap();
    age(&dir.join("blobs"), 2);
    sage.write(".sage/state/ACTIVE_WORKFLOWS.json.4711-0.tmp", "half");
    age(&sage.path(".sage/state/ACTIVE_WORKFLOWS.json.4711-0.tmp"), 2);
    for (path, days) in [("old.log", 40), ("young.log", 3), ("old.log.1", 40), ("audit.jsonl", 400)] {
        age(&sage.write(&format!(".sage/logs/{path}"), "text"), days);
    }
    for (path, days) in [("1-a.json", 40), ("1-a.json.reason", 40), ("2-b.json", 60), ("2-b.json.reason", 3)]
    {
        age(&sage.write(&format!(".sage/inbox/dead/{path}"), "{}"), days);
    }
    let entry = format!(".sage/cache/{}.json", "cd".repeat(32));
    age(&sage.write(&entry, "{}"), 40);
    age(&sage.write(".sage/cache/index.json", "{}"), 40);
    let report = gc(&sage, "");
    let counts = ["runs", "blobs", "logs", "inbox", "cache", "leftovers"].map(|name| count(&report, name));
    assert_eq!(counts, [0, 1, 2, 2, 1, 1], "{report}");
    for kept in ["logs/young.log", "logs/audit.jsonl", "inbox/dead/2-b.json", "cache/index.json"] {
        assert!(sage.path(".sage").join(kept).exists(), "{kept}");
    }
    sage.sage("verify").exit(0);
    assert_eq!(features(&sage), ["x"]);
}

// covers: R4, S3
#[test]
fn conversations_of_steps_go_with_their_run_and_named_ones_stay() {
    let sage = sage();
    sage.sage("run x -t fine").exit(0);
    let store = sage_agents::session::Store::new(sage.path(".sage/sessions"), sage.key());
    for (id, named) in [("step-1", false), ("step-2", false), ("mine", true)] {
        let turn = serde_json::json!({
            "run": sage.engine().latest("x").unwrap(), "step": "p/a", "key": "k", "attempt": 1,
            "state": "done", "startedMs": 1,
        });
        let mut record = sage_agents::session::Record::new(id, "claude", None, named, 1);
        record.turns.push(serde_json::from_value(turn).unwrap());
        store.create(&record).unwrap();
    }
    // As long as its run is there, a conversation is worth something.
    assert_eq!(count(&gc(&sage, "--older-than 0s --keep 1"), "sessions"), 0);
    let busy = store.lock("step-2").unwrap();
    let report = gc(&sage, "--older-than 0s");
    assert_eq!((count(&report, "runs"), count(&report, "sessions")), (1, 1), "{report}");
    assert!(store.load("step-2").is_ok(), "one at work stays");
    drop(busy);
    assert_eq!(count(&gc(&sage, "--older-than 0s"), "sessions"), 1);
    assert!(store.load("mine").is_ok() && store.load("step-1").is_err());
}

// covers: R4, R22
#[test]
fn a_ticket_learns_how_its_run_ended_before_the_run_goes() {
    let sage = sage();
    sage.args(["tickets", "add", "Do it"]).run().exit(0);
    sage.sage("tickets run T-1 -t fine").exit(0);
    let path = sage.path(".sage/tickets/index.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"done\"", "\"inProgress\"");
    std::fs::write(&path, text).unwrap();
    assert_eq!(count(&gc(&sage, "--older-than 0s"), "runs"), 1);
    assert_eq!(sage.sage("tickets show 1 --json").exit(0).json()["ticket"]["state"], "done");
}
