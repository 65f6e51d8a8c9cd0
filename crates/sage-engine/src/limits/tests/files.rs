use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::limits::board::Board;
use crate::limits::store::{Fault, Patience};

fn p() -> [PoolWant<'static>; 1] {
    [PoolWant { pool: "p", units: 1, limit: 1 }]
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

// covers: R13
#[test]
fn files_are_private_and_few() {
    let world = World::on_disk();
    let member = world.limits.join("r").unwrap();
    assert!(files(world.dir()).is_empty(), "joining touches nothing");
    let permit = member.asks(&p(), 1, NOW).unwrap();
    break_target(&member, "provider:x/y", NOW);
    for dir in ["project", "project/live", "project/targets", "user", "user/targets"] {
        assert_eq!(mode(&world.dir().join(dir)), 0o700, "{dir}");
    }
    let project = world.dir().join("project");
    assert_eq!(files(&project), ["board", "board.lock", "live", "targets"]);
    assert_eq!(files(&project.join("live")).len(), 1);
    let targets = world.dir().join("user/targets");
    let names = files(&targets);
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("provider-x-y~")), "{names:?}");
    for file in ["board", "board.lock"]
        .map(|name| project.join(name))
        .into_iter()
        .chain(names.iter().map(|name| targets.join(name)))
    {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    drop((permit, member));
    assert!(files(&project.join("live")).is_empty());
    assert_eq!(world.limits.targets()[0].0, "provider:x/y", "its real name is inside");
}

// covers: R7, R13
#[test]
fn success_on_a_healthy_target_writes_nothing() {
    let world = World::on_disk();
    let member = world.limits.join("r").unwrap();
    for _ in 0..3 {
        member.calls("x", NOW).unwrap().report(&CallReport::default(), NOW);
    }
    assert!(files(world.dir()).is_empty(), "{:?}", files(world.dir()));
}

// covers: R13
#[test]
fn damage_is_overwritten_and_never_fatal() {
    let junk: [&[u8]; 5] = [b"", b"{}", b"\0\0\0\0", b"\xff", b"sage-board 1\nnonsense\n"];
    for bytes in junk {
        let world = World::on_disk();
        let member = world.member("a");
        let permit = member.asks(&p(), 1, NOW).unwrap();
        break_target(&member, "x", NOW);
        std::fs::write(world.dir().join("project/board"), bytes).unwrap();
        std::fs::write(world.dir().join("project/targets/x.json"), bytes).unwrap();
        assert!(world.limits.targets().is_empty());
        assert!(world.limits.board().is_empty());
        drop(member.calls("x", NOW).expect("its state is lost: as new"));
        assert_eq!(member.asks(&p(), 1, NOW).unwrap_err(), full("p"), "its own rows are known");
        assert_eq!(world.member("b").asks(&p(), 1, NOW).unwrap_err(), full("p"), "and written again");
        world.limits.change("x", |target| target.breaker.isolate(NOW, "off")).unwrap();
        assert_eq!(world.limits.targets().len(), 1);
        drop(permit);
        member.withdraw();
        drop(world.member("c").asks(&p(), 1, NOW).unwrap());
    }
}

// covers: R13
#[test]
fn a_target_file_of_another_name_is_foreign() {
    let world = World::on_disk();
    break_target(&world.member("a"), "x", NOW);
    let targets = world.dir().join("project/targets");
    std::fs::copy(targets.join("x.json"), targets.join("y.json")).unwrap();
    drop(world.member("a").calls("y", NOW).unwrap());
}

// covers: R13
#[test]
fn links_in_the_place_of_files_are_not_followed() {
    let world = World::on_disk();
    let victim = world.dir().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::fs::create_dir_all(world.dir().join("project/targets")).unwrap();
    for name in ["board", "board.tmp", "targets/x.json", "targets/x.json.tmp"] {
        symlink(&victim, world.dir().join("project").join(name)).unwrap();
    }
    let member = world.member("a");
    let _permit = member.asks(&p(), 1, NOW).unwrap();
    break_target(&member, "x", NOW);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(world.member("b").asks(&p(), 1, NOW).unwrap_err(), full("p"), "the links were replaced");
    symlink(&victim, world.dir().join("user")).unwrap();
}

