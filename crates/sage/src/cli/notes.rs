//! Notes and warnings: printed for people, part of the answer for MCP clients.

use std::fmt;

use sage_engine::open::Notice;

use crate::command_line::{here, sage};

/// Steps that a note names.
const NAMED: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    is_warning: bool,
    text: String,
    hint: Option<String>,
}

impl Note {
    pub fn new(text: impl Into<String>) -> Note {
        Note { is_warning: false, text: text.into(), hint: None }
    }

    pub fn warning(text: impl Into<String>) -> Note {
        Note { is_warning: true, text: text.into(), hint: None }
    }

    pub fn hint(self, hint: impl Into<String>) -> Note {
        Note { hint: Some(hint.into()), ..self }
    }

    fn level(&self) -> &'static str {
        if self.is_warning { "warning" } else { "note" }
    }

    /// On one line, for programs.
    pub fn line(&self) -> String {
        let hint = self.hint.as_ref().map_or(String::new(), |hint| format!(" (hint: {})", here(hint)));
        format!("{}: {}{hint}", self.level(), self.text)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.level(), self.text)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {}", here(hint)))
    }
}

/// On stderr, for people.
pub fn print(notes: &[Note]) {
    notes.iter().for_each(|note| eprintln!("{note}"));
}

/// What taking or starting a run has found.
pub fn of_notices(notices: &[Notice]) -> Vec<Note> {
    notices.iter().flat_map(of_notice).collect()
}

fn of_notice(notice: &Notice) -> Vec<Note> {
    let note = |text: String| vec![Note::new(text)];
    match notice {
        Notice::TookOver { pid, why } => note(format!("took over the run from process {pid}: {why}")),
        Notice::TornTail { bytes, saved_to } => note(format!(
            "the journal ended in {bytes} bytes that were never acknowledged; kept in `{}`",
            saved_to.display()
        )),
        Notice::Killed(pids) => {
            let few = if pids.len() == 1 { "process" } else { "processes" };
            note(format!("ended {} {few} of the earlier owner", pids.len()))
        }
        Notice::NoCache(why) => note(format!("running without the cache: {why}")),
        Notice::Drifted { feature, steps } => {
            let (few, more) = steps.split_at(steps.len().min(NAMED));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            let text = format!(
                "the agent or the input files of finished steps have changed: {}{more}",
                few.join(", ")
            );
            let again = sage("resume").arg(feature).arg("--refresh").comment("runs them again");
            vec![Note::new(text).hint(again)]
        }
        Notice::Rechecked(steps) => {
            note(format!("files of the project changed; these checks are made again: {}", steps.join(", ")))
        }
        Notice::CheckpointFromBackup(why) => note(format!("used the backup of the checkpoint: {why}")),
        Notice::Repaired(repaired) => {
            let head = Note::warning(format!("{}; repaired the run from what is left", repaired.why));
            let lines = super::repair::lines(repaired).into_iter().map(Note::warning);
            std::iter::once(head).chain(lines).collect()
        }
        Notice::CheckpointWritten(why) => note(format!("wrote the checkpoint anew: {why}")),
        Notice::ResultsLost(steps) => vec![Note::warning(format!(
            "results are missing or damaged; these steps run again: {}",
            steps.join(", ")
        ))],
    }
}
