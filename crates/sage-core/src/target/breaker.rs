//! The circuit breaker of a target.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Default)]
pub struct BreakerPolicy {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Breaker {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {}
