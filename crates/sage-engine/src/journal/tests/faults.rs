//! A disk that fails at each operation of a reference sequence: what was acknowledged is there afterwards, and
//! the journal goes on or has stopped with an error.

use super::*;
use crate::blobs::Blobs;
use crate::digest::Digest;
use crate::sim::Fault;
use crate::vfs;

/// What a run was told is safe.
#[derive(Debug, Default)]
struct Acked {
    values: Vec<Value>,
    blobs: Vec<Digest>,
    head: Option<Head>,
}

/// Creates or recovers the journal, then commits four batches and two blobs. Stops at the first error.
fn run(sim: &SimFs, acked: &mut Acked) -> Result<(), Box<dyn std::error::Error>> {
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    vfs::create_dir_durable(vfs.as_ref(), vfs::parent(dir()))?;
    let blobs = Blobs::new(Arc::clone(&vfs), dir().join("blobs"));
    let (mut journal, mut file) = match recover_values(&vfs, acked.head) {
        Ok((recovered, values)) => {
            assert!(values.len() >= acked.values.len(), "acknowledged records are lost");
            assert_eq!(values[..acked.values.len()], acked.values);
            acked.values = values;
            acked.head = Some(recovered.file.head());
            (recovered.journal, recovered.file)
        }
        Err(JournalError::Missing { .. }) if acked.values.is_empty() => {
            (Journal::new(&sealing()), JournalFile::create(&vfs, dir())?)
        }
        Err(error) => return Err(error.into()),
    };
    for blob in &acked.blobs {
        blobs.get(blob)?;
    }
    for batch in 0..4 {
        let mut values = vec![json!({"batch": batch, "seq": journal.head().seq, "text": "x".repeat(300)}); 2];
        let blob = (batch % 2 == 0).then(|| blobs.put(&[batch; 600])).transpose()?;
        values[0]["blob"] = json!(blob);
        for value in &values {
            journal.append("step.done", 0, value)?;
        }
        file.commit(&journal.take_batch().ok_or("an empty batch")?)?;
        acked.values.extend(values);
        acked.blobs.extend(blob);
        acked.head = Some(file.head());
    }
    Ok(())
}

fn faults() -> Vec<Fault> {
    let mut faults = vec![Fault::Eio, Fault::Enospc, Fault::LyingWrite, Fault::Crash];
    faults.extend([0, 1, 2, 100, 511, 512, 513, 600].map(Fault::ShortWrite));
    faults
}

/// After a fault the machine goes on, or loses power too; either way two more runs and a cut must hold.
fn continue_after(sim: &SimFs, mut acked: Acked, seed: u64, cut: bool) {
    sim.clear_faults();
    if cut {
        sim.crash(seed);
    }
    sim.restart();
    run(sim, &mut acked).unwrap();
    sim.crash(seed + 1);
    sim.restart();
    run(sim, &mut acked).unwrap();
}

// covers: R4, R5, R15
#[test]
fn a_fault_at_each_operation_loses_nothing_acknowledged() {
    let sim = SimFs::new(0);
    run(&sim, &mut Acked::default()).unwrap();
    let (ops, mut cases, mut stopped) = (sim.ops(), 0, 0);
    for op in 0..ops {
        for fault in faults() {
            for cut in [false, true] {
                let sim = SimFs::new(op);
                sim.fail_at(op, fault);
                let mut acked = Acked::default();
                stopped += u32::from(run(&sim, &mut acked).is_err());
                continue_after(&sim, acked, op, cut);
                cases += 1;
            }
        }
    }
    assert!(ops > 20 && cases > 500 && stopped > 100, "{ops} {cases} {stopped}");
}

