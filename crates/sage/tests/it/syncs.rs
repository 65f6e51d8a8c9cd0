//! How often a run makes something durable: a sync costs more than all else in a short run.

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

/// Counts the calls of a whole run with strace; `None` if it cannot trace here.
fn syncs_of(sage: &Sage, feature: &str) -> Option<usize> {
    let trace = sage.outside().join("trace");
    let mut strace = sage.args([""; 0]).command_of("strace");
    strace.args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync,syncfs,sync_file_range", "-o"]);
    strace.arg(&trace).arg(env!("CARGO_BIN_EXE_sage")).args(["run", feature, "-t", "hello"]);
    let output = strace.output().ok()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("ptrace") || stderr.contains("PTRACE") {
        return None;
    }
    assert!(output.status.success(), "{stderr}");
    let text = std::fs::read_to_string(&trace).unwrap();
    // A call that was interrupted by another thread's is told twice.
    Some(text.lines().filter(|line| line.contains("sync") && !line.contains("resumed>")).count())
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
