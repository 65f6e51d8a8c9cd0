//! What a step does, as lines for `logs` and `attach`.
//!
//! ```text
//! I look at the tests first.            a message of the agent
//! > Bash cargo test                     a tool and its main argument
//! < Bash: test result: ok. 3 passed     what came of it
//! = 14.2k tokens, ~$0.04                what was used so far
//! # would try again in 300 ms           a remark of the adapter
//! @ use the other branch                a message of a person, when the agent was given it
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sage_agents::activity::{Entry, Reader, What};
use sage_core::event::Event;
use sage_core::run::{Run, State, StepId};
use sage_core::wire::rfc3339;
use sage_engine::project::Project;
use serde_json::Value;

use super::tail::News;
use super::text::{Line, Tone, cost_text, count_text};

pub(crate) fn of_entry(entry: &Entry) -> Vec<Line> {
    let one = |tone, text: String| vec![Line::of(tone, &text)];
    match &entry.what {
        What::Message { text } => text.trim_end().lines().map(|line| Line::of(Tone::Plain, line)).collect(),
        What::Tool { tool, input } => {
            let argument = if input.is_empty() { String::new() } else { format!(" {input}") };
            vec![Line::of(Tone::Dim, "> ").with(Tone::Busy, tool).with(Tone::Plain, &argument)]
        }
        What::Result { tool, text, failed: true } => one(Tone::Bad, format!("< {tool} failed: {text}")),
        What::Result { tool, text, .. } => one(Tone::Dim, format!("< {tool}: {text}")),
        What::Usage { tokens, cost_usd, cost_estimated } => {
            let cost = cost_usd.map(|cost| format!(", {}", cost_text(cost, *cost_estimated)));
            one(Tone::Dim, format!("= {} tokens{}", count_text(*tokens), cost.unwrap_or_default()))
        }
        What::Note { text } => text.lines().map(|line| Line::of(Tone::Dim, &format!("# {line}"))).collect(),
        What::Heard { text } => text.lines().map(|line| Line::of(Tone::Bold, &format!("@ {line}"))).collect(),
        What::Unknown => Vec::new(),
    }
}

/// The same for programs.
pub(crate) fn json_of_entry(step: &str, attempt: u32, entry: &Entry) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    value["type"] = "activity".into();
    value["step"] = step.into();
    value["attempt"] = attempt.into();
    value["at"] = rfc3339(entry.at).into();
    value
}

/// Follows the activity of all agents of a run.
#[derive(Debug)]
pub(crate) struct Watched {
    run_dir: PathBuf,
    /// Attempts that ended before this record are history.
    since_seq: u64,
    json: bool,
    readers: BTreeMap<(String, u32), Reader>,
}

impl Watched {
    pub fn new(run_dir: &Path, since_seq: u64, json: bool) -> Watched {
        Watched { run_dir: run_dir.to_path_buf(), since_seq, json, readers: BTreeMap::new() }
    }

    /// Before an event that ends an attempt is told, what the attempt did until then is.
    pub fn before(&mut self, news: &News<'_>, out: &mut String) {
        let step = match news.event {
            Event::StepFinished(it) => &it.step,
            Event::StepRetried(it) => &it.step,
            Event::StepParked(it) => &it.step,
            Event::StepFellBack(it) => &it.step,
            Event::StepPreempted(it) => &it.step,
            _ => return,
        };
        // It may have begun since the last look.
        if let Some(id) = news.run.find(step).filter(|_| news.record.seq > self.since_seq) {
            self.read(news.run, id, out);
        }
        self.readers.retain(|(path, _), _| **path != **step);
    }

    /// What is new since the last look.
    pub fn look(&mut self, run: &Run, out: &mut String) {
        for id in run.step_ids().filter(|&id| matches!(run.step(id).state, State::Running(_))) {
            self.read(run, id, out);
        }
    }

    fn read(&mut self, run: &Run, id: StepId, out: &mut String) {
        let (path, attempt) = (&run.step(id).path, run.step(id).attempts);
        let scratch = || Project::scratch(&self.run_dir, path, attempt.max(1));
        let key = (path.to_string(), attempt);
        let reader = self.readers.entry(key).or_insert_with(|| Reader::new(&scratch()));
        while let entries @ [_, ..] = reader.read().as_slice() {
            for entry in entries {
                match self.json {
                    true => {
                        let line = json_of_entry(path, attempt, entry).to_string();
                        out.push_str(&crate::say::json(&line));
                        out.push('\n');
                    }
                    false => tell(path, entry, out),
                }
            }
        }
    }
}

fn tell(path: &str, entry: &Entry, out: &mut String) {
    for line in of_entry(entry) {
        let line = Line::of(Tone::Plain, &format!("{path} | ")).joined(line);
        out.push_str(&line.render(super::Style::PLAIN));
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::Style;

    fn shown(what: What) -> Vec<String> {
        of_entry(&Entry { at: 0, what }).iter().map(|line| line.render(Style::PLAIN)).collect()
    }

    // covers: R8, R17
    #[test]
    fn every_kind_of_activity_is_a_readable_line() {
        assert_eq!(shown(What::Message { text: "one\ntwo\u{1b}[2J\n".into() }), ["one", "two"]);
        assert_eq!(shown(What::Tool { tool: "Bash".into(), input: "ls".into() }), ["> Bash ls"]);
        let result = |failed| What::Result { tool: "Bash".into(), text: "3 lines".into(), failed };
        assert_eq!(shown(result(false)), ["< Bash: 3 lines"]);
        assert_eq!(shown(result(true)), ["< Bash failed: 3 lines"]);
        let used = |cost_usd| What::Usage { tokens: 14_200, cost_usd, cost_estimated: true };
        assert_eq!(shown(used(Some(0.04))), ["= 14.2k tokens, ~$0.04"]);
        assert_eq!(shown(used(None)), ["= 14.2k tokens"]);
        assert_eq!(shown(What::Note { text: "again".into() }), ["# again"]);
        assert_eq!(shown(What::Heard { text: "a\nb".into() }), ["@ a", "@ b"]);
        assert!(shown(What::Unknown).is_empty());
    }
}
