use std::collections::BTreeSet;

use super::*;
use crate::vfs::write_all;

fn path() -> &'static Path {
    Path::new("/dir/file")
}

/// A disk with a synced file of `len` bytes.
fn with_file(seed: u64, len: usize) -> SimFs {
    let sim = SimFs::new(seed);
    sim.plant(path(), &vec![b'o'; len]).unwrap();
    sim
}

fn after_cut(sim: &SimFs, seed: u64) -> Vec<u8> {
    sim.crash(seed);
    sim.restart();
    sim.read(path(), u64::MAX).unwrap()
}

// covers: R4
#[test]
fn synced_data_survives_and_unsynced_data_tears_by_sectors_in_any_order() {
    let mut shapes = BTreeSet::new();
    for seed in 0..300 {
        let sim = with_file(0, 600);
        write_all(sim.open_append(path()).unwrap().as_mut(), &[b'n'; 1400]).unwrap();
        let found = after_cut(&sim, seed);
        assert!(found.len() >= 600 && found.len() <= 2000);
        assert!(found[..600].iter().all(|&byte| byte == b'o'), "what was synced stays");
        // The first sector is partly old; the rest is there as a whole or not at all.
        let shape: Vec<u8> =
            [600, 1024, 1536].into_iter().map(|at| found.get(at).copied().unwrap_or(b'-')).collect();
        for (start, end) in [(600, 1024), (1024, 1536), (1536, 2000)] {
            let part = &found[start.min(found.len())..end.min(found.len())];
            assert!(part.iter().all(|byte| *byte == part[0]));
        }
        shapes.insert(shape);
    }
    assert!(shapes.contains(&b"nnn"[..]) && shapes.contains(&b"---"[..]));
    assert!(shapes.contains(&b"\0\0n"[..]), "a later sector without the earlier ones");
    assert!(shapes.contains(&b"n--"[..]), "a length in between");
    assert!(shapes.len() > 8, "{shapes:?}");
}

// covers: R4
#[test]
fn a_sync_makes_data_and_length_durable() {
    for seed in 0..50 {
        let sim = with_file(0, 600);
        let mut file = sim.open_append(path()).unwrap();
        write_all(file.as_mut(), &[b'n'; 1400]).unwrap();
        file.sync_data().unwrap();
        assert_eq!(after_cut(&sim, seed).len(), 2000);
        let mut file = sim.open_append(path()).unwrap();
        file.set_len(100).unwrap();
        let found = after_cut(&sim, seed).len();
        assert!(found == 100 || found == 2000);
    }
}

// covers: R4
#[test]
fn a_failed_sync_loses_data_that_stays_readable() {
    let mut lost = 0;
    for seed in 0..50 {
        let sim = with_file(seed, 0);
        let mut file = sim.open_append(path()).unwrap();
        write_all(file.as_mut(), &[b'n'; 512]).unwrap();
        sim.fail_at(sim.ops(), Fault::Eio);
        assert!(file.sync_data().is_err());
        assert_eq!(sim.read(path(), 9999).unwrap(), [b'n'; 512]);
        file.sync_data().unwrap();
        lost += u32::from(after_cut(&sim, seed) != [b'n'; 512]);
    }
    assert!(lost > 40, "a second sync reports success and saves nothing");
}

// covers: R4
#[test]
fn directory_entries_survive_only_by_a_sync_and_renames_are_whole() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let sim = SimFs::new(0);
        let at = |name: &str| Path::new("/dir").join(name);
        for name in ["old", "gone", "kept"] {
            sim.plant(&at(name), name.as_bytes()).unwrap();
        }
        sim.create_new(&at("new")).unwrap();
        sim.rename(&at("old"), &at("moved")).unwrap();
        sim.remove_file(&at("gone")).unwrap();
        sim.hard_link(&at("kept"), &at("second")).unwrap();
        if seed % 2 == 0 {
            sim.sync_dir(Path::new("/dir")).unwrap();
        }
        sim.crash(seed);
        sim.restart();
        let names = sim.list(Path::new("/dir")).unwrap();
        assert!(names.contains(&"old".to_owned()) != names.contains(&"moved".to_owned()));
        assert!(names.contains(&"kept".to_owned()));
        if seed % 2 == 0 {
            assert_eq!(names, ["kept", "moved", "new", "second"]);
        }
        seen.insert(names);
    }
    assert!(seen.len() > 10, "each entry by itself: {}", seen.len());
}

// covers: R4
#[test]
fn a_directory_that_was_not_synced_takes_its_files_with_it() {
    let sim = SimFs::new(0);
    sim.create_dir_all(Path::new("/dir")).unwrap();
    sim.create_new(path()).unwrap().sync_all().unwrap();
    sim.sync_dir(Path::new("/dir")).unwrap();
    let lost = (0..50).any(|seed| {
        let sim = SimFs::new(0);
        sim.create_dir_all(Path::new("/dir")).unwrap();
        sim.create_new(path()).unwrap().sync_all().unwrap();
        sim.sync_dir(Path::new("/dir")).unwrap();
        sim.crash(seed);
        sim.restart();
        !sim.exists(path()).unwrap()
    });
    assert!(lost);
}

// covers: R4
#[test]
fn faults_strike_at_their_operation_and_once() {
    let sim = with_file(0, 0);
    let mut file = sim.open_append(path()).unwrap();
    let next = sim.ops();
    sim.fail_at(next, Fault::Enospc);
    sim.fail_at(next + 1, Fault::ShortWrite(2));
    sim.fail_at(next + 2, Fault::LyingWrite);
    assert_eq!(file.write(b"abc").unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.write(b"abc").unwrap(), 2);
    assert_eq!(file.write(b"abc").unwrap(), 3);
    assert_eq!(file.write(b"def").unwrap(), 3);
    assert_eq!(sim.read(path(), 99).unwrap(), b"abdef");
    assert_eq!(sim.ops(), next + 4);
    sim.fail_at(next + 4, Fault::Crash);
    assert!(file.sync_data().is_err());
    assert!(
        sim.read(path(), 99).is_err() && sim.create_dir_all(Path::new("/x")).is_err(),
        "the power is off"
    );
    sim.restart();
    assert!(sim.read(path(), 99).is_ok());
    assert!(file.sync_data().is_err(), "a file of before the cut is dead");
}

// covers: R4
#[test]
fn a_full_disk_takes_what_fits() {
    let sim = with_file(0, 90);
    sim.set_capacity(Some(100));
    let mut file = sim.open_append(path()).unwrap();
    assert_eq!(file.write(&[0; 30]).unwrap(), 10);
    assert_eq!(file.write(&[0; 30]).unwrap_err().kind(), io::ErrorKind::StorageFull);
}

// covers: R4
#[test]
fn equal_seeds_give_equal_losses() {
    let lose = |seed| {
        let sim = with_file(seed, 700);
        write_all(sim.open_append(path()).unwrap().as_mut(), &[b'n'; 5000]).unwrap();
        after_cut(&sim, seed)
    };
    assert!((0..50).all(|seed| lose(seed) == lose(seed)));
    assert!((0..50).map(lose).collect::<BTreeSet<_>>().len() > 10);
}
