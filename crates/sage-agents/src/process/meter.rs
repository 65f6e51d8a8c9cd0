//! Looks at the processes of attempts that run at the same time, and tells how much each lost by the others.
//!
//! One thread for all attempts of this process, which sleeps while there are not two of them. What a look costs is a
//! few files of `/proc` for each process of an attempt; it looks more rarely the longer attempts run and the more a
//! look takes. What happened since the last look is taken to be like the time before.

use std::collections::HashMap;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::counters::{Pid, Table};
use super::crowd::{self, Slice};

/// Between two looks: soon after a start, later as long as a fourth of the youngest attempt's age.
const SHORTEST: Duration = Duration::from_millis(25);
const LONGEST: Duration = Duration::from_millis(500);
/// Looking takes at most this part of the time.
const EFFORT: u32 = 30;
/// What was seen of others is not said of an attempt so much later.
const STALE: Duration = Duration::from_secs(1);

/// An attempt's processes are being measured. Dropped, they no longer are.
#[derive(Debug)]
pub struct Measuring(u64);

/// From now on, for the tree below `keeper`.
pub fn measure(keeper: Pid) -> Measuring {
    METER.begin(keeper)
}

impl Measuring {
    /// What the attempt lost by others of ours; `None` if that is not known.
    pub fn finish(self) -> Option<Duration> {
        METER.state().end(self.0, Instant::now())
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        METER.state().end(self.0, Instant::now());
    }
}

static METER: LazyLock<Meter> = LazyLock::new(Meter::default);

#[derive(Debug, Default)]
struct Meter {
    state: Mutex<State>,
    wake: Condvar,
}

impl Meter {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&'static self, keeper: Pid) -> Measuring {
        let mut state = self.state();
        let id = state.begin(keeper, Instant::now());
        if state.trees.len() > 1 {
            if !state.has_thread {
                // Without a thread nothing is seen, and nothing is said.
                let named = std::thread::Builder::new().name("sage-meter".into());
                state.has_thread = named.spawn(|| self.work()).is_ok();
            }
            self.wake.notify_one();
        }
        Measuring(id)
    }

    fn work(&self) {
        let mut table = Table::default();
        let mut state = self.state();
        loop {
            while state.trees.len() < 2 {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let pause = state.pause(table.cost);
            if !state.is_fresh {
                state = self.wake.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
            }
            let due = state.looked.is_none_or(|at| at.elapsed() >= SHORTEST.max(table.cost * EFFORT));
            if !due && !state.is_fresh {
                continue;
            }
            let keepers = state.trees.iter().map(|(id, tree)| (*id, tree.keeper)).collect::<Vec<_>>();
            // Starts and ends of attempts need not wait for `/proc`.
            drop(state);
            let grown = table.look(&keepers);
            state = self.state();
            state.look(grown, Instant::now(), processors());
        }
    }
}

/// What is known of all attempts; knows no clock and no files.
#[derive(Debug, Default)]
struct State {
    trees: HashMap<u64, Tree>,
    last_id: u64,
    has_thread: bool,
    /// An attempt was alone until now: the next look tells where counting begins, and no more.
    is_fresh: bool,
    looked: Option<Instant>,
    /// Seconds lost per second, by the last look, on the average.
    share: Option<f64>,
}

#[derive(Debug)]
struct Tree {
    keeper: Pid,
    since: Instant,
    lost: f64,
    /// Up to here.
    at: Instant,
    /// Seconds lost per second since then; `None` before a look has met it beside others.
    share: Option<f64>,
    is_known: bool,
}

impl Tree {
    /// Settles what was lost up to now by what was seen last, and goes on with another share.
    fn settle(&mut self, now: Instant, of_others: Option<f64>, share: Option<f64>) {
        match self.share.or(of_others) {
            Some(lost) => self.lost += (now - self.at).as_secs_f64() * lost,
            None => self.is_known = false,
        }
        (self.at, self.share) = (now, share);
    }
}

impl State {
    fn begin(&mut self, keeper: Pid, now: Instant) -> u64 {
        self.last_id += 1;
        let share = self.trees.is_empty().then_some(0.0);
        if let (1, Some(alone)) = (self.trees.len(), self.trees.values_mut().next()) {
            alone.settle(now, None, None);
            self.is_fresh = true;
        }
        let tree = Tree { keeper, since: now, lost: 0.0, at: now, share, is_known: true };
        self.trees.insert(self.last_id, tree);
        self.last_id
    }

