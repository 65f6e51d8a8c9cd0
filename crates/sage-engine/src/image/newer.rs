//! Fields of a newer minor version in a checkpoint. This sage does not know them and keeps them as they are, with the
//! version, for the newer sage that wrote them.

use serde_json::{Map, Value};

use crate::checkpoint;

/// What this version writes into the document itself.
const KNOWN: &[&str] = &[
    "been",
    "calls",
    "checkpoints",
    "checksum",
    "decisions",
    "feature",
    "journal",
    "lastUpdatedAt",
    "metrics",
    "pauseReason",
    "phase",
    "progress",
    "runId",
    "startedAt",
    "started",
    "status",
    "template",
    "title",
    "until",
    "verdict",
    "version",
];

/// What it writes for each phase.
const KNOWN_OF_PHASE: &[&str] = &[
    "completedAt",
    "digests",
    "error",
    "failed",
    "metrics",
    "phaseId",
    "results",
    "standing",
    "status",
    "timestamp",
    "unfinished",
];

#[derive(Debug)]
pub(super) struct Newer {
    version: Value,
    fields: Map<String, Value>,
    phases: Vec<(String, Map<String, Value>)>,
}

impl Newer {
    /// What there is to keep of the run's last image; `None` if this version or an older one wrote it.
    pub fn of(doc: &Map<String, Value>) -> Option<Newer> {
        if !checkpoint::is_newer_minor(doc) {
            return None;
        }
        let phases = doc.get("checkpoints").and_then(Value::as_object).into_iter().flatten();
        let of_phase = |(id, phase): (&String, &Value)| {
            let unknown = unknown(phase.as_object()?, KNOWN_OF_PHASE);
            (!unknown.is_empty()).then(|| (id.clone(), unknown))
        };
        Some(Newer {
            version: doc.get("version").cloned().unwrap_or_default(),
            phases: phases.filter_map(of_phase).collect(),
            fields: unknown(doc, KNOWN),
        })
    }

    pub fn put_into(&self, image: &mut Map<String, Value>) {
        image.insert("version".into(), self.version.clone());
        image.extend(self.fields.clone());
        let Some(Value::Object(phases)) = image.get_mut("checkpoints") else { return };
        for (id, fields) in &self.phases {
            if let Some(Value::Object(phase)) = phases.get_mut(id) {
                phase.extend(fields.clone());
            }
        }
    }
}

fn unknown(object: &Map<String, Value>, known: &[&str]) -> Map<String, Value> {
    let unknown = object.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    // covers: R4
    #[test]
    fn unknown_fields_of_a_newer_minor_version_are_kept_and_no_others() {
        let doc = json!({
            "version": "1.7", "feature": "x", "futureField": [1], "status": "paused",
            "checkpoints": {"a": {"status": "completed", "weight": 3}, "gone": {"weight": 4}},
        });
        let newer = Newer::of(&map(doc.clone())).unwrap();
        let mut image =
            map(json!({"version": "1.0", "status": "running", "checkpoints": {"a": {"status": "failed"}}}));
        newer.put_into(&mut image);
        let expected = json!({
            "version": "1.7", "status": "running", "futureField": [1],
            "checkpoints": {"a": {"status": "failed", "weight": 3}},
        });
        assert_eq!(Value::Object(image), expected);
        for version in ["1.0", "0.9", "2.0", "1.x"] {
            let mut doc = map(doc.clone());
            doc.insert("version".into(), version.into());
            assert!(Newer::of(&doc).is_none(), "{version}");
        }
    }
}
