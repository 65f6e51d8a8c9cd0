//! The runs of a feature by number: `cart@2` is the second run of `cart`, also when the first one is gone.

use super::{Engine, OpenError, Snapshot};

/// Fewer characters of an id would name too many runs.
const ID_CHARS: usize = 4;

/// Characters of an id's end that tell runs of one project apart.
pub const SHORT_ID_CHARS: usize = 6;

impl Engine {
    /// Runs of a feature that are still there, oldest first, each with its number.
    pub fn runs_of(&self, feature: &str) -> Result<Vec<(u32, String)>, OpenError> {
        let mut last = 0;
        let mut numbered = Vec::new();
        for run in self.run_ids()? {
            let Some(first) = self.first_of(&run).ok().flatten().filter(|it| it.feature == feature) else {
                continue;
            };
            last = first.number.unwrap_or(0).max(last + 1);
            numbered.push((last, run));
        }
        Ok(numbered)
    }

    pub(super) fn next_number(&self, feature: &str) -> Result<u32, OpenError> {
        let Some(latest) = self.find_latest(feature)? else { return Ok(1) };
        let counted = self.first_of(&latest).ok().flatten().and_then(|first| first.number);
        Ok(1 + match counted {
            Some(number) => number,
            None => self.runs_of(feature)?.last().map_or(1, |(number, _)| *number),
        })
    }

    /// The run that a person names by number (`cart@2`), by id or by the end of an id. `None` if `name` has none of
    /// these forms, or no run answers to it.
    pub fn find_run(&self, name: &str) -> Result<Option<(String, String)>, OpenError> {
        let numbered = name.rsplit_once('@').and_then(|(f, n)| Some((f, n.parse::<u32>().ok()?)));
        if let Some((feature, number)) = numbered {
            let run = self.runs_of(feature)?.into_iter().find(|(its, _)| *its == number);
            return Ok(run.map(|(_, run)| (feature.to_string(), run)));
        }
        let end = name.to_ascii_uppercase();
        let is_end = end.len() >= ID_CHARS && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_meant = |run: &String| run == name || (is_end && run.ends_with(&end));
        let mut found = self.run_ids()?.into_iter().filter(is_meant);
        let run = found.next().filter(|_| found.next().is_none());
        Ok(run.and_then(|run| self.feature_of(&run).map(|feature| (feature, run))))
    }

    /// The run that is meant where `typed` is not the name of a feature: `feature` is what that name would be.
    pub fn meant(&self, feature: &str, typed: &str) -> Result<Option<(String, String)>, OpenError> {
        if !typed.contains('@')
            && (self.find_latest(feature)?.is_some() || self.load_checkpoint(feature)?.is_some())
        {
            return Ok(None);
        }
        self.find_run(typed)
    }

    /// Reads what a person names: a feature's newest run, or a run by number or id.
    pub fn read_named(&self, feature: &str, typed: &str) -> Result<Snapshot, OpenError> {
        match self.meant(feature, typed)? {
            Some((feature, run)) => self.snapshot_of(&feature, &run),
            None => self.read(feature),
        }
    }
}
