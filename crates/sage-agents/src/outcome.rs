//! How the end of a process becomes the outcome of an attempt. Shared by everything that runs a program.

use sage_core::policy::FailureClass;
use sage_core::port::{Refusal, StepOutcome, Usage};
use serde_json::Value;

use crate::process::{Captured, End, signal_name};

/// Lines of stderr that a message quotes.
const QUOTED_LINES: usize = 5;
/// Characters of a quote: enough for an error, not for a dump.
const QUOTED_CHARS: usize = 600;

/// Why there is no result, before usage and partial work are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    Stopped,
    Failed { class: FailureClass, message: String, refusal: Option<Refusal> },
}

impl Miss {
    pub fn failed(class: FailureClass, message: impl Into<String>) -> Miss {
        Miss::Failed { class, message: message.into(), refusal: None }
    }

    pub fn invalid(message: impl Into<String>) -> Miss {
        Miss::failed(FailureClass::Invalid, message)
    }

    pub fn into_outcome(self, partial: Option<Value>, usage: Usage) -> StepOutcome {
        match self {
            Miss::Stopped => StepOutcome::Stopped { usage },
            Miss::Failed { class, message, refusal } => {
                StepOutcome::Failed { class, message, partial, usage, refusal }
            }
        }
    }
}

impl From<Miss> for StepOutcome {
    fn from(miss: Miss) -> StepOutcome {
        miss.into_outcome(None, Usage::default())
    }
}

/// The exit code of a program that ended by itself; anything else is a miss.
pub fn exit_code(end: &End) -> Result<i32, Miss> {
    match end {
        End::Exited(code) => Ok(*code),
        End::Signaled(signal) => {
            Err(Miss::failed(FailureClass::Lost, format!("killed by {}", signal_name(*signal))))
        }
        End::Refused { passing, message } => {
            let class = if *passing { FailureClass::Transient } else { FailureClass::Invalid };
            Err(Miss::failed(class, message))
        }
        End::TimedOut(message) => Err(Miss::failed(FailureClass::Timeout, message)),
        End::Lost(message) => Err(Miss::failed(FailureClass::Lost, message)),
        End::Stopped => Err(Miss::Stopped),
    }
}

/// `exit code 3: last lines of stderr`, or of stdout when stderr has nothing to say.
pub fn exit_message(code: i32, stdout: &Captured, stderr: &Captured) -> String {
    let quote = [stderr, stdout].map(|stream| last_lines(&stream.tail));
    match quote.iter().find(|quote| !quote.is_empty()) {
        Some(quote) => format!("exit code {code}: {quote}"),
        None => format!("exit code {code}"),
    }
}

pub fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
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

    #[test]
    fn messages_quote_the_end_of_stderr() {
        let stream = |text: &str| Captured { tail: text.to_string(), ..Captured::default() };
        let many = "1\n2\n3\n4\n5\n6\n\n7\n";
        assert_eq!(exit_message(3, &stream("out"), &stream(many)), "exit code 3: 3\n4\n5\n6\n7");
        assert_eq!(exit_message(3, &stream("out\n"), &stream(" \n")), "exit code 3: out");
        assert_eq!(exit_message(3, &stream(""), &stream("")), "exit code 3");
        let long = exit_message(1, &stream(""), &stream(&"ä".repeat(5_000)));
        assert!(long.chars().count() < QUOTED_CHARS + 20);
        assert_eq!(excerpt(&"x".repeat(100)).chars().count(), 81);
    }
}
