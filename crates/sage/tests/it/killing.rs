//! Runs of one workflow that are killed at random moments and resumed, measured by a run that nobody killed.
//!
//! Whatever really runs appends `$SAGE_STEP what` to `$SAGE_FEATURE.out`. In the end: nothing in the journal was
//! lost, no step that had finished was started again or had its effect again, all that should happen happened,
//! and the result is that of the calm run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sage_engine::journal::Head;
use serde_json::Value;

use crate::dsl::{DEADLINE, Random, Sage, wait_until};

/// Kills of one run before it may end: late kills find little left to do.
const KILLS_PER_RUN: u32 = 12;

pub struct Killing {
    pub sage: Sage,
    /// After `run <feature>`.
    args: Vec<String>,
    exit: i32,
    random: Random,
    /// How long a calm run takes here and now.
    whole: Duration,
    expected: Value,
    effects: BTreeSet<String>,
    pub kills: u32,
    pub runs: u32,
    pub finished: usize,
}

impl Killing {
    /// Runs it once in peace; `exit` is how it ends.
    #[track_caller]
    pub fn new(sage: Sage, args: &[&str], exit: i32, seed: u64) -> Killing {
        let mut killing = Killing {
            sage,
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            exit,
            random: Random::new(seed),
            whole: Duration::ZERO,
            expected: Value::Null,
            effects: BTreeSet::new(),
            kills: 0,
            runs: 0,
            finished: 0,
        };
        let started = Instant::now();
        killing.sage.args(killing.run("calm")).run().exit(exit);
        killing.whole = started.elapsed();
        killing.expected = killing.value("calm");
        killing.effects = killing.effects("calm").into_values().flatten().collect();
        assert!(!killing.effects.is_empty(), "the workflow tells what it does");
        killing
    }

    fn run(&self, feature: &str) -> Vec<String> {
        let mut args = vec!["run".to_owned(), feature.to_owned()];
        args.extend(self.args.iter().cloned());
        args
    }

    pub fn value(&self, feature: &str) -> Value {
        self.sage.args(["result", feature, "main/script"]).run().exit(0).json()
    }

    /// What each step has done.
    fn effects(&self, feature: &str) -> BTreeMap<String, Vec<String>> {
        let mut done: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in self.sage.lines(&format!("{feature}.out")) {
            let (step, what) = line.split_once(' ').unwrap_or((&line, ""));
            done.entry(step.to_owned()).or_default().push(what.to_owned());
        }
        done
    }

    /// Kills so many owners, in as many runs as it takes.
    #[track_caller]
    pub fn rage(&mut self, kills: u32) {
        while self.kills < kills {
            self.runs += 1;
            self.feature(&format!("storm-{}", self.runs));
        }
        self.sage.sage("verify").exit(0).stdout_has(" 0 damaged");
        self.sage.assert_nothing_alive();
    }

    #[track_caller]
    fn feature(&mut self, feature: &str) {
        let mut args = self.run(feature);
        let mut known: Vec<Head> = Vec::new();
        let mut done: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..KILLS_PER_RUN {
            let killed = self.strike(&args);
            self.kills += u32::from(killed);
            if self.sage.engine().latest(feature).is_none() {
                continue;
            }
            args = vec!["resume".to_owned(), feature.to_owned()];
            let journal = self.sage.journal(feature);
            assert!(journal.heads().starts_with(&known), "{feature}: a record was lost or changed");
            known = journal.heads();
            let effects = self.effects(feature);
            for step in journal.succeeded() {
                done.entry(step.clone()).or_insert_with(|| effects.get(&step).map_or(0, Vec::len));
            }
            if !killed {
                break;
            }
        }
        self.sage.args(&args).run().exit(self.exit);
        self.judge(feature, &known, &done);
    }

    /// True if it was alive when it was killed.
    fn strike(&mut self, args: &[String]) -> bool {
        // All over the run, and more often early: that is where a resume begins.
        let within = self.whole.as_micros() as u64 >> self.random.below(4);
        let delay = self.random.below(within);
        let mut running = self.sage.args(args).spawn();
        let moment = Instant::now() + Duration::from_micros(delay);
        wait_until(|| running.ended() || Instant::now() >= moment, DEADLINE, "the moment to kill");
        running.kill()
    }

    #[track_caller]
    fn judge(&mut self, feature: &str, known: &[Head], done: &BTreeMap<String, usize>) {
        let journal = self.sage.journal(feature);
        assert!(journal.heads().starts_with(known), "{feature}: a record was lost or changed");
        journal.assert_nothing_repeated();
        let effects = self.effects(feature);
        for (step, count) in done {
            let now = effects.get(step).map_or(0, Vec::len);
            assert_eq!(now, *count, "{feature}: {step} had its effect again");
        }
        let all: BTreeSet<String> = effects.into_values().flatten().collect();
        assert_eq!(all, self.effects, "{feature}: what happened");
        assert_eq!(self.value(feature), self.expected, "{feature}");
        self.finished += journal.succeeded().len();
    }

    /// A line for whoever reads the log of the tests.
    pub fn tell(&self, name: &str) {
        let Killing { runs, kills, finished, whole, .. } = self;
        println!("{name}: {runs} runs, {kills} kills, {finished} steps finished, a calm run takes {whole:?}");
    }
}
