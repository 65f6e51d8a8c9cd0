//! `sage skills show`: one skill with everything that is known of it.

use std::process::ExitCode;

use sage_engine::skills::{Content, Index, Listed};
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::{print, print_json};
use super::{approved_text, failure, known_secrets, percent, row, tell_problems};
use crate::command_line::{sage, tell};
use crate::display::text::{clean, plural};

pub fn execute(index: &Index, name: &str, json: bool) -> Result<ExitCode, Failure> {
    let listed = index.find(name).map_err(|error| {
        tell_problems(index);
        failure(error)
    })?;
    if json {
        print_json(&self::json(index, listed)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let content = Content::read(&listed.dir).map_err(failure)?;
    let looked = content.look_through(&known_secrets()).map_err(failure)?;
    head(index, listed, &content);
    for line in listed.skill.body.lines() {
        print(format_args!("{}\n", clean(line)));
    }
    if !looked.findings.is_empty() {
        eprintln!("note: found in it:{}", super::finding_lines(&looked.findings));
    }
    if !listed.approved() {
        tell(sage("skills approve").arg(name));
    }
    Ok(ExitCode::SUCCESS)
}

/// As programs see it.
pub fn json(index: &Index, listed: &Listed) -> Result<Value, Failure> {
    let content = Content::read(&listed.dir).map_err(failure)?;
    let looked = content.look_through(&known_secrets()).map_err(failure)?;
    let mut value = row(index, listed);
    value["type"] = "skill".into();
    value["text"] = content.skill_text().into();
    value["files"] = json!(content.files);
    value["bytes"] = content.bytes.into();
    value["sha"] = content.sha.to_string().into();
    value["findings"] = json!(looked.findings);
    value["unread"] = json!(looked.unread);
    Ok(value)
}

fn head(index: &Index, listed: &Listed, content: &Content) {
    let (skill, times) = (&listed.skill, listed.times);
    print(format_args!("{}  version {}\n", clean(&skill.name), listed.version()));
    print(format_args!("{}\n\n", clean(&skill.description)));
    let files = plural(content.files.len() as u64, "file");
    print(format_args!(
        "path      {} ({files}, {} bytes)\n",
        clean(&index.shown(&listed.file())),
        content.bytes
    ));
    let by =
        listed.approval.as_ref().map(|it| format!(", by {} at {}", clean(&it.by), it.at)).unwrap_or_default();
    print(format_args!("approved  {}{by}\n", approved_text(listed)));
    print(format_args!(
        "reused    {} (offered {}, success {})\n",
        plural(times.used, "time"),
        plural(times.offered, "time"),
        percent(times.success_rate())
    ));
    if !skill.tags.is_empty() {
        print(format_args!("tags      {}\n", clean(&skill.tags.join(", "))));
    }
    if let Some(meta) = &listed.meta {
        let origin = &meta.origin;
        print(format_args!(
            "from      {} of `{}` at {}\n",
            clean(&origin.run),
            clean(&origin.feature),
            meta.created
        ));
    }
    print("\n");
}
