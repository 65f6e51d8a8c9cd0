//! The newest run of every feature, found once for everything that asks about all of them.
//!
//! A checkpoint speaks for a run only if it shows the last record of its journal: then nothing has to be folded.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::Engine;
use super::find::{text, watermark};
use crate::journal;

/// What is kept of a checkpoint: all but results, which may be large.
const KEPT: [&str; 8] =
    ["metrics", "phase", "progress", "runId", "startedAt", "status", "template", "verdict"];

/// By feature.
pub type Index = BTreeMap<String, Newest>;

/// The newest run of a feature.
#[derive(Debug, Default)]
pub struct Newest {
    /// None if only the name of a checkpoint is left of it.
    pub run: Option<String>,
    /// What its checkpoint says, if that is all that its journal says.
    pub image: Option<Map<String, Value>>,
}

impl Newest {
    /// Whether it may be open: of a closed one the checkpoint says so.
    pub fn may_be_open(&self) -> bool {
        let status = self.image.as_ref().and_then(|image| image.get("status")?.as_str());
        status.is_none_or(|status| matches!(status, "running" | "paused"))
    }
}

#[derive(Default)]
struct Found {
    image: Option<Map<String, Value>>,
    /// Oldest first.
    runs: Vec<String>,
}

impl Engine {
    /// Features with a checkpoint or a journal, each with its newest run.
    pub fn index(&self) -> Index {
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        let mut named: HashMap<String, String> = HashMap::new();
        for name in self.vfs.list(&self.project.state()).unwrap_or_default() {
            let name = name.strip_suffix(".bak").unwrap_or(&name);
            let Some(feature) = name.strip_prefix("workflow-").and_then(|it| it.strip_suffix(".json")) else {
                continue;
            };
            if found.contains_key(feature) {
                continue;
            }
            let image = self.image(feature);
            let run = image.as_ref().and_then(|image| text(image, "runId"));
            named.extend(run.map(|run| (run, feature.to_string())));
            found.insert(feature.into(), Found { image, runs: Vec::new() });
        }
        for run in self.run_ids().unwrap_or_default() {
            if let Some(feature) = named.get(&run).cloned().or_else(|| self.feature_of(&run)) {
                found.entry(feature).or_default().runs.push(run);
            }
        }
        let newest = |(feature, found): (String, Found)| {
            let newest = self.newest_of(&feature, found);
            (feature, newest)
        };
        found.into_iter().map(newest).collect()
    }

    fn newest_of(&self, feature: &str, Found { image, runs }: Found) -> Newest {
        let named = image.as_ref().and_then(|image| text(image, "runId"));
        // One that cannot be read for the moment is told by whoever reads it.
        let newest = runs.last().cloned();
        let run = self.newest(feature, named, runs).unwrap_or(newest);
        let image = image.filter(|image| text(image, "runId") == run);
        Newest { image, run }
    }

    /// What the checkpoint of a feature says, if nothing came after it.
    fn image(&self, feature: &str) -> Option<Map<String, Value>> {
        let loaded = self.load_checkpoint(feature).ok().flatten()?;
        let run = self.named(feature, &loaded)?;
        let head = watermark(Some(&loaded), &run);
        let last = journal::last_head(self.vfs.as_ref(), &self.project.run_dir(&run));
        let mut doc = loaded.doc;
        doc.retain(|field, _| KEPT.contains(&field.as_str()));
        if head.is_none() || head != last {
            // It still names the run, and says nothing about how that went on.
            doc.retain(|field, _| field == "runId");
        }
        Some(doc)
    }
}
