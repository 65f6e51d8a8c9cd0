use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use super::*;
use crate::sim::{Fault, SimFs};

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

/// What every file system must do, real or simulated.
fn behaves(vfs: &dyn Vfs, root: &Path) {
    let dir = root.join("a/b");
    vfs.create_dir_all(&dir).unwrap();
    vfs.create_dir_all(&dir).unwrap();
    let path = dir.join("file");
    let kind = |error: io::Error| error.kind();
    assert_eq!(vfs.open_append(&path).map_err(kind).unwrap_err(), io::ErrorKind::NotFound);
    assert_eq!(vfs.read(&path, 9).map_err(kind).unwrap_err(), io::ErrorKind::NotFound);
    let mut file = vfs.create_new(&path).unwrap();
    assert!(file.is_empty().unwrap());
    assert_eq!(vfs.create_new(&path).map_err(kind).unwrap_err(), io::ErrorKind::AlreadyExists);
    write_all(file.as_mut(), b"hello").unwrap();
    write_all(vfs.open_append(&path).unwrap().as_mut(), b" world").unwrap();
    file.sync_data().unwrap();
    file.sync_all().unwrap();
    vfs.sync_dir(&dir).unwrap();
    assert_eq!(file.len().unwrap(), 11);
    assert_eq!(vfs.read(&path, 11).unwrap(), b"hello world");
    assert_eq!(vfs.read(&path, 10).map_err(kind).unwrap_err(), io::ErrorKind::FileTooLarge);
    assert_eq!(vfs.read_from(&path, 6, 3).unwrap(), b"wor");
    assert_eq!(vfs.read_from(&path, 6, u64::MAX).unwrap(), b"world");
    assert_eq!(vfs.read_from(&path, 99, 9).unwrap(), b"");
    vfs.truncate(&path, 5).unwrap();
    write_all(file.as_mut(), b"!").unwrap();
    assert_eq!(vfs.read(&path, 99).unwrap(), b"hello!", "appends at the end, wherever that is");
    let link = dir.join("link");
    vfs.hard_link(&path, &link).unwrap();
    assert_eq!(vfs.hard_link(&path, &link).map_err(kind).unwrap_err(), io::ErrorKind::AlreadyExists);
    vfs.rename(&path, &link).unwrap();
    assert!(vfs.exists(&path).unwrap(), "two names of one file stay");
    vfs.remove_file(&path).unwrap();
    assert!(!vfs.exists(&path).unwrap());
    vfs.rename(&link, &path).unwrap();
    assert_eq!(vfs.list(&dir).unwrap(), ["file"]);
    let meta = vfs.metadata(&path).unwrap();
    assert!(meta.is_file && meta.len == 6);
    assert!(!vfs.metadata(&dir).unwrap().is_file);
    assert!(vfs.create_dir_all(&path).is_err());
    assert!(vfs.open_append(&dir).is_err() && vfs.read(&dir, 9).is_err());
}

// covers: R4
#[test]
fn the_real_and_the_simulated_disk_behave_alike() {
    let home = tempfile::tempdir().unwrap();
    behaves(DiskFs::new().as_ref(), home.path());
    behaves(&SimFs::new(0), Path::new("/"));
}

// covers: R4, R15
#[test]
fn only_regular_files_are_opened_and_none_blocks() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    std::fs::write(at("real"), "x").unwrap();
    symlink(at("real"), at("symlink")).unwrap();
    symlink(at("nothing"), at("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    std::fs::create_dir(at("directory")).unwrap();
    let disk = DiskFs::new();
    let paths = ["symlink", "dangling", "fifo", "directory"].map(at).into_iter().chain(["/dev/null".into()]);
    for path in paths {
        for error in [
            disk.open_append(&path).map(drop),
            disk.create_new(&path).map(drop),
            disk.read(&path, 99).map(drop),
            disk.read_from(&path, 0, 99).map(drop),
        ] {
            let error = error.unwrap_err();
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<NotRegular>());
            assert!(inner.is_some(), "{}: {error}", path.display());
        }
    }
    assert!(!at("nothing").exists(), "nothing is created through a symlink");
}

