//! Who is connected: clients that have shown the token, and strangers.
//!
//! A stranger keeps its connection only as long as there is room: the next one takes the place of the oldest. So
//! connections that never send a request cannot keep clients out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// A team of agents with a few connections each.
const CLIENTS: usize = 256;
/// A client is a stranger for the milliseconds until its first request.
const STRANGERS: usize = 64;

#[derive(Clone, Debug)]
pub struct Visitors {
    strangers: Arc<Mutex<VecDeque<Arc<Notify>>>>,
    clients: Arc<Semaphore>,
}

/// One connection. Dropping it frees its place.
#[derive(Debug)]
pub struct Visitor {
    visitors: Visitors,
    leave: Arc<Notify>,
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Default for Visitors {
    fn default() -> Visitors {
        Visitors { strangers: Arc::default(), clients: Arc::new(Semaphore::new(CLIENTS)) }
    }
}

impl Visitors {
    /// A new connection: a stranger. If there are too many, the oldest one is asked to leave.
    pub fn enter(&self) -> Visitor {
        let leave = Arc::new(Notify::new());
        let mut strangers = self.strangers();
        strangers.push_back(leave.clone());
        if strangers.len() > STRANGERS
            && let Some(oldest) = strangers.pop_front()
        {
            oldest.notify_one();
        }
        Visitor { visitors: self.clone(), leave, place: Mutex::default() }
    }

    fn strangers(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, leave: &Arc<Notify>) {
        self.strangers().retain(|stranger| !Arc::ptr_eq(stranger, leave));
    }
}

impl Visitor {
    /// It has shown the token: from now on it stays. False if there are too many clients already.
    pub fn is_welcome(&self) -> bool {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            *place = self.visitors.clients.clone().try_acquire_owned().ok();
            if place.is_some() {
                self.visitors.forget(&self.leave);
            }
        }
        place.is_some()
    }

    /// Returns when its place is needed.
    pub async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.visitors.forget(&self.leave);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it has been asked to leave by now.
    fn must_leave(visitor: &Visitor) -> bool {
        use std::task::{Context, Poll, Waker};
        let asked = std::pin::pin!(visitor.asked_to_leave());
        asked.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    // covers: R23
    #[test]
    fn strangers_make_room_for_strangers_and_clients_stay() {
        let visitors = Visitors::default();
        let client = visitors.enter();
        assert!(client.is_welcome() && client.is_welcome());
        let crowd: Vec<Visitor> = (0..STRANGERS).map(|_| visitors.enter()).collect();
        assert!(!crowd.iter().any(must_leave));
        let next = visitors.enter();
        assert!(
            must_leave(&crowd[0]) && !must_leave(&crowd[1]) && !must_leave(&next) && !must_leave(&client)
        );
        drop(crowd);
        assert_eq!(visitors.strangers().len(), 1);
    }

    // covers: R23
    #[test]
    fn clients_are_counted() {
        let visitors = Visitors::default();
        let clients: Vec<Visitor> = (0..CLIENTS).map(|_| visitors.enter()).collect();
        assert!(clients.iter().all(Visitor::is_welcome));
        let late = visitors.enter();
        assert!(!late.is_welcome());
        drop(clients);
        assert!(late.is_welcome());
    }
}
