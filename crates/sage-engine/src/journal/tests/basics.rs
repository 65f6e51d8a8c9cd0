use serde_json::value::RawValue;

use super::*;

fn feed(reader: &mut Reader, bytes: &[u8], seen: &mut Vec<u64>) -> Result<(), JournalError> {
    reader.feed(bytes, &mut |record| {
        seen.push(record.seq);
        Ok(())
    })
}

// covers: R4
#[test]
fn a_line_is_exactly_as_documented() {
    let mut journal = Journal::new(&sealing());
    journal.append("run.started", 1_700_000_000_000, &json!({"feature": "a\nb", "n": 1})).unwrap();
    journal.append("step.done", 7, &json!(null)).unwrap();
    let batch = journal.take_batch().unwrap();
    let text = String::from_utf8(batch.bytes).unwrap();
    let zeros = "0".repeat(64);
    let body = format!(
        r#"{{"v":1,"seq":1,"epoch":1,"prev":"{zeros}","ts":1700000000000,"kind":"run.started","data":{{"feature":"a\nb","n":1}}"#
    );
    let sealed = |body: &str| {
        let content = crate::digest::Digest::of(body.trim_start().as_bytes());
        let seal = key().scoped("journal", "one").seal(&content);
        format!("{body},\"seal\":\"{seal}\"")
    };
    let body = sealed(&body);
    let sha = crate::digest::Digest::of(body.as_bytes());
    let second = sealed(&format!(
        r#" {{"v":1,"seq":2,"epoch":1,"prev":"{sha}","ts":7,"kind":"step.done","data":null"#
    ));
    let last = crate::digest::Digest::of(&second.as_bytes()[1..]);
    assert_eq!(text, format!("{body},\"sha\":\"{sha}\"}}\n{second},\"sha\":\"{last}\"}}\n"));
    assert_eq!((batch.count, batch.prev, batch.last), (2, Head::EMPTY, Head { seq: 2, sha: last }));
    assert_eq!(journal.take_batch(), None);
}

// covers: R4
#[test]
fn what_cannot_be_a_record_is_refused_and_leaves_no_trace() {
    let mut journal = Journal::new(&sealing());
    journal.append("a", 0, &json!({})).unwrap();
    let head = journal.head();
    for kind in ["", "a b", "ä", "a\"", &"k".repeat(65)] {
        assert!(matches!(journal.append(kind, 0, &json!({})), Err(JournalError::Kind { .. })));
    }
    let raw = RawValue::from_string("{\n}".to_owned()).unwrap();
    assert!(matches!(journal.append("a", 0, &raw), Err(JournalError::LineBreak { .. })));
    let unserialisable = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(matches!(journal.append("a", 0, &unserialisable), Err(JournalError::Encode { .. })));
    assert_eq!((journal.head(), journal.pending()), (head, 1));
    journal.append("a", 0, &json!({})).unwrap();
    let bytes = journal.take_batch().unwrap().bytes;
    let mut seen = Vec::new();
    feed(&mut Reader::new(), &bytes, &mut seen).unwrap();
    assert_eq!(seen, [1, 2]);
}

// covers: R4, R8
#[test]
fn a_reader_takes_pieces_of_any_size_and_a_partial_line_is_harmless() {
    let reference = Reference::new(&[1, 3, 2], 10);
    for size in [1, 2, 7, 100, 512, 10_000] {
        let (mut reader, mut seen) = (Reader::new(), Vec::new());
        let mut fed = 0;
        for piece in reference.bytes.chunks(size) {
            feed(&mut reader, piece, &mut seen).unwrap();
            fed += piece.len();
            assert_eq!(seen.len(), reference.whole_before(fed));
            assert_eq!(reader.offset() as usize, reference.starts[seen.len()]);
            assert_eq!(reader.next_offset() as usize, fed);
        }
        assert_eq!(reader.head(), reference.head());
    }
}

