//! `sage init`: set up a project. Nothing that a person wrote or edited is overwritten.

pub mod clients;
mod slash;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{install, print, print_json};
use crate::code::types;
use crate::command_line::{sage, tell};
use crate::display::text::clean;
use crate::trust::open::Open;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const CONFIG: &str = "\
# Sage's settings; all are optional. `sage config` shows each value and where it comes from.
# parallel = 4              # steps at once
# timeout = \"10m\"           # active time of a run before it pauses
# template = \"feature\"      # what `sage run` takes without -t
# budget = \"5usd\"           # what a run may spend before it pauses; also tokens: \"200k\"
#
# [agents.mine]             # an agent is any program: prompt on stdin, answer on stdout
# command = [\"my-agent\", \"--headless\"]
# provider = \"anthropic\"    # whose limits its calls count in
#
# [targets.\"provider:anthropic\"]
# concurrent = 4            # calls at once, of all runs together
#
# [gc]                      # what is over and old goes, after a run and by `sage gc`
# olderThan = \"30d\"
# keep = 20                 # so many of the newest runs stay, however old they are
# maxSize = \"1GB\"          # `sage gc` removes the oldest runs until all fit
# auto = false              # only when you type `sage gc`
";

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let project = &context.project;
    project.prepare(context.disk.as_ref()).map_err(|error| Failure::failed(error.to_string()))?;
    let templates = project.templates();
    sage_fence::private::create_dir_all(&templates)?;
    let mut written = Vec::new();
    if create(&project.root.join("sage.toml"), CONFIG)? {
        written.push("sage.toml");
    }
    types::write(&project.dir, None)
        .map_err(|error| Failure::failed(format!("cannot write the types of code: {error}")))?;
    let told = clients::tell(&project.root);
    written.extend(&told.written);
    let agents = install::found(&project.root);
    if args.json {
        print_json(&json!({
            "type": "init", "project": project.root, "written": written, "notes": told.notes, "agents": agents,
        }))?;
    } else {
        match agents.as_slice() {
            [] => print("no coding agent found on this machine (sage agents)\n"),
            found => print(format_args!("agents found: {} (sage agents)\n", found.join(", "))),
        }
        written.iter().for_each(|file| print(format_args!("wrote {file}\n")));
        told.notes.iter().for_each(|note| eprintln!("note: {note}"));
        let open = Open::of(context, &[])?.definitions;
        let untrusted: Vec<&str> = open.iter().map(|it| it.name.as_str()).collect();
        if !untrusted.is_empty() {
            eprintln!("note: not trusted yet: {}", clean(&untrusted.join(", ")));
            tell(sage("trust"));
        }
        for (program, command) in clients::OTHERS {
            print(format_args!("as tools in {program}: {command}\n"));
        }
        let first = sage("run").arg("my first feature");
        print(format_args!("{} is ready: {first}\n", project.root.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// True if it was written, false if it was there.
fn create(path: &Path, text: &str) -> Result<bool, Failure> {
    match std::fs::File::create_new(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Failure::failed(format!("cannot write `{}`: {error}", path.display()))),
    }
}
