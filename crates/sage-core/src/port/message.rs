//! Messages of a person to a running agent: given to the attempt after they are durable, taken when the agent can
//! listen. What an attempt did not take is given to the next one that does the same work.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Rising;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Unique in its run.
    pub id: String,
    pub text: String,
}

/// Where an attempt finds the messages that came while it works. Clones are the same box.
#[derive(Clone, Debug, Default)]
pub struct Messages(Arc<Letters>);

#[derive(Debug, Default)]
struct Letters {
    waiting: Mutex<Waiting>,
    sent: Rising,
    taken: AtomicU32,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: Vec<Message>,
    /// Nobody listens any more.
    closed: bool,
}

impl Messages {
    /// Whoever has closed the box gets no more.
    pub fn send(&self, message: Message) {
        let mut waiting = self.waiting();
        if waiting.closed {
            return;
        }
        waiting.messages.push(message);
        drop(waiting);
        self.0.sent.raise(|count| {
            count.fetch_add(1, Ordering::SeqCst);
        });
    }

    /// Those that nobody has taken yet, the oldest first.
    pub fn take(&self) -> Vec<Message> {
        let mut waiting = self.waiting();
        self.0.taken.fetch_add(u32::try_from(waiting.messages.len()).unwrap_or(u32::MAX), Ordering::SeqCst);
        std::mem::take(&mut waiting.messages)
    }

    /// The same for whoever would end now: if there are none, none will come.
    pub fn take_last(&self) -> Vec<Message> {
        let mut waiting = self.waiting();
        waiting.closed = waiting.messages.is_empty();
        drop(waiting);
        self.take()
    }

    /// Nobody listens, or not any more.
    pub fn close(&self) {
        self.waiting().closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.waiting().closed
    }

    /// Resolves as soon as there is one to take.
    pub fn come(&self) -> impl Future<Output = ()> + Send + '_ {
        self.0.sent.reached(self.0.taken.load(Ordering::SeqCst).saturating_add(1))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S4
    #[test]
    fn a_message_is_taken_once_and_in_order() {
        let messages = Messages::default();
        let message = |id: &str| Message { id: id.into(), text: format!("text of {id}") };
        let there = messages.clone();
        messages.send(message("a"));
        messages.send(message("b"));
        assert_eq!(there.take(), [message("a"), message("b")]);
        assert!(messages.take().is_empty());
        messages.send(message("c"));
        assert_eq!(there.take_last(), [message("c")]);
        assert!(!messages.is_closed(), "there was one");
        assert!(there.take_last().is_empty() && messages.is_closed());
        messages.send(message("d"));
        assert!(there.take().is_empty());
    }
}
