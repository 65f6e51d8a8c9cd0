//! A place to measure in: a directory on the project's own disk, gone afterwards.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_agents::{Executor, ExecutorConfig};
use sage_core::event::{Frozen, Settings};
use sage_core::price::PriceTable;
use sage_core::run::Run;
use sage_core::source::Format;
use sage_engine::clock::Clock;
use sage_engine::limits::{Limits, LimitsConfig};
use sage_engine::open::{Engine, StartRequest};
use sage_engine::project::Project;
use sage_engine::run_loop::CommitMode;
use sage_engine::vfs::DiskFs;
use serde_json::Map;

use crate::cli::context::runtime;
use crate::cli::failure::Failure;

#[derive(Debug)]
pub struct World {
    root: PathBuf,
    pub disk: Arc<DiskFs>,
}

impl World {
    pub fn new(project: &Path) -> Result<World, Failure> {
        let root = project.join(format!(".sage-bench-{}", ulid::Ulid::generate()));
        std::fs::create_dir_all(&root)?;
        Ok(World { root, disk: DiskFs::new() })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn engine(&self) -> Engine {
        Engine {
            project: Project::new(self.root.clone(), self.root.join(".sage")),
            vfs: self.disk.clone(),
            // Sealing is part of what is measured.
            key: Some(sage_core::seal::Key::new(&[0; sage_core::seal::KEY_LEN])),
            accepts_foreign: false,
            executor: Arc::new(Executor::new(ExecutorConfig::default())),
            clock: Clock::System,
            commit: CommitMode::Thread,
            limits: Limits::alone(LimitsConfig::default()),
            affinity: Arc::new([]),
            prices: Arc::new(PriceTable::built_in()),
            min_free_bytes: 0,
            approvals: Default::default(),
            wakes: None,
            cache: None,
            evaluator: Arc::new(sage_core::port::Unguarded),
            scripts: None,
            script_limits: Default::default(),
            sweep: |_| (Vec::new(), Vec::new()),
        }
    }

    pub fn request(&self, feature: &str, template: String, parallel: u32) -> StartRequest {
        StartRequest {
            feature: feature.into(),
            title: feature.into(),
            template: Frozen::new("bench", Format::Json, template),
            templates: Vec::new(),
            inputs: Map::new(),
            settings: Settings { parallel, ..Settings::default() },
            replace: false,
            no_wait: false,
        }
    }

    /// Runs a template to its end or pause.
    pub fn run(&self, feature: &str, template: String, parallel: u32) -> Result<Run, Failure> {
        let owned = self.engine().start(self.request(feature, template, parallel))?;
        Ok(runtime()?.block_on(owned.drive())?)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What cannot be removed is named like a measurement and hurts nobody.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// One phase of `n` steps that do nothing, each after the one before or all at once.
pub fn no_ops(n: usize, chain: bool) -> String {
    use std::fmt::Write;
    let mut text = String::from(r#"{"name":"bench","phases":[{"id":"p","operations":["#);
    for i in 0..n {
        let needs = if chain && i > 0 { format!(r#","needs":["s{}"]"#, i - 1) } else { String::new() };
        let comma = if i > 0 { "," } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, r#"{comma}{{"id":"s{i}","type":"sleep","params":{{"ms":0}}{needs}}}"#);
    }
    text + "]}]}"
}
