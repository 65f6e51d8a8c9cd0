//! `sage check`: what is wrong with TypeScript, before it runs: its syntax and imports, then its types if there is
//! a `tsc`.
//!
//! The types are written to `.sage/types` in any case, for editors; those of tools are asked from the servers.

mod tsc;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sage_agents::text_file;
use sage_core::diagnostic::{Severity, Shown};
use sage_script::strip::{Form, strip};
use sage_script::tools::ToolDef;
use serde_json::json;

use super::code::located;
use super::context::{Context, runtime};
use super::failure::Failure;
use super::{print, print_json, programs};
use crate::code::{Author, types};
use crate::display::text::plural;
use crate::trust::programs::installed_tsc;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// TypeScript; without any, all templates in code and all skills of the project
    files: Vec<PathBuf>,
    /// Check only the syntax: start no servers and no `tsc`
    #[arg(long)]
    syntax: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let given = || args.files.iter().map(|file| located(context, file)).collect();
    let files: Vec<PathBuf> = if args.files.is_empty() { all(context) } else { given() };
    let mut found: Vec<Shown> = Vec::new();
    for file in &files {
        found.extend(syntax(context, file)?);
    }
    let mut notes = Vec::new();
    if args.syntax || files.is_empty() {
        write_types(context, None, false)?;
    } else {
        let readable = !found.iter().any(is_error);
        found.extend(check_types(context, &files, readable, &mut notes)?);
    }
    told(&files, &found, &notes, args.json)
}

fn is_error(shown: &Shown) -> bool {
    shown.severity == Severity::Error
}

/// Templates in code and code skills.
fn all(context: &Context) -> Vec<PathBuf> {
    let dir = &context.project.dir;
    let mut files = typescript(&dir.join("templates"));
    let skills = std::fs::read_dir(dir.join("skills")).into_iter().flatten().flatten();
    files.extend(skills.map(|entry| entry.path().join("skill.ts")).filter(|path| path.is_file()));
    files.sort();
    files
}

fn typescript(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "ts") && path.is_file()).collect()
}

fn syntax(context: &Context, file: &Path) -> Result<Vec<Shown>, Failure> {
    let text = text_file::read_in(&context.project.root, file, sage_script::strip::MAX_BYTES as u64)
        .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", file.display())))?;
    let absolute = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let (templates, shown) = (context.project.templates(), shown(context, file));
    let templates = templates.canonicalize().unwrap_or(templates);
    // A workflow is refused here for everything that a run would refuse.
    if absolute.parent() == Some(&templates) {
        let skills = context.project.dir.join("skills");
        return Ok(programs::complete(&shown, &text, &context.project.root, &skills).wrong);
    }
    let form = if absolute.starts_with(&templates) { Form::Module } else { Form::Body };
    Ok(strip(&shown, &text, form).err().unwrap_or_default())
}

/// Short where it is the project's.
fn shown(context: &Context, file: &Path) -> String {
    file.strip_prefix(&context.project.root).unwrap_or(file).display().to_string()
}

/// `readable`: of a text that cannot be read, types would only repeat what is known.
fn check_types(
    context: &Context,
    files: &[PathBuf],
    readable: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<Shown>, Failure> {
    let own = installed_tsc(&context.project.root);
    let trusted = own.as_ref().filter(|(_, definition)| context.trust.holds(definition));
    let program = trusted.map(|(path, _)| path.clone()).or_else(tsc::on_path);
    if let Some((_, definition)) = own.as_ref().filter(|_| trusted.is_none()) {
        notes.push(format!("{} was not used: it is not trusted (sage trust)", definition.name));
    }
    if program.is_none() {
        notes.push("types were not checked: there is no trusted `tsc` in node_modules, and none on PATH (npm install --save-dev typescript)".into());
    }
    let runtime = runtime()?;
    runtime.block_on(async {
        let servers = tools(context, notes).await;
        let dir = write_types(context, servers.as_deref(), program.is_some())?;
        let (Some(program), Some(dir), true) = (program, dir, readable) else { return Ok(Vec::new()) };
        let absolute: Vec<PathBuf> =
            files.iter().map(|file| file.canonicalize().unwrap_or_else(|_| file.clone())).collect();
        let project = types::project(&dir, &absolute).map_err(unwritten)?;
        tsc::run(&program, &project, &context.project.root).await
    })
}

/// Where there is a project, or where `tsc` needs them: a folder that is none stays as it is.
fn write_types(
    context: &Context,
    servers: Option<&[ToolDef]>,
    needed: bool,
) -> Result<Option<PathBuf>, Failure> {
    let wanted = needed || context.project.dir.is_dir();
    wanted.then(|| types::write(&context.project.dir, servers).map_err(unwritten)).transpose()
}

fn unwritten(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot write the types: {error}"))
}

/// `None` if no servers are configured or none could be asked.
async fn tools(context: &Context, notes: &mut Vec<String>) -> Option<Vec<ToolDef>> {
    let hub = context.hub();
    hub.names().next()?;
    let mode = context.code_mode(hub.clone(), Author::Person);
    notes.extend(mode.refresh().await);
    let catalogue = mode.catalogue().to_vec();
    hub.close().await;
    (!catalogue.is_empty()).then_some(catalogue)
}

fn told(files: &[PathBuf], found: &[Shown], notes: &[String], json: bool) -> Result<ExitCode, Failure> {
    let errors = found.iter().filter(|shown| is_error(shown)).count();
    if json {
        print_json(
            &json!({"type": "check", "valid": errors == 0, "files": files, "errors": found, "notes": notes}),
        )?;
    } else {
        found.iter().for_each(|shown| eprintln!("{shown}"));
        notes.iter().for_each(|note| eprintln!("note: {note}"));
        let count = plural(files.len() as u64, "file");
        match errors {
            0 if files.is_empty() => print("there is no code in .sage/templates or .sage/skills\n"),
            0 => print(format_args!("{count}: nothing wrong\n")),
            errors => print(format_args!("{count}: {}\n", plural(errors as u64, "error"))),
        }
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::from(2) })
}
