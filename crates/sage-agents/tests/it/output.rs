//! What programs print, however they do it.

use std::os::unix::fs::FileExt;

use sage_core::policy::FailureClass;
use sage_core::port::Progress;

use crate::bench::{Bench, mode, sage, until};

// covers: R20
#[tokio::test]
async fn fifty_megabytes_are_cut_and_memory_stays_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let script = "head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2";
    let mut own = tokio::process::Command::new(sage());
    let output = own.arg("own").arg(dir.path()).arg(script).output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (truncated, peak_kib) = text.trim().split_once(' ').unwrap();
    assert_eq!(truncated, "true");
    let peak_mib = peak_kib.parse::<u64>().unwrap() / 1024;
    assert!(peak_mib < 100, "peak of {peak_mib} MiB for two streams of 16 MiB");
    let log = std::fs::metadata(dir.path().join("scratch/stdout.log")).unwrap();
    assert_eq!(log.len(), 16 * 1024 * 1024);
}

#[tokio::test]
async fn a_cut_result_says_so_and_messages_still_quote_the_end() {
    let bench = Bench::shell("seq 1 100000; seq 1 100000 >&2; exit 4").output_cap(1_000);
    let failure = bench.run().await.failed(FailureClass::Failed).says("99999\n100000");
    assert_eq!(failure.partial["truncated"], true);
    assert_eq!(failure.partial["stdout"].as_str().unwrap().len(), 1_000);
    assert!(failure.partial["stdout"].as_str().unwrap().starts_with("1\n2\n3\n"));
}

#[tokio::test]
async fn no_newline_nul_escapes_and_invalid_utf8_are_data() {
    let script = r"printf 'a\000b\377\033[31mred\033[0m\r\nh\303\251\355\240\200'";
    let stdout = Bench::shell(script).run().await.succeeded()["stdout"].clone();
    let expected = "a\0b\u{fffd}\u{1b}[31mred\u{1b}[0m\r\nhé\u{fffd}\u{fffd}\u{fffd}";
    assert_eq!(stdout, expected);
}

#[tokio::test]
async fn output_can_be_watched_while_the_step_runs() {
    let bench = Bench::shell("echo first; while ! test -e go; do sleep 0.01; done; echo second");
    let log = bench.path(".scratch/stdout.log");
    let story = async {
        until("the live log", || bench.read(".scratch/stdout.log") == "first\n").await;
        assert_eq!(mode(&log), 0o600);
        std::fs::write(bench.path("go"), "").unwrap();
    };
    assert_eq!(bench.run_with(story).await.succeeded()["stdout"], "first\nsecond\n");
    assert_eq!(bench.read(".scratch/stdout.log"), "first\nsecond\n");
    let progress = bench.progress.lock().unwrap();
    assert!(matches!(progress[0], Progress::Spawned { .. }));
    assert!(progress.iter().filter(|it| matches!(it, Progress::Alive)).count() >= 2);
}

#[tokio::test]
async fn closing_the_output_is_not_the_end() {
    let bench = Bench::shell("exec >&- 2>&-; while ! test -e go; do sleep 0.01; done; echo x > done; exit 5");
    let story = async {
        until("the start", || bench.spawned_pid().is_some()).await;
        std::fs::write(bench.path("go"), "").unwrap();
    };
    let failure = bench.run_with(story).await.failed(FailureClass::Failed);
    assert_eq!(failure.message, "exit code 5");
    assert_eq!(bench.read("done"), "x\n");
}

#[tokio::test]
async fn a_full_log_directory_does_not_cost_the_result() {
    let bench = Bench::shell("echo fine");
    // A log that cannot be written: a directory has its name.
    std::fs::create_dir(bench.path(".scratch/stdout.log")).unwrap();
    assert_eq!(bench.run().await.succeeded()["stdout"], "fine\n");
}

#[tokio::test]
async fn standard_input_is_empty() {
    assert_eq!(Bench::shell("cat; echo end").run().await.succeeded()["stdout"], "end\n");
}

#[tokio::test]
async fn a_second_call_of_the_same_attempt_starts_with_fresh_files() {
    let bench = Bench::shell("echo twice");
    bench.run().await.succeeded();
    let log = std::fs::File::options().write(true).open(bench.path(".scratch/stdout.log")).unwrap();
    log.write_at(b"old and longer than the new one", 0).unwrap();
    bench.run().await.succeeded();
    assert_eq!(bench.read(".scratch/stdout.log"), "twice\n");
}
