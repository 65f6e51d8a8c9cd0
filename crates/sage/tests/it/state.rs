//! The state of a project under faults: removed, moved, damaged, garbled, answered twice, on a machine without room.

mod answers;
mod displaced;
mod mended;
mod trouble;
mod verified;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::dsl::Sage;

/// A step, a question and a step that uses both; the first one's result is a blob.
const ASKED: &str = r#"
name: t
phases:
  - id: a
    operations:
      - { id: big, type: shell, params: { run: "echo big >> ran; head -c 100000 /dev/zero | tr '\\0' y" } }
      - { id: small, type: shell, params: { run: "echo small >> ran; echo small" } }
  - id: b
    dependencies: [a]
    operations: { id: use, type: shell, params: { run: "echo use >> ran; cat $SAGE_INPUT | wc -c" } }
  - id: c
    dependencies: [b]
    operations: { id: ask, type: approval, params: { message: "go on?" } }
  - id: d
    dependencies: [c]
    operations: { id: end, type: shell, params: { argv: [echo, '{{ steps["a/big"].result.stdout | length }}'] } }
"#;

/// A run that waits for an answer.
struct Asked {
    sage: Sage,
    dir: PathBuf,
}

impl Asked {
    fn new() -> Asked {
        let sage = Sage::new().template("t", ASKED);
        sage.sage("run x -t t").exit(4);
        let dir = sage.latest_dir("x");
        Asked { sage, dir }
    }

    /// The same, answered and over.
    fn finished() -> Asked {
        let asked = Asked::new();
        asked.sage.sage("approve x").exit(0);
        asked.sage.sage("resume x").exit(0);
        asked
    }

    fn journal(&self) -> PathBuf {
        self.dir.join("journal.jsonl")
    }

    fn checkpoint(&self) -> PathBuf {
        self.sage.path(".sage/state/workflow-x.json")
    }

    fn backup(&self) -> PathBuf {
        self.sage.path(".sage/state/workflow-x.json.bak")
    }

    /// The large result; the checkpoint may have blobs of its own.
    fn blob(&self) -> PathBuf {
        let journal = std::fs::read_to_string(self.journal()).unwrap();
        let named = |path: &PathBuf| journal.contains(path.file_name().unwrap().to_str().unwrap());
        let blobs = std::fs::read_dir(self.dir.join("blobs")).unwrap().map(|entry| entry.unwrap().path());
        blobs.filter(|path| path.metadata().unwrap().len() > 90_000).find(named).unwrap()
    }

    fn ran(&self) -> Vec<String> {
        let mut ran = self.sage.lines("ran");
        ran.sort();
        ran
    }

    fn doc(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.checkpoint()).unwrap()).unwrap()
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x01;
    std::fs::write(path, bytes).unwrap();
}
