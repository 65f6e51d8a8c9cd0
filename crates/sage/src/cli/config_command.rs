//! `sage config`: every setting and where it comes from.

use std::process::ExitCode;

use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{config, print, print_json, warnings};
use crate::command_line;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let project = context.project.root.display().to_string();
    if args.json {
        let settings: Vec<_> = context
            .config
            .settings
            .iter()
            .map(|s| json!({"name": s.name, "value": s.value, "source": s.source}))
            .collect();
        print_json(
            &json!({"type": "config", "project": project, "stateDir": context.project.dir, "settings": settings}),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format_args!("project  {project}\nstate    {}\n\n", context.project.dir.display()));
    let width = context.config.settings.iter().map(|s| s.name.len()).max().unwrap_or(0);
    let value_width = context.config.settings.iter().map(|s| s.value.len()).max().unwrap_or(0).min(24);
    for setting in &context.config.settings {
        print(format_args!("{:width$}  {:value_width$}  {}\n", setting.name, setting.value, setting.source));
    }
    eprintln!(
        "note: a project template's own `timeout` and an operation's own `cache.ttl` come before these settings"
    );
    warnings::tell(warnings::of_config(&context.config).iter().chain(&warnings::of_ignored(&context.config)));
    if let Some(variable) = context.config.encryption {
        let refusal = config::no_encryption(variable);
        eprintln!("warning: {}", refusal.message);
        refusal.hints.into_iter().for_each(command_line::tell);
    }
    Ok(ExitCode::SUCCESS)
}