// covers: R13
#[test]
fn a_directory_that_cannot_be_written_is_told_once() {
    let world = World::on_disk();
    // As root, modes forbid nothing; a file in the directory's place does.
    std::fs::write(world.dir().join("user"), "").unwrap();
    world.limits.set("p", Some(1)).unwrap();
    assert!(world.limits.set("target:provider:x", Some(1)).is_err(), "it would have no effect on others");
    assert!(world.limits.change("provider:x", |_| ()).is_err());
    let (a, b) = (world.limits.join("a").unwrap(), world.limits.join("b").unwrap());
    let hold = break_target(&a, "provider:x", NOW);
    let Err(Refused::Target { hold: shared, .. }) = b.calls("provider:x", NOW) else { panic!("broken") };
    assert_eq!(hold, shared, "the process goes on in memory");
    let warning = world.limits.warning().unwrap();
    assert!(warning.starts_with("limits of providers are not shared with other runs: "), "{warning}");
    assert_eq!(world.limits.warning(), None);
    let _permit = a.asks(&p(), 1, NOW).unwrap();
    assert_eq!(
        world.member("other").asks(&p(), 1, NOW).unwrap_err(),
        full("p"),
        "the project's is still shared"
    );
}

// covers: R13
#[test]
fn a_place_that_fails_while_in_use_keeps_what_is_held() {
    let world = World::on_disk();
    let (a, b) = (world.limits.join("a").unwrap(), world.limits.join("b").unwrap());
    let permit = a.asks(&p(), 1, NOW).unwrap();
    std::fs::remove_dir_all(world.dir().join("project")).unwrap();
    std::fs::write(world.dir().join("project"), "").unwrap();
    assert_eq!(b.asks(&p(), 1, NOW).unwrap_err(), full("p"));
    assert!(world.limits.warning().is_some());
    drop(permit);
    drop(b.asks(&p(), 1, NOW).unwrap());
    assert!(world.limits.board().is_empty());
}

// covers: R13
#[test]
fn a_newer_sage_is_left_alone() {
    let world = World::on_disk();
    let board = world.dir().join("project/board");
    std::fs::create_dir_all(board.parent().unwrap()).unwrap();
    std::fs::write(&board, "sage-board 2\n?\n").unwrap();
    drop(world.limits.join("a").unwrap().asks(&p(), 1, NOW).unwrap());
    assert!(world.limits.warning().unwrap().contains("newer sage"));
    assert_eq!(std::fs::read_to_string(&board).unwrap(), "sage-board 2\n?\n");
}

// covers: R13
#[test]
fn a_directory_that_is_removed_is_made_again() {
    let world = World::on_disk();
    let (a, b) = (world.member("a"), world.member("b"));
    let permit = a.asks(&p(), 1, NOW).unwrap();
    assert!(b.asks(&p(), 1, NOW).is_err());
    b.withdraw();
    std::fs::remove_dir_all(world.dir().join("project")).unwrap();
    assert_eq!(a.asks(&p(), 1, NOW).unwrap_err(), full("p"), "what runs is not forgotten");
    assert_eq!(b.asks(&p(), 1, NOW).unwrap_err(), full("p"), "and others learn of it");
    drop(permit);
    a.withdraw();
    drop(b.asks(&p(), 1, NOW).unwrap());
}

// covers: R13
#[test]
fn what_is_given_back_while_the_lock_is_busy_is_not_lost() {
    let world = World::on_disk();
    let (a, b) = (world.member("a"), world.member("b"));
    let permit = a.asks(&p(), 1, NOW).unwrap();
    assert!(b.asks(&p(), 1, NOW).is_err());
    let stopped = world.other();
    stopped.place(Scope::Project).enter().store.lock(Patience::Loop).unwrap();
    assert_eq!(a.asks(&p(), 1, NOW).unwrap_err(), Refused::Busy);
    drop(permit);
    b.withdraw();
    stopped.place(Scope::Project).enter().store.unlock();
    assert_eq!(held(&world.limits, "p"), 1, "the board does not know yet");
    drop(a.asks(&p(), 0, NOW).expect("its own debt is paid first"));
    assert_eq!(held(&world.limits, "p"), 0);
    let permit = a.asks(&p(), 0, NOW).unwrap();
    stopped.place(Scope::Project).enter().store.lock(Patience::Loop).unwrap();
    drop((permit, a));
    stopped.place(Scope::Project).enter().store.unlock();
    assert_eq!(held(&world.limits, "p"), 0, "who has left does not count");
    drop(b.asks(&p(), 1, NOW).unwrap());
}

