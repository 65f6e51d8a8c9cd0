use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::sim::{Fault, SimFs};
use crate::vfs::DiskFs;

fn path() -> &'static Path {
    Path::new("/state/workflow-demo.json")
}

fn key() -> Key {
    Key::new(&[7; 32])
}

fn document(n: u64) -> Map<String, Value> {
    let doc = json!({
        "feature": "demo", "phase": n, "ratio": 0.1 + 0.2, "big": 1e300, "text": "ä \"x\" \u{1}",
        "phases": [{"name": "research", "done": true, "b": 2, "a": 1}, []], "head": {"seq": n},
    });
    let Value::Object(doc) = doc else { unreachable!("it is an object") };
    doc
}

fn sealed(n: u64) -> Vec<u8> {
    seal(document(n), Some(&key())).unwrap()
}

/// As `open` gives it back.
fn opened(n: u64) -> Map<String, Value> {
    open(&sealed(n)).unwrap()
}

// covers: R4
#[test]
fn what_is_sealed_opens_again_with_all_its_fields() {
    let mut doc = opened(7);
    assert_eq!(doc.shift_remove("version"), Some("1.0".into()));
    assert_eq!(doc, document(7));
    let text = String::from_utf8(sealed(7)).unwrap();
    assert!(text.starts_with("{\n  \"version\": \"1.0\",") && text.ends_with("\"\n}\n"), "{text}");
    assert_eq!(seal(opened(7), Some(&key())).unwrap(), sealed(7), "sealing again changes nothing");
}

// covers: R4, R17
#[test]
fn a_run_is_a_name_and_no_path() {
    let with = |run: &str| {
        let mut doc = document(1);
        doc.insert("runId".into(), run.into());
        open(&seal(doc, Some(&key())).unwrap())
    };
    assert!(with("run_01M7PBMXMKCFCJME85PB16M544").is_ok());
    for run in ["../../../other/.sage/state/runs/run_1", "/tmp/run_1", "..", "", "a/b"] {
        let refused = with(run).unwrap_err().to_string();
        assert!(refused.contains("its `runId` is not the id of a run"), "{run}: {refused}");
    }
}

// covers: R4
#[test]
fn the_checksum_is_of_the_canonical_form() {
    let Value::Object(doc) = json!({"b": [1, {"y": null, "x": 1.5}], "a": "é"}) else { unreachable!() };
    let bytes = seal(doc, None).unwrap();
    let canonical = r#"{"a":"é","b":[1,{"x":1.5,"y":null}],"version":"1.0"}"#;
    let checksum = Digest::of(canonical.as_bytes()).to_string();
    assert!(String::from_utf8(bytes).unwrap().contains(&checksum));
    let reordered =
        format!(r#"{{"checksum":"{checksum}","version":"1.0","b":[1,{{"x":1.5,"y":null}}],"a":"é"}}"#);
    assert!(open(reordered.as_bytes()).is_ok(), "order and space don't count");
}

// covers: R4
#[test]
fn numbers_keep_their_digits() {
    for number in
        ["0.1", "1e300", "5e-324", "1.7976931348623157e308", "123456789012345678901234567890", "-0.0"]
    {
        let text = format!("{{\"version\":\"1.0\",\"n\":{number}}}");
        let checksum = checksum(&text).unwrap();
        let text = format!("{{\"version\":\"1.0\",\"n\":{number},\"checksum\":\"{checksum}\"}}");
        open(text.as_bytes()).unwrap();
    }
    let mut rng = crate::sim::Rng::new(3);
    for _ in 0..2000 {
        let number = f64::from_bits(rng.next());
        let doc = Map::from_iter([("n".to_owned(), json!(number))]);
        open(&seal(doc, None).unwrap()).unwrap();
    }
}

// covers: R4
#[test]
fn every_flipped_bit_and_every_truncation_is_found() {
    let (good, doc) = (sealed(7), opened(7));
    let mut bytes = good.clone();
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&bytes).is_err(), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    for len in 0..good.len() {
        // Without its last line break it is still all there.
        assert!(open(&good[..len]).map_or(len < good.len() - 1, |found| found == doc), "{len}");
    }
    for start in (0..good.len()).step_by(512) {
        let mut bytes = good.clone();
        let end = bytes.len().min(start + 512);
        bytes[start..end].fill(0);
        assert!(open(&bytes).is_err());
    }
}

