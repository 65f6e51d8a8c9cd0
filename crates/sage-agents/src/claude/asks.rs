//! Questions of the program that somebody else answers: several at once, and none of them blocks anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use sage_core::port::{BoxFuture, Permission};
use serde_json::Value;
use tokio::task::AbortHandle;

use super::channel::Channel;

/// Those that are open end with it: nobody is left with a question that is none any more.
#[derive(Debug, Default)]
pub struct Asks(BTreeMap<String, AbortHandle>);

impl Asks {
    /// `then` is what the program is told of the answer.
    pub fn open(
        &mut self,
        id: &str,
        input: Value,
        answer: BoxFuture<'static, Permission>,
        then: impl FnOnce(Permission) -> Permission + Send + 'static,
        channel: &Arc<Channel>,
    ) {
        let (name, channel) = (id.to_string(), Arc::clone(channel));
        let asking = tokio::spawn(async move { channel.permit(&name, then(answer.await), input) });
        if let Some(older) = self.0.insert(id.to_string(), asking.abort_handle()) {
            older.abort();
        }
    }

    /// The program does not want to know any more.
    pub fn withdraw(&mut self, id: &str) {
        if let Some(asking) = self.0.remove(id) {
            asking.abort();
        }
    }

    pub fn clear(&mut self) {
        std::mem::take(&mut self.0).values().for_each(AbortHandle::abort);
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        self.clear();
    }
}
