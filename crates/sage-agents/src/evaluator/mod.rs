//! Expressions that may need too much time or memory, evaluated in processes that can be killed.
//!
//! ```text
//! engine thread --one line of JSON--> sage __evaluate (limits of memory and CPU time, no environment)
//!               <--one line of JSON--
//! ```
//! A process is kept for the next expression. What must stay true: an expression that overruns a limit costs its
//! process and nothing else; the processes end with their owner, because they exit when their input ends.

mod process;
mod worker;

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use sage_core::expr::Order;
use sage_core::policy::FailureClass;
use sage_core::port::{Evaluator, NoValue};
use serde_json::Value;

use crate::outcome::class_of_io;
use process::{Ended, Process};
pub use worker::worker_main;

/// The first argument of the process.
pub const EVALUATE_ARG: &str = "__evaluate";

/// Far beyond any honest expression (a megabyte takes some 30 ms), short enough to be noticed.
const CPU_S: u64 = 10;
/// For a process that computes nothing and yet does not answer.
const WALL_S: u64 = 120;
/// For a value and all that leads to it. A context of 64 MiB fits.
const MEMORY_BYTES: u64 = 1 << 30;
/// Processes at once: they only compute, so more than there are cores would only need more memory.
const MOST: usize = 2;

/// A small pool of evaluating processes, started on demand.
#[derive(Debug)]
pub struct Evaluators {
    program: PathBuf,
    pool: Mutex<Pool>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Process>,
    busy: usize,
}

impl Evaluators {
    /// `program` is this binary.
    pub fn new(program: PathBuf) -> Evaluators {
        Evaluators { program, pool: Mutex::default(), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process for one expression, and whether it is a new one. Waits while all are busy.
    fn take(&self) -> std::io::Result<(Process, bool)> {
        let mut pool = self.lock();
        while pool.busy >= MOST {
            pool = self.freed.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        pool.busy += 1;
        if let Some(process) = pool.idle.pop() {
            return Ok((process, false));
        }
        drop(pool);
        Process::start(&self.program).map(|process| (process, true)).inspect_err(|_| self.give_back(None))
    }

    fn give_back(&self, process: Option<Process>) {
        let mut pool = self.lock();
        pool.busy -= 1;
        pool.idle.extend(process);
        self.freed.notify_one();
    }

    fn ask(&self, line: &[u8]) -> Result<Value, Ended> {
        loop {
            let (mut process, new) = self.take().map_err(|error| match class_of_io(&error) {
                FailureClass::System => Ended::Lacking(error.to_string()),
                _ => Ended::Other(error.to_string()),
            })?;
            match process.ask(line) {
                Ok(answer) => {
                    self.give_back(Some(process));
                    return answer.map_err(Ended::Failed);
                }
                // One that was kept may have exited since: it frees much memory that way.
                Err(Ended::Gone) if !new => self.give_back(None),
                Err(ended) => {
                    self.give_back(None);
                    return Err(ended);
                }
            }
        }
    }
}

impl Evaluator for Evaluators {
    fn evaluate(&self, order: &Order<'_>) -> Result<Value, NoValue> {
        let mut line = serde_json::to_vec(order).map_err(|error| NoValue::Invalid(error.to_string()))?;
        line.push(b'\n');
        self.ask(&line).map_err(|ended| {
            NoValue::Invalid(match ended {
                Ended::Lacking(why) => {
                    return NoValue::System(format!("cannot start a process for an expression: {why}"));
                }
                Ended::Failed(why) => why,
                Ended::Time => format!("the expression takes more than {CPU_S} s"),
                Ended::Memory => {
                    format!("the expression needs more than {} MiB of memory", MEMORY_BYTES >> 20)
                }
                Ended::Gone => "the process that evaluates expressions exited".into(),
                Ended::Other(why) => format!("the process that evaluates expressions failed: {why}"),
            })
        })
    }
}
