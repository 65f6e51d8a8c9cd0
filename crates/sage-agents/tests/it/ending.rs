//! Stops, timeouts and drops: how an attempt ends before its program wants to.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use sage_core::policy::FailureClass;
use sage_core::port::Stop;

use crate::bench::{Bench, alive, kill, marked, until};

const LONG_GRACE: Duration = Duration::from_secs(60);

// covers: S4
#[tokio::test]
async fn a_graceful_stop_lets_the_program_clear_up() {
    let script = "trap 'echo saved > state; exit 0' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let bench = Bench::shell(script).grace(LONG_GRACE);
    let story = async {
        bench.pid("pid").await;
        bench.cx.stop.set(Stop::Graceful);
    };
    // Exit 0 after a stop is not a success: it did what it was told, not what it was for.
    bench.run_with(story).await.stopped();
    assert_eq!(bench.read("state"), "saved\n");
}

// covers: S4
#[tokio::test]
async fn a_program_that_ignores_sigterm_dies_after_the_grace() {
    let script = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 1; done";
    let bench = Bench::shell(script).grace(Duration::from_millis(200));
    let story = async {
        bench.pid("pid").await;
        bench.cx.stop.set(Stop::Graceful);
    };
    let start = Instant::now();
    bench.run_with(story).await.stopped();
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(!alive(bench.pid("pid").await));
}

#[tokio::test]
async fn stop_now_does_not_wait_for_anything() {
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done";
    let bench = Bench::shell(script).grace(LONG_GRACE);
    let story = async {
        bench.pid("pid").await;
        bench.cx.stop.set(Stop::Now);
    };
    bench.run_with(story).await.stopped();
}

#[tokio::test]
async fn stop_now_overtakes_a_graceful_stop() {
    let script = "trap 'echo t > termed' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let bench = Bench::shell(script).grace(LONG_GRACE);
    let story = async {
        bench.pid("pid").await;
        bench.cx.stop.set(Stop::Graceful);
        until("the trap", || !bench.read("termed").is_empty()).await;
        bench.cx.stop.set(Stop::Now);
    };
    bench.run_with(story).await.stopped();
}

#[tokio::test]
async fn a_stop_before_the_start_stops_too() {
    for stop in [Stop::Graceful, Stop::Now] {
        let bench = Bench::shell("sleep 100");
        bench.cx.stop.set(stop);
        bench.run().await.stopped();
    }
}

#[tokio::test]
async fn stopped_processes_hear_the_stop() {
    let script = "trap 'echo t > termed; exit 0' TERM; echo $$ > pid; kill -STOP $$; sleep 100";
    let bench = Bench::shell(script).grace(LONG_GRACE);
    let story = async {
        let pid = bench.pid("pid").await;
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        until("the stopped shell", || stat().contains(") T ")).await;
        bench.cx.stop.set(Stop::Graceful);
    };
    bench.run_with(story).await.stopped();
    assert_eq!(bench.read("termed"), "t\n");
}

// covers: R14
#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let bench = Bench::shell("echo half; sleep 100 & sleep 100").timeout(300);
    let start = Instant::now();
    let failure = bench.run().await.failed(FailureClass::Timeout).says("timed out after 300ms");
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(failure.partial["stdout"], "half\n");
}

// covers: R14, S4
#[tokio::test]
async fn a_timeout_counts_also_when_the_program_gives_in_with_exit_0() {
    let bench = Bench::shell("trap 'exit 0' TERM; while :; do sleep 0.05; done").timeout(200);
    bench.run().await.failed(FailureClass::Timeout);
}

// covers: S4
#[tokio::test]
async fn silence_is_noticed_and_talking_is_not() {
    let silent = Bench::shell("echo hello; sleep 100").idle_timeout(200);
    silent.run().await.failed(FailureClass::Timeout).says("idle: no progress for 200ms");
    // Talks for much longer than the limit, on stderr alone.
    let script = "i=0; while test $i -lt 35; do echo $i >&2; sleep 0.05; i=$((i+1)); done; echo end";
    let talking = Bench::shell(script).idle_timeout(1_500);
    assert_eq!(talking.run().await.succeeded()["stdout"], "end\n");
}

#[tokio::test]
async fn limits_that_mean_for_ever_do_not_overflow() {
    let bench = Bench::shell("echo end").timeout(u64::MAX).idle_timeout(u64::MAX);
    bench.run().await.succeeded();
}

// covers: S4
#[tokio::test]
async fn dropping_the_future_ends_the_tree() {
    let bench = Bench::shell("trap '' TERM; setsid sleep 100 & echo $$ > pid; while :; do sleep 1; done");
    let attempt = tokio::spawn(bench.start());
    bench.pid("pid").await;
    assert!(marked(&bench.call.run).len() >= 3);
    attempt.abort();
    until("an empty tree", || marked(&bench.call.run).is_empty()).await;
}

#[tokio::test]
async fn a_keeper_passes_a_strangers_sigterm_on_and_ignores_ctrl_c() {
    let script = "trap 'echo t > termed' TERM; echo $$ > pid
        while ! test -e termed; do sleep 0.02; done; echo by itself";
    let bench = Bench::shell(script);
    let story = async {
        let program = bench.pid("pid").await;
        let keeper = bench.spawned_pid().unwrap();
        kill(keeper, Signal::INT);
        kill(keeper, Signal::HUP);
        assert!(alive(program));
        kill(keeper, Signal::TERM);
    };
    assert_eq!(bench.run_with(story).await.succeeded()["stdout"], "by itself\n");
}
