//! Who does something about a wake.

use super::Wake;

/// Who does something about a wake. Called again with the same wake if the process died before it was recorded.
pub trait Handler: Send + Sync {
    fn handle(&self, wake: &Wake) -> Result<(), HandleError>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HandleError(pub String);

/// The handler whose effect is the record itself: whoever waits for the session finds it in the ledger.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded;

impl Handler for Recorded {
    fn handle(&self, _wake: &Wake) -> Result<(), HandleError> {
        Ok(())
    }
}
