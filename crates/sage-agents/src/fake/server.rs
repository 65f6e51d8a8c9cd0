//! The scripted server behind all fake agents that name the same log: it refuses first and serves then.
//!
//! ```text
//! calls.jsonl.lock     held by the call that is decided now
//! calls.jsonl          {"t": ms, "run", "step", "attempt", "refused", "early", "inFlight", "opensAt"?} each
//! calls.jsonl.flight/  one file per call that is served, locked until its turn is over or its process gone
//! ```
//! `early`: the first refusal named a time that has not come yet. `inFlight`: calls that are being served,
//! this one included. `opensAt`: the time that a refusal named, in ms since the epoch like `t`. Whoever was
//! refused because the server is closed is told the same time as the first.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::agent::fence;
use super::script::{Refused, Server};
use crate::complaint::Complaint;

/// RFC 3339 ends with the year 9999.
const LATEST_MS: u64 = 253_402_300_799_999;

#[derive(Debug)]
pub enum Answer {
    /// Served as long as the file is open.
    Served(File),
    Refused(Complaint),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    t: u64,
    run: Option<String>,
    step: Option<String>,
    attempt: Option<u32>,
    refused: bool,
    early: bool,
    in_flight: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opens_at: Option<u64>,
}

/// One call of this process. What all calls share is only touched under the lock.
pub fn call(server: &Server) -> io::Result<Answer> {
    let log = Path::new(&server.log);
    fence().writable(log).map_err(io::Error::other)?;
    refuse_links(log)?;
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let lock = File::options().create(true).truncate(false).write(true).open(beside(log, ".lock"))?;
    lock.lock()?;
    let calls = read(log)?;
    let now_ms = epoch_ms();
    let first = calls.iter().find(|call| call.refused).and_then(|call| call.opens_at);
    let closed_until_ms = first.filter(|opens_at_ms| now_ms < *opens_at_ms);
    let refused = calls.len() < server.refuse || (server.while_closed && closed_until_ms.is_some());
    let closed_ms = closed_until_ms.filter(|_| server.while_closed).map(|until_ms| until_ms - now_ms);
    let mut call = Call {
        t: now_ms,
        run: std::env::var("SAGE_RUN").ok(),
        step: std::env::var("SAGE_STEP").ok(),
        attempt: std::env::var("SAGE_ATTEMPT").ok().and_then(|attempt| attempt.parse().ok()),
        refused,
        early: closed_until_ms.is_some(),
        in_flight: in_flight(log)?,
        opens_at: None,
    };
    let answer = if refused {
        let wait = |ms: Option<u64>| ms.map(|ms| closed_ms.unwrap_or(ms));
        let at = |ms: u64| now_ms.saturating_add(ms).min(LATEST_MS);
        let (retry_after_ms, reset_after_ms) = (wait(server.retry_after_ms), wait(server.reset_after_ms));
        call.opens_at = retry_after_ms.max(reset_after_ms).map(at);
        Answer::Refused(refusal(server.fault, retry_after_ms, reset_after_ms.map(at)))
    } else {
        call.in_flight += 1;
        Answer::Served(take_off(log)?)
    };
    append(log, &call)?;
    Ok(answer)
}

/// What is beside the log is written and cleared away: a link would do so elsewhere.
fn refuse_links(log: &Path) -> io::Result<()> {
    let beside = ["", ".lock", ".flight"].map(|ending| beside(log, ending));
    let mut links =
        beside.iter().filter(|path| path.symlink_metadata().is_ok_and(|about| about.is_symlink()));
    match links.next() {
        Some(link) => Err(io::Error::other(format!("`{}` is a symlink", link.display()))),
        None => Ok(()),
    }
}

fn refusal(fault: Refused, retry_after_ms: Option<u64>, reset_at_ms: Option<u64>) -> Complaint {
    let (class, message) = match fault {
        Refused::RateLimit => ("rate-limit", "the server has too many requests"),
        Refused::Quota => ("quota", "the quota of the server is used up"),
        Refused::Overloaded => ("overloaded", "the server is overloaded"),
    };
    let time = |ms| humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string();
    Complaint {
        class: class.into(),
        message: message.into(),
        retry_after_ms,
        reset_at: reset_at_ms.map(time),
    }
}

fn read(log: &Path) -> io::Result<Vec<Call>> {
    let text = match std::fs::read_to_string(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}

fn append(log: &Path, call: &Call) -> io::Result<()> {
    let line = serde_json::to_string(call).map_err(io::Error::other)?;
    // One write: a process that is killed leaves a whole line or none.
    File::options().create(true).append(true).open(log)?.write_all(format!("{line}\n").as_bytes())
}

/// Counts the files that a living process has locked; those of dead ones are cleared away.
fn in_flight(log: &Path) -> io::Result<usize> {
    let flight = beside(log, ".flight");
    std::fs::create_dir_all(&flight)?;
    let mut count = 0;
    for entry in std::fs::read_dir(flight)? {
        let path = entry?.path();
        match File::open(&path)?.try_lock_shared() {
            Ok(()) => std::fs::remove_file(path)?,
            Err(TryLockError::WouldBlock) => count += 1,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(count)
}

fn take_off(log: &Path) -> io::Result<File> {
    let file = File::create(beside(log, ".flight").join(std::process::id().to_string()))?;
    file.lock()?;
    Ok(file)
}

fn beside(log: &Path, ending: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn epoch_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
