//! `output`: a person's text is never overwritten, a fork has files of its own, long outputs are whole, and
//! nothing that configures agents is written.

use std::time::Duration;

use serde_json::json;

use crate::dsl::{Sage, wait_until};
use crate::mcp_server::client::{BOTH, Client};

fn read(sage: &Sage, path: &str) -> String {
    std::fs::read_to_string(sage.path(path)).unwrap_or_default()
}

/// A step that writes `text` to `docs/hello.md`.
fn hello(text: &str) -> String {
    format!(
        "name: hello\nphases:\n  - id: tell\n    operations: {{ id: report, type: shell, output: docs/hello.md, params: {{ run: \"printf '%s' '{text}'\" }} }}\n  - id: use\n    dependencies: [tell]\n    operations: {{ id: file, type: shell, params: {{ argv: [echo, '{{{{ steps[\"tell/report\"].artifacts | join(\",\") }}}}'] }} }}\n"
    )
}

// covers: R6, R22
#[test]
fn answers_in_a_specification_survive_the_next_run_of_the_feature() {
    let sage = Sage::bare();
    sage.write("shop/cart.py", "def total(items):\n    return sum(items)\n");
    sage.write("README.md", "# Shop\n\nA very small shop.\n");
    let spec = "docs/specs/payment-processing/spec.md";
    sage.args(["run", "payment processing"]).run().exit(3).stderr_lacks("note: `docs");
    let first = read(&sage, spec);
    assert!(first.contains("payment processing"), "{first}");
    let edited = format!("{first}\nQ1: by card.\n");
    sage.write(spec, &edited);
    let again = sage.args(["run", "payment processing"]).run().exit(3);
    let told = format!(
        "`{spec}` was edited since Sage wrote it; wrote `{}` instead",
        spec.replace(".md", ".new.md")
    );
    assert!(again.stdout.contains(&told) || again.stderr.contains(&told), "{}{}", again.stdout, again.stderr);
    assert_eq!(read(&sage, spec), edited);
    assert_eq!(read(&sage, "docs/specs/payment-processing/spec.new.md"), first);
    // Nothing is new any more: nothing is written.
    let before = sage.listing();
    sage.args(["run", "payment processing", "--quiet"]).run().exit(3);
    let specs =
        |list: Vec<String>| list.into_iter().filter(|path| path.contains("docs/")).collect::<Vec<_>>();
    assert_eq!(specs(before), specs(sage.listing()));
    let summary =
        sage.args(["run", "payment processing", "--json"]).run().exit(3).json_lines().pop().unwrap();
    assert_eq!(summary["notices"], json!([told]), "{summary}");
    assert_eq!(sage.status("payment-processing")["notices"], json!([told]));
}

// covers: R6, R16
#[test]
fn a_file_of_a_person_gets_a_neighbour_that_later_steps_know_over_mcp_too() {
    for era in BOTH {
        let sage = Sage::new().template("hello", &hello("from sage"));
        sage.write("docs/hello.md", "by hand");
        let mut client = Client::start(&sage, era);
        let reply = client.call("sage_workflow_execute", json!({"feature": "greet", "template": "hello"}));
        let text = reply.text.clone();
        let done = reply.good();
        let told = "`docs/hello.md` was not written by Sage; wrote `docs/hello.new.md` instead";
        assert_eq!(done["notices"], json!([format!("note: {told}")]), "{done}");
        assert!(text.contains(told), "{text}");
        assert_eq!(done["results"]["phases"][1]["results"]["file"]["stdout"], "docs/hello.new.md\n");
        let status = client.call("sage_workflow_status", json!({"feature": "greet"})).good();
        assert_eq!(status["notices"], json!([told]), "{status}");
        assert_eq!(
            (read(&sage, "docs/hello.md"), read(&sage, "docs/hello.new.md")),
            ("by hand".into(), "from sage".into())
        );
    }
}

