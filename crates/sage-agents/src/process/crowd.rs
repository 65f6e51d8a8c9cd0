//! How much longer programs took because others of ours ran at the same time.
//!
//! A thread that could run and has no processor waits; Linux counts how long (`schedstat`). Some of that is our own
//! doing, and a sequential run would not have it; the rest is the machine's, which is busy with other things, or the
//! program's own, which has more threads than there are processors: a sequential run would have that as well.
//! A share of the processors that is fair to every thread is assumed, and nothing else.

/// What the processes of one attempt did in a slice of time, in seconds over all their threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// Had a processor.
    pub ran: f64,
    /// Could run and had none.
    pub waited: f64,
}

impl Slice {
    fn busy(self) -> f64 {
        self.ran + self.waited
    }
}

/// Above this share nobody was in anybody's way.
const UNDISTURBED: f64 = 0.98;

/// The seconds of `elapsed` that each would have saved without the others.
pub fn lost(slices: &[Slice], elapsed: f64, processors: f64) -> Vec<f64> {
    let busy: f64 = slices.iter().map(|slice| slice.busy()).sum();
    let ran: f64 = slices.iter().map(|slice| slice.ran).sum();
    let strangers = strangers(ran, busy, elapsed, processors);
    slices.iter().map(|slice| lost_by(*slice, strangers, elapsed, processors)).collect()
}

/// Threads of other programs that wanted to run, on the average: so many more share the processors than ours.
fn strangers(ran: f64, busy: f64, elapsed: f64, processors: f64) -> f64 {
    let share = ran / busy;
    if busy <= 0.0 || ran <= 0.0 || share > UNDISTURBED {
        return 0.0;
    }
    (processors / share - busy / elapsed).max(0.0)
}

fn lost_by(slice: Slice, strangers: f64, elapsed: f64, processors: f64) -> f64 {
    let busy = slice.busy();
    if busy <= 0.0 || elapsed <= 0.0 {
        return 0.0;
    }
    let threads = (busy / elapsed).max(1.0);
    let share_alone = (processors / (threads + strangers)).min(1.0);
    let share = slice.ran / busy;
    busy.min(elapsed) * (1.0 - (share / share_alone).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUS: f64 = 2.0;

    fn slice(ran: f64, waited: f64) -> Slice {
        Slice { ran, waited }
    }

    /// What a step takes without the others, in a second of the parallel run.
    fn alone(slices: &[Slice]) -> Vec<f64> {
        lost(slices, 1.0, CPUS).into_iter().map(|lost| ((1.0 - lost) * 100.0).round() / 100.0).collect()
    }

    // covers: R18
    #[test]
    fn steps_that_share_two_processors_take_as_long_as_they_compute() {
        let third = slice(1.0 / 3.0, 2.0 / 3.0);
        assert_eq!(alone(&[third; 6]), [0.33; 6]);
        // Half of the time they sleep.
        assert_eq!(alone(&[slice(0.25, 0.25); 8]), [0.75; 8]);
    }

    // covers: R18
    #[test]
    fn steps_that_only_wait_for_others_lose_nothing() {
        assert_eq!(alone(&[slice(0.0, 0.0); 6]), [1.0; 6]);
        assert_eq!(alone(&[slice(0.01, 0.0), slice(1.0, 0.0)]), [1.0, 1.0]);
        assert_eq!(alone(&[]), [0.0; 0]);
        assert_eq!(lost(&[slice(1.0, 1.0)], 0.0, CPUS), [0.0]);
    }

    // covers: R18
    #[test]
    fn a_busy_machine_slows_a_sequential_run_as_well() {
        // One step beside ten strangers: alone it would be no faster.
        let sixth = slice(2.0 / 11.0, 9.0 / 11.0);
        assert_eq!(alone(&[sixth]), [1.0]);
        // Six steps beside ten strangers: each gets 2 of 16 shares, and 2 of 11 without the others.
        let eighth = slice(2.0 / 16.0, 14.0 / 16.0);
        assert_eq!(alone(&[eighth; 6]), [0.69; 6]);
    }

    // covers: R18
    #[test]
    fn a_program_with_many_threads_is_in_its_own_way() {
        // Four threads, two processors, nobody else.
        assert_eq!(alone(&[slice(2.0, 2.0)]), [1.0]);
        // Two such programs: each had one of the two processors.
        assert_eq!(alone(&[slice(1.0, 3.0); 2]), [0.5; 2]);
    }
}