    fn end(&mut self, id: u64, now: Instant) -> Option<Duration> {
        let of_others = self.share.filter(|_| self.looked.is_some_and(|at| now - at < STALE));
        let mut tree = self.trees.remove(&id)?;
        if let (1, Some(left)) = (self.trees.len(), self.trees.values_mut().next()) {
            left.settle(now, of_others, Some(0.0));
        }
        tree.settle(now, of_others, None);
        let most = (now - tree.since).as_secs_f64();
        tree.is_known.then(|| Duration::from_secs_f64(tree.lost.clamp(0.0, most)))
    }

    fn pause(&self, cost: Duration) -> Duration {
        let youngest = self.trees.values().map(|tree| tree.since.elapsed()).min().unwrap_or_default();
        (youngest / 4).clamp(SHORTEST, LONGEST).max(cost * EFFORT)
    }

    fn look(&mut self, grown: Option<HashMap<u64, Slice>>, now: Instant, processors: f64) {
        let before = self.looked.replace(now);
        if std::mem::take(&mut self.is_fresh) {
            return;
        }
        let Some(grown) = grown else { return self.share = None };
        let slices: Vec<(u64, Slice)> =
            grown.into_iter().filter(|(id, _)| self.trees.contains_key(id)).collect();
        let from = |tree: &Tree| before.map_or(tree.since, |before| before.max(tree.since));
        let elapsed = self.trees.values().map(|tree| (now - from(tree)).as_secs_f64()).fold(0.0, f64::max);
        let all: Vec<Slice> = slices.iter().map(|(_, slice)| *slice).collect();
        let lost = crowd::lost(&all, elapsed, processors);
        let share = lost.iter().sum::<f64>() / (elapsed * lost.len() as f64);
        self.share = Some(share).filter(|share| share.is_finite());
        for ((id, _), lost) in slices.iter().zip(lost) {
            let Some(tree) = self.trees.get_mut(id) else { continue };
            let own = (now - tree.at).as_secs_f64();
            let share = if own > 0.0 { (lost / own).min(1.0) } else { 0.0 };
            tree.lost += lost.min(own);
            (tree.at, tree.share) = (now, Some(share));
        }
    }
}

/// Those that this process may use.
fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time line in milliseconds.
    struct Line(State, Instant);

    impl Line {
        fn new() -> Line {
            Line(State::default(), Instant::now())
        }

        fn at(&self, ms: u64) -> Instant {
            self.1 + Duration::from_millis(ms)
        }

        fn begin(&mut self, ms: u64) -> u64 {
            let now = self.at(ms);
            self.0.begin(7, now)
        }

        fn end(&mut self, id: u64, ms: u64) -> Option<u64> {
            let now = self.at(ms);
            self.0.end(id, now).map(|lost| lost.as_millis() as u64)
        }

        /// Everybody had a third of a processor and could have used a whole one.
        fn look(&mut self, ms: u64, seconds: f64) {
            let slice = Slice { ran: seconds / 3.0, waited: seconds * 2.0 / 3.0 };
            let grown = self.0.trees.keys().map(|id| (*id, slice)).collect();
            let now = self.at(ms);
            self.0.look(Some(grown), now, 2.0);
        }
    }

    // covers: R18
    #[test]
    fn who_is_alone_loses_nothing_and_need_not_be_looked_at() {
        let mut line = Line::new();
        let one = line.begin(0);
        assert_eq!(line.end(one, 10_000), Some(0));
        assert_eq!(line.end(one, 10_000), None, "it is gone");
        // Without a look nothing is known of those who ran side by side.
        let (one, two) = (line.begin(0), line.begin(1_000));
        assert_eq!(line.end(one, 2_000), None);
        assert_eq!(line.end(two, 3_000), None);
    }

    // covers: R18
    #[test]
    fn six_that_share_two_processors_lose_two_thirds_and_only_while_they_do() {
        let mut line = Line::new();
        let first = line.begin(0);
        let all: Vec<u64> = (0..5).map(|_| line.begin(1_000)).collect();
        line.look(1_000, 0.0);
        line.look(2_000, 1.0);
        line.look(4_000, 2.0);
        // The last half second is taken to be like the time before.
        let others: Vec<Option<u64>> = all.iter().map(|id| line.end(*id, 4_500)).collect();
        assert_eq!(others, [Some(2_333); 5]);
        assert_eq!(line.end(first, 60_000), Some(2_333), "alone before and after");
    }

    // covers: R18
    #[test]
    fn an_attempt_between_two_looks_is_taken_to_be_like_the_others() {
        let mut line = Line::new();
        let (_one, _two) = (line.begin(0), line.begin(0));
        for _ in 0..4 {
            line.begin(0);
        }
        line.look(0, 0.0);
        line.look(1_000, 1.0);
        let short = line.begin(1_100);
        assert_eq!(line.end(short, 1_130), Some(20));
        let late = line.begin(5_000);
        assert_eq!(line.end(late, 5_030), None, "what was seen is too long ago");
    }
}