// covers: R5, R6
#[test]
fn a_run_that_is_killed_between_its_file_and_its_result_knows_its_own_text() {
    // The file is written before it is expected to be good, and that takes until somebody says so.
    let text = "name: t\nphases:\n  - id: p\n    operations: { id: s, type: shell, output: out.md, expect: { command: \"touch up; until [ -e go ]; do sleep 0.02; done\" }, params: { run: \"date +%s%N\" } }\n";
    let sage = Sage::new().template("t", text);
    let mut run = sage.spawn("run x -t t");
    run.until(|| sage.path("up").exists(), "the expectation is looked at");
    let first = read(&sage, "out.md");
    assert!(!first.is_empty());
    run.kill();
    sage.write("go", "");
    let outcome = sage.sage("resume x").exit(0);
    assert!(!outcome.stdout.contains("instead") && !outcome.stderr.contains("instead"));
    assert_ne!(read(&sage, "out.md"), first, "the second attempt has written its own text");
    assert!(!sage.path("out.new.md").exists());
}

// covers: R6
#[test]
fn a_fork_keeps_both_files() {
    let sage = Sage::new().template("hello", &hello("first")).template("other", &hello("second"));
    sage.sage("run one -t hello --quiet").exit(0);
    let fork =
        sage.args(["fork", "one", "--from", "tell/report", "--as", "two", "-t", "other"]).run().exit(0);
    let told = "wrote `docs/hello.two.md` instead";
    assert!(fork.stdout.contains(told) || fork.stderr.contains(told), "{}{}", fork.stdout, fork.stderr);
    assert_eq!(
        (read(&sage, "docs/hello.md"), read(&sage, "docs/hello.two.md")),
        ("first".into(), "second".into())
    );
    assert_eq!(sage.results("two")[1]["results"]["file"]["stdout"], "docs/hello.two.md\n");
    // What was taken over from the first run is still where it wrote it.
    assert_eq!(sage.results("one")[1]["results"]["file"]["stdout"], "docs/hello.md\n");
    // A fork that is called like a directory on the path is no other.
    sage.args(["fork", "one", "--from", "tell/report", "--as", "docs", "-t", "other"]).run().exit(0);
    assert_eq!(
        (read(&sage, "docs/hello.md"), read(&sage, "docs/hello.docs.md")),
        ("first".into(), "second".into())
    );
}

// covers: R6
#[test]
fn a_fork_of_a_template_that_names_files_by_feature_has_its_own_names() {
    let named = |text: &str| hello(text).replace("docs/hello.md", "'docs/{{ feature }}.md'");
    let sage = Sage::new().template("hello", &named("first")).template("other", &named("second"));
    sage.sage("run one -t hello --quiet").exit(0);
    sage.args(["fork", "one", "--from", "tell/report", "--as", "two", "-t", "other"]).run().exit(0);
    assert_eq!((read(&sage, "docs/one.md"), read(&sage, "docs/two.md")), ("first".into(), "second".into()));
}

// covers: R5, R10
#[test]
fn a_reused_result_is_back_in_its_file_after_an_edit_was_taken_back() {
    let sage = Sage::new().template("hello", &hello("first"));
    sage.sage("run x -t hello --quiet").exit(0);
    sage.write(".sage/templates/hello.yaml", hello("second"));
    sage.sage("resume x -t hello --quiet").exit(0);
    assert_eq!(read(&sage, "docs/hello.md"), "second");
    sage.write(".sage/templates/hello.yaml", hello("first"));
    sage.sage("resume x -t hello --quiet").exit(0);
    assert_eq!(read(&sage, "docs/hello.md"), "first");
    assert_eq!(sage.journal("x").reused_after(0).len(), 2, "nothing ran a third time");
    // Edited by a person, it is left alone.
    sage.write("docs/hello.md", "first, edited");
    sage.write(".sage/templates/hello.yaml", hello("first") + "description: changed\n");
    sage.sage("resume x -t hello --quiet").exit(0);
    assert_eq!(read(&sage, "docs/hello.md"), "first, edited");
    assert!(!sage.path("docs/hello.new.md").exists());
}

