//! How much agents may do without a person: `--allow` and `[approvals] mode`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Each mode allows what those before it do. Roles, protected files and what is denied by name hold in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Reading, edits in the project, the project's own checks and local commits; all else is asked.
    #[default]
    Ask,
    /// Also file changes by commands: recursive removal, edits in place, restoring files from git.
    Edits,
    /// Also any other command.
    Commands,
    /// Also the network, MCP tools and files outside of the project: no question is left.
    All,
}

impl Mode {
    pub const ALL: [Mode; 4] = [Mode::Ask, Mode::Edits, Mode::Commands, Mode::All];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Ask => "ask",
            Mode::Edits => "edits",
            Mode::Commands => "commands",
            Mode::All => "all",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let names = || Mode::ALL.map(Mode::name).join(", ");
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| format!("unknown mode; modes are {}", names()))
    }
}
