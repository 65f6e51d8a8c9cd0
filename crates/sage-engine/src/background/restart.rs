//! When a run whose owner died may have the next one: soon at first, then later, and not for ever.

use super::record::Record;

/// Restarts within the window that may come to nothing.
pub(super) const RESTARTS: usize = 5;
pub(super) const WINDOW_MS: u64 = 10 * 60_000;
/// Between a start and the next, by the number of starts that came to nothing.
const PAUSES_MS: [u64; RESTARTS] = [500, 1_000, 5_000, 20_000, 60_000];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Now,
    /// Not before.
    At(u64),
    Never,
}

/// `settled` is where the run stands now: if that is not where it stood, its last owner got somewhere.
pub(super) fn next(record: &Record, settled: u32, now_ms: u64) -> Restart {
    let Some(last) = record.starts.iter().copied().max() else { return Restart::Now };
    let recent = record.starts.iter().filter(|&&at| is_recent(at, now_ms)).count();
    let vain = if settled == record.settled { recent } else { recent.min(1) };
    if vain > RESTARTS {
        return Restart::Never;
    }
    let at = last.saturating_add(PAUSES_MS[vain.saturating_sub(1).min(RESTARTS - 1)]);
    // A clock that was set back must not make the pause longer.
    if now_ms >= at || last > now_ms { Restart::Now } else { Restart::At(at) }
}

/// A start in the future was before the clock was set back: nobody knows how long ago that is.
fn is_recent(at: u64, now_ms: u64) -> bool {
    at <= now_ms && at.saturating_add(WINDOW_MS) > now_ms
}

/// The record after a start now.
pub(super) fn started(mut record: Record, settled: u32, now_ms: u64) -> Record {
    if settled != record.settled {
        record.starts.clear();
    }
    record.starts.retain(|&at| is_recent(at, now_ms));
    record.starts.push(now_ms);
    record.settled = settled;
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: P8
    #[test]
    fn restarts_that_come_to_nothing_slow_down_and_end() {
        let mut record = Record::new("a", "run_1", false, 0);
        let mut now = 0;
        let mut waits = Vec::new();
        loop {
            match next(&record, 0, now) {
                Restart::Never => break,
                Restart::At(at) => {
                    waits.push(at - now);
                    now = at;
                }
                Restart::Now => record = started(record, 0, now),
            }
        }
        assert_eq!(waits, PAUSES_MS);
        assert_eq!(record.starts.len(), RESTARTS + 1);
        // After the window it may try again.
        assert_eq!(next(&record, 0, now + WINDOW_MS), Restart::Now);
    }

    // covers: P8
    #[test]
    fn progress_begins_the_count_anew() {
        let mut record = Record::new("a", "run_1", false, 0);
        for at in 1..=RESTARTS as u64 {
            record = started(record, 0, at);
        }
        assert_eq!(next(&record, 0, 200_000), Restart::Never);
        assert_eq!(next(&record, 1, 200_000), Restart::Now);
        let record = started(record, 1, 200_000);
        assert_eq!(record.starts, [200_000]);
        assert_eq!(next(&record, 1, 200_100), Restart::At(200_500));
    }

    // covers: P8
    #[test]
    fn a_clock_that_was_set_back_delays_nothing() {
        let record = Record::new("a", "run_1", false, 1_000_000);
        assert_eq!(next(&record, 0, 10), Restart::Now);
        let record = started(record, 0, 10);
        assert_eq!(record.starts, [10], "what the old time says is forgotten");
        assert_eq!(next(&record, 0, 20), Restart::At(510));
    }
}
