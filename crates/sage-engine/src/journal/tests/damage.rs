//! Every way to damage a small journal: detected, or reported as a torn tail that keeps all records before it.

use super::*;

/// Records of their own, and records that share batches.
fn references() -> [Reference; 2] {
    [Reference::new(&[1, 1, 1, 1], 1), Reference::new(&[2, 3], 1)]
}

// covers: R4, R5
#[test]
fn truncation_at_every_byte_keeps_every_whole_record() {
    for reference in references() {
        for len in 0..=reference.bytes.len() {
            let whole = reference.whole_before(len);
            let at_break = reference.starts.contains(&len);
            let expected = if at_break { Outcome::Clean(whole) } else { Outcome::Torn(whole) };
            assert_eq!(judge(&reference, &reference.bytes[..len], None), expected);
            let expected = if whole == reference.len() { expected } else { Outcome::LostAcked };
            assert_eq!(judge(&reference, &reference.bytes[..len], Some(reference.head())), expected);
        }
    }
}

// covers: R4, R5
#[test]
fn every_flipped_bit_is_found() {
    for reference in references() {
        let last = reference.starts[reference.len() - 1];
        let mut bytes = reference.bytes.clone();
        let mut torn = 0;
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let without = judge(&reference, &bytes, None);
            let with = judge(&reference, &bytes, Some(reference.head()));
            // The mark that joins it to its batch is not part of the last record.
            let in_last = bit / 8 >= last && reference.bytes[bit / 8] != b' ' || bit / 8 > last;
            if !in_last {
                assert_eq!((without, with), (Outcome::Corrupt, Outcome::Corrupt), "bit {bit}");
            } else {
                // A damaged last record can't be told from a torn one, but for the watermark.
                assert_eq!(
                    (without, with),
                    (Outcome::Torn(reference.len() - 1), Outcome::LostAcked),
                    "bit {bit}"
                );
                torn += 1;
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(torn >= (reference.line(reference.len() - 1).len() - 1) * 8);
    }
}

// covers: R4
#[test]
fn records_deleted_doubled_or_swapped_are_found() {
    for reference in references() {
        let lines: Vec<&[u8]> = (0..reference.len()).map(|index| reference.line(index)).collect();
        let last = lines.len() - 1;
        for index in 0..lines.len() {
            let mut deleted = lines.clone();
            deleted.remove(index);
            let expected = if index == last { Outcome::Clean(last) } else { Outcome::Corrupt };
            assert_eq!(judge(&reference, &deleted.concat(), None), expected);
            let with = judge(&reference, &deleted.concat(), Some(reference.head()));
            assert_eq!(with, if index == last { Outcome::LostAcked } else { Outcome::Corrupt });
            for other in 0..lines.len() {
                let mut doubled = lines.clone();
                doubled.insert(other, lines[index]);
                assert_eq!(judge(&reference, &doubled.concat(), None), Outcome::Corrupt);
                let mut swapped = lines.clone();
                swapped.swap(index, other);
                let expected = if index == other { Outcome::Clean(lines.len()) } else { Outcome::Corrupt };
                assert_eq!(judge(&reference, &swapped.concat(), None), expected);
            }
        }
    }
}

// covers: R4
#[test]
fn zeroed_sectors_and_pages_are_found() {
    for batches in [vec![1; 30], vec![2, 8, 8, 8, 4], vec![30]] {
        let reference = Reference::new(&batches, 20);
        for size in [512, 4096] {
            for start in (0..reference.bytes.len()).step_by(size) {
                let mut bytes = reference.bytes.clone();
                let end = bytes.len().min(start + size);
                bytes[start..end].fill(0);
                let before = reference.whole_before(start);
                let with = judge(&reference, &bytes, Some(reference.head()));
                assert!(matches!(with, Outcome::Corrupt | Outcome::LostAcked));
                // Without a watermark, only what may have been one unacknowledged batch counts as torn.
                let last_batch = reference.len() - batches.last().unwrap();
                let without = judge(&reference, &bytes, None);
                let may_be_torn = reference.whole_before(end) >= last_batch;
                assert!(without == Outcome::Corrupt || may_be_torn && without == Outcome::Torn(before));
            }
        }
    }
}

// covers: R4
#[test]
fn upper_case_hex_is_damage() {
    let reference = Reference::new(&[1, 1], 1);
    let mut flipped = 0;
    for at in 0..reference.starts[1] {
        let mut bytes = reference.bytes.clone();
        if bytes[at].is_ascii_lowercase() {
            bytes[at].make_ascii_uppercase();
            assert_eq!(judge(&reference, &bytes, None), Outcome::Corrupt);
            flipped += 1;
        }
    }
    assert!(flipped > 50);
}

// covers: R4
#[test]
fn a_torn_batch_with_later_sectors_written_is_no_corruption() {
    let reference = Reference::new(&[1, 20], 20);
    let mut bytes = reference.bytes.clone();
    // The power cut lost one sector of the second batch; records after it are whole.
    bytes[1024..1536].fill(0);
    let whole = reference.whole_before(1024);
    assert!(whole > 0);
    assert_eq!(judge(&reference, &bytes, None), Outcome::Torn(whole));
    assert_eq!(judge(&reference, &bytes, Some(reference.heads[0])), Outcome::Torn(whole));
    assert_eq!(judge(&reference, &bytes, Some(reference.head())), Outcome::LostAcked);
    // Once another batch was written after it, it had been synced: now it is corruption.
    let reference = Reference::new(&[1, 20, 1], 20);
    let mut bytes = reference.bytes.clone();
    bytes[1024..1536].fill(0);
    assert_eq!(judge(&reference, &bytes, None), Outcome::Corrupt);
}

// covers: R4
#[test]
fn a_watermark_of_another_history_is_refused() {
    let (one, other) = (Reference::new(&[1, 1, 1], 1), Reference::new(&[1, 1, 1], 2));
    for head in other.heads {
        assert_eq!(judge(&one, &one.bytes, Some(head)), Outcome::LostAcked);
    }
    for &head in &one.heads {
        assert_eq!(judge(&one, &one.bytes, Some(head)), Outcome::Clean(3));
    }
    assert_eq!(judge(&one, &[], Some(one.head())), Outcome::LostAcked);
    assert_eq!(judge(&one, &[], Some(Head::EMPTY)), Outcome::Clean(0));
}

/// `line` with another text in it, and the hash that goes with it.
fn forged(line: &[u8], from: &str, to: &str) -> Vec<u8> {
    let line = std::str::from_utf8(line).unwrap();
    let body = line.split_once(",\"sha\"").unwrap().0;
    assert!(body.contains(from));
    let body = body.replacen(from, to, 1);
    format!("{body},\"sha\":\"{}\"}}\n", crate::digest::Digest::of(body.as_bytes())).into_bytes()
}

// covers: R4
#[test]
fn good_lines_in_the_wrong_place_are_found() {
    let (one, other) = (Reference::new(&[1, 1], 1), Reference::new(&[1, 1], 2));
    let spliced = [one.line(0), other.line(1)].concat();
    assert_eq!(judge(&one, &spliced, None), Outcome::Corrupt, "the right number, another history");
    for (from, to) in [
        ("\"seq\":2", "\"seq\":3"),
        ("\"seq\":2", "\"seq\":02"),
        ("\"seq\":2", "\"seq\":99999999999999999999"),
        ("\"epoch\":1", "\"epoch\":0"),
        ("\"v\":1", "\"v\":0"),
        ("\"ts\"", "\"t\""),
        ("step.done", "step done"),
        ("\"data\":{", "\"data\":["),
        ("\"data\":{", "\"data\":1,\"x\":{"),
    ] {
        let bytes = [one.line(0), &forged(one.line(1), from, to)].concat();
        let outcome = judge(&one, &bytes, Some(one.head()));
        assert!(matches!(outcome, Outcome::Corrupt | Outcome::LostAcked), "{from} -> {to}: {outcome:?}");
    }
    let bytes = [one.line(0), &forged(one.line(1), "\"seq\":2", "\"seq\":3")].concat();
    assert_eq!(judge(&one, &bytes, None), Outcome::Corrupt, "the right hash, the wrong number");
}

// covers: R4
#[test]
fn a_newer_version_is_named_and_left_alone() {
    let reference = Reference::new(&[1, 1], 1);
    let newer = forged(reference.line(1), "{\"v\":1", "{\"v\":2,\"new\":true");
    let bytes = [reference.line(0), &newer].concat();
    assert_eq!(judge(&reference, &bytes, None), Outcome::Newer);
    // After damage it proves, as any other good line, that the damage is no torn tail.
    let bytes = [reference.line(0), b"damage\n", &newer].concat();
    assert_eq!(judge(&reference, &bytes, None), Outcome::Corrupt);
}

// covers: R4
#[test]
fn foreign_bytes_never_panic() {
    let reference = Reference::new(&[1, 1, 1], 1);
    let mut rng = crate::sim::Rng::new(7);
    for round in 0..2000 {
        let mut bytes = reference.bytes.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            let end = (at + rng.below(90) as usize).min(bytes.len());
            match rng.below(4) {
                0 => bytes[at..end].fill(rng.next() as u8),
                1 => drop(bytes.drain(at..end)),
                2 => bytes.truncate(at.max(1)),
                _ => {
                    let piece = bytes[at..end].to_vec();
                    let to = rng.below(bytes.len() as u64) as usize;
                    bytes.splice(to..to, piece);
                }
            }
        }
        let outcome = judge(&reference, &bytes, Some(reference.head()));
        assert!(outcome != Outcome::Clean(3) || bytes == reference.bytes, "round {round}");
        judge(&reference, &bytes, None);
    }
}
