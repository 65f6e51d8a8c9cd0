//! Before a run: what its steps will need besides agents (R23). Found out now, it costs nothing; found out by the
//! last of twelve agents, it costs all their work.

use std::path::Path;

use sage_core::template::Operation;

use super::catalog::Ready;
use super::context::Context;
use super::doctor::{self, Check, State};
use super::failure::Failure;
use super::notes::Note;

/// Refuses what cannot end well; warns of what is only getting narrow.
pub fn before_run(context: &Context, ready: &Ready) -> Result<Vec<Note>, Failure> {
    let disk = doctor::disk(context);
    let mut notes = Vec::new();
    match disk.state {
        State::Bad => {
            return Err(refused(format!("there is no room for the run's state: {}", disk.says), &disk));
        }
        State::Warn => notes.push(Note::warning(format!("disk: {}", disk.says))),
        State::Good => {}
    }
    for (path, operation) in operations(ready) {
        if let Some(output) = &operation.output {
            check_output(&context.project.root, &path, &output.text)?;
        }
    }
    Ok(notes)
}

fn operations(ready: &Ready) -> impl Iterator<Item = (String, &Operation)> {
    let templates = ready.inner.iter().chain([&ready.template]);
    templates.flat_map(|template| &template.phases).flat_map(|phase| {
        phase.operations.iter().map(move |operation| (format!("{}/{}", phase.id, operation.id), operation))
    })
}

/// The folder as far as it is known before anything is filled in.
fn check_output(root: &Path, path: &str, output: &str) -> Result<(), Failure> {
    let known = output.split("{{").next().unwrap_or_default();
    let folder = known.rsplit_once('/').map_or("", |(folder, _)| folder);
    doctor::writable(&root.join(folder)).map_err(|why| {
        let shown = if folder.is_empty() { "." } else { folder };
        Failure::usage(format!("step `{path}` writes to `{shown}`, where nobody can write: {why}"))
            .hint(format!("chmod u+rwx {shown}"))
    })
}

fn refused(message: String, check: &Check) -> Failure {
    check.hints.iter().fold(Failure::usage(message), |failure, hint| failure.hint(hint.clone()))
}
