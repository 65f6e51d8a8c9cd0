//! The journal on a real disk: what is in the file's place, how often it is synced, who reads along.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::*;
use crate::vfs::DiskFs;

fn start(dir: &Path) -> (Arc<DiskFs>, Arc<dyn Vfs>, Journal, JournalFile) {
    let disk = DiskFs::new();
    let vfs: Arc<dyn Vfs> = disk.clone();
    let file = JournalFile::create(&vfs, dir).unwrap();
    (disk, vfs, Journal::new(&sealing()), file)
}

fn nothing(_: Record<'_>) -> Result<(), JournalError> {
    Ok(())
}

// covers: R4
#[test]
fn a_commit_is_one_fdatasync_whatever_its_size() {
    let home = tempfile::tempdir().unwrap();
    let (disk, vfs, mut journal, mut file) = start(&home.path().join("runs/one"));
    let before = disk.syncs();
    for commit in 1..=5 {
        for _ in 0..commit * 10 {
            journal.append("step.done", 0, &json!({"text": "x".repeat(1000)})).unwrap();
        }
        file.commit(&journal.take_batch().unwrap()).unwrap();
    }
    let after = disk.syncs();
    assert_eq!((after.data - before.data, after.all - before.all, after.dir - before.dir), (5, 0, 0));
    // What the watermark covers needs no further sync.
    recover(&vfs, &home.path().join("runs/one"), Some(file.head()), &sealing(), nothing).unwrap();
    assert_eq!(disk.syncs(), after);
}

// covers: R4, R8
#[test]
fn another_reader_follows_a_growing_journal() {
    let home = tempfile::tempdir().unwrap();
    let (_, vfs, mut journal, mut file) = start(home.path());
    let (mut reader, mut seen) = (Reader::new(), Vec::new());
    for seq in 1..=20 {
        journal.append("tick", seq, &seq).unwrap();
        file.commit(&journal.take_batch().unwrap()).unwrap();
        let news = vfs.read_from(file.path(), reader.next_offset(), u64::MAX).unwrap();
        let take = &mut |record: Record<'_>| {
            seen.push(record.ts_ms);
            Ok::<_, JournalError>(())
        };
        reader.feed(&news, take).unwrap();
    }
    assert_eq!(seen, (1..=20).collect::<Vec<_>>());
    assert_eq!(reader.head(), file.head());
}

// covers: R4, R15
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let home = tempfile::tempdir().unwrap();
    let real = home.path().join("elsewhere");
    std::fs::write(&real, Reference::new(&[1], 1).bytes).unwrap();
    let replace = |name: &str| home.path().join(name);
    let fifo = std::process::Command::new("mkfifo").arg(replace("fifo")).status().unwrap();
    assert!(fifo.success());
    symlink(&real, replace("symlink")).unwrap();
    symlink("/dev/zero", replace("symlink to a device")).unwrap();
    std::fs::create_dir(replace("directory")).unwrap();
    let _listener = UnixListener::bind(replace("socket")).unwrap();
    for name in ["fifo", "symlink", "symlink to a device", "directory", "socket"] {
        let dir = home.path().join(format!("run {name}"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::rename(replace(name), dir.join(FILE_NAME)).unwrap();
        let vfs: Arc<dyn Vfs> = DiskFs::new();
        let create = JournalFile::create(&vfs, &dir).unwrap_err().to_string();
        let recover = recover(&vfs, &dir, None, &sealing(), nothing).unwrap_err().to_string();
        let kind = name.split(' ').next().unwrap();
        for error in [create, recover] {
            assert!(error.to_lowercase().contains(&format!("is a {kind}, not a ")), "{error}");
        }
    }
    assert_eq!(std::fs::read(&real).unwrap(), Reference::new(&[1], 1).bytes);
}

// covers: R4
#[test]
fn a_second_writer_is_noticed_and_its_records_are_left() {
    let home = tempfile::tempdir().unwrap();
    let (_, vfs, mut journal, mut file) = start(home.path());
    journal.append("a", 0, &1).unwrap();
    file.commit(&journal.take_batch().unwrap()).unwrap();
    let mut other = recover(&vfs, home.path(), None, &sealing(), nothing).unwrap();
    other.journal.append("b", 0, &2).unwrap();
    other.file.commit(&other.journal.take_batch().unwrap()).unwrap();
    journal.append("c", 0, &3).unwrap();
    let batch = journal.take_batch().unwrap();
    assert!(matches!(file.commit(&batch), Err(JournalError::Io { .. })));
    assert!(matches!(file.commit(&batch), Err(JournalError::Poisoned { .. })));
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert!(text.contains("\"kind\":\"b\"") && !text.contains("\"kind\":\"c\""));
    check(vfs.as_ref(), home.path(), Some(other.file.head()), nothing).unwrap();
}
