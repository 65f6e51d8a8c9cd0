use serde_json::json;

use super::*;
use crate::sim::SimFs;

fn entry(feature: &str) -> Entry {
    Entry {
        feature: feature.to_owned(),
        run_id: "run-1".to_owned(),
        template: "feature".to_owned(),
        status: "running".to_owned(),
        pid: 42,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        updated_at: "2026-01-01T00:00:01Z".to_owned(),
        other: Map::new(),
    }
}

// covers: R9
#[test]
fn entries_are_kept_in_the_documented_form() {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join(".sage/state");
    assert_eq!(read(&state), (Vec::new(), None));
    assert_eq!(update(&state, |entries| entries.push(entry("demo"))).unwrap(), None);
    assert_eq!(read(&state), (vec![entry("demo")], None));
    let text = std::fs::read_to_string(state.join(FILE_NAME)).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({"version": "1.0", "workflows": [{
            "feature": "demo", "runId": "run-1", "template": "feature", "status": "running", "pid": 42,
            "startedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:01Z",
        }]})
    );
}

// covers: R9
#[test]
fn fields_of_a_newer_minor_version_are_kept() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(FILE_NAME);
    let mut document = json!({"version": "1.3", "more": [1], "workflows": [entry("demo")]});
    document["workflows"][0]["extra"] = json!("kept");
    std::fs::write(&path, document.to_string()).unwrap();
    update(home.path(), |entries| entries[0].status = "paused".to_owned()).unwrap();
    document["workflows"][0]["status"] = json!("paused");
    let found: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(found, document);
}

// covers: R9, R15
#[test]
fn a_damaged_file_is_set_aside_and_told_of() {
    let damages =
        ["", "{", "[]", "{\"version\":\"2.0\",\"workflows\":[]}", "{\"version\":\"1.0\",\"workflows\":[1]}"];
    for text in damages {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE_NAME);
        std::fs::write(&path, text).unwrap();
        let (entries, damage) = read(home.path());
        assert!(entries.is_empty() && damage.is_some_and(|damage| damage.set_aside.is_none()));
        let damage = update(home.path(), |entries| entries.push(entry("demo"))).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(damage.set_aside.unwrap()).unwrap(), text);
        assert_eq!(read(home.path()), (vec![entry("demo")], None));
    }
}

// covers: R9, R15
#[test]
fn every_truncation_and_flipped_bit_is_survived() {
    let (sim, path) = (SimFs::new(0), Path::new("/state/registry"));
    let document = Document { workflows: vec![entry("demo")], ..Document::default() };
    write_at(&sim, path, &document);
    let good = sim.read(path, u64::MAX).unwrap();
    let mut damaged = 0;
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        sim.plant(path, &bytes).unwrap();
        damaged += u32::from(parse(&sim, path).is_err());
    }
    for len in 0..good.len() - 2 {
        sim.plant(path, &good[..len]).unwrap();
        assert!(parse(&sim, path).is_err());
    }
    assert!(damaged > 1000);
}

fn write_at(sim: &SimFs, path: &Path, document: &Document) {
    sim.create_dir_all(vfs::parent(path)).unwrap();
    write(sim, path, document).unwrap();
}

// covers: R9, R17
#[test]
fn files_are_private_and_an_empty_change_writes_nothing() {
    use std::os::unix::fs::MetadataExt;
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    update(&state, |entries| entries.push(entry("demo"))).unwrap();
    let meta = state.join(FILE_NAME).metadata().unwrap();
    assert_eq!(meta.mode() & 0o777, 0o600);
    assert_eq!(state.metadata().unwrap().mode() & 0o777, 0o700);
    update(&state, |_| ()).unwrap();
    assert_eq!(state.join(FILE_NAME).metadata().unwrap().ino(), meta.ino());
}

// covers: R9
#[test]
fn many_writers_lose_no_entry() {
    let home = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let state = home.path();
            scope.spawn(move || {
                for n in 0..5 {
                    update(state, |entries| entries.push(entry(&format!("{writer}-{n}")))).unwrap();
                }
            });
        }
    });
    assert_eq!(read(home.path()).0.len(), 40);
}