// covers: R4, R5
#[test]
fn a_short_write_at_each_length_is_completed() {
    let reference = Reference::new(&[2], 1);
    for len in 1..reference.bytes.len() {
        let sim = SimFs::new(0);
        let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
        vfs::create_dir_durable(vfs.as_ref(), vfs::parent(dir())).unwrap();
        let mut file = JournalFile::create(&vfs, dir()).unwrap();
        sim.fail_at(sim.ops(), Fault::ShortWrite(len));
        let batch = Batch {
            bytes: reference.bytes.clone(),
            prev: Head::EMPTY,
            last: reference.head(),
            count: 2,
            synced: true,
        };
        file.commit(&batch).unwrap();
        sim.crash(len as u64);
        sim.restart();
        assert_eq!(recover_values(&vfs, Some(reference.head())).unwrap().1, reference.values);
    }
}

// covers: R4, R15
#[test]
fn after_a_failed_sync_the_handle_refuses_and_the_batch_is_gone() {
    for seed in 0..100 {
        let sim = SimFs::new(seed);
        let mut acked = Acked::default();
        run(&sim, &mut acked).unwrap();
        let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
        let (Recovered { mut journal, mut file, .. }, _) = recover_values(&vfs, acked.head).unwrap();
        journal.append("a", 0, &"x".repeat(2000)).unwrap();
        let batch = journal.take_batch().unwrap();
        // The write, then the sync.
        sim.fail_at(sim.ops() + 1, Fault::Eio);
        assert!(matches!(file.commit(&batch), Err(JournalError::Io { op: "sync", .. })));
        assert!(matches!(file.commit(&batch), Err(JournalError::Poisoned { .. })), "never a second sync");
        // The lost pages are readable still; a journal built on them would break with the next power cut.
        continue_after(&sim, acked, seed, false);
    }
}

// covers: R4, R15
#[test]
fn a_full_disk_stops_the_journal_and_space_lets_it_go_on() {
    let sim = SimFs::new(0);
    run(&sim, &mut Acked::default()).unwrap();
    let full: u64 = 8000;
    for capacity in (0..full).step_by(97) {
        let sim = SimFs::new(capacity);
        sim.set_capacity(Some(capacity));
        let mut acked = Acked::default();
        let stopped = run(&sim, &mut acked);
        sim.set_capacity(None);
        assert!(stopped.is_ok() || acked.values.len() < 8);
        continue_after(&sim, acked, capacity, capacity % 2 == 0);
    }
}

// covers: R4, R5, R15
#[test]
fn a_fault_at_each_operation_of_a_recovery_changes_nothing_that_counts() {
    let reference = Reference::new(&[2, 4], 30);
    let torn = &reference.bytes[..reference.bytes.len() - 700];
    let whole = reference.whole_before(torn.len());
    let prepare = |seed| {
        let sim = SimFs::new(seed);
        sim.plant(&file(), torn).unwrap();
        sim
    };
    let recover = |sim: &SimFs| {
        let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
        recover_values(&vfs, Some(reference.heads[1])).map(|(recovered, values)| (recovered.torn, values))
    };
    let sim = prepare(0);
    recover(&sim).unwrap();
    for op in 0..sim.ops() {
        for fault in faults() {
            let sim = prepare(op);
            sim.fail_at(op, fault);
            let first = recover(&sim);
            sim.restart();
            let second = recover(&sim).unwrap();
            assert_eq!(second.1, reference.values[..whole]);
            let torn_tail = first.ok().and_then(|first| first.0).or(second.0);
            if fault != Fault::Crash {
                let saved = sim.read(&torn_tail.unwrap().saved_to, u64::MAX).unwrap();
                assert_eq!(saved, torn[reference.starts[whole]..]);
            }
        }
    }
    // Disk full: the tail can't be kept, so it isn't cut off.
    let sim = prepare(0);
    sim.set_capacity(Some(torn.len() as u64));
    assert!(matches!(recover(&sim), Err(JournalError::Io { .. })));
    assert_eq!(sim.read(&file(), u64::MAX).unwrap(), torn);
    sim.set_capacity(None);
    assert!(recover(&sim).unwrap().0.is_some());
}
