//! Rows of a workflow in code: what it has called, by group and name. Many of one name are one row.

use std::collections::HashMap;

use sage_core::run::{Run, State, StepId};

use super::rows::{Rank, Row, Rows};
use super::text::Tone;

impl Rows<'_> {
    pub(super) fn calls(&mut self, script: StepId, steps: &[StepId], indent: usize) {
        let mut names: Vec<(String, Vec<StepId>)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for &id in steps {
            let name = self.call_name(script, id);
            let at = *known.entry(name.clone()).or_insert(names.len());
            if at == names.len() {
                names.push((name, Vec::new()));
            }
            names[at].1.push(id);
        }
        for (name, ids) in names {
            match ids.as_slice() {
                [one] => self.one_call(*one, name, indent),
                many => {
                    let row = self.many_calls(script, name, many, indent);
                    self.rows.push(row);
                    self.fan_troubles(many, indent + 1);
                }
            }
        }
    }

    fn one_call(&mut self, id: StepId, name: String, indent: usize) {
        let (rank, left) = self.weight(id);
        if self.is_enough() && rank >= Rank::Waiting {
            self.leave_out(left);
        } else if self.run.step(id).children.is_some() {
            self.step(id, indent);
        } else {
            self.leaf(id, name, indent);
        }
    }

    fn many_calls(&self, script: StepId, name: String, ids: &[StepId], indent: usize) -> Row {
        let mut row = self.fan_row(script, ids, indent);
        let open = ids.iter().any(|&id| !self.run.shown_state(id).settled());
        let failed = ids.iter().any(|&id| matches!(self.run.step(id).state, State::Failed));
        row.sign = match (open, failed) {
            (true, _) if ids.iter().any(|&id| self.run.is_at_work(id)) => self.spinner(),
            (true, _) => (Tone::Dim, "◌"),
            (false, true) => (Tone::Warn, "!"),
            (false, false) => (Tone::Good, "✓"),
        };
        row.name = (Tone::Plain, name);
        row.rank = if open { Rank::Running } else { Rank::Done };
        row
    }

    /// Without what all calls of the script have before them.
    fn call_name(&self, script: StepId, id: StepId) -> String {
        let (own, path) = (&self.run.step(script).path, &self.run.step(id).path);
        let prefix = &self.run.scope(self.run.step(script).scope).prefix;
        let rest = path.strip_prefix(&format!("{own}/")).or_else(|| path.strip_prefix(&**prefix));
        Run::path_without_index(rest.unwrap_or(path))
    }
}
