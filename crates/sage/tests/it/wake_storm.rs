//! 1,000 wakes from 50 writer processes, while writers and the deliverer are killed at random moments.
//!
//! A writer is restarted with what was not acknowledged; so the last one it wrote may be posted twice. Then: every
//! wake whose post said so is handled, each once, in the order of its sender; nothing is dead, nothing is left.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::dsl::{Random, Sage, long};
use crate::inbox::inbox;

const WRITERS: u64 = 50;
const EACH: usize = 20;
/// At least so many, unless they get done before.
const DELIVERER_KILLS: u32 = 60;

struct Storm {
    sage: Sage,
    writing: AtomicBool,
    writer_kills: AtomicU32,
    deliverer_kills: AtomicU32,
    deliverers: AtomicU32,
}

impl Storm {
    /// Posts all wakes of one sender, through as many deaths as it takes. Gives the acknowledged ids.
    fn write(&self, writer: u64, seed: u64) -> Vec<String> {
        let mut random = Random::new(seed * 1_000 + writer);
        let mut acknowledged: Vec<String> = Vec::new();
        // Each writer has its share of deaths; then it is left alone.
        let mut lives = 3;
        while acknowledged.len() < EACH {
            let line = |n: usize| {
                format!(
                    "{{\"wakeId\":\"w{writer}-{n}\",\"session_id\":\"s{writer}\",\"type\":\"FINDING\",\"summary\":\"{n}\"}}\n"
                )
            };
            let rest: String = (acknowledged.len()..EACH).map(line).collect();
            let file = format!("writer-{writer}.jsonl");
            self.sage.write(&file, rest);
            let running = self.sage.args(["wake", "--json-file", &file]).spawn();
            if lives > 0 {
                lives -= 1;
                std::thread::sleep(Duration::from_millis(random.below(400)));
                running.signal(Signal::KILL);
            }
            let outcome = running.end();
            self.writer_kills.fetch_add(u32::from(outcome.code == 137), Ordering::Relaxed);
            acknowledged.extend(outcome.stdout.lines().map(str::to_string));
        }
        acknowledged
    }

    /// Delivers until the writers are done and this one has had its share; most deliverers die on the way.
    fn deliver(&self, seed: u64) {
        let mut random = Random::new(seed + 99);
        let raging = || self.deliverer_kills.load(Ordering::Relaxed) < DELIVERER_KILLS && !self.is_empty();
        while self.writing.load(Ordering::Relaxed) || raging() {
            let running = self.sage.spawn("inbox handle");
            self.deliverers.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(random.below(300)));
            self.deliverer_kills.fetch_add(u32::from(running.kill()), Ordering::Relaxed);
        }
    }

    fn is_empty(&self) -> bool {
        inbox(&self.sage).pressure().unhandled() == 0
    }

    fn rage(&self, seed: u64) -> Vec<Vec<String>> {
        std::thread::scope(|scope| {
            let deliverer = scope.spawn(|| self.deliver(seed));
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || self.write(writer, seed))).collect();
            let acknowledged = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            self.writing.store(false, Ordering::Relaxed);
            deliverer.join().unwrap();
            acknowledged
        })
    }

    fn judge(&self, acknowledged: &[Vec<String>]) {
        let handled = inbox(&self.sage).handled().unwrap();
        let mut times: BTreeMap<&str, u32> = BTreeMap::new();
        let mut by_sender: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for entry in &handled {
            let wake = entry.wake.as_ref().unwrap();
            *times.entry(&entry.wake_id).or_default() += 1;
            by_sender.entry(&wake.session_id).or_default().push(wake.summary.parse().unwrap());
        }
        for id in acknowledged.iter().flatten() {
            assert_eq!(times.get(id.as_str()), Some(&1), "effects of {id}");
        }
        assert_eq!(handled.len(), WRITERS as usize * EACH, "none lost, none twice");
        let order: Vec<usize> = (0..EACH).collect();
        assert!(by_sender.values().all(|own| *own == order), "{by_sender:?}");
        assert!(
            inbox(&self.sage).unhandled().unwrap().is_empty() && inbox(&self.sage).dead().unwrap().is_empty()
        );
        // The copy for reading along has each of them once, too.
        let log = self.sage.lines(".sage/logs/orchestration.jsonl");
        let mut logged: Vec<String> = log
            .iter()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .map(|line| line["wakeId"].as_str().unwrap().to_string())
            .collect();
        logged.sort();
        let expected: Vec<String> = times.keys().map(ToString::to_string).collect();
        assert_eq!(logged, expected);
    }
}

// covers: S2
#[test]
fn no_wake_is_lost_doubled_or_out_of_order_whoever_is_killed_when() {
    for seed in 0..if long() { 10 } else { 1 } {
        let storm = Storm {
            sage: Sage::new(),
            writing: AtomicBool::new(true),
            writer_kills: AtomicU32::new(0),
            deliverer_kills: AtomicU32::new(0),
            deliverers: AtomicU32::new(0),
        };
        let started = Instant::now();
        let acknowledged = storm.rage(seed);
        let raged = started.elapsed();
        let last = storm.sage.sage("inbox handle --json").exit(0).json();
        storm.judge(&acknowledged);
        let (writers, deliverers) =
            (storm.writer_kills.load(Ordering::Relaxed), storm.deliverer_kills.load(Ordering::Relaxed));
        assert!(writers >= 20 && deliverers >= 5, "{writers} and {deliverers} kills are no storm");
        println!(
            "seed {seed}: 1,000 wakes from {WRITERS} writers in {raged:?}; killed: {writers} writers, {deliverers} of {} \
             deliverers; the last one handled {} in {} ms",
            storm.deliverers.load(Ordering::Relaxed),
            last["handled"],
            last["ms"]
        );
    }
}
