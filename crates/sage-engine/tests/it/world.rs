//! A world for the engine: a disk that can lose power, a clock that only moves when nothing else does, and
//! steps that count how often they run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sage_core::event::{Frozen, Settings};
use sage_core::policy::FailureClass;
use sage_core::port::{BoxFuture, StepCall, StepCx, StepExecutor, StepOutcome, Stop, Usage};
use sage_core::price::PriceTable;
use sage_core::run::Run;
use sage_core::source::Format;
use sage_engine::clock::Clock;
use sage_engine::limits::{Limits, LimitsConfig};
use sage_engine::open::{Engine, OpenError, Owned, ResumeRequest, Resumed, StartRequest};
use sage_engine::project::Project;
use sage_engine::run_loop::CommitMode;
use sage_engine::vfs::Vfs;
use serde_json::{Map, Value, json};

/// Runs `shell` steps without a shell: `run` is a tiny language of `ms=30`, `fail`, `fail<3`, `hang`.
#[derive(Debug, Default)]
pub struct Steps {
    /// Path -> attempts that were begun and that came to an end.
    pub begun: Mutex<BTreeMap<String, u32>>,
    pub ended: Mutex<BTreeMap<String, u32>>,
}

/// The executor over shared counters.
struct Scripted(Arc<Steps>);

impl StepExecutor for Scripted {
    fn execute(&self, cx: StepCx, call: StepCall) -> BoxFuture<'static, StepOutcome> {
        let steps = self.0.clone();
        Box::pin(async move {
            *steps.begun.lock().unwrap().entry(call.path.clone()).or_default() += 1;
            let script = call.params.get("run").and_then(Value::as_str).unwrap_or_default().to_string();
            let word =
                |name: &str| script.split_whitespace().find_map(|w| w.strip_prefix(name).map(str::to_string));
            let ms = word("ms=").and_then(|ms| ms.parse().ok()).unwrap_or(0);
            let wait =
                if script.contains("hang") { Duration::from_secs(86_400) } else { Duration::from_millis(ms) };
            let stopped = tokio::select! {
                () = tokio::time::sleep(wait) => false,
                () = cx.stop.reached(Stop::Graceful) => true,
            };
            let usage = Usage::default();
            if stopped {
                return StepOutcome::Stopped { usage };
            }
            *steps.ended.lock().unwrap().entry(call.path.clone()).or_default() += 1;
            let failing = match word("fail<") {
                Some(limit) => call.attempt < limit.parse().unwrap_or(0),
                None => script.split_whitespace().any(|w| w == "fail"),
            };
            if failing {
                let message = format!("attempt {} failed", call.attempt);
                return StepOutcome::Failed {
                    class: FailureClass::Failed,
                    message,
                    partial: None,
                    usage,
                    refusal: None,
                };
            }
            let item = call.input.get("item").cloned().unwrap_or(Value::Null);
            let env = call.params.get("env").cloned().unwrap_or(Value::Null);
            StepOutcome::Succeeded { result: json!({"stdout": script, "item": item, "env": env}), usage }
        })
    }
}

pub struct World {
    pub vfs: Arc<dyn Vfs>,
    pub steps: Arc<Steps>,
    pub parallel: u32,
    pub commit: CommitMode,
    pub limits: Limits,
    templates: Vec<Frozen>,
    lock_dir: tempfile::TempDir,
}

impl World {
    pub fn new(vfs: Arc<dyn Vfs>) -> World {
        // Locks are the kernel's: they live in a real directory of the same shape.
        let lock_dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(lock_dir.path().join(".sage/state")).unwrap();
        World {
            limits: Limits::alone(LimitsConfig::default()),
            vfs,
            steps: Arc::default(),
            parallel: 4,
            commit: CommitMode::Inline,
            templates: Vec::new(),
            lock_dir,
        }
    }

    pub fn with(mut self, name: &str, text: &str) -> World {
        self.templates.push(frozen(name, text));
        self
    }

    pub fn engine(&self) -> Engine {
        let root: PathBuf = self.lock_dir.path().into();
        Engine {
            project: Project::new(root.clone(), root.join(".sage")),
            vfs: self.vfs.clone(),
            executor: Arc::new(Scripted(self.steps.clone())),
            clock: match self.commit {
                CommitMode::Inline => {
                    Clock::Simulated { start_ms: 1_000_000, since: tokio::time::Instant::now() }
                }
                CommitMode::Thread => Clock::System,
            },
            commit: self.commit,
            limits: self.limits.clone(),
            affinity: Arc::new([]),
            prices: Arc::new(PriceTable::built_in()),
            min_free_bytes: 0,
            sweep: |_| (Vec::new(), Vec::new()),
        }
    }

    pub fn request(&self, text: &str) -> StartRequest {
        StartRequest {
            feature: "f".into(),
            title: "F".into(),
            template: frozen("main", text),
            templates: self.templates.clone(),
            inputs: Map::new(),
            settings: Settings { parallel: self.parallel, ..Settings::default() },
            replace: false,
            no_wait: false,
        }
    }

    pub fn start(&self, text: &str) -> Result<Owned, OpenError> {
        self.engine().start(self.request(text))
    }

    /// `Err(run)` if there is nothing left to do.
    pub fn resume(&self) -> Result<Result<Owned, Box<Run>>, OpenError> {
        self.resume_with(ResumeRequest::default())
    }

    pub fn resume_with(&self, request: ResumeRequest) -> Result<Result<Owned, Box<Run>>, OpenError> {
        Ok(match self.engine().resume("f", request)? {
            Resumed::Owned(owned) => Ok(*owned),
            Resumed::Complete { run, .. } => Err(run),
        })
    }

    pub fn edit(&self, text: &str) -> ResumeRequest {
        let edit = sage_core::event::RunEdited {
            template: frozen("main", text),
            templates: self.templates.clone(),
            inputs: Map::new(),
        };
        ResumeRequest { edit: Some(edit), ..ResumeRequest::default() }
    }

    pub fn begun(&self, path: &str) -> u32 {
        self.steps.begun.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

pub fn frozen(name: &str, text: &str) -> Frozen {
    Frozen { name: name.into(), file: None, format: Format::Yaml, text: text.into() }
}

/// Runs a future on a runtime whose clock moves only when everything waits.
pub fn simulate<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

/// Path -> state of every step, and the run's results as JSON.
pub fn states(run: &Run) -> BTreeMap<String, &'static str> {
    run.steps.iter().map(|step| (step.path.to_string(), step.state.name())).collect()
}
