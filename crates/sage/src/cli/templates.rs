//! `sage templates`: list, show, create, and the format's JSON Schema.

use std::process::ExitCode;

use clap::Subcommand;
use sage_core::diagnostic::printable;
use sage_core::inputs::{Input, InputKind};
use sage_core::template::Template;
use sage_fence::private;
use serde_json::{Value, json};

use super::catalog::{Catalog, Place};
use super::context::Context;
use super::failure::Failure;
use super::{print, print_json};
use crate::command_line::{sage, tell};

pub const STARTER: &str = "\
name: NAME
description: Two checks at once, then a report
phases:
  - id: look
    operations:                     # a list runs in parallel
      - id: files
        type: shell
        params: { run: \"find . -type f -not -path './.*' | wc -l\" }
      - id: history
        type: shell
        params: { run: \"git log --oneline -5 2>/dev/null || echo 'no history'\" }
  - id: report
    dependencies: [look]
    operations:
      id: write
      type: shell
      params:
        argv: [echo, \"{{ title }}: {{ steps['look/files'].result.stdout | trim }} files\"]
";

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a template
    Show {
        /// A template's name or file
        name: String,
    },
    /// Write a small template to start from
    New {
        /// Its name: the file is .sage/templates/<NAME>.yaml
        name: String,
    },
    /// Print the JSON Schema of the template format
    Schema,
}

impl Args {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        !matches!(self.what, Some(What::New { .. }))
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let catalog = Catalog::of(context);
    match args.what {
        None => list(&catalog, args.json)?,
        Some(What::Show { name }) => show(&catalog, &name, args.json)?,
        Some(What::New { name }) => new(context, &name)?,
        Some(What::Schema) => print(sage_core::schema::TEMPLATE_SCHEMA),
    }
    Ok(ExitCode::SUCCESS)
}

/// As its author wrote it; what it takes is for people, beside the text.
fn show(catalog: &Catalog, name: &str, json: bool) -> Result<(), Failure> {
    let frozen = catalog.freeze(name)?;
    let code = frozen.file.as_ref().and_then(|file| frozen.programs.get(file));
    let text = code.map_or(&frozen.text, |program| &program.text);
    let template = read(catalog, name);
    if json {
        let template = template?;
        let inputs: Vec<Value> = template.inputs.iter().map(input_json).collect();
        return print_json(&json!({
            "type": "template", "name": template.name, "description": template.description, "text": text,
            "file": frozen.file, "inputs": inputs,
        }));
    }
    print(text);
    for input in template.iter().flat_map(|template| template.inputs.iter()) {
        let about = input.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        eprintln!("input: {}", printable(&format!("{} ({}){about}", input.name, input.about())));
    }
    Ok(())
}

fn input_json(input: &Input) -> Value {
    json!({
        "name": input.name, "type": input.kind.map(InputKind::name), "default": input.default,
        "required": input.required && input.default.is_none(), "description": input.description,
        "enum": input.choices,
    })
}

fn list(catalog: &Catalog, json: bool) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (name, place) in catalog.all() {
        let loaded = read(catalog, name);
        let about = match &loaded {
            Ok(template) => template.description.clone().unwrap_or_default(),
            Err(failure) => format!("not valid: {}", failure.message),
        };
        let own = matches!(place, Place::File(_));
        let steps = loaded.ok().map(|t| t.phases.iter().map(|p| p.operations.len()).sum::<usize>());
        rows.push((name, steps, about, own));
    }
    if json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(n, s, a, own)| json!({"name": n, "steps": s, "description": a, "builtIn": !own}))
            .collect();
        return print_json(&json!({"type": "templates", "templates": rows}));
    }
    let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    for (name, steps, about, own) in rows {
        let steps = steps.map_or_else(|| "-".into(), |n| n.to_string());
        let own = match (own, about.is_empty()) {
            (false, _) => "",
            (true, true) => "(yours)",
            (true, false) => " (yours)",
        };
        let word = if steps == "1" { "step " } else { "steps" };
        print(format_args!("{name:width$}  {steps:>4} {word}  {about}{own}\n"));
    }
    Ok(())
}

fn read(catalog: &Catalog, name: &str) -> Result<Template, Failure> {
    let mut frozen = catalog.freeze(name)?;
    let loaded = catalog.read(&mut frozen);
    let own =
        loaded.diagnostics.iter().find(|problem| problem.is_error()).map(|problem| problem.message.clone());
    let first = loaded.shown.first().map(|problem| problem.message.clone()).or(own);
    loaded.template.ok_or_else(|| Failure::usage(first.unwrap_or_default()))
}

fn new(context: &Context, name: &str) -> Result<(), Failure> {
    let plain = !name.is_empty()
        && name.len() <= 100
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !plain {
        return Err(Failure::usage(format!("`{name}` is not a template name: a-z, 0-9 and `-`")));
    }
    context.project.prepare(context.disk.as_ref()).map_err(|error| Failure::failed(error.to_string()))?;
    private::create_dir_all(&context.project.templates())?;
    let path = context.project.templates().join(format!("{name}.yaml"));
    if !private::create_new(&path, STARTER.replace("NAME", name).as_bytes())? {
        return Err(Failure::usage(format!("`{}` exists", path.display())));
    }
    print(format_args!("wrote {}\n", path.display()));
    tell(sage("run").arg("my feature").option("-t", name));
    Ok(())
}
