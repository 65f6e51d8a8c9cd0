//! `sage validate`: everything that is wrong with a template, at once.

use std::process::ExitCode;

use sage_core::check::Loaded;
use sage_core::diagnostic::{Severity, Shown};
use sage_core::event::Frozen;
use sage_core::plan::Plan;
use sage_core::template::Template;
use serde_json::{Value, json};

use super::catalog::{Catalog, Ready};
use super::context::Context;
use super::failure::Failure;
use super::preflight::check_template;
use super::{diagnostics, print, print_json, warnings};
use crate::display::text::plural;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A template's name or file
    file: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let catalog = Catalog::of(context);
    let frozen = catalog.freeze(&args.file)?;
    let file = frozen.file.clone().unwrap_or_else(|| args.file.clone());
    let mut report = diagnostics::reporter(args.json);
    catalog.report_operations(&frozen.text, &mut report);
    let Validation { shown, warnings, plan, below } = check(context, &catalog, &file, frozen, &mut report);
    let errors = shown.iter().filter(|shown| shown.severity == Severity::Error).count();
    let told = shown.len() - errors;
    let valid = plan.is_some();
    if args.json {
        let graph = plan.as_ref().map(graph);
        let problem = below.map(|failure| failure.message);
        let warnings: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
        print_json(&json!({
            "type": "validation", "valid": valid, "errors": shown, "warnings": warnings, "problem": problem,
            "graph": graph,
        }))?;
    } else {
        shown.iter().for_each(|shown| eprintln!("{shown}"));
        warnings::tell(&warnings);
        let warnings = told + warnings.len();
        match plan {
            Some(plan) => print(format_args!(
                "{file}: valid ({}, {} deep{})\n",
                plural(plan.steps.len() as u64, "step"),
                plan.depth,
                if warnings > 0 {
                    format!(", {}", plural(warnings as u64, "warning"))
                } else {
                    String::new()
                },
            )),
            None => match below {
                Some(failure) => drop(failure.report()),
                None => eprintln!("{file}: {errors} error{}", if errors == 1 { "" } else { "s" }),
            },
        }
    }
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// Everything that can be said about a template before it runs.
#[derive(Debug)]
pub struct Validation {
    /// What is wrong with the text itself.
    pub shown: Vec<Shown>,
    pub warnings: Vec<warnings::Warning>,
    /// Only a valid template has one.
    pub plan: Option<Plan>,
    /// What is wrong with the things that it needs.
    pub below: Option<Failure>,
}

pub fn check(
    context: &Context,
    catalog: &Catalog,
    file: &str,
    mut frozen: Frozen,
    report: &mut dyn FnMut(&str, &Loaded, &str),
) -> Validation {
    let loaded = catalog.read(&mut frozen);
    let shown = loaded.show(file, &frozen.text);
    let ready = loaded.template.map(|template| check_below(context, catalog, template, frozen, report));
    let (warnings, plan, below) = match ready {
        Some(Ok(ready)) => (warnings::of_pools(context, &ready), Plan::new(ready.template).ok(), None),
        Some(Err(failure)) => (Vec::new(), None, Some(failure)),
        None => (Vec::new(), None, None),
    };
    Validation { shown, warnings, plan, below }
}

pub fn graph(plan: &Plan) -> Value {
    json!({"nodes": plan.steps.len(), "edges": plan.edges(), "depth": plan.depth})
}

/// What the template needs besides itself: templates that it uses, agents.
fn check_below(
    context: &Context,
    catalog: &Catalog,
    template: Template,
    frozen: Frozen,
    report: &mut dyn FnMut(&str, &Loaded, &str),
) -> Result<Ready, Failure> {
    let ready = catalog.complete(template, frozen, report)?;
    check_template(context, &ready)?;
    Ok(ready)
}
