//! The command line: `codex <the user's words> exec [resume|fork] --json <settings> [thread] -`.

use std::ffi::OsString;

use sage_core::port::FileKind;

use super::prompt::Prompt;
use super::{PROGRAM, mcp, retry_log, sandbox};
use crate::agent::{Conversation, Order, effort};
use crate::attempt::Attempt;
use crate::outcome::Miss;
use crate::prompt_files;

pub fn site<'a>(attempt: &'a Attempt<'_>, order: &'a Order) -> sandbox::Site<'a> {
    sandbox::Site { project: &attempt.cx.project, cwd: &order.cwd, private: &attempt.config.private }
}

/// `logs`: codex tells in its log how long it waits.
pub fn of(attempt: &Attempt<'_>, order: &Order, prompt: &Prompt, logs: bool) -> Result<Vec<OsString>, Miss> {
    let mut argv = order.config.argv(PROGRAM);
    let (command, thread): (&[&str], _) = match &order.conversation {
        Conversation::New { .. } => (&["exec"], None),
        Conversation::Resume { id, .. } => (&["exec", "resume"], Some(id)),
        Conversation::Fork { of, .. } => (&["exec", "fork"], Some(of)),
    };
    argv.extend(command.iter().chain(&["--json", "--skip-git-repo-check"]).map(OsString::from));
    argv.extend(order.model.iter().flat_map(|model| ["-m".into(), OsString::from(model)]));
    let site = site(attempt, order);
    sandbox::make_folders(&order.access, site);
    let mut settings = sandbox::settings(&order.access, site, attempt.call.allow);
    settings.extend(mcp::settings(&order.mcp_servers, order.access)?);
    settings.extend(logs.then(retry_log::setting));
    let effort = order.effort.as_deref().and_then(|wanted| effort::nearest(wanted, effort::OPENAI));
    settings.extend(effort.map(|effort| format!("model_reasoning_effort={effort:?}")));
    settings
        .extend(prompt.developer_instructions.iter().map(|text| format!("developer_instructions={text}")));
    argv.extend(settings.into_iter().flat_map(|setting| ["-c".into(), OsString::from(setting)]));
    if let Some(schema) = order.schema.as_ref().filter(|_| prompt.decodes_schema) {
        let file = attempt.write("schema.json", schema.to_string().as_bytes())?;
        argv.extend(["--output-schema".into(), file.into()]);
    }
    for (number, file) in order.files.iter().enumerate().filter(|(_, file)| file.kind == FileKind::Image) {
        let mut image = OsString::from("--image=");
        image.push(prompt_files::copy(&attempt.cx.scratch, number, file));
        argv.push(image);
    }
    argv.extend(thread.map(OsString::from));
    // The prompt is read from the input: it may be longer than an argument, and nobody sees it in `ps`.
    argv.push("-".into());
    Ok(argv)
}