// covers: R4, R5
#[test]
fn damage_to_the_main_file_gives_the_backup_and_says_why() {
    let sim = SimFs::new(0);
    let main = sealed(2);
    let (mut from_backup, mut bytes) = (0, main.clone());
    sim.plant(&backup_path(path()), &sealed(1)).unwrap();
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        sim.plant(path(), &bytes).unwrap();
        let loaded = load(&sim, path()).unwrap();
        assert_eq!((loaded.from, loaded.doc), (Source::Backup, opened(1)));
        assert!(loaded.problem.is_some());
        bytes[bit / 8] ^= 1 << (bit % 8);
        from_backup += 1;
    }
    assert!(from_backup > 1000);
    sim.plant(path(), &main).unwrap();
    let loaded = load(&sim, path()).unwrap();
    assert_eq!((loaded.from, loaded.doc, loaded.problem.is_none()), (Source::Main, opened(2), true));
    sim.remove_file(path()).unwrap();
    let problem = load(&sim, path()).unwrap().problem;
    assert!(matches!(problem, Some(CheckpointError::Missing { .. })));
}

// covers: R4, R15
#[test]
fn with_both_gone_or_damaged_the_error_says_so() {
    let sim = SimFs::new(0);
    assert!(matches!(load(&sim, path()), Err(CheckpointError::Missing { .. })));
    sim.plant(path(), b"").unwrap();
    assert!(matches!(load(&sim, path()), Err(CheckpointError::Malformed { .. })));
    sim.plant(&backup_path(path()), b"{}").unwrap();
    let error = load(&sim, path()).unwrap_err().to_string();
    assert!(error.contains("and of its backup"), "{error}");
    sim.plant(path(), &vec![b' '; MAX_CHECKPOINT_BYTES as usize + 1]).unwrap();
    let Err(CheckpointError::Both { main, .. }) = load(&sim, path()) else { panic!("both are bad") };
    assert!(matches!(*main, CheckpointError::TooLarge));
}

fn with_version(version: &str) -> Vec<u8> {
    let body = json!({"version": version, "new": {"a": 1}});
    let checksum = checksum(&body.to_string()).unwrap();
    json!({"version": version, "new": {"a": 1}, "checksum": checksum}).to_string().into_bytes()
}

// covers: R4
#[test]
fn newer_minor_versions_are_read_and_newer_major_ones_refused() {
    assert_eq!(open(&with_version("1.7")).unwrap()["new"], json!({"a": 1}));
    assert!(matches!(open(&with_version("2.0")), Err(CheckpointError::NewerVersion { .. })));
    for odd in ["", "1", "0.9", "x.y", "1.x"] {
        assert!(matches!(open(&with_version(odd)), Err(CheckpointError::Malformed { .. })), "{odd}");
    }
    let sim = SimFs::new(0);
    sim.plant(path(), &with_version("2.0")).unwrap();
    sim.plant(&backup_path(path()), &sealed(1)).unwrap();
    assert!(
        matches!(load(&sim, path()), Err(CheckpointError::NewerVersion { .. })),
        "no way back by the backup"
    );
}

