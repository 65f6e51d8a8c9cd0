//! `hedge`: a second attempt beside a slow one.

/// After `after_ms` without an end another attempt starts beside it, at most `max` of them; the first good one
/// wins, the others are stopped and paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedge {
    pub after_ms: u64,
    pub max: u32,
}
