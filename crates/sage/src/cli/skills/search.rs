//! `sage skills search`: how near each skill is to what somebody is about to do.

use std::process::ExitCode;

use sage_core::skill::{BY_ITSELF, SHOWN, similarity};
use sage_engine::skills::{Index, Listed};
use serde_json::{Map, Value, json};

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::{offline, print, print_json};
use super::{row, tell_problems};
use crate::command_line;
use crate::display::text::clean;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What you are about to do, e.g. "payment processing"
    text: String,
    /// Give what the operation skills.discover gives: what steps are offered, what is used by itself (JSON)
    #[arg(long)]
    discover: bool,
}

pub fn execute(context: &Context, index: &Index, args: Args, json: bool) -> Result<ExitCode, Failure> {
    if args.discover {
        let found = offline::skills::discover(&context.project.root, &args.text, &Map::new());
        print_json(&found.map_err(Failure::failed)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if json {
        print_json(&self::json(index, &args.text))?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = found(index, &args.text);
    tell_problems(index);
    if found.is_empty() {
        eprintln!("none of {} skills has anything in common with it", index.skills.len());
        command_line::tell("sage skills list");
    }
    for (near, listed) in found {
        let what = how(near, listed);
        print(format_args!("{near:.2}  {}  {what}\n", clean(&listed.skill.name)));
        print(format_args!("      {}\n", clean(&listed.skill.description)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The nearest first, without those that have nothing in common with it.
fn found<'a>(index: &'a Index, text: &str) -> Vec<(f64, &'a Listed)> {
    let near = |listed: &Listed| similarity(text, "", &listed.skill);
    let mut found: Vec<(f64, &Listed)> =
        index.skills.iter().map(|listed| (near(listed), listed)).filter(|(near, _)| *near > 0.0).collect();
    found.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.skill.name.cmp(&other.skill.name)));
    found
}

/// As programs see it.
pub fn json(index: &Index, text: &str) -> Value {
    let rows: Vec<Value> =
        found(index, text).iter().map(|(near, listed)| hit(index, *near, listed)).collect();
    json!({"type": "skills", "text": text, "skills": rows, "total": index.skills.len()})
}

fn hit(index: &Index, near: f64, listed: &Listed) -> Value {
    let mut row = row(index, listed);
    row["similarity"] = near.into();
    row["shown"] = (near >= SHOWN).into();
    row["usedByItself"] = (near >= BY_ITSELF && listed.approved()).into();
    row
}

fn how(near: f64, listed: &Listed) -> &'static str {
    match () {
        () if near < SHOWN => "too far away to be shown to steps",
        () if near < BY_ITSELF => "shown to steps",
        () if listed.approved() => "used by itself",
        () => "shown to steps; used by itself once it is approved",
    }
}