// covers: R4
#[test]
fn a_reader_names_the_place_of_damage_and_stays_broken() {
    let reference = Reference::new(&[1, 1, 1], 1);
    let mut bytes = reference.bytes.clone();
    bytes[reference.starts[1] + 20] ^= 1;
    let (mut reader, mut seen) = (Reader::new(), Vec::new());
    let error = feed(&mut reader, &bytes, &mut seen).unwrap_err();
    let JournalError::Corrupt { line, offset, .. } = error else { panic!("{error}") };
    assert_eq!((line, offset as usize), (2, reference.starts[1]));
    assert!(feed(&mut reader, reference.line(1), &mut seen).is_err());
    assert_eq!(seen, [1]);
}

// covers: R4
#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let mut reader = Reader::new();
    let piece = vec![b'x'; MAX_LINE_BYTES / 4];
    let mut failed = 0;
    for _ in 0..6 {
        failed += usize::from(feed(&mut reader, &piece, &mut Vec::new()).is_err());
    }
    assert_eq!(failed, 2);
}

// covers: R4, R5
#[test]
fn a_callers_error_stops_the_recovery() {
    #[derive(Debug)]
    enum Mine {
        Fold(u64),
        Journal,
    }
    impl From<JournalError> for Mine {
        fn from(_: JournalError) -> Self {
            Self::Journal
        }
    }
    let reference = Reference::new(&[3], 1);
    let sim = SimFs::new(0);
    sim.plant(&file(), &reference.bytes).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(sim);
    let stop = |record: Record<'_>| {
        if record.seq == 2 { Err(Mine::Fold(2)) } else { Ok(()) }
    };
    assert!(matches!(recover(&vfs, dir(), None, &sealing(), stop), Err(Mine::Fold(2))));
    assert!(matches!(recover(&vfs, Path::new("/nowhere"), None, &sealing(), stop), Err(Mine::Journal)));
}

// covers: R4, R5
#[test]
fn each_opening_that_writes_has_its_own_epoch() {
    let vfs: Arc<dyn Vfs> = Arc::new(SimFs::new(0));
    let mut file = JournalFile::create(&vfs, dir()).unwrap();
    let mut journal = Journal::new(&sealing());
    for epoch in 1..5 {
        assert_eq!(journal.epoch(), epoch);
        journal.append("a", 0, &epoch).unwrap();
        file.commit(&journal.take_batch().unwrap()).unwrap();
        let (recovered, values) = recover_values(&vfs, Some(file.head())).unwrap();
        assert_eq!(values.len() as u64, epoch);
        (journal, file) = (recovered.journal, recovered.file);
    }
    assert!(matches!(JournalFile::create(&vfs, dir()), Err(JournalError::Exists { .. })));
}

// covers: R4
#[test]
fn batches_are_committed_in_order_or_not_at_all() {
    let vfs: Arc<dyn Vfs> = Arc::new(SimFs::new(0));
    let mut file = JournalFile::create(&vfs, dir()).unwrap();
    let mut journal = Journal::new(&sealing());
    let mut batch = || {
        journal.append("a", 0, &1).unwrap();
        journal.take_batch().unwrap()
    };
    let (first, second) = (batch(), batch());
    assert!(matches!(file.commit(&second), Err(JournalError::OutOfOrder { .. })));
    file.commit(&first).unwrap();
    assert!(matches!(file.commit(&first), Err(JournalError::OutOfOrder { .. })));
    file.commit(&second).unwrap();
    assert_eq!(file.head(), second.last);
}

// covers: R4
#[test]
fn check_reads_beside_a_writer_and_changes_nothing() {
    let reference = Reference::new(&[2, 2], 5);
    let sim = SimFs::new(0);
    let part = &reference.bytes[..reference.bytes.len() - 3];
    sim.plant(&file(), part).unwrap();
    let ops = sim.ops();
    let checked = check(&sim, dir(), None, |_| Ok::<_, JournalError>(())).unwrap();
    assert_eq!(checked.head, reference.heads[2]);
    assert_eq!((checked.good_bytes + checked.tail_bytes) as usize, part.len());
    assert_eq!(sim.ops(), ops);
    let lost = check(&sim, dir(), Some(reference.head()), |_| Ok::<_, JournalError>(()));
    assert!(matches!(lost, Err(JournalError::LostAcked { .. })));
}
