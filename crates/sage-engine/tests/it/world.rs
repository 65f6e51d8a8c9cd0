//! A world for the engine: a disk that can lose power, a clock that only moves when nothing else does, and
//! steps that count how often they run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sage_core::event::{Event, Frozen, Settings};
use sage_core::price::PriceTable;
use sage_core::run::Run;
use sage_core::seal::Key;
use sage_core::source::Format;
use sage_engine::cache::{Cache, CacheConfig};
use sage_engine::clock::Clock;
use sage_engine::inbox::Inbox;
use sage_engine::journal;
use sage_engine::limits::{Limits, LimitsConfig};
use sage_engine::open::{Engine, OpenError, Owned, ResumeRequest, Resumed, StartRequest};
use sage_engine::project::Project;
use sage_engine::run_loop::CommitMode;
use sage_engine::vfs::Vfs;
use serde_json::Map;

use crate::script::{Scripted, Steps};

/// Of the user whose world it is.
pub fn key() -> Key {
    Key::new(&[7; 32])
}

pub struct World {
    pub vfs: Arc<dyn Vfs>,
    pub steps: Arc<Steps>,
    pub parallel: u32,
    pub commit: CommitMode,
    pub limits: Limits,
    /// Whom runs tell; nobody, unless a test asks for it.
    pub wakes: Option<Inbox>,
    /// Results are kept for later runs.
    pub cache: bool,
    pub cache_config: CacheConfig,
    /// Somebody could be asked about old results.
    pub asks: bool,
    /// Where the world's time stands between its lives.
    now_ms: AtomicU64,
    clock: Mutex<Option<Clock>>,
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
            wakes: None,
            cache: false,
            cache_config: CacheConfig::default(),
            asks: false,
            now_ms: AtomicU64::new(1_000_000),
            clock: Mutex::default(),
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
            key: Some(key()),
            accepts_foreign: false,
            executor: Arc::new(Scripted(self.steps.clone())),
            clock: match self.commit {
                CommitMode::Inline => {
                    self.clock.lock().unwrap().clone().unwrap_or_else(|| fresh_clock(1_000_000))
                }
                CommitMode::Thread => Clock::System,
            },
            commit: self.commit,
            limits: self.limits.clone(),
            affinity: Arc::new([]),
            prices: Arc::new(PriceTable::built_in()),
            min_free_bytes: 0,
            evaluator: Arc::new(sage_core::port::Unguarded),
            scripts: None,
            script_limits: Default::default(),
            approvals: Default::default(),
            wakes: self.wakes.clone(),
            cache: self.cache.then(|| {
                let mut cache =
                    Cache::new(self.vfs.clone(), root.join(".sage/cache"), self.cache_config, Some(key()));
                cache.asks = self.asks;
                cache
            }),
            sweep: |_| (Vec::new(), Vec::new()),
        }
    }

    pub fn root(&self) -> &std::path::Path {
        self.lock_dir.path()
    }

    /// Time goes by, and nothing happens.
    pub fn wait(&self, ms: u64) {
        self.live(async || tokio::time::sleep(Duration::from_millis(ms)).await);
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

    /// A stretch of time that goes on where the last one ended. Whatever is still at work at its end is gone.
    pub fn live<T>(&self, work: impl AsyncFnOnce() -> T) -> T {
        simulate(async {
            let clock = fresh_clock(self.now_ms.load(Ordering::Relaxed));
            *self.clock.lock().unwrap() = Some(clock.clone());
            *self.steps.clock.lock().unwrap() = Some(clock.clone());
            let result = work().await;
            self.now_ms.store(clock.now_ms(), Ordering::Relaxed);
            *self.clock.lock().unwrap() = None;
            result
        })
    }

    pub fn now_ms(&self) -> u64 {
        match &*self.clock.lock().unwrap() {
            Some(clock) => clock.now_ms(),
            None => self.now_ms.load(Ordering::Relaxed),
        }
    }

    /// Starts a run and drives it to its end or pause.
    pub fn run(&self, text: &str) -> Run {
        self.live(async || self.start(text).unwrap().drive().await.unwrap())
    }

    pub fn go_on(&self) -> Run {
        self.live(async || match self.resume().unwrap() {
            Ok(owned) => owned.drive().await.unwrap(),
            Err(run) => *run,
        })
    }

    /// Drives a run for so long, then kills it. `Ok` if it came to an end before.
    pub async fn kill_after(&self, owned: Owned, ms: u64) -> Option<Run> {
        let end = tokio::time::timeout(Duration::from_millis(ms), owned.drive()).await;
        end.ok().map(Result::unwrap)
    }

    /// All that the journal of a feature's newest run says, with its times.
    pub fn events_of(&self, feature: &str) -> Vec<(u64, Event)> {
        let run = simulate(async { self.engine().latest(feature) }).unwrap();
        let dir = Project::new(self.lock_dir.path().into(), self.lock_dir.path().join(".sage")).run_dir(&run);
        let mut events = Vec::new();
        let read = journal::check(self.vfs.as_ref(), &dir, None, |record| -> Result<(), OpenError> {
            events.push((record.ts_ms, Event::parse(record.kind, record.data)?));
            Ok(())
        });
        read.unwrap();
        events
    }

    pub fn events(&self) -> Vec<(u64, Event)> {
        self.events_of("f")
    }

    pub fn begun(&self, path: &str) -> u32 {
        self.steps.begun.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

/// Random enough, and the same every time.
pub struct Random(pub u64);

impl Random {
    /// 0 to `limit` - 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn fresh_clock(start_ms: u64) -> Clock {
    Clock::Simulated { start_ms, since: tokio::time::Instant::now() }
}

pub fn frozen(name: &str, text: &str) -> Frozen {
    Frozen::new(name, Format::Yaml, text)
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
