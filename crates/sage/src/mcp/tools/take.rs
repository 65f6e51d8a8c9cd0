//! Taking a run that has just come to rest: its owner tells the end first and gives the run back a moment later.
//! Whoever has read that it is over must not be refused for that moment.

use std::time::{Duration, Instant};

use sage_core::run::Unowned;
use sage_engine::open::{Engine, OpenError};

/// An owner ends within milliseconds of its run; who takes longer is another one.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// Tries again while the owner of a run that stands still is about to leave.
pub fn after_owner<T>(
    engine: &Engine,
    feature: &str,
    mut take: impl FnMut() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match take() {
            Err(OpenError::Owned { .. }) if stands(engine, feature) && Instant::now() < deadline => {
                std::thread::sleep(LOOK);
            }
            other => return other,
        }
    }
}

fn stands(engine: &Engine, feature: &str) -> bool {
    engine.read(feature).is_ok_and(|snapshot| snapshot.run.unowned(false) != Unowned::GoesOn)
}
