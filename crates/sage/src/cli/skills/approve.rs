//! `sage skills approve`: a person says that a skill, as it is now, may be used by itself.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use sage_engine::skills::{Content, ContentEntry, Index, Listed, Looked, Store};
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::{print, print_json};
use super::{failure, finding_lines, known_secrets, row, tell_problems};
use crate::command_line::sage;
use crate::display::text::{clean, plural};
use crate::trust::person::refuse_steps;
use crate::trust::{Door, user};

/// Of the files that are named one by one.
const SHOWN_FILES: usize = 30;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The skill's name
    name: String,
    /// Ask nothing: for scripts
    #[arg(long)]
    yes: bool,
    /// Approve it with what was found in it
    #[arg(long)]
    allow_findings: bool,
}

pub fn execute(store: &Store, args: Args, json: bool) -> Result<ExitCode, Failure> {
    // What is approved reaches the agents of later runs; so it is not theirs to approve.
    refuse_steps("approve a skill", &sage("skills approve").arg(&args.name).to_string())?;
    let index = store.index();
    let listed = index.find(&args.name).map_err(|error| {
        tell_problems(&index);
        failure(error)
    })?;
    let content = Content::read(&listed.dir).map_err(failure)?;
    let looked = content.look_through(&known_secrets()).map_err(failure)?;
    if !json {
        show(&index, listed, &content, &looked);
    }
    if !looked.findings.is_empty() && !args.allow_findings {
        return refused(&index, listed, &looked, json);
    }
    if !listed.approved() {
        ask(&args, json)?;
        let key = user::make_key().map_err(Failure::failed)?;
        let store = store.sealed_with(&key);
        let approval = store.approve(&args.name, &content, &Door::of_command().by()).map_err(failure)?;
        if json {
            let mut value = row(&index, listed);
            value["approval"] = json!(approval);
            value["approved"] = true.into();
            return told(value, &looked);
        }
        print(format_args!("approved: {}\n", clean(&args.name)));
        return Ok(ExitCode::SUCCESS);
    }
    if json {
        return told(row(&index, listed), &looked);
    }
    print(format_args!("{} is approved already, as it is now\n", clean(&args.name)));
    Ok(ExitCode::SUCCESS)
}

fn told(mut value: Value, looked: &Looked) -> Result<ExitCode, Failure> {
    value["type"] = "skill".into();
    value["success"] = true.into();
    value["findings"] = json!(looked.findings);
    print_json(&value)?;
    Ok(ExitCode::SUCCESS)
}

fn refused(index: &Index, listed: &Listed, looked: &Looked, json: bool) -> Result<ExitCode, Failure> {
    let name = &listed.skill.name;
    if json {
        let mut value = row(index, listed);
        value["type"] = "skill".into();
        value["success"] = false.into();
        value["findings"] = json!(looked.findings);
        print_json(&value)?;
        return Ok(ExitCode::from(2));
    }
    let found = plural(looked.findings.len() as u64, "finding");
    Err(Failure::usage(format!("`{name}` was not approved: {found}, see above"))
        .hint("read the places that are named, and mend them")
        .hint(sage("skills approve").arg(name).arg("--allow-findings").comment("if they are harmless")))
}

/// What is approved: where, how much, which files, what was found.
fn show(index: &Index, listed: &Listed, content: &Content, looked: &Looked) {
    print(format_args!("{}: {}\n", clean(&listed.skill.name), clean(&listed.skill.description)));
    let files = plural(content.files.len() as u64, "file");
    print(format_args!("{} ({files}, {} bytes)\n", clean(&index.shown(&listed.dir)), content.bytes));
    for entry in content.files.iter().take(SHOWN_FILES) {
        print(format_args!("  {}\n", file_line(entry)));
    }
    if content.files.len() > SHOWN_FILES {
        print(format_args!("  and {} more\n", content.files.len() - SHOWN_FILES));
    }
    match looked.findings.len() {
        0 => print("scan: no secrets, no orders to agents found\n"),
        _ => print(format_args!("scan:{}\n", finding_lines(&looked.findings))),
    }
    if !looked.unread.is_empty() {
        print(format_args!("scan: no text, so not looked into: {}\n", clean(&looked.unread.join(", "))));
    }
}

fn file_line(entry: &ContentEntry) -> String {
    let program = if entry.executable { ", can be run" } else { "" };
    match &entry.link_to {
        Some(target) => format!("{} -> {}", clean(&entry.path), clean(target)),
        None => format!("{} ({} bytes{program})", clean(&entry.path), entry.bytes),
    }
}

fn ask(args: &Args, json: bool) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    let hint = sage("skills approve").arg(&args.name).arg("--yes");
    if json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("cannot ask for confirmation: not a terminal; pass --yes").hint(hint));
    }
    eprint!("approve it? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("nothing was approved")),
    }
}
