//! Which reports of a session have been taken, and what it was told: in the session's folder.
//!
//! What a piece of work ended with is looked for again, and found, if sage was killed before anybody knew.

use std::path::{Path, PathBuf};

use sage_core::port::StepCall;
use sage_fence::private;
use serde::{Deserialize, Serialize};

/// An order is one prompt.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    /// Run, step and key.
    work: String,
    /// The last report that was dealt with.
    after: Option<String>,
    /// The report that the work ended with.
    taken: Option<String>,
    /// All that the session was told.
    body: String,
}

#[derive(Debug)]
pub struct Memory {
    file: Option<PathBuf>,
    kept: Kept,
    /// This work was under way when sage was killed.
    pub goes_on: bool,
    /// Nobody has been told of this work yet, so no report can be about it.
    pub is_new: bool,
}

impl Memory {
    pub fn open(dir: Option<&Path>, call: &StepCall) -> Memory {
        let file = dir.map(|dir| dir.join("foreign.json"));
        let text =
            file.as_ref().and_then(|file| private::read_text(file, MAX_BYTES).ok()).unwrap_or_default();
        let known: Kept = serde_json::from_str(&text).unwrap_or_default();
        let work = format!("{}/{}/{}", call.run, call.path, call.key);
        let goes_on = call.unknown && known.work == work;
        let after = if goes_on { known.after } else { known.taken.or(known.after) };
        // Without a folder to remember by, the session's own name is that of the work.
        let is_new = file.is_some() && known.work != work;
        Memory { file, kept: Kept { work, after, taken: None, body: known.body }, goes_on, is_new }
    }

    /// The last report that does not count.
    pub fn after(&self) -> Option<&str> {
        self.kept.after.as_deref()
    }

    /// New work: what the session has reported so far does not count.
    pub fn begin(&mut self, last: Option<String>) {
        self.kept.after = last.or(self.kept.after.take());
    }

    pub fn body(&self) -> &str {
        &self.kept.body
    }

    pub fn tell(&mut self, body: &str) {
        self.kept.body = body.to_string();
        self.save();
    }

    /// A report that is dealt with, while the work goes on.
    pub fn pass(&mut self, report: &str) {
        self.kept.after = Some(report.to_string());
        self.save();
    }

    /// The report that the work ends with.
    pub fn take(&mut self, report: &str) {
        self.kept.taken = Some(report.to_string());
        self.save();
    }

    /// What is not kept is looked for again: a report counts twice at worst, and is never lost.
    fn save(&self) {
        let Some(file) = &self.file else { return };
        let written = serde_json::to_vec_pretty(&self.kept).map_err(std::io::Error::other);
        let _ = written.and_then(|text| private::write(file, &text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: &str, unknown: bool) -> StepCall {
        StepCall {
            run: "r".into(),
            feature: "f".into(),
            path: "p/s".into(),
            kind: sage_core::template::Kind::Agent,
            operation: "agent".into(),
            attempt: 1,
            key: key.into(),
            params: Default::default(),
            agent: None,
            model: None,
            allow: Default::default(),
            role: None,
            session: None,
            isolation: Default::default(),
            schema: None,
            input: Default::default(),
            timeout_ms: None,
            idle_timeout_ms: None,
            unknown,
            fresh: false,
            feedback: None,
            messages: Vec::new(),
            keep_output: false,
            files: Vec::new(),
        }
    }

    // covers: S8, R5
    #[test]
    fn a_report_counts_for_one_piece_of_work() {
        let dir = tempfile::tempdir().unwrap();
        let open = |key: &str, unknown: bool| Memory::open(Some(dir.path()), &call(key, unknown));
        let mut first = open("a", false);
        assert_eq!((first.after(), first.is_new), (None, true));
        first.begin(Some("came with the clone".into()));
        assert_eq!(first.after(), Some("came with the clone"));
        first.pass("finding");
        assert_eq!(first.after(), Some("finding"));
        first.take("done");
        // Killed before anybody knew: it is looked for again.
        let again = open("a", true);
        assert_eq!((again.after(), again.goes_on, again.is_new), (Some("finding"), true, false));
        // Not good enough, or other work: a new one is wanted.
        assert_eq!(open("a", false).after(), Some("done"));
        assert_eq!(open("b", true).after(), Some("done"));
        assert!(open("b", true).is_new && !Memory::open(None, &call("b", false)).is_new);
    }
}
