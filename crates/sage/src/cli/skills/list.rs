//! `sage skills list`: what there is, and what it was worth so far.

use std::process::ExitCode;

use sage_engine::skills::{Index, Listed};
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::table::print_table;
use super::super::{print, print_json};
use super::{approved_text, percent, row, tell_problems};
use crate::command_line;
use crate::display::text::clean;

pub fn execute(index: &Index, json: bool) -> Result<ExitCode, Failure> {
    if json {
        print_json(&self::json(index))?;
        return Ok(ExitCode::SUCCESS);
    }
    let reuse = index.reuse;
    tell_problems(index);
    if index.skills.is_empty() {
        eprintln!("no skills");
        command_line::tell("sage skills save FEATURE    # makes one of a run that succeeded");
        return Ok(ExitCode::SUCCESS);
    }
    table(&index.skills);
    for listed in index.skills.iter().filter(|listed| !listed.shadows.is_empty()) {
        let hidden: Vec<String> = listed.shadows.iter().map(|path| clean(&index.shown(path))).collect();
        eprintln!("note: `{}` of {} hides {}", listed.skill.name, listed.place, hidden.join(", "));
    }
    if let Some(rate) = reuse.rate() {
        let (reused, runs) = (reuse.reused, reuse.runs);
        print(format_args!(
            "reuse rate: {} ({reused} of {runs} runs that looked for skills)\n",
            percent(Some(rate))
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// As programs see it.
pub fn json(index: &Index) -> Value {
    let reuse = index.reuse;
    let rows: Vec<Value> = index.skills.iter().map(|listed| row(index, listed)).collect();
    let rate = json!({"runs": reuse.runs, "reused": reuse.reused, "rate": reuse.rate()});
    json!({"type": "skills", "skills": rows, "problems": index.problems, "reuse": rate})
}

fn table(skills: &[Listed]) {
    let heading = ["SKILL", "VERSION", "APPROVED", "REUSED", "SUCCESS", "FROM"].map(String::from);
    let from = |listed: &Listed| match &listed.meta {
        Some(meta) => format!("{} ({})", listed.place, clean(&meta.origin.run)),
        None => listed.place.clone(),
    };
    let rows: Vec<[String; 6]> = std::iter::once(heading)
        .chain(skills.iter().map(|listed| {
            [
                clean(&listed.skill.name),
                listed.version().to_string(),
                approved_text(listed).to_string(),
                listed.times.used.to_string(),
                percent(listed.times.success_rate()),
                from(listed),
            ]
        }))
        .collect();
    print_table(&rows);
}
