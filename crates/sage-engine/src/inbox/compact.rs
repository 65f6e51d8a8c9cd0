//! A ledger that grows for ever is bounded: of old entries only the id stays, of very old ones nothing.
//!
//! Ids are kept so that a wake that comes again has no second effect. It can come again from a file that a killed
//! deliverer had taken (it lies in `taken`, and is settled before anything is compacted), from a run that was
//! killed between an event and its wake (it knows how far it had posted), and from a sender that repeats a post
//! it is not sure of. For the last, the newest 30,000 ids are kept; at a wake a minute that is three weeks.
//! The body of a session's newest wake stays as long as there is room: whoever waits may come late.

use std::collections::HashSet;
use std::io;

use super::ledger::{Handled, Ledger, Reader};
use crate::vfs::{self, DiskFs};

/// Where it begins. What is left after it is always less.
pub const COMPACT_BYTES: u64 = 8 << 20;
const BODY_BYTES: usize = 4 << 20;
const BODIES: usize = 2_000;
const IDS: usize = 30_000;
/// Ids may be long; they have their share, too.
const ID_BYTES: usize = 3 << 20;

impl Ledger {
    /// With the turn in hand, and nothing taken that is not settled.
    pub fn compact_if_large(&mut self, disk: &DiskFs) -> io::Result<()> {
        if self.len() < COMPACT_BYTES {
            return Ok(());
        }
        let mut all = Vec::new();
        Reader::new(vfs::parent(self.path())).read(&mut |handled| all.push(handled))?;
        let kept = keep(all);
        let text = kept.iter().map(Handled::line).collect::<io::Result<String>>()?;
        vfs::write_atomic(disk, self.path(), text.as_bytes())?;
        self.catch_up(disk)
    }
}

/// In the order they were in.
fn keep(all: Vec<Handled>) -> Vec<Handled> {
    let (mut bodies, mut body_bytes, mut id_bytes) = (0, 0, 0);
    let mut sessions = HashSet::new();
    let mut kept = Vec::new();
    for mut handled in all.into_iter().rev().take(IDS) {
        let newest = handled.wake.as_ref().is_some_and(|wake| sessions.insert(wake.session_id.clone()));
        let bytes = handled.line().map_or(usize::MAX, |line| line.len());
        let wanted = handled.wake.is_some() && (newest || bodies < BODIES);
        // The very newest one is somebody's answer: it stays whatever its size.
        if wanted && (kept.is_empty() || body_bytes + bytes <= BODY_BYTES) {
            (bodies, body_bytes) = (bodies + 1, body_bytes + bytes);
        } else {
            handled.wake = None;
            id_bytes += handled.wake_id.len() + 60;
            if id_bytes > ID_BYTES {
                break;
            }
        }
        kept.push(handled);
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::{Wake, WakeType};

    fn handled(number: usize, session: &str, bytes: usize) -> Handled {
        let mut wake = Wake::new(WakeType::Complete, session);
        (wake.wake_id, wake.summary) = (format!("w{number}"), "x".repeat(bytes));
        Handled::new(&wake, number as u64)
    }

    // covers: S2
    #[test]
    fn the_newest_stay_whole_the_old_keep_their_ids_and_the_oldest_go() {
        let all: Vec<Handled> = (0..IDS + 500).map(|n| handled(n, "busy", 10)).collect();
        let kept = keep(all);
        assert_eq!(kept.len(), IDS);
        assert_eq!((kept[0].wake_id.as_str(), &kept[0].wake), ("w500", &None));
        assert_eq!(kept.iter().filter(|handled| handled.wake.is_some()).count(), BODIES);
        assert!(kept[IDS - 1].wake.is_some() && kept.is_sorted_by_key(|handled| handled.at.clone()));
    }

    // covers: S2
    #[test]
    fn a_quiet_sessions_answer_outlives_a_busy_one() {
        let mut all = vec![handled(0, "quiet", 10)];
        all.extend((1..BODIES * 3).map(|n| handled(n, "busy", 10)));
        let kept = keep(all);
        assert!(kept[0].wake.as_ref().is_some_and(|wake| wake.session_id == "quiet"));
    }

    // covers: S2
    #[test]
    fn what_is_left_is_below_the_bound_whatever_the_sizes() {
        let all: Vec<Handled> = (0..40).map(|n| handled(n, &format!("s{n}"), 900 << 10)).collect();
        let text: usize = keep(all).iter().map(|handled| handled.line().unwrap().len()).sum();
        assert!((text as u64) < COMPACT_BYTES, "{text}");
    }
}
