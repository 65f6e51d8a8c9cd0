//! What a keeper says on the lifeline: one short line per fact.
//!
//! A program's own exit code could be anything, so the keeper's exit code says nothing about the program.

use crate::process::signal_name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The program could not be started; `passing` when trying again can help (no memory, no processes left).
    Refused {
        passing: bool,
        message: String,
    },
    Exited(i32),
    Signaled(i32),
}

impl Report {
    pub fn line(&self) -> String {
        match self {
            Report::Refused { passing, message } => {
                let when = if *passing { "now" } else { "ever" };
                format!("refused {when} {}\n", message.replace('\n', " "))
            }
            Report::Exited(code) => format!("exited {code}\n"),
            Report::Signaled(signal) => format!("signaled {signal}\n"),
        }
    }

    pub fn parse(line: &str) -> Option<Report> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "exited" => rest.parse().ok().map(Report::Exited),
            "signaled" => rest.parse().ok().map(Report::Signaled),
            "refused" => {
                let (when, message) = rest.split_once(' ')?;
                Some(Report::Refused { passing: when == "now", message: message.to_string() })
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Report::Refused { message, .. } => f.write_str(message),
            Report::Exited(code) => write!(f, "exit code {code}"),
            Report::Signaled(signal) => write!(f, "killed by {}", signal_name(*signal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_survives_its_line() {
        for report in [
            Report::Refused { passing: true, message: "no memory".into() },
            Report::Refused { passing: false, message: "program `x y` was not found".into() },
            Report::Exited(255),
            Report::Signaled(9),
        ] {
            assert_eq!(Report::parse(report.line().trim_end_matches('\n')), Some(report));
        }
        assert_eq!(Report::parse("exited"), None);
        assert_eq!(Report::parse("exited many"), None);
        assert_eq!(Report::parse("won 1"), None);
    }
}
