//! Process trees that try to get away.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sage_core::policy::FailureClass;
use sage_core::port::Stop;

use crate::bench::{Bench, alive, marked, until};

/// Starts a daemon that has left session, group and environment, and writes its pid.
const DAEMON: &str = "env -i setsid sh -c 'sleep 1000 & echo $! > daemon; exec sleep 1000' >/dev/null 2>&1 &
    while ! test -s daemon; do sleep 0.01; done";

// covers: S4
#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_does_not_hold_the_step() {
    let bench = Bench::shell("(sleep 1000 & echo $! > daemon); echo done");
    let start = Instant::now();
    assert_eq!(bench.run().await.succeeded()["stdout"], "done\n");
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(!alive(bench.pid("daemon").await));
}

#[tokio::test]
async fn daemons_do_not_survive_their_step() {
    let bench = Bench::shell(&format!("{DAEMON}; echo done"));
    assert_eq!(bench.run().await.succeeded()["stdout"], "done\n");
    assert!(!alive(bench.pid("daemon").await));
}

#[tokio::test]
async fn daemons_do_not_survive_a_stop() {
    let bench = Bench::shell(&format!("{DAEMON}; sleep 1000"));
    let story = async {
        bench.pid("daemon").await;
        bench.cx.stop.set(Stop::Now);
    };
    bench.run_with(story).await.stopped();
    assert!(!alive(bench.pid("daemon").await));
}

#[tokio::test]
async fn a_graceful_stop_reaches_daemons_too() {
    let daemon = r#"trap "echo t > termed; exit" TERM; echo $$ > daemon; while :; do sleep 0.05; done"#;
    let script =
        format!("trap : TERM; setsid sh -c '{daemon}' & while ! test -e termed; do sleep 0.01; done");
    let bench = Bench::shell(&script).grace(Duration::from_secs(60));
    let story = async {
        bench.pid("daemon").await;
        bench.cx.stop.set(Stop::Graceful);
    };
    bench.run_with(story).await.stopped();
    assert_eq!(bench.read("termed"), "t\n");
}

#[tokio::test]
async fn forking_in_a_loop_does_not_outrun_the_keeper() {
    // Every child leaves the group, too; the loop is bounded in case the test fails.
    let script = "i=0; while test $i -lt 400; do setsid sh -c 'sleep 100 & sleep 100' & i=$((i+1));
        test $i = 20 && echo $$ > pid; sleep 0.005; done; wait";
    let bench = Bench::shell(script);
    let story = async {
        bench.pid("pid").await;
        bench.cx.stop.set(Stop::Now);
    };
    bench.run_with(story).await.stopped();
}

#[tokio::test]
async fn a_chain_of_forks_that_never_stands_still_is_caught() {
    // Each link starts the next one and ends: no pid lives long.
    let link = r#"n=$1; test "$n" -gt 3000 && exit; test "$n" = 20 && echo $$ > pid; sh ./link $((n+1)) &"#;
    let bench = Bench::shell("sh ./link 1; sleep 1000");
    std::fs::write(bench.path("link"), link).unwrap();
    let story = async {
        bench.pid("pid").await;
        bench.cx.stop.set(Stop::Now);
    };
    bench.run_with(story).await.stopped();
}

#[tokio::test]
async fn orphans_that_end_are_reaped_while_the_program_runs() {
    let script = "i=0; while test $i -lt 30; do (true & true &) ; i=$((i+1)); done; echo $PPID > keeper
        while ! test -e go; do sleep 0.01; done";
    let bench = Bench::shell(script);
    let story = async {
        let keeper = bench.pid("keeper").await;
        until("no zombies", || zombies_of(keeper) == 0).await;
        std::fs::write(bench.path("go"), "").unwrap();
    };
    bench.run_with(story).await.succeeded();
}

fn zombies_of(parent: u32) -> usize {
    let stats = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    stats.filter(|stat| stat.contains(&format!(") Z {parent} "))).count()
}

