//! `sage diff`: what steps changed, while they work and afterwards, without a trace in the user's repository.

use serde_json::{Value, json};

use sage_agents::fake_llm::FakeLlm;

use super::{HOLD, repository, team, tool, until_doing, used};
use crate::dsl::{DEADLINE, Sage, git, wait_until};

/// The index, the refs and the objects of the user's repository, byte by byte.
fn private_parts(sage: &Sage) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![sage.path(".git")];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            match entry.path().is_dir() {
                true => open.push(entry.path()),
                false => {
                    found.push((entry.path().display().to_string(), std::fs::read(entry.path()).unwrap()))
                }
            }
        }
    }
    found.sort();
    found
}

fn diffs(sage: &Sage, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["diff", "x", "--json"];
    all.extend(args);
    sage.args(all).run().exit(0).json_lines()
}

fn names(diff: &Value) -> Vec<&str> {
    diff["files"].as_array().unwrap().iter().filter_map(|file| file["path"].as_str()).collect()
}

/// What `work/one` has changed, as soon as it is these files; it still runs.
#[track_caller]
fn until_changed(sage: &Sage, files: &[&str]) -> Value {
    until_doing(sage, "work/one", "test -e");
    let now = || diffs(sage, &["work/one"]).remove(0);
    wait_until(|| names(&now()) == files, DEADLINE, &format!("{files:?}; now: {}", now()));
    let live = now();
    assert_eq!(live["live"], true);
    live
}

const ONE: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { type: agent, id: one, agent: AGENT, params: { prompt: "the-task: change it", tools: ["Bash"] } }
"#;

/// In the user's checkout: with changes of the user's own, staged and not, which are nobody's.
fn in_checkout(agent: &str) {
    let change = format!("echo three >> kept.txt; rm gone.txt; echo new > 'new file.txt'; {HOLD}");
    let llm =
        FakeLlm::start(json!([{"tool": tool(agent, &change), "usage": used()}, {"text": "done"}])).unwrap();
    let Some(sage) = team(&llm, &ONE.replace("AGENT", agent)) else { return };
    sage.write("gone.txt", "gone\n");
    repository(&sage);
    sage.write("mine.txt", "mine\n");
    sage.write("kept.txt", "one\ntwo\nstaged\n");
    git(&sage, &["add", "kept.txt"]);
    sage.write("kept.txt", "one\ntwo\nstaged\nunstaged\n");
    let before = private_parts(&sage);
    let run = sage.spawn("run x -t t --quiet");
    let expected = ["gone.txt", "kept.txt", "new file.txt"];
    let live = until_changed(&sage, &expected);
    sage.write("go", "");
    run.end().exit(0);
    // What comes later is not the step's.
    sage.write("later.txt", "later\n");
    let [done] = diffs(&sage, &[]).try_into().unwrap();
    assert_eq!((names(&done), &done["live"]), (expected.to_vec(), &false.into()), "{done}");
    assert_eq!(done["patch"], live["patch"]);
    let patch = sage.sage("diff x work/one").exit(0);
    assert!(
        patch.stdout.contains(" unstaged\n+three\n") && patch.stderr.starts_with("work/one\n"),
        "{}",
        patch.stdout
    );
    assert!(!patch.stdout.contains('\u{1b}') && !patch.stdout.contains("mine.txt"));
    sage.sage("diff x --stat").exit(0).stdout_has("3 files changed, 2 insertions(+), 1 deletion(-)");
    assert!(before == private_parts(&sage), "the repository is as it was");
    // It is a patch: taken back, the files are as they were.
    let file = sage.outside().join("change.patch");
    std::fs::write(&file, &patch.stdout).unwrap();
    git(&sage, &["apply", "-R", file.to_str().unwrap()]);
    assert_eq!(sage.lines("kept.txt"), ["one", "two", "staged", "unstaged"]);
    assert_eq!(sage.lines("gone.txt"), ["gone"]);
}

// covers: S6, R17
#[test]
fn what_claude_changes_in_the_checkout_is_shown() {
    in_checkout("claude");
}

// covers: S6, R17
#[test]
fn what_codex_changes_in_the_checkout_is_shown() {
    in_checkout("codex");
}