// covers: R4
#[test]
fn odd_documents_are_refused() {
    let twice = [r#"{"version":"1.0","a":1,"a":1}"#, r#"{"version":"1.0","x":[{"\u0061":1,"a":2}]}"#];
    for text in twice {
        assert!(matches!(checksum(text), Err(CheckpointError::DuplicateKey { key }) if key == "a"));
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for text in ["", "[]", "null", "{", "{} x", "\u{feff}{}", &deep] {
        assert!(matches!(open(text.as_bytes()), Err(CheckpointError::Malformed { .. })), "{text:.20}");
    }
    assert!(matches!(open(b"{}"), Err(CheckpointError::Checksum)));
    assert!(matches!(open(b"\xff"), Err(CheckpointError::Malformed { .. })));
    assert!(checksum(&deep).is_err());
}

// covers: R4
#[test]
fn saving_keeps_the_last_good_one_as_backup() {
    let home = tempfile::tempdir().unwrap();
    let disk = DiskFs::new();
    let path = home.path().join("workflow-demo.json");
    for n in 1..=3 {
        save(disk.as_ref(), &path, &sealed(n)).unwrap();
    }
    assert_eq!(load(disk.as_ref(), &path).unwrap().doc, opened(3));
    assert_eq!(open(&std::fs::read(backup_path(&path)).unwrap()).unwrap(), opened(2));
    assert_eq!(disk.list(home.path()).unwrap(), ["workflow-demo.json", "workflow-demo.json.bak"]);
    // A damaged document doesn't replace a good backup.
    std::fs::write(&path, "damaged").unwrap();
    save(disk.as_ref(), &path, &sealed(4)).unwrap();
    assert_eq!(open(&std::fs::read(backup_path(&path)).unwrap()).unwrap(), opened(2));
    assert_eq!(load(disk.as_ref(), &path).unwrap().from, Source::Main);
}

// covers: R4, R5, R15
#[test]
fn after_any_fault_or_cut_the_last_saved_document_or_the_next_is_there() {
    let prepare = |seed| {
        let sim = SimFs::new(seed);
        sim.plant(path(), &sealed(2)).unwrap();
        sim.plant(&backup_path(path()), &sealed(1)).unwrap();
        sim
    };
    let sim = prepare(0);
    save(&sim, path(), &sealed(3)).unwrap();
    let ops = sim.ops();
    let faults = [
        Fault::Crash,
        Fault::Eio,
        Fault::Enospc,
        Fault::LyingWrite,
        Fault::ShortWrite(0),
        Fault::ShortWrite(9),
    ];
    for seed in 0..120 {
        for fault in faults {
            let sim = prepare(seed);
            sim.fail_at(seed % ops, fault);
            let saved = save(&sim, path(), &sealed(3)).is_ok();
            sim.crash(seed);
            sim.restart();
            let found = load(&sim, path()).unwrap();
            assert!(found.doc == opened(3) || found.doc == opened(2), "{fault:?} {saved}");
            // And again, on what is left.
            save(&sim, path(), &sealed(4)).unwrap();
            assert_eq!(load(&sim, path()).unwrap().doc, opened(4));
            assert!(open(&sim.read(&backup_path(path()), u64::MAX).unwrap()).is_ok());
        }
    }
}

/// A file system without hard links.
#[derive(Debug)]
struct NoLinks(Arc<DiskFs>);

impl Vfs for NoLinks {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.create_dir_all(dir)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn vfs::VfsFile>> {
        self.0.create_new(path)
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn vfs::VfsFile>> {
        self.0.open_append(path)
    }

    fn read(&self, path: &Path, cap_bytes: u64) -> io::Result<Vec<u8>> {
        self.0.read(path, cap_bytes)
    }

    fn read_from(&self, path: &Path, offset: u64, max_bytes: u64) -> io::Result<Vec<u8>> {
        self.0.read_from(path, offset, max_bytes)
    }

    fn metadata(&self, path: &Path) -> io::Result<vfs::Meta> {
        self.0.metadata(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

// covers: R4, R15
#[test]
fn without_hard_links_the_backup_is_a_copy() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("workflow-demo.json");
    let disk = NoLinks(DiskFs::new());
    save(&disk, &path, &sealed(1)).unwrap();
    save(&disk, &path, &sealed(2)).unwrap();
    assert_eq!(open(&std::fs::read(backup_path(&path)).unwrap()).unwrap(), opened(1));
}
