//! Where a value comes from: an environment variable, `sage.toml`, or the default. Errors name that place.

use super::values::SHORTEST_NUMBER_MS;
use super::{FROM_FILE, FROM_NOWHERE, Setting, values};
use crate::cli::failure::Failure;

/// A value that was chosen, with the name of its setting and its place.
#[derive(Clone, Debug)]
pub struct Picked {
    pub value: String,
    name: String,
    from: From,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    Variable(String),
    File,
    Default,
}

/// The first variable that is set and not empty, else the file's value, else the default.
pub fn pick(
    settings: &mut Vec<Setting>,
    name: &str,
    variables: &[&str],
    file: Option<String>,
    default: String,
) -> Picked {
    let (value, from) = match (variables.iter().find_map(|name| variable(name)), file) {
        (Some((value, name)), _) => (value, From::Variable(name)),
        (None, Some(value)) => (value, From::File),
        (None, None) => (default, From::Default),
    };
    let source = match &from {
        From::Variable(variable) => format!("environment {variable}"),
        From::File => FROM_FILE.into(),
        From::Default => FROM_NOWHERE.into(),
    };
    settings.push(Setting { name: name.into(), value: value.clone(), source });
    Picked { value, name: name.into(), from }
}

/// What a variable says, and its name. An empty one says nothing.
fn variable(name: &str) -> Option<(String, String)> {
    std::env::var(name).ok().filter(|value| !value.is_empty()).map(|value| (value, name.to_string()))
}

impl Picked {
    /// Whether the user said it.
    pub fn is_given(&self) -> bool {
        self.from != From::Default
    }

    pub fn wrong(&self, why: impl std::fmt::Display) -> Failure {
        match &self.from {
            From::Variable(name) => Failure::usage(format!("`{name}`: {why}")),
            From::File | From::Default => values::wrong(&self.name, why),
        }
    }

    /// What to write instead.
    fn example(&self, value: &str) -> String {
        match &self.from {
            From::Variable(name) => format!("{name}={value}"),
            From::File | From::Default => format!("{} = \"{value}\" in sage.toml", self.name),
        }
    }

    /// A time that cannot be nothing. `usual` is an example.
    pub fn time_ms(&self, usual: &str) -> Result<u64, Failure> {
        let digits = self.value.trim().parse::<u64>().ok();
        match values::duration(self.value.trim()) {
            Ok(0) => Err(self.wrong("it must be longer than 0").hint(self.example(usual))),
            Ok(ms) if digits.is_some() && ms < SHORTEST_NUMBER_MS => Err(self
                .wrong(format!("{ms} without a unit means {ms} milliseconds"))
                .hint(self.example(&format!("{ms}s")))),
            Ok(ms) => Ok(ms),
            Err(failure) => Err(self.wrong(failure.message).hint(self.example(usual))),
        }
    }

    pub fn switch(&self) -> Result<bool, Failure> {
        match self.value.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "on" | "yes" => Ok(true),
            "0" | "false" | "off" | "no" => Ok(false),
            _ => Err(self
                .wrong(format!("`{}` is neither true nor false", self.value))
                .hint(self.example("false"))),
        }
    }

    /// A whole number from 1 on.
    pub fn count(&self) -> Result<u32, Failure> {
        let count = self.value.trim().parse().ok().filter(|count| *count > 0);
        let wrong = || self.wrong(format!("`{}` is not a whole number from 1 on", self.value));
        count.ok_or_else(|| wrong().hint(self.example("4").replace('"', "")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(from: From, value: &str) -> Picked {
        Picked { value: value.into(), name: "timeout".into(), from }
    }

    // covers: R14
    #[test]
    fn a_wrong_value_is_told_with_the_place_that_has_it() {
        let variable = || From::Variable("ENABLE_WAKE_MESSAGING".into());
        let failure = picked(variable(), "maybe").switch().unwrap_err();
        assert_eq!(failure.message, "`ENABLE_WAKE_MESSAGING`: `maybe` is neither true nor false");
        assert_eq!(failure.hints, ["ENABLE_WAKE_MESSAGING=false"]);
        let failure = picked(From::File, "5").time_ms("10m").unwrap_err();
        assert_eq!(failure.message, "`sage.toml`: `timeout`: 5 without a unit means 5 milliseconds");
        assert_eq!(failure.hints, ["timeout = \"5s\" in sage.toml"]);
        assert_eq!(picked(variable(), "1000").time_ms("10m").unwrap(), 1_000);
        assert!(picked(variable(), "0").time_ms("10m").is_err());
        assert!(picked(variable(), "soon").time_ms("10m").unwrap_err().message.contains("MESSAGING"));
        assert!(picked(variable(), "0").count().is_err() && picked(variable(), "7").count().unwrap() == 7);
    }
}
