//! The ten scripts, each with what it must give.

use serde_json::{Value, json};

use super::{asked, project, value};
use crate::dsl::Sage;

#[track_caller]
fn run(name: &str, more: &[&str], exit: i32) -> (Sage, Value) {
    let sage = project();
    sage.args(["run", "x", "-t", name].iter().chain(more)).run().exit(exit);
    let value = value(&sage);
    (sage, value)
}

// covers: R21; CLAUDE_WORKFLOWS "agent", "parallel"
#[test]
fn fan_out_with_a_schema() {
    let (sage, value) = run("fan-out", &[], 0);
    let titles: Vec<&str> =
        value["findings"].as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["open door", "no test", "slow loop"]);
    assert_eq!(value["report"], "About open door, no test, slow loop.");
    assert_eq!(asked(&sage).len(), 4);
    let status = sage.status("x");
    assert_eq!(status["verdict"], "succeeded");
    assert_eq!(status["metrics"]["totalTokens"], 4_000);
    sage.sage("logs x")
        .exit(0)
        .stdout_has("3 findings from 3 reviewers")
        .stdout_has("review/review-security");
}

// covers: R21; CLAUDE_WORKFLOWS "pipeline"
#[test]
fn files_through_a_pipeline() {
    let (_, value) = run("pipeline", &[], 0);
    let list = value.as_array().unwrap();
    assert_eq!(list.len(), 4);
    assert_eq!(
        list[1],
        json!({"file": "b.py", "index": 1, "summary": "the text of b.py", "ok": false, "why": "a typo", "mended": "mended"})
    );
    assert_eq!(list[3]["mended"], false);
    let (_, value) = run("pipeline", &["-i", r#"args=["b.py"]"#], 0);
    assert_eq!(value.as_array().unwrap().len(), 1);
}

// covers: R21; CLAUDE_WORKFLOWS "phases[].model"
#[test]
fn skeptics_refute_what_is_not_there() {
    let (sage, value) = run("skeptics", &[], 0);
    assert_eq!(value["confirmed"], json!(["leak", "race"]));
    let votes: Vec<&Value> = value["all"].as_array().unwrap().iter().map(|bug| &bug["refuted"]).collect();
    assert_eq!(votes, [1, 0, 2]);
    assert_eq!(asked(&sage).len(), 10);
}

// covers: R21
#[test]
fn a_search_goes_on_until_it_is_dry() {
    let (_, value) = run("until-dry", &[], 0);
    assert_eq!(value, json!({"rounds": 4, "found": ["a", "b", "c", "d"]}));
}

// covers: R21; CLAUDE_WORKFLOWS "workflow"
#[test]
fn workflows_inside_of_workflows() {
    let (sage, value) = run("nested", &[], 0);
    assert_eq!(value["findings"], 3);
    assert_eq!(value["mapped"], json!({"files": 2, "total": 10, "rounds": 1}));
    assert_eq!(value["said"], "compared: Compare 3 findings with 2 files.");
    assert_eq!(asked(&sage).len(), 4 + 3 + 1);
}

// covers: R21, R18; CLAUDE_WORKFLOWS "budget"
#[test]
fn the_budget_refuses_further_agents() {
    let (sage, value) = run("budget", &["--budget", "3000"], 0);
    assert_eq!(
        value,
        json!({"parts": 3, "refused": true, "words": true, "total": 3_000, "left": 0, "spent": 3_000})
    );
    assert_eq!(asked(&sage).len(), 3);
    let (_, value) = run("budget", &[], 0);
    assert_eq!(
        value,
        json!({"parts": 20, "refused": false, "words": false, "total": null, "left": null, "spent": 20_000})
    );
}

pub fn git(sage: &Sage, args: &[&str]) -> String {
    crate::dsl::git(sage, &[&["-c", "user.name=u", "-c", "user.email=u@h"], args].concat())
}

pub fn with_git(sage: &Sage) {
    git(sage, &["init", "-q", "-b", "main"]);
    sage.write("door.txt", "plain\n");
    sage.write(".gitignore", "*.out\n.sage\n");
    git(sage, &["add", "-A"]);
    git(sage, &["commit", "-qm", "start"]);
}

// covers: R21, S6; CLAUDE_WORKFLOWS "isolation"
#[test]
fn agents_in_worktrees_do_not_meet() {
    let sage = project();
    with_git(&sage);
    let ran = sage.sage("run x -t worktrees").exit(0);
    ran.stderr_has("2 steps have work in worktrees of their own").stderr_has("hint: git merge sage/x/");
    let left = sage.status("x")["worktrees"].clone();
    assert_eq!(left.as_array().map(Vec::len), Some(2), "{left}");
    let value = value(&sage);
    assert_eq!(value["written"], json!(["painted red where it is red", "painted blue where it is blue"]));
    assert_eq!(value["same"], "plain");
    assert_eq!(git(&sage, &["status", "--porcelain"]), "");
}

// covers: R21, S6; CLAUDE_WORKFLOWS "isolation: 'worktree' (removed if unchanged)"
#[test]
fn an_agent_that_changes_nothing_leaves_no_worktree() {
    let sage = super::script("return await agent('say hi', { isolation: 'worktree' })");
    with_git(&sage);
    sage.sage("run x -t t").exit(0).stderr_lacks("in worktrees of their own");
    assert_eq!(value(&sage), "hi");
    assert_eq!(git(&sage, &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(git(&sage, &["branch", "--list", "sage/*"]), "");
    assert!(sage.status("x")["worktrees"].is_null());
}

// covers: R21, R7; CLAUDE_WORKFLOWS "A run's verdict"
#[test]
fn dead_agents_are_null_and_named() {
    let (sage, value) = run("losses", &[], 3);
    assert_eq!(value["answers"], json!(["did part 1.", null, "did part 3.", null, "did part 5."]));
    assert_eq!(value["thrown"], json!([null, "fine"]));
    assert_eq!(value["piped"], json!([2, null, 6]));
    assert_eq!(value["sum"], "Sum up 3 of 5 parts: did part 1.; did part 3.; did part 5.");
    let status = sage.status("x");
    assert_eq!(
        (&status["status"], &status["verdict"]),
        (&"completed".into(), &"degraded".into()),
        "{status:#}"
    );
    for step in ["work/part-2", "work/part-4"] {
        assert_eq!(sage.state_of("x", step), "failed");
        let told = status.to_string();
        assert!(told.contains(step));
    }
    let told = sage.sage("resume x");
    assert!(told.stdout.contains("work/part-2") && told.stdout.contains("work/part-4"), "{}", told.stdout);
}

// covers: R21
#[test]
fn a_panel_of_judges_chooses() {
    let (_, value) = run("judges", &[], 0);
    assert_eq!(value["winner"], "the safest");
    assert_eq!(value["scores"], json!([8.5, 5, 3]));
    assert_eq!(value["final"], "Take from the others: few lines, few lines, colors, colors");
}

// covers: R21; CLAUDE_WORKFLOWS "args"
#[test]
fn map_and_reduce_over_arguments() {
    let files: Vec<String> = (0..20).map(|n| format!("file-{n}.txt")).collect();
    let total: usize = files.iter().map(|file| file.len()).sum();
    let given = format!("files={}", json!(files));
    let (sage, value) = run("map-reduce", &["-i", &given, "--parallel", "8"], 0);
    assert_eq!(value, json!({"files": 20, "total": total, "rounds": 3}));
    assert_eq!(asked(&sage).len(), 20 + 7 + 3 + 1);
    let sage = project();
    sage.sage("run x -t map-reduce")
        .exit(1)
        .stdout_has("args.files must be a list")
        .stdout_has("map-reduce.js:8:");
}

// covers: R21
#[test]
fn all_ten_are_templates_that_can_be_listed_and_checked() {
    let sage = project();
    let listed = sage.sage("templates").exit(0).stdout;
    for (name, _) in super::SCRIPTS {
        assert!(listed.contains(name), "{name} is not in {listed}");
        sage.args(["validate", name]).run().exit(0);
    }
    assert!(listed.contains("Look at a change from several sides at once"), "{listed}");
}
