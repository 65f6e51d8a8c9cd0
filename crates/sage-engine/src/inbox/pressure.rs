//! Back-pressure: an inbox that nobody empties must not be filled further by agents that are started for it.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::Inbox;
use super::name::is_unfinished;

/// More unhandled wakes than this is worth a word.
pub const WARN_OVER: usize = 50;
/// With more than this no new agent starts.
pub const FULL_OVER: usize = 100;

/// Counted anew after this: the gate may ask for each of a thousand steps.
const FRESH: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    Calm(usize),
    Warn(usize),
    /// No new agent may start.
    Full(usize),
}

impl Pressure {
    fn of(unhandled: usize) -> Pressure {
        match unhandled {
            n if n > FULL_OVER => Pressure::Full(n),
            n if n > WARN_OVER => Pressure::Warn(n),
            n => Pressure::Calm(n),
        }
    }

    pub fn unhandled(self) -> usize {
        let (Pressure::Calm(n) | Pressure::Warn(n) | Pressure::Full(n)) = self;
        n
    }
}

impl Inbox {
    /// How much waits to be handled: dead letters do not. An inbox that cannot be read stops nobody.
    pub fn pressure(&self) -> Pressure {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let count = match *counted {
            Some((at, count)) if at.elapsed() < FRESH => count,
            _ => self.count_unhandled(),
        };
        if counted.is_none_or(|(at, _)| at.elapsed() >= FRESH) {
            *counted = Some((Instant::now(), count));
        }
        Pressure::of(count)
    }

    fn count_unhandled(&self) -> usize {
        let count =
            |dir| self.list(dir).unwrap_or_default().iter().filter(|name| !is_unfinished(name)).count();
        count(&self.new_dir()) + count(&self.taken_dir())
    }
}
