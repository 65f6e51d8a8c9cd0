//! How the end of a process becomes the outcome of an attempt. Shared by everything that runs a program.

use sage_core::headline::{Stream, headline};
use sage_core::policy::{Cause, FailureClass, SystemError};
use sage_core::port::{Refusal, StepOutcome, Usage};
use sage_core::text::{last_state, without_escapes};
use serde_json::Value;

use crate::process::{Captured, End, signal_name};

/// Lines of output that a message quotes below its first line.
const QUOTED_LINES: usize = 10;
/// Characters of a quote: enough for an error, not for a dump.
const QUOTED_CHARS: usize = 1_500;
/// So much of a stream is searched for the line that says what went wrong.
const SEARCHED_BYTES: usize = 256 * 1024;

/// Why there is no result, before usage and partial work are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    Stopped,
    Failed { class: FailureClass, cause: Option<Cause>, message: String, refusal: Option<Refusal> },
}

impl Miss {
    pub fn failed(class: FailureClass, message: impl Into<String>) -> Miss {
        Miss::Failed { class, cause: None, message: message.into(), refusal: None }
    }

    /// The step cannot run as it is set up; another try would fail in the same way.
    pub fn invalid(message: impl Into<String>) -> Miss {
        let (class, cause) = (FailureClass::Invalid, Some(Cause::Setup));
        Miss::Failed { class, cause, message: message.into(), refusal: None }
    }

    /// The agent answered, and its answer is not accepted.
    pub fn unfit(message: impl Into<String>) -> Miss {
        Miss::of_answer(FailureClass::Invalid, message)
    }

    /// The agent came to an end of its own that is no success: its provider is healthy.
    pub fn of_answer(class: FailureClass, message: impl Into<String>) -> Miss {
        Miss::Failed { class, cause: Some(Cause::Answer), message: message.into(), refusal: None }
    }

    /// What the endpoint said. A request that it calls invalid would be rejected again.
    pub fn of_endpoint(class: FailureClass, message: impl Into<String>, refusal: Refusal) -> Miss {
        let cause = (class == FailureClass::Invalid).then_some(Cause::Endpoint);
        let refusal = (refusal != Refusal::default()).then_some(refusal);
        Miss::Failed { class, cause, message: message.into(), refusal }
    }

    /// The endpoint did not take the request.
    pub fn is_refusal(&self) -> bool {
        let Miss::Failed { class, cause, .. } = self else { return false };
        class.refused() || *class == FailureClass::Auth || *cause == Some(Cause::Endpoint)
    }

    /// A file or process of sage's own could not be had. What the machine lacks is not the step's failure.
    pub fn of_io(error: &std::io::Error, message: impl Into<String>) -> Miss {
        Miss::failed(class_of_io(error), message)
    }

    pub fn into_outcome(self, partial: Option<Value>, usage: Usage) -> StepOutcome {
        match self {
            Miss::Stopped => StepOutcome::Stopped { usage },
            Miss::Failed { class, cause, message, refusal } => {
                StepOutcome::Failed { class, cause, message, partial, usage, refusal }
            }
        }
    }
}

impl From<Miss> for StepOutcome {
    fn from(miss: Miss) -> StepOutcome {
        miss.into_outcome(None, Usage::default())
    }
}

/// The class of an error at one of sage's own files.
pub fn class_of_io(error: &std::io::Error) -> FailureClass {
    let lacking = error.raw_os_error().and_then(SystemError::of).is_some();
    let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
    if lacking || denied { FailureClass::System } else { FailureClass::Transient }
}

/// The exit code of a program that ended by itself; anything else is a miss.
pub fn exit_code(end: &End) -> Result<i32, Miss> {
    match end {
        End::Exited(code) => Ok(*code),
        End::Signaled(signal) => {
            Err(Miss::failed(FailureClass::Lost, format!("killed by {}", signal_name(*signal))))
        }
        End::Refused { passing: true, message } => Err(Miss::failed(FailureClass::System, message)),
        End::Refused { passing: false, message } => Err(Miss::invalid(message)),
        End::TimedOut(message) => Err(Miss::failed(FailureClass::Timeout, message)),
        End::Lost(message) => Err(Miss::failed(FailureClass::Lost, message)),
        End::Stopped => Err(Miss::Stopped),
    }
}

/// `exit code 3: what went wrong`, and below it the last lines of the stream that says so, if there are more.
pub fn exit_message(code: i32, stdout: &Captured, stderr: &Captured) -> String {
    let Some(found) = headline(searched(stdout), searched(stderr)) else {
        return format!("exit code {code}");
    };
    let quote = last_lines(match found.stream {
        Stream::Stdout => &stdout.tail,
        Stream::Stderr => &stderr.tail,
    });
    let head = format!("exit code {code}: {}", found.text);
    if quote.contains('\n') { format!("{head}\n{quote}") } else { head }
}

/// The whole stream where it is there and not too long, else its end.
fn searched(stream: &Captured) -> &str {
    if stream.truncated || stream.text.is_empty() {
        return &stream.tail;
    }
    let start = stream.text.len().saturating_sub(SEARCHED_BYTES);
    &stream.text[stream.text.ceil_char_boundary(start)..]
}

pub fn last_lines(text: &str) -> String {
    let text = without_escapes(text);
    let lines = text.split('\n').map(|line| last_state(line).trim_end());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let quote = lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n");
    let surplus = quote.chars().count().saturating_sub(QUOTED_CHARS);
    quote.chars().skip(surplus).collect()
}

/// The beginning of a text, for messages about text that was not understood.
pub fn excerpt(text: &str) -> String {
    let text = text.trim();
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R8
    #[test]
    fn messages_begin_with_what_went_wrong_and_quote_the_end() {
        let stream = |text: &str| {
            let (text, tail) = (text.to_string(), text.to_string());
            Captured { text, tail, ..Captured::default() }
        };
        let many: String = (1..=13).map(|n| format!("{n}\n\n")).collect();
        let quoted: Vec<String> = (4..=13).map(|n| n.to_string()).collect();
        let expected = format!("exit code 3: 13\n{}", quoted.join("\n"));
        assert_eq!(exit_message(3, &stream("out"), &stream(&many)), expected);
        assert_eq!(exit_message(3, &stream("out\n"), &stream(" \n")), "exit code 3: out");
        assert_eq!(exit_message(3, &stream(""), &stream("")), "exit code 3");
        let trace = "Traceback (most recent call last):\n  File \"x\"\n    1 +\n       ^\nKeyError: 'a'\n";
        let told = exit_message(1, &stream("3 orders\n"), &stream(trace));
        assert_eq!(told, format!("exit code 1: KeyError: 'a'\n{}", trace.trim_end()));
        let long = exit_message(1, &stream(""), &stream(&"ä\n".repeat(5_000)));
        assert!(long.chars().count() < QUOTED_CHARS + 300);
        let cut = Captured { truncated: true, ..stream("the first 8 MiB\n") };
        let cut = Captured { tail: "error: at the end\n".into(), ..cut };
        assert_eq!(exit_message(1, &stream(""), &cut), "exit code 1: error: at the end");
        assert_eq!(excerpt(&"x".repeat(100)).chars().count(), 81);
    }
}
