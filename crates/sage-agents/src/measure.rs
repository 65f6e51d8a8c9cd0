//! The project's tests before the first step of a run that may change files: which ran, and which failed.
//!
//! `sage __offline test.baseline` runs them and notes it for the checks of the run, which compare. A run without checks,
//! and one that has measured before, has nothing to measure; the process knows. Whatever goes wrong costs a comparison
//! and not the step.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;

use sage_core::port::{StepCall, StepCx};
use sage_core::template::{Isolation, Kind};
use tokio::sync::Mutex;

use crate::attempt::Attempt;
use crate::executor::ExecutorConfig;
use crate::offline::OFFLINE_ARG;

const OPERATION: &str = "test.baseline";
/// A little more than the tests may take themselves.
const TIMEOUT_MS: u64 = 6 * 60 * 1_000;

/// Runs that need not be measured any more.
#[derive(Clone, Debug, Default)]
pub struct Measured(Arc<Mutex<BTreeSet<String>>>);

impl Measured {
    /// Steps that begin at the same time wait for one measurement.
    pub async fn before_change(&self, config: &ExecutorConfig, cx: &StepCx, call: &StepCall) {
        let mut measured = self.0.lock().await;
        if !measured.insert(call.run.clone()) {
            return;
        }
        let call = StepCall {
            kind: Kind::Shell,
            params: serde_json::Map::new(),
            isolation: Isolation::None,
            timeout_ms: Some(TIMEOUT_MS),
            idle_timeout_ms: None,
            keep_output: false,
            ..call.clone()
        };
        let attempt = Attempt { config, cx, call: &call };
        let argv: Vec<OsString> = vec![config.keeper.clone().into(), OFFLINE_ARG.into(), OPERATION.into()];
        let _ = attempt.run(argv, Vec::new(), None, 0, &mut |_| {}).await;
    }
}
