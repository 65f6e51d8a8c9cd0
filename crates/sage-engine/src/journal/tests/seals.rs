//! Who wrote a journal: the seal of its last record says so.

use super::*;

fn recovered(bytes: &[u8], sealing: &Sealing) -> Result<Recovered, JournalError> {
    let sim = SimFs::new(0);
    sim.plant(&file(), bytes).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    let result = recover(&vfs, dir(), None, sealing, |_| Ok::<_, JournalError>(()));
    if result.is_err() {
        assert_eq!(vfs.read(&file(), u64::MAX).unwrap(), bytes, "nothing changes");
        assert!(!vfs.exists(&dir().join(QUARANTINE)).unwrap());
    }
    result
}

fn written(sealing: &Sealing) -> Vec<u8> {
    let mut journal = Journal::new(sealing);
    journal.append("a", 0, &json!({"n": 1})).unwrap();
    journal.append("b", 0, &json!({"n": 2})).unwrap();
    journal.take_batch().unwrap().bytes
}

// covers: R17
#[test]
fn a_journal_that_was_not_sealed_here_is_read_but_never_continued() {
    let others = [
        Sealing::new(None, "one"),
        Sealing::new(Some(&Key::new(&[8; 32])), "one"),
        Sealing::new(Some(&key()), "two"),
    ];
    for other in others {
        let bytes = written(&other);
        assert!(matches!(recovered(&bytes, &sealing()), Err(JournalError::Foreign { .. })));
        // Also with a torn tail, which would be cut off.
        let torn = [bytes.as_slice(), b"{\"v\":1"].concat();
        assert!(matches!(recovered(&torn, &sealing()), Err(JournalError::Foreign { .. })));
        assert!(recovered(&torn, &sealing().accepting_foreign(true)).unwrap().torn.is_some());
    }
    assert!(recovered(&written(&sealing()), &sealing()).is_ok());
    assert!(matches!(
        recovered(&written(&sealing()), &Sealing::new(None, "one")),
        Err(JournalError::Foreign { .. })
    ));
    assert!(recovered(b"", &sealing()).is_ok(), "there is nothing in it to believe");
}

// covers: R17
#[test]
fn what_was_appended_or_chained_anew_by_others_is_foreign() {
    let ours = written(&sealing());
    let sim = SimFs::new(0);
    sim.plant(&file(), &ours).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(sim);
    let unsealed = Sealing::new(None, "one").accepting_foreign(true);
    let mut other = recover(&vfs, dir(), None, &unsealed, |_| Ok::<_, JournalError>(())).unwrap();
    other.journal.append("c", 0, &json!({})).unwrap();
    let appended = [ours.clone(), other.journal.take_batch().unwrap().bytes].concat();
    assert!(matches!(recovered(&appended, &sealing()), Err(JournalError::Foreign { .. })));
    // Adopted: one record of ours vouches for all before it.
    let sealing = sealing().accepting_foreign(true);
    let mut adopted = recovered(&appended, &sealing).unwrap();
    adopted.journal.append("d", 0, &json!({})).unwrap();
    let whole = [appended, adopted.journal.take_batch().unwrap().bytes].concat();
    assert!(recovered(&whole, &super::sealing()).is_ok());
}

// covers: R5, R17
#[test]
fn a_damaged_seal_is_damage() {
    let bytes = written(&sealing());
    let at = bytes.windows(8).rposition(|window| window == b"\"seal\":\"").unwrap() + 8;
    for (place, wrong) in [(at, b'g'), (at, if bytes[at] == b'0' { b'1' } else { b'0' })] {
        let mut damaged = bytes.clone();
        damaged[place] = wrong;
        let seen = recovered(&damaged, &sealing());
        assert!(
            seen.is_ok_and(|it| it.torn.is_some_and(|torn| torn.seq == 2)),
            "the last record is not whole"
        );
    }
}
