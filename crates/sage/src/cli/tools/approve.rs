//! `sage tools approve`: shows what is new or has changed in a server's tools, and approves it with a yes.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use sage_agents::mcp::{Hub, Tool};
use serde_json::json;

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::{print, print_json};
use crate::command_line::{CommandLine, sage};
use crate::display::text::{clean, plural};
use crate::trust::person::refuse_steps;

/// What a person is asked about.
pub struct Review<'a> {
    pub server: &'a str,
    pub tool: Option<&'a str>,
    pub yes: bool,
    pub json: bool,
}

impl Review<'_> {
    pub async fn run(&self, context: &Context, hub: &Arc<Hub>) -> Result<ExitCode, Failure> {
        refuse_steps("approve the tools of a server", &self.command().to_string())?;
        let told = |failure| super::told(context, failure);
        let tools = hub.unapproved(self.server, self.tool).await.map_err(told)?;
        if !self.json {
            tools.iter().for_each(show);
        }
        if !tools.is_empty() && !self.is_confirmed(tools.len())? {
            return Err(Failure::failed("nothing was approved"));
        }
        hub.approve(self.server, &tools).await.map_err(told)?;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        if self.json {
            print_json(&json!({"server": self.server, "approved": names}))?;
        } else if names.is_empty() {
            print(format_args!("server `{}` has no new or changed tools\n", self.server));
        } else {
            print(format_args!("approved: {}\n", clean(&names.join(", "))));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn command(&self) -> CommandLine {
        self.tool.iter().fold(sage("tools approve").arg(self.server), |command, tool| command.arg(*tool))
    }

    fn is_confirmed(&self, count: usize) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        if self.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            let message = "cannot ask for confirmation: not a terminal; nothing was approved";
            return Err(Failure::usage(message).hint(self.command().arg("--yes")));
        }
        eprint!("approve {} of `{}`? [y/N] ", plural(count as u64, "tool"), clean(self.server));
        let mut line = String::new();
        // An input that ends is a no.
        let _ = std::io::stdin().read_line(&mut line);
        Ok(line.trim().eq_ignore_ascii_case("y"))
    }
}

fn show(tool: &Tool) {
    print(format_args!("{}/{}\n", clean(&tool.server), clean(&tool.name)));
    for line in tool.description.lines().filter(|line| !line.trim().is_empty()) {
        print(format_args!("    {}\n", clean(line)));
    }
    if let Some(why) = &tool.refused {
        print(format_args!("  {}\n", clean(why.split("; to accept it:").next().unwrap_or(why))));
    }
}
