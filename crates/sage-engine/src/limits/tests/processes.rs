use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::*;
use crate::limits::store::Patience;

/// This test binary again, as another run. Ends with the test, whatever happens in it.
struct Other {
    child: Child,
    _stdin: ChildStdin,
}

impl Other {
    /// Returns when it has done its deed.
    fn start(world: &World, deed: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "limits::tests::processes::as_another_process"])
            .env("SAGE_TEST_HOME", world.dir())
            .env("SAGE_TEST_DEED", deed)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("DONE")), "it ended before its deed");
        Self { _stdin: child.stdin.take().unwrap(), child }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns when it is stopped.
    fn stop(&self) {
        kill_process(self.pid(), Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "run by the other tests here"]
fn as_another_process() {
    let home = std::path::PathBuf::from(std::env::var_os("SAGE_TEST_HOME").unwrap());
    let limits = open(&home, LimitsConfig::default());
    let member = limits.join("other").unwrap();
    let permit = match std::env::var("SAGE_TEST_DEED").unwrap().as_str() {
        "take" => member.ask(&want(&[pool("p", 2, 2)], &["provider:x".to_owned()], 1), NOW).result().ok(),
        "wait" => {
            assert!(member.asks(&[pool("p", 2, 2)], 0, NOW).is_err());
            None
        }
        "probe" => {
            let later = break_target(&member, "x", NOW).until.unwrap();
            member.calls("x", later).ok().filter(Permit::is_probe)
        }
        "lock" => {
            limits.place(Scope::Project).enter().store.lock(Patience::Loop).unwrap();
            None
        }
        "half" => {
            // It dies between its temporary file and the rename.
            limits.place(Scope::Project).enter().store.lock(Patience::Loop).unwrap();
            std::fs::write(home.join("project/board.tmp"), "sage-bo").unwrap();
            None
        }
        deed => panic!("{deed}"),
    };
    println!("DONE");
    std::io::stdout().flush().unwrap();
    // Until the parent ends or kills us.
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(permit);
}

const P: [PoolWant<'static>; 1] = [PoolWant { pool: "p", units: 1, limit: 2 }];

// covers: R13, P6
#[test]
fn units_of_the_killed_are_free_at_once() {
    let world = World::on_disk();
    world.limits.set("target:provider:x", Some(1)).unwrap();
    let member = world.member("mine");
    let other = Other::start(&world, "take");
    assert_eq!(member.asks(&P, 1, NOW).unwrap_err(), full("p"));
    assert_eq!(member.calls("provider:x", NOW).unwrap_err(), full("target:provider:x"));
    assert_eq!((held(&world.limits, "p"), held(&world.limits, "target:provider:x")), (2, 1));
    other.kill();
    assert_eq!(held(&world.limits, "p"), 0);
    let permits = [member.asks(&P, 1, NOW), member.asks(&P, 1, NOW), member.calls("provider:x", NOW)];
    assert!(permits.iter().all(Result::is_ok), "{permits:?}");
    assert_eq!(held(&world.limits, "p"), 2);
}

// covers: R13
#[test]
fn units_of_a_stopped_process_stay_its_own() {
    let world = World::on_disk();
    let member = world.member("mine");
    let other = Other::start(&world, "take");
    other.stop();
    assert_eq!(member.asks(&P, 1, NOW + 3_600_000).unwrap_err(), full("p"), "no timer frees them");
    other.kill();
    drop(member.asks(&P, 1, NOW).unwrap());
}

// covers: R13
#[test]
fn tickets_of_the_killed_block_nobody() {
    let world = World::on_disk();
    let member = world.member("mine");
    let permit = member.asks(&[pool("p", 2, 2)], 1, NOW).unwrap();
    let other = Other::start(&world, "wait");
    drop(permit);
    assert_eq!(member.asks(&P, 1, NOW).unwrap_err(), full("p"), "it comes first");
    other.kill();
    drop(member.asks(&P, 1, NOW).unwrap());
}

// covers: R7, R13
#[test]
fn a_probe_of_the_killed_is_free_again() {
    let world = World::on_disk();
    let member = world.member("mine");
    let other = Other::start(&world, "probe");
    let later = NOW + 3_600_000;
    assert!(matches!(member.calls("x", later), Err(Refused::Target { .. })));
    other.kill();
    assert!(member.calls("x", later).unwrap().is_probe());
}

// covers: R13
#[test]
fn a_stopped_holder_of_the_lock_makes_others_busy_and_its_death_frees_them() {
    let world = World::on_disk();
    let member = world.member("mine");
    let permit = member.asks(&P, 1, NOW).unwrap();
    let other = Other::start(&world, "lock");
    other.stop();
    let started = Instant::now();
    assert_eq!(member.asks(&P, 1, NOW).unwrap_err(), Refused::Busy);
    drop(permit);
    member.withdraw();
    drop(world.member("late"));
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(world.limits.set("p", Some(1)).unwrap_err().kind(), io::ErrorKind::TimedOut);
    other.kill();
    let permits = [member.asks(&P, 1, NOW).unwrap(), member.asks(&P, 1, NOW).unwrap()];
    assert_eq!(held(&world.limits, "p"), 2, "and what was given back meanwhile is not lost");
    drop(permits);
}

// covers: R13
#[test]
fn who_dies_while_writing_leaves_the_old_board() {
    let world = World::on_disk();
    let member = world.member("mine");
    let permit = member.asks(&P, 1, NOW).unwrap();
    Other::start(&world, "half").kill();
    assert_eq!(held(&world.limits, "p"), 1);
    let second = member.asks(&P, 1, NOW).unwrap();
    assert_eq!(held(&world.limits, "p"), 2);
    drop((permit, second));
}

// covers: R13
#[test]
fn the_dead_are_swept_when_somebody_joins() {
    let world = World::on_disk();
    Other::start(&world, "take").kill();
    let live = world.dir().join("project/live");
    assert_eq!(std::fs::read_dir(&live).unwrap().count(), 1);
    let _member = world.member("mine");
    assert_eq!(std::fs::read_dir(&live).unwrap().count(), 0);
    assert_eq!(std::fs::read_to_string(world.dir().join("project/board")).unwrap(), "sage-board 1\n");
}