/// On a branch of its own, from which the diff is taken after the worktree is gone, too.
fn isolated(agent: &str) {
    let llm = FakeLlm::start(json!([
        {"tool": tool(agent, &format!("echo three >> kept.txt; echo new > new.txt; {}", HOLD.replace("go", "../../../../go")))},
        {"text": "done"},
    ]))
    .unwrap();
    let template = ONE.replace("agent: AGENT", &format!("agent: {agent}, isolation: worktree"));
    let Some(sage) = team(&llm, &template) else { return };
    repository(&sage);
    let run = sage.spawn("run x -t t --quiet");
    let live = until_changed(&sage, &["kept.txt", "new.txt"]);
    sage.write("go", "");
    run.end().exit(0);
    let [done] = diffs(&sage, &["work/one"]).try_into().unwrap();
    assert_eq!((&done["patch"], &done["live"]), (&live["patch"], &false.into()));
    let branch = done["branch"].as_str().unwrap();
    let shown = sage.sage("diff x work/one").exit(0);
    assert!(shown.stderr.contains(branch), "{}", shown.stderr);
    assert_eq!(shown.stdout.trim_end(), git(&sage, &["diff", "HEAD", branch]));
    assert_eq!(git(&sage, &["status", "--short"]), "", "nothing of it is in the checkout");
}

// covers: S6
#[test]
fn what_claude_changes_in_a_worktree_is_shown() {
    isolated("claude");
}

// covers: S6
#[test]
fn what_codex_changes_in_a_worktree_is_shown() {
    isolated("codex");
}

const MANY: &str = r#"
name: t
phases:
  - id: first
    operations: { type: agent, id: a, agent: fake, params: { prompt: p, script: [ { write: { a.txt: "a\n" }, say: x } ] } }
  - id: second
    dependencies: [first]
    operations: { type: agent, id: b, agent: fake, output: out/b.txt, params: { prompt: p, script: [ { say: "the text" } ] } }
  - id: third
    dependencies: [second]
    operations:
      - { type: shell, id: c, isolation: worktree, params: { run: "echo c > c.txt" } }
      - { type: shell, id: d, params: { run: "echo d > d.txt" } }
      - { type: agent, id: e, agent: fake, role: auditor, params: { prompt: p, script: [ { say: nothing } ] } }
"#;

// covers: S6
#[test]
fn all_steps_that_changed_something_are_shown_one_after_another() {
    let sage = Sage::new().template("t", MANY);
    repository(&sage);
    sage.sage("run x -t t --quiet").exit(0);
    let shown = sage.sage("diff x").exit(0);
    let heads: Vec<&str> = shown.stdout.lines().filter(|line| line.starts_with("diff --git")).collect();
    assert_eq!(
        heads,
        ["diff --git a/a.txt b/a.txt", "diff --git a/out/b.txt b/out/b.txt", "diff --git a/c.txt b/c.txt"]
    );
    assert!(shown.stdout.contains("+the text"), "what is written of a result is the step's");
    sage.sage("diff x third/d").exit(2).stderr_has("only agents are recorded");
    sage.sage("diff x third/e").exit(2).stderr_has("its agent changes no files");
    sage.sage("diff x nope").exit(2).stderr_has("no step `nope`");
    sage.sage("diff nope").exit(2);
    for run in ["x@2", "run_01K9ABCDEFGHJKMNPQRSTVWXYZ"] {
        sage.args(["diff", run]).run().exit(2).stderr_has("names a run");
    }
    // A killed attempt and its resume are one change, from before the first.
    let held = MANY.replace(
        "[ { say: \"the text\" } ]",
        "[ { write: { once.txt: x }, fault: hang }, { write: { twice.txt: y }, say: z } ]",
    );
    sage.write(".sage/templates/t.yaml", held);
    let run = sage.spawn("run y -t t --quiet");
    wait_until(|| sage.path("once.txt").exists(), DEADLINE, "the first attempt");
    run.kill();
    sage.sage("resume y --quiet").exit(0);
    let changed = sage.args(["diff", "y", "second/b", "--json"]).run().exit(0).json();
    assert_eq!(names(&changed), ["once.txt", "out/b.txt", "twice.txt"], "{changed}");
}

// covers: R17
#[test]
fn a_diff_needs_a_repository_and_obeys_no_record() {
    let sage = Sage::new().template("t", MANY.split("  - id: third").next().unwrap());
    sage.sage("run x -t t --quiet").exit(0);
    sage.sage("diff x").exit(0).stderr_has("no step of x changed a file that was recorded");
    sage.sage("diff x first/a").exit(2).stderr_has("not in a git repository");
    repository(&sage);
    sage.sage("run x -t t --quiet --new").exit(0);
    let dir = sage.latest_dir("x").join("steps/second.b");
    let record = std::fs::read_to_string(dir.join("trees.json")).unwrap();
    let target = sage.outside().join("written");
    let before = serde_json::from_str::<Value>(&record).unwrap()["before"].as_str().unwrap().to_string();
    std::fs::write(
        dir.join("trees.json"),
        record.replace(&before, &format!("--output={}", target.display())),
    )
    .unwrap();
    sage.sage("diff x second/b").exit(1).stderr_has("the record of its changes is damaged");
    assert!(!target.exists());
}
