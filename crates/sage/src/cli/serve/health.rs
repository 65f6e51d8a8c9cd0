//! What `/health` says: the quick checks of `sage doctor`, looked at again at most once a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::doctor::{self, State};

/// Anybody on this machine may ask, so asking often must cost nothing.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Health {
    context: Context,
    last: Mutex<Option<(Instant, Value)>>,
}

impl Health {
    pub fn of(context: Context) -> Health {
        Health { context, last: Mutex::default() }
    }

    pub fn look(&self) -> Value {
        // Whoever comes meanwhile waits here and gets the same.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, health)) = &*last
            && at.elapsed() < FRESH
        {
            return health.clone();
        }
        let health = self.checked();
        *last = Some((Instant::now(), health.clone()));
        health
    }

    fn checked(&self) -> Value {
        let checks = doctor::quick(&self.context);
        json!({
            "ok": checks.iter().all(|check| check.state != State::Bad),
            "version": env!("CARGO_PKG_VERSION"),
            "project": self.context.project.root,
            "checks": checks,
        })
    }
}
