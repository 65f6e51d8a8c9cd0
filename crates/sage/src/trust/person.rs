//! Who acts, and by which door. Approvals, trust and budgets are a person's: no step can give them.

use sage_agents::above;

use crate::cli::failure::Failure;
use crate::display::text::clean;

/// The way by which a command reached Sage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Door {
    Terminal,
    /// A command without a terminal: a script, or an agent that has a shell.
    Command,
    /// The person in front of this MCP client was asked.
    Mcp(String),
}

impl Door {
    /// Of this command.
    pub fn of_command() -> Door {
        use std::io::IsTerminal;
        if std::io::stdin().is_terminal() { Door::Terminal } else { Door::Command }
    }

    /// `ada via terminal`, as it is written down: the user of the process and the door.
    pub fn by(&self) -> String {
        let user = user_name();
        match self {
            Door::Terminal => format!("{user} via terminal"),
            Door::Command => format!("{user} via command line"),
            Door::Mcp(client) => format!("{user} via {client}"),
        }
    }
}

/// The name of the user that this process runs as; variables can be set to anything.
fn user_name() -> String {
    let uid = rustix::process::getuid().as_raw();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| clean(name))
    });
    name.unwrap_or_else(|| format!("uid {uid}"))
}

/// Refuses what a step, or a program that Sage started, may not do. `what` follows "only a person can".
pub fn refuse_steps(what: &str, command: &str) -> Result<(), Failure> {
    match above() {
        Some(above) => Err(Failure::usage(format!(
            "only a person can {what}; this was called by {}",
            clean(&above.to_string())
        ))
        .hint(format!("{command}    (in a terminal)"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_and_by_which_door_is_told() {
        let by = Door::Mcp("mcp (client)".into()).by();
        let (user, door) = by.split_once(" via ").unwrap();
        assert_eq!((door, user.is_empty()), ("mcp (client)", false));
        assert!(
            Door::Terminal.by().ends_with(" via terminal")
                && Door::Command.by().ends_with(" via command line")
        );
    }
}
