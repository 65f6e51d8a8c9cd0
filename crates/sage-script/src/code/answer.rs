//! What becomes of a run of code.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What it printed, cut at the cap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Console {
    pub text: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_bytes: usize,
}

impl Console {
    pub(super) fn push(&mut self, line: &str, most: usize) {
        let room = most.saturating_sub(self.text.len());
        let end = line.floor_char_boundary(room.min(line.len()));
        self.text.push_str(&line[..end]);
        if end == line.len() && room > end {
            self.text.push('\n');
        }
        self.cut_bytes += line.len() - end;
    }

    /// With a last line that says what is missing.
    pub fn told(&self) -> String {
        match self.cut_bytes {
            0 => self.text.clone(),
            cut => format!("{}\n[{cut} more bytes were cut]", self.text.trim_end()),
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a run saved its reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub calls: u32,
    pub failed_calls: u32,
    /// JSON that tools answered with.
    pub bytes_in: u64,
    /// JSON and text that the model gets to read.
    pub bytes_out: u64,
    /// What stayed in the sandbox.
    pub bytes_kept_out: u64,
    /// Values that were replaced by tokens, of the whole session.
    pub hidden: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeAnswer {
    /// What the code returned, or what stands for it.
    pub value: Value,
    /// The value stayed in the session under this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The code returned nothing at all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nothing: bool,
    pub console: Console,
    pub counts: Counts,
    pub duration_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// What was asked for makes no sense; nothing was run.
    Invalid,
    /// The text is not TypeScript, or more than types would have to go.
    Syntax,
    /// A module or a name that does not exist.
    Import,
    Threw,
    /// Out of time, tools included.
    Timeout,
    /// Too much computing.
    Cpu,
    Memory,
    /// It waits for something that nobody will answer.
    Stuck,
    /// The process ended in another way, or could not be started.
    Broken,
}

impl FailureKind {
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Invalid => "invalid",
            FailureKind::Syntax => "syntax",
            FailureKind::Import => "import",
            FailureKind::Threw => "threw",
            FailureKind::Timeout => "timeout",
            FailureKind::Cpu => "cpu",
            FailureKind::Memory => "memory",
            FailureKind::Stuck => "stuck",
            FailureKind::Broken => "broken",
        }
    }
}

/// Why there is no value, in words that help to mend the code.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct CodeFailure {
    pub kind: FailureKind,
    /// With `at code.ts:line:column` where that is known.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// In a box: failures travel as errors, which are to be small.
    pub console: Box<Console>,
    pub counts: Counts,
    pub duration_ms: u64,
}

impl CodeFailure {
    /// Nothing was run.
    pub fn refused(kind: FailureKind, message: impl Into<String>) -> CodeFailure {
        let (console, counts) = (Box::default(), Counts::default());
        CodeFailure { kind, message: message.into(), hint: None, console, counts, duration_ms: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R21
    #[test]
    fn what_is_printed_is_cut_and_counted() {
        let mut console = Console::default();
        console.push("four", 10);
        console.push("ünï", 10);
        console.push("more", 10);
        assert_eq!((console.text.as_str(), console.cut_bytes), ("four\nünï", 4));
        assert_eq!(console.told(), "four\nünï\n[4 more bytes were cut]");
    }
}
