//! The owner dies by SIGKILL: nothing of its trees may go on.

use std::fs::File;
use std::process::Stdio;

use rustix::process::Signal;

use crate::bench::{alive, kill, marked, sage, until};

/// Everything that has made trees survive elsewhere: ignored signals, a new session, an empty environment.
const STUBBORN: &str = "trap '' TERM INT HUP
    setsid sh -c 'trap \"\" TERM; sleep 1000' &
    env -i setsid sh -c 'sleep 1000 & echo $! > daemon; exec sleep 1000' >/dev/null 2>&1 &
    while ! test -s daemon; do sleep 0.01; done
    echo $$ > pid; while :; do sleep 1; done";

// covers: S4, R5
#[tokio::test]
async fn no_process_outlives_a_killed_owner() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let mut command = tokio::process::Command::new(sage());
        command.arg("own").arg(dir.path()).arg(STUBBORN).stdout(Stdio::null());
        let mut owner = command.spawn().unwrap();
        let run = format!("run_{}", owner.id().unwrap());
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        until("the tree", || read("pid").ends_with('\n')).await;
        let daemon: u32 = read("daemon").trim().parse().unwrap();
        let lock = File::open(dir.path().join("lock")).unwrap();
        assert!(lock.try_lock().is_err() && alive(daemon));

        owner.start_kill().unwrap();
        owner.wait().await.unwrap();
        // The lock is the proof that the engine relies on: when it is free, the tree is gone.
        until("a free children lock", || lock.try_lock().is_ok()).await;
        assert!(!alive(daemon));
        assert_eq!(marked(&run), [] as [u32; 0]);
    }
}

// covers: R5
#[tokio::test]
async fn owner_and_keeper_both_killed_leave_a_tree_that_a_sweep_finds() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::new(sage());
    let script = "echo $PPID > keeper; setsid sleep 1000 & sleep 1000";
    command.arg("own").arg(dir.path()).arg(script).stdout(Stdio::null());
    let mut owner = command.spawn().unwrap();
    let run = format!("run_{}", owner.id().unwrap());
    let read = || std::fs::read_to_string(dir.path().join("keeper")).unwrap_or_default();
    until("a tree", || read().ends_with('\n') && marked(&run).len() >= 4).await;
    let keeper: u32 = read().trim().parse().unwrap();

    // Stopped first: it must not have the time to do its duty.
    kill(keeper, Signal::STOP);
    owner.start_kill().unwrap();
    owner.wait().await.unwrap();
    kill(keeper, Signal::KILL);
    until("a dead keeper", || !alive(keeper)).await;
    let path = dir.path().join("lock");
    assert!(File::open(&path).unwrap().try_lock().is_err(), "the orphans hold the lock");
    assert!(!sage_agents::lock_holders(&path).is_empty());
    let swept = sage_agents::sweep(&run, None);
    assert!(swept.killed.len() >= 3 && swept.left.is_empty(), "{swept:?}");
    until("a free lock", || File::open(&path).unwrap().try_lock().is_ok()).await;
}
