//! What one run of code may use.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeLimits {
    /// From start to end, tools included.
    pub wall_ms: u64,
    /// Of the process, on all of its threads.
    pub cpu_ms: u64,
    /// Of JavaScript values.
    pub memory_bytes: u64,
    pub stack_bytes: u64,
    /// Kept of what the code prints.
    pub console_bytes: usize,
    /// A returned value with more JSON than this stays in the session.
    pub value_bytes: usize,
    pub max_calls: u32,
    /// Calls that run at once; the others wait.
    pub parallel: usize,
}

/// Of one message to or from the process: a result, a returned value.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// More time than this is a workflow's, not a call's.
pub const MAX_WALL_MS: u64 = 10 * 60 * 1_000;

impl Default for CodeLimits {
    fn default() -> CodeLimits {
        CodeLimits {
            wall_ms: 30_000,
            cpu_ms: 10_000,
            memory_bytes: 256 << 20,
            stack_bytes: 1 << 20,
            console_bytes: 20 << 10,
            value_bytes: 8 << 10,
            max_calls: 1_000,
            parallel: 16,
        }
    }
}