// covers: S4
#[tokio::test]
async fn a_keeper_killed_by_its_child_is_noticed_and_the_tree_is_swept() {
    let script = "setsid sleep 1000 & echo $! > marked; env -i sleep 1000 & echo $! > unmarked
        kill -9 $PPID; sleep 1000";
    let bench = Bench::shell(script);
    bench.run().await.failed(FailureClass::Lost).says("keeper was killed");
    assert!(!alive(bench.pid("marked").await));
    assert!(!alive(bench.pid("unmarked").await));
}

#[tokio::test]
async fn a_keeper_stopped_by_its_child_still_hears_the_end() {
    let bench = Bench::shell("kill -STOP $PPID; echo $$ > pid; sleep 1000").timeout(400);
    bench.run().await.failed(FailureClass::Timeout);
}

#[tokio::test]
async fn a_sweep_takes_a_step_or_a_whole_run_and_nobody_else() {
    let mut first = Bench::shell("setsid sleep 1000 & sleep 1000");
    let mut second = Bench::shell("sleep 1000");
    let other = Bench::shell("sleep 1000");
    second.call.run = first.call.run.clone();
    first.call.path = "build/one".into();
    second.call.path = "build/two".into();
    let attempts = [&first, &second, &other].map(|bench| tokio::spawn(bench.start()));
    until("two runs", || marked(&first.call.run).len() >= 5 && marked(&other.call.run).len() >= 2).await;

    let swept = sage_agents::sweep(&first.call.run, Some("build/one"));
    assert!(swept.killed.len() >= 3 && swept.left.is_empty(), "{swept:?}");
    assert!(marked(&first.call.run).len() >= 2, "the other step lives");
    let swept = sage_agents::sweep(&first.call.run, None);
    assert!(!swept.killed.is_empty() && swept.left.is_empty(), "{swept:?}");
    assert!(marked(&first.call.run).is_empty());
    assert!(marked(&other.call.run).len() >= 2, "the other run lives");
    assert_eq!(sage_agents::sweep(&first.call.run, None), sage_agents::Swept::default());
    for attempt in attempts {
        attempt.abort();
    }
    until("the end", || marked(&other.call.run).is_empty()).await;
}

#[tokio::test]
async fn the_children_lock_is_held_by_its_own_tree_only() {
    let mut locked = Bench::shell("setsid sleep 1000 & echo $! > pid; sleep 1000");
    let path = locked.path("lock");
    let lock = Arc::new(File::create(&path).unwrap());
    lock.try_lock_shared().unwrap();
    locked.cx.children_lock = Some(Arc::clone(&lock));
    let first = tokio::spawn(locked.start());
    let others: Vec<Bench> = (0..5).map(|_| Bench::shell("sleep 1000")).collect();
    let rest: Vec<_> = others.iter().map(|bench| tokio::spawn(bench.start())).collect();
    let pid = locked.pid("pid").await;
    until("the others", || others.iter().all(|bench| marked(&bench.call.run).len() >= 2)).await;

    until("the whole tree", || marked(&locked.call.run).len() == 4).await;
    let holders = sage_agents::lock_holders(&path);
    assert!(marked(&locked.call.run).iter().all(|pid| holders.contains(pid)));
    for other in &others {
        assert!(!marked(&other.call.run).iter().any(|pid| holders.contains(pid)));
    }
    assert!(holders.contains(&pid));

    locked.cx.children_lock = None;
    drop(lock);
    first.abort();
    until("a free lock", || File::open(&path).unwrap().try_lock().is_ok()).await;
    rest.iter().for_each(tokio::task::JoinHandle::abort);
}

// covers: R1, S4
#[tokio::test]
async fn many_attempts_run_side_by_side() {
    let benches: Vec<Bench> = (0..20).map(|n| Bench::shell(&format!("echo {n}"))).collect();
    let attempts: Vec<_> = benches.iter().map(|bench| tokio::spawn(bench.start())).collect();
    for (n, attempt) in attempts.into_iter().enumerate() {
        let result = crate::bench::Outcome(attempt.await.unwrap()).succeeded();
        assert_eq!(result["stdout"], format!("{n}\n"));
    }
}
