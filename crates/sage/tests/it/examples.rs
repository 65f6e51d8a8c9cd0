//! The three sample projects, without a model and without a key: what a stranger sees first.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::dsl::{DEADLINE, Sage, git, wait_until};

/// A project, what is asked of it, and names of its own that the documents must have.
struct Sample {
    name: &'static str,
    title: &'static str,
    slug: &'static str,
    files: &'static [&'static str],
    functions: &'static [&'static str],
}

const SAMPLES: [Sample; 3] = [
    Sample {
        name: "shop",
        title: "payment processing",
        slug: "payment-processing",
        files: &["shop/payments.py", "shop/orders.py"],
        functions: &["charge", "refund"],
    },
    Sample {
        name: "ledger",
        title: "multi currency",
        slug: "multi-currency",
        files: &["src/money.rs"],
        functions: &["Amount"],
    },
    Sample {
        name: "board",
        title: "due dates",
        slug: "due-dates",
        files: &["src/board.ts"],
        functions: &["Card"],
    },
];

/// A copy of a sample in a place of its own.
fn copy(sample: &Sample) -> Sage {
    copy_named(sample.name)
}

pub fn copy_named(name: &str) -> Sage {
    copy_into(Sage::bare(), name)
}

pub fn copy_into(sage: Sage, name: &str) -> Sage {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    copy_dir(&from, sage.root());
    sage
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        // What builds and earlier runs have left is not part of the sample.
        if ["target", "node_modules", "state", "cache", "specs", "tickets", "work", "dist"]
            .iter()
            .any(|left| name == *left)
        {
            continue;
        }
        if path.is_dir() {
            copy_dir(&path, &to.join(name))
        } else {
            std::fs::copy(&path, to.join(name)).map(drop).unwrap()
        }
    }
}

/// Planned, and nothing implemented: that is no plain success.
fn run(sage: &Sage, title: &str) -> Value {
    let done = sage.args(["run", title, "--json"]).run().exit(3);
    done.json_lines().pop().unwrap()["results"]["metrics"].clone()
}

fn read(sage: &Sage, sample: &Sample, file: &str) -> String {
    let path: PathBuf = sage.path(&format!("docs/specs/{}/{file}", sample.slug));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Time that the steps of a run took, all together.
fn step_ms(sage: &Sage, slug: &str) -> u64 {
    let status = sage.status(slug);
    status["steps"].as_array().unwrap().iter().map(|step| step["elapsedMs"].as_u64().unwrap()).sum()
}

// covers: R6, R3
#[test]
fn each_sample_gets_a_specification_and_a_plan_that_name_its_own_code() {
    for sample in &SAMPLES {
        let sage = copy(sample);
        let metrics = run(&sage, sample.title);
        assert_eq!(metrics["contextReloads"], 0, "{}", sample.name);
        assert_eq!(metrics["totalTokens"], 0, "{}: nothing is spent", sample.name);
        assert!(metrics["speedup"].as_f64() > Some(1.0), "{}: {metrics}", sample.name);
        for document in ["spec.md", "plan.md"] {
            let text = read(&sage, sample, document);
            for name in sample.files.iter().chain(sample.functions) {
                assert!(text.contains(name), "{}: `{name}` is not in {document}:\n{text}", sample.name);
            }
        }
        assert!(read(&sage, sample, "patterns.md").lines().count() > 10);
        // Work that needs a mind is a ticket, not invented code.
        assert!(!sage.sage("tickets ready --json").exit(0).json()["tickets"].as_array().unwrap().is_empty());
    }
}

// covers: R6, R22
#[test]
fn trying_a_sample_leaves_nothing_that_git_would_show() {
    for name in ["shop", "ledger", "board", "flows", "faults"] {
        let sage = copy_named(name);
        git(&sage, &["init", "-q"]);
        git(&sage, &["add", "-A"]);
        git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "-m", "start"]);
        sage.args(["run", "payment processing", "-t", "feature", "--agent", "offline", "--quiet"])
            .run()
            .exit(3);
        assert!(sage.path(".sage/tickets/index.json").exists(), "{name}");
        // The template that it has by default.
        sage.args(["run", "as it is", "--quiet"]).run();
        assert_eq!(git(&sage, &["status", "--porcelain"]), "", "{name}");
    }
}

// covers: R11, R19
#[test]
fn a_repeated_workflow_comes_from_the_cache() {
    for sample in &SAMPLES {
        let sage = copy(sample);
        run(&sage, sample.title);
        let first = step_ms(&sage, sample.slug);
        let metrics = run(&sage, sample.title);
        let second = step_ms(&sage, sample.slug);
        let rate = metrics["cacheHitRate"].as_f64().unwrap();
        println!("{}: {:.0} % hits, steps {first} ms, then {second} ms", sample.name, rate * 100.0);
        assert!(rate >= 0.6, "{}: {metrics}", sample.name);
        assert!(metrics["tokensSaved"].is_u64());
    }
}

// covers: R5
#[test]
fn a_killed_run_of_a_sample_goes_on_where_it_was() {
    let sage = copy(&SAMPLES[0]);
    let mut command = sage.args(["run", "payment processing", "--quiet", "--sequential"]).spawn();
    command.until(|| sage.engine().latest("payment-processing").is_some(), "the run");
    wait_until(|| sage.journal("payment-processing").succeeded().len() >= 2, DEADLINE, "two finished steps");
    command.kill();
    sage.sage("resume payment-processing --quiet").exit(3);
    sage.journal("payment-processing").assert_nothing_repeated();
    assert_eq!(
        sage.status("payment-processing")["verdict"],
        "degraded",
        "planned, and nothing was implemented"
    );
}