// covers: R7, R13
#[test]
fn a_report_while_the_lock_is_busy_counts_here_at_once_and_everywhere_later() {
    let world = World::on_disk();
    let (a, b) = (world.member("a"), world.member("b"));
    break_target(&a, "x", NOW);
    world.limits.change("x", |target| target.clear(NOW, "again")).unwrap();
    let stopped = world.other();
    stopped.place(Scope::Project).enter().store.lock_target("x", Patience::Loop).unwrap();
    let permits: Vec<Permit> = (0..100).map(|_| a.calls("x", NOW).unwrap()).collect();
    permits.iter().for_each(|permit| assert!(permit.report(&failure(), NOW).is_empty()));
    let Err(Refused::Target { hold, .. }) = a.calls("x", NOW) else { panic!("it knows") };
    assert!(b.calls("x", NOW).is_ok(), "nobody else can");
    stopped.place(Scope::Project).enter().store.unlock_target("x");
    let permit = a.calls("x", hold.until.unwrap()).unwrap();
    assert!(permit.is_probe());
    assert!(b.calls("x", NOW).is_err(), "told by the first turn that was possible");
}

// covers: R13
#[test]
fn a_lock_that_is_busy_is_waited_for_once() {
    let world = World::on_disk();
    let (holder, other) = (world.other(), world.other());
    holder.place(Scope::Project).enter().store.lock(Patience::Loop).unwrap();
    let mut state = other.place(Scope::Project).enter();
    let started = std::time::Instant::now();
    for _ in 0..1_000 {
        assert!(matches!(state.store.lock(Patience::Loop), Err(Fault::Busy)));
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(2), "not 1,000 times 5 ms");
}

// covers: R13
#[test]
fn many_steps_are_one_row() {
    let world = World::on_disk();
    let member = world.member("a");
    let permits: Vec<Permit> =
        (0..1_000).map(|_| member.asks(&[pool("p", 1, 1_000)], 1, NOW).unwrap()).collect();
    let path = world.dir().join("project/board");
    assert!(std::fs::metadata(&path).unwrap().len() < 100);
    let mut board = world.other().place(Scope::Project).enter().store.board().unwrap().clone();
    assert_eq!(board.held("p"), 1_000);
    board.members.clear();
    assert_eq!(board, Board::default());
    drop(permits);
    assert!(world.limits.board().is_empty());
}

/// For `strace`: what one uncontended ask and drop costs.
#[test]
#[ignore = "run by hand under strace"]
fn a_thousand_asks() {
    let world = World::on_disk();
    let member = world.limits.join("r").unwrap();
    let targets = [std::env::var("SAGE_TEST_TARGET").unwrap_or("x".to_owned())];
    let pools = p();
    let asks: u64 = std::env::var("SAGE_TEST_ASKS").ok().and_then(|asks| asks.parse().ok()).unwrap_or(1_000);
    let started = std::time::Instant::now();
    for _ in 0..asks {
        let permit = member.ask(&want(&pools, &targets, 1), NOW).result().unwrap();
        permit.report(&CallReport::default(), NOW);
    }
    println!("{:?} each", started.elapsed() / u32::try_from(asks).unwrap().max(1));
}

/// Each look would otherwise see the whole hold before it, for as long as the clock was set back by.
// covers: R7, R15
#[test]
fn a_hold_ends_after_the_clock_was_set_back() {
    const HOUR_MS: u64 = 3_600_000;
    for world in World::both() {
        let member = world.member("r");
        let hold = break_target(&member, "provider:x", NOW + HOUR_MS);
        let whole_ms = hold.until.unwrap() - (NOW + HOUR_MS);
        assert!(member.calls("provider:x", NOW).is_err());
        assert!(member.calls("provider:x", NOW + whole_ms / 2).is_err());
        assert!(member.calls("provider:x", NOW + whole_ms + 1).is_ok(), "after {whole_ms} ms");
    }
}