/// Runs in a process of its own, because a umask is the whole process's.
#[test]
#[ignore = "run by `modes_are_private_under_every_umask`"]
fn create_with_the_umask_of_this_process() {
    let home = PathBuf::from(std::env::var_os("SAGE_TEST_HOME").unwrap());
    let disk = DiskFs::new();
    create_dir_durable(disk.as_ref(), &home.join("a/b/c")).unwrap();
    write_atomic(disk.as_ref(), &home.join("a/b/c/file"), b"x").unwrap();
}

// covers: R4, R17
#[test]
fn modes_are_private_under_every_umask() {
    for umask in ["000", "022", "077", "777"] {
        let home = tempfile::tempdir().unwrap();
        let status = Command::new("sh")
            .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "vfs::tests::create_with_the_umask_of_this_process"])
            .env("SAGE_TEST_HOME", home.path())
            .output()
            .unwrap();
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
        for dir in ["a", "a/b", "a/b/c"] {
            assert_eq!(mode(&home.path().join(dir)), 0o700, "umask {umask}");
        }
        assert_eq!(mode(&home.path().join("a/b/c/file")), 0o600, "umask {umask}");
    }
}

// covers: R4
#[test]
fn directories_that_exist_keep_their_mode() {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o750)).unwrap();
    DiskFs::new().create_dir_all(&home.path().join("new")).unwrap();
    assert_eq!(mode(home.path()), 0o750);
}

// covers: R4
#[test]
fn syncs_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let disk = DiskFs::new();
    let mut file = disk.create_new(&home.path().join("file")).unwrap();
    file.sync_data().unwrap();
    file.sync_data().unwrap();
    file.sync_all().unwrap();
    disk.sync_dir(home.path()).unwrap();
    assert_eq!(disk.syncs(), SyncCounts { data: 2, all: 1, dir: 1 });
}

#[derive(Debug)]
struct Fussy(Vec<u8>, u32);

impl VfsFile for Fussy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 += 1;
        match self.1 % 3 {
            0 => Err(io::ErrorKind::Interrupted.into()),
            _ if self.0.len() >= 10 => Ok(0),
            _ => {
                self.0.push(bytes[0]);
                Ok(1)
            }
        }
    }

    fn sync_data(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn is_at(&self, _: &Path) -> io::Result<bool> {
        Ok(true)
    }

    fn content(&self) -> io::Result<Vec<u8>> {
        Ok(self.0.clone())
    }
}

// covers: R4
#[test]
fn write_all_survives_interruptions_and_short_writes_but_not_no_progress() {
    let mut file = Fussy(Vec::new(), 0);
    write_all(&mut file, b"0123456789").unwrap();
    assert_eq!(file.0, b"0123456789");
    assert_eq!(write_all(&mut file, b"x").unwrap_err().kind(), io::ErrorKind::WriteZero);
}

// covers: R4, R15
#[test]
fn an_atomic_write_is_the_old_or_the_new_after_any_fault_or_cut() {
    let path = Path::new("/dir/file");
    let (old, new) = (vec![b'o'; 2000], vec![b'n'; 3000]);
    let prepare = |seed| {
        let sim = SimFs::new(seed);
        sim.plant(path, &old).unwrap();
        sim
    };
    let sim = prepare(0);
    write_atomic(&sim, path, &new).unwrap();
    let ops = sim.ops();
    for seed in 0..200 {
        let op = seed % (ops + 1);
        for fault in [Fault::Crash, Fault::Eio, Fault::Enospc, Fault::LyingWrite, Fault::ShortWrite(0)] {
            let sim = prepare(seed);
            sim.fail_at(op, fault);
            let done = write_atomic(&sim, path, &new).is_ok();
            sim.crash(seed);
            sim.restart();
            let found = sim.read(path, u64::MAX).unwrap();
            assert!(found == new || found == old && !done, "{fault:?} at {op}");
        }
    }
}
