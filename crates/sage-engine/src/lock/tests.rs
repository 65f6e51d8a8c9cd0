use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};

use super::*;

fn owner() -> Owner {
    Owner::current("run-1", 1_700_000_000_000)
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("demo.lock")
    }
}

/// Ends with the test, whatever happens in it.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// covers: R9
#[test]
fn a_second_owner_is_refused_and_told_who_has_it() {
    let place = Place::new();
    assert_eq!(peek(&place.path()), None);
    let first = FeatureLock::acquire(&place.path(), owner()).unwrap();
    assert!(first.previous.is_none());
    let Err(LockError::Held(Some(holder))) = FeatureLock::acquire(&place.path(), owner()) else {
        panic!("it is held")
    };
    assert_eq!(&holder, first.lock.owner());
    assert!(LockError::Held(Some(holder)).to_string().contains("run `run-1`"));
    assert_eq!(peek(&place.path()), Some(owner()));
    drop(first);
    assert_eq!(peek(&place.path()), None);
    assert_eq!(std::fs::read(place.path()).unwrap(), b"", "a clean end leaves no name");
    assert!(FeatureLock::acquire(&place.path(), owner()).unwrap().previous.is_none());
}

// covers: R9
#[test]
fn a_stale_lock_is_granted_and_its_kind_told() {
    let mut child = Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let cases = [
        (Owner { pid: dead, ..owner() }, Stale::DeadPid),
        (Owner { pid: 0, ..owner() }, Stale::DeadPid),
        (Owner { start_time: "1".into(), ..owner() }, Stale::RecycledPid),
        (Owner { boot_id: "another".into(), ..owner() }, Stale::Reboot),
        (owner(), Stale::Unknown),
    ];
    for (previous, stale) in cases {
        let place = Place::new();
        std::fs::write(place.path(), serde_json::to_vec(&previous).unwrap()).unwrap();
        assert_eq!(peek(&place.path()), None, "nobody holds it");
        assert_eq!(previous.is_alive(), stale == Stale::Unknown);
        let acquired = FeatureLock::acquire(&place.path(), owner()).unwrap();
        assert_eq!(acquired.previous, Some((previous, stale)));
        assert_eq!(peek(&place.path()), Some(owner()));
    }
}

// covers: R9, R15
#[test]
fn unreadable_text_is_no_error() {
    for text in ["", "{", "{\"pid\":-1}", "\u{0}\u{0}", &"x".repeat(200_000)] {
        let place = Place::new();
        std::fs::write(place.path(), text).unwrap();
        assert!(FeatureLock::acquire(&place.path(), owner()).unwrap().previous.is_none());
    }
    let place = Place::new();
    let held = FeatureLock::acquire(&place.path(), owner()).unwrap();
    std::fs::write(place.path(), "damage").unwrap();
    assert!(matches!(FeatureLock::acquire(&place.path(), owner()), Err(LockError::Held(None))));
    assert_eq!(peek(&place.path()).unwrap().pid, 0);
    drop(held);
}

// covers: R9, R15
#[test]
fn what_is_no_regular_file_is_refused() {
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/null", place.path()).unwrap();
    assert!(matches!(FeatureLock::acquire(&place.path(), owner()), Err(LockError::Io { .. })));
    assert!(matches!(ChildrenLock::open_shared(&place.path()), Err(LockError::Io { .. })));
    assert!(
        wait_gone(&place.path(), Duration::ZERO).unwrap_err().source.is_some(),
        "can't be shown: not gone"
    );
    assert_eq!(peek(&place.path()), None);
}

// covers: R9
#[test]
fn a_look_does_not_keep_an_owner_out() {
    let place = Place::new();
    drop(FeatureLock::acquire(&place.path(), owner()).unwrap());
    let path = place.path();
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = peek(&path);
            }
        });
        for _ in 0..50 {
            drop(FeatureLock::acquire(&path, owner()).unwrap());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

// covers: R9, R17
#[test]
fn lock_files_are_private() {
    let place = Place::new();
    let _held = FeatureLock::acquire(&place.path(), owner()).unwrap();
    assert_eq!(place.path().metadata().unwrap().mode() & 0o777, 0o600);
}

// covers: R9
#[test]
fn this_process_knows_itself() {
    let me = owner();
    assert!(me.is_alive());
    #[cfg(target_os = "linux")]
    assert!(!me.boot_id.is_empty() && me.start_time.parse::<u64>().is_ok());
    let text = serde_json::to_string(&me).unwrap();
    assert!(text.contains("\"bootId\"") && text.contains("\"sinceMs\""));
    assert_eq!(serde_json::from_str::<Owner>(&text).unwrap(), me);
}

// covers: R9
#[test]
fn a_zombie_is_not_alive() {
    let mut child = Command::new("true").spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let ghost = Owner { pid: child.id(), start_time: String::new(), ..owner() };
    while ghost.is_alive() {
        assert!(Instant::now() < deadline, "it has ended and nobody has asked how");
        thread::sleep(POLL);
    }
    child.wait().unwrap();
}

// covers: R5, R9
#[test]
fn children_hold_the_lock_after_their_owner_is_gone() {
    let place = Place::new();
    assert!(wait_gone(&place.path(), Duration::ZERO).is_ok(), "there never was one");
    let lock = ChildrenLock::open_shared(&place.path()).unwrap();
    let also = ChildrenLock::open_shared(&place.path()).unwrap();
    let inherited = lock.as_fd().try_clone_to_owned().unwrap();
    let mut child = Killed(Command::new("sleep").arg("100").stdin(Stdio::from(inherited)).spawn().unwrap());
    drop((lock, also));
    let still = wait_gone(&place.path(), Duration::from_millis(30)).unwrap_err();
    assert!(still.source.is_none() && still.waited >= Duration::from_millis(30));
    child.0.kill().unwrap();
    wait_gone(&place.path(), Duration::from_secs(10)).unwrap();
    ChildrenLock::open_shared(&place.path()).unwrap();
}

// covers: R9
#[test]
fn a_lock_file_that_was_replaced_is_taken_anew() {
    let place = Place::new();
    let first = FeatureLock::acquire(&place.path(), owner()).unwrap();
    std::fs::remove_file(place.path()).unwrap();
    let second = FeatureLock::acquire(&place.path(), owner()).unwrap();
    drop(first);
    assert_eq!(peek(&place.path()), Some(owner()), "the first one's end is not the second one's");
    drop(second);
}

/// `git stash -u` and `git stash pop`: the owner made a second lock meanwhile, and holds both.
// covers: R9, R15
#[test]
fn a_lock_that_is_moved_away_and_back_is_still_its_owners() {
    let place = Place::new();
    let (path, away) = (place.path(), place.path().with_extension("away"));
    let held = FeatureLock::acquire(&path, owner()).unwrap().lock;
    for _ in 0..2 {
        std::fs::rename(&path, &away).unwrap();
        held.keep().unwrap();
        assert_eq!(peek(&path), Some(owner()), "made anew");
        std::fs::rename(&away, &path).unwrap();
        held.keep().unwrap();
        assert!(matches!(FeatureLock::acquire(&path, owner()), Err(LockError::Held(_))));
    }
    drop(held);
    assert!(FeatureLock::acquire(&path, owner()).is_ok());
}
