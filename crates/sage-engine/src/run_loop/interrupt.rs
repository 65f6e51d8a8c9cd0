//! Interrupting a run from outside, whichever loop drives it: a run whose disk was full has several, one after another.

use std::sync::Arc;

use tokio::sync::watch;

/// A handle for whoever hosts the run: interrupts it from a signal handler. Each call counts.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<watch::Sender<u32>>);

impl Default for Interrupter {
    fn default() -> Interrupter {
        Interrupter(Arc::new(watch::Sender::new(0)))
    }
}

impl Interrupter {
    pub fn interrupt(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn listen(&self) -> Interrupts {
        Interrupts { changes: self.0.subscribe(), seen: 0, from: self.clone() }
    }
}

/// The run's side of it.
#[derive(Debug)]
pub(crate) struct Interrupts {
    changes: watch::Receiver<u32>,
    seen: u32,
    /// Kept, so that there is always somebody who could.
    from: Interrupter,
}

impl Interrupts {
    pub fn interrupter(&self) -> Interrupter {
        self.from.clone()
    }

    /// Whether there was one that was not taken yet; takes it.
    pub fn take(&mut self) -> bool {
        let waits = *self.changes.borrow_and_update() != self.seen;
        self.seen = self.seen.wrapping_add(u32::from(waits));
        waits
    }

    pub async fn next(&mut self) {
        while !self.take() {
            // The sender is our own: it does not go away.
            let _ = self.changes.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R14
    #[tokio::test]
    async fn each_interrupt_is_taken_once() {
        let interrupter = Interrupter::default();
        let mut interrupts = interrupter.listen();
        assert!(!interrupts.take());
        interrupter.interrupt();
        interrupter.interrupt();
        interrupts.next().await;
        assert!(interrupts.take());
        assert!(!interrupts.take());
        let waiting = tokio::spawn(async move {
            interrupts.next().await;
            interrupts
        });
        interrupter.interrupt();
        assert!(!waiting.await.unwrap().take());
    }
}
