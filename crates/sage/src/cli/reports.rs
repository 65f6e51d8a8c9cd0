//! The project's inbox, for steps whose agent knows nothing of sage.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sage_core::port::{BoxFuture, Report, ReportKind, Wakes};
use sage_engine::inbox::{Inbox, Wake, WakeStatus, WakeType};

#[derive(Clone, Debug)]
pub struct Reports(pub Inbox);

impl Wakes for Reports {
    fn orders(&self) -> PathBuf {
        self.0.dir().join("orders")
    }

    fn reports(&self) -> PathBuf {
        self.0.new_dir()
    }

    fn last(&self, session: &str) -> BoxFuture<'static, Result<Option<String>, String>> {
        let (inbox, session) = (self.0.clone(), session.to_string());
        Box::pin(async move {
            let look = tokio::task::spawn_blocking(move || inbox.last_of(&session));
            let found = look.await.map_err(|error| error.to_string())?;
            found.map_err(|error| error.to_string())
        })
    }

    fn next(&self, session: &str, after: Option<&str>) -> BoxFuture<'static, Result<Report, String>> {
        let (inbox, session, after) = (self.0.clone(), session.to_string(), after.map(str::to_string));
        Box::pin(async move {
            let nobody_waits = NobodyWaits(Arc::default());
            let over = nobody_waits.0.clone();
            let waiting = tokio::task::spawn_blocking(move || {
                // Somebody must be able to drop a file.
                inbox
                    .prepare()
                    .map_err(|error| format!("cannot use `{}`: {error}", inbox.dir().display()))?;
                let stop = || over.load(Ordering::SeqCst);
                inbox.wait_for(&session, after.as_deref(), &stop).map_err(|error| error.to_string())
            });
            match waiting.await {
                Ok(Ok(Some(wake))) => Ok(report(wake)),
                Ok(Ok(None)) => Err("the waiting was broken off".into()),
                Ok(Err(why)) => Err(why),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

/// Ends the thread that waits when the one who wanted it is gone.
struct NobodyWaits(Arc<AtomicBool>);

impl Drop for NobodyWaits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Type and status may disagree; the worse counts.
fn report(wake: Wake) -> Report {
    let kind = match (wake.kind, wake.status) {
        (WakeType::Error, _) | (_, WakeStatus::Failed) => ReportKind::Failed,
        (WakeType::Blocked, _) | (_, WakeStatus::Blocked) => ReportKind::Blocked,
        (WakeType::Finding, WakeStatus::Complete) => ReportKind::Finding,
        (WakeType::Complete, WakeStatus::Complete) => ReportKind::Complete,
    };
    let mut files = wake.deliverables.files;
    files.extend(wake.deliverables.handoff_file);
    Report { id: wake.wake_id, kind, summary: wake.summary, files, result: wake.other.get("result").cloned() }
}