// covers: R6
#[test]
fn an_output_that_is_longer_than_a_result_is_written_whole() {
    let text = "name: t\nphases:\n  - id: p\n    operations: { id: s, type: shell, output: out.txt, params: { run: \"head -c 40000000 /dev/zero | tr '\\\\0' x\" } }\n";
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t --quiet").exit(0);
    let length = std::fs::metadata(sage.path("out.txt")).unwrap().len();
    assert_eq!(length, 40_000_000);
    let results = sage.results("x");
    let result = &results[0]["results"]["s"];
    assert_eq!((&result["truncated"], &result["stdoutBytes"]), (&json!(true), &json!(40_000_000)));
    // The log beside the journal does not keep a second copy.
    let log = sage.latest_dir("x").join("steps/p.s/1/stdout.log");
    assert!(std::fs::metadata(log).unwrap().len() <= 16 << 20);
}

/// The output file is written before the result: both are there in the end, whichever had to wait.
// covers: R6, R15
#[test]
fn an_output_that_is_longer_than_a_result_is_whole_after_trouble_with_the_result() {
    let script = "blobs=.sage/state/runs/$SAGE_RUN/blobs; rm -rf $blobs; touch $blobs; \
                  head -c 40000000 /dev/zero | tr '\\\\0' x; echo ran >> ran";
    let text = format!(
        "name: t\nphases:\n  - id: p\n    operations: {{ id: s, type: shell, output: out.txt, params: {{ run: \"{script}\" }} }}\n"
    );
    let sage = Sage::new().template("t", &text);
    let running = sage.spawn("run x -t t");
    let told = || running.stdout() + &running.stderr();
    wait_until(
        || told().contains("cannot store the result of `p/s`"),
        Duration::from_secs(60),
        "the warning",
    );
    std::fs::remove_file(sage.latest_dir("x").join("blobs")).unwrap();
    running.end().exit(0);
    assert_eq!(sage.lines("ran"), ["ran"]);
    assert_eq!(std::fs::metadata(sage.path("out.txt")).unwrap().len(), 40_000_000);
    sage.sage("verify").exit(0);
}

// covers: R17
#[test]
fn no_output_is_written_to_what_configures_agents() {
    let sage = Sage::new();
    std::os::unix::fs::symlink(".git", sage.path("link")).unwrap();
    std::fs::create_dir_all(sage.path(".git/hooks")).unwrap();
    std::fs::create_dir_all(sage.path("nested/.git/hooks")).unwrap();
    let paths = [
        ".mcp.json",
        ".MCP.json",
        "sage.toml",
        "./sage.toml",
        ".sage/operations/test.run.md",
        ".sage/templates/hello.yaml",
        ".sage./x",
        ".git/hooks/pre-commit",
        "link/hooks/pre-commit",
        "nested/.git/hooks/x",
        ".claude/settings.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        "docs/.Claude/x",
        ".g\u{200d}it/config",
    ];
    for (number, path) in paths.into_iter().enumerate() {
        let text = format!(
            "name: t\nphases:\n  - id: p\n    operations: {{ id: s, type: shell, output: {}, params: {{ run: touch ran; echo evil }} }}\n",
            json!(path)
        );
        sage.write("t.yaml", text);
        let outcome = sage.args(["run", &format!("x{number}"), "-t", "t.yaml"]).run();
        assert_eq!(outcome.code, 1, "{path}: {}{}", outcome.stdout, outcome.stderr);
        assert!((outcome.stdout + &outcome.stderr).contains("protected"), "{path}");
    }
    for path in [".mcp.json", "sage.toml", ".claude", ".codex", ".gemini", ".sage/operations", "docs", "ran"]
    {
        assert!(!sage.path(path).exists(), "{path}");
    }
    for hooks in [".git/hooks", "nested/.git/hooks"] {
        assert_eq!(std::fs::read_dir(sage.path(hooks)).unwrap().count(), 0);
    }
    wait_until(|| sage.alive().is_empty(), crate::dsl::DEADLINE, "nothing is left");
}
