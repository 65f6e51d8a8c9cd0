//! What a short run asks of the disk: syncs, which cost more than all else in it, and journals of other runs.

use crate::dsl::Sage;

/// At most so many syncs for a run of one step: in a project that has no state yet, and in one that has.
const FRESH: usize = 8;
const KNOWN: usize = 5;

const HELLO: &str = "
name: hello
phases:
  - id: p
    operations: [{ id: a, type: shell, params: { run: 'true' } }]
";

/// The system calls of a whole run, one a line; `None` if strace cannot trace here.
fn calls_of(sage: &Sage, feature: &str, calls: &str) -> Option<String> {
    let trace = sage.outside().join("trace");
    let mut strace = sage.args([""; 0]).command_of("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"]);
    strace.arg(&trace).arg(env!("CARGO_BIN_EXE_sage")).args(["run", feature, "-t", "hello"]);
    let output = strace.output().ok()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("ptrace") || stderr.contains("PTRACE") {
        return None;
    }
    assert!(output.status.success(), "{stderr}");
    let text = std::fs::read_to_string(&trace).unwrap();
    // A call that was interrupted by another thread's has a second line.
    let whole: Vec<&str> = text.lines().filter(|line| !line.contains("resumed>")).collect();
    Some(whole.join("\n"))
}

fn syncs_of(sage: &Sage, feature: &str) -> Option<usize> {
    let calls = calls_of(sage, feature, "fsync,fdatasync,sync,syncfs,sync_file_range")?;
    Some(calls.lines().filter(|line| line.contains("sync")).count())
}

// covers: R4
#[test]
fn a_run_of_one_step_syncs_only_what_must_survive_a_power_cut() {
    let sage = Sage::bare();
    sage.write("sage.toml", "");
    std::fs::create_dir_all(sage.path(".sage/templates")).unwrap();
    sage.write(".sage/templates/hello.yaml", HELLO);
    // The user has a key, from another project.
    if syncs_of(&sage, "first").is_none() {
        println!("skipped: strace is missing or may not trace here");
        return;
    }
    std::fs::remove_dir_all(sage.path(".sage/state")).unwrap();
    let fresh = syncs_of(&sage, "first").unwrap();
    let known = syncs_of(&sage, "second").unwrap();
    println!("syncs: {fresh} in a fresh project, {known} in a known one");
    assert!((2..=FRESH).contains(&fresh), "{fresh} syncs in a fresh project");
    assert!((2..=KNOWN).contains(&known), "{known} syncs in a known project");
}

// covers: R20
#[test]
fn a_start_does_not_read_the_journals_of_older_runs() {
    let sage = Sage::new().template("hello", HELLO);
    let runs = || std::fs::read_dir(sage.path(".sage/state/runs")).map_or(0, Iterator::count);
    let opened = || {
        let calls = calls_of(&sage, "x", "open,openat")?;
        let of_run =
            |line: &str| Some(line.split_once("/runs/")?.1.split_once("/journal.jsonl")?.0.to_string());
        let ids: std::collections::BTreeSet<String> = calls.lines().filter_map(of_run).collect();
        Some(ids.len())
    };
    sage.sage("run x -t hello").exit(0);
    let Some(first) = opened() else {
        println!("skipped: strace is missing or may not trace here");
        return;
    };
    for _ in 0..10 {
        sage.sage("run x -t hello").exit(0);
    }
    assert_eq!(opened(), Some(first), "of {} runs: the new one and the one before", runs());
}
