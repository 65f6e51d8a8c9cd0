//! Kill -9 at random moments, over fan-outs inside fan-outs, at limits 1, 2 and 100.
//!
//! Each run is killed and resumed until it has had its share of kills; a last resume is left alone. Then:
//! no step that finished was started again, nothing in the journal was lost, the effects of finished steps
//! happened once, and the result is that of a run that nobody killed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::dsl::{DEADLINE, Random, Sage, long, wait_until};

const OUTER: &str = r#"
name: outer
phases:
  - id: seed
    operations:
      - id: list
        type: shell
        params: { run: 'echo "$SAGE_STEP $SAGE_ATTEMPT" >> "$OUT"; echo "[3,1,2]"', json: true, env: { OUT: "{{ inputs.out }}" } }
  - id: fan
    dependencies: [seed]
    operations:
      - id: each
        type: workflow
        foreach: '.steps["seed/list"].result'
        params: { template: inner, inputs: { width: "{{ item }}", out: "{{ inputs.out }}" } }
      - id: big
        type: shell
        params:
          run: 'echo "$SAGE_STEP $SAGE_ATTEMPT" >> "$OUT"; head -c 80000 /dev/zero | tr "\0" x'
          env: { OUT: "{{ inputs.out }}" }
  - id: end
    dependencies: [fan]
    operations:
      - id: nap
        type: sleep
        params: { ms: 20 }
      - id: sum
        type: shell
        params:
          run: 'echo "$SAGE_STEP $SAGE_ATTEMPT" >> "$OUT"; echo "$ALL"'
          env: { OUT: "{{ inputs.out }}", ALL: '{{ steps["fan/each"].result | length }} {{ steps["fan/big"].result.stdout | length }}' }
"#;

const INNER: &str = r#"
name: inner
phases:
  - id: leaf
    operations:
      - id: nap
        type: sleep
        params: { ms: 10 }
      - id: each
        type: shell
        foreach: "[range(.inputs.width | tonumber)]"
        params:
          run: 'echo "$SAGE_STEP $SAGE_ATTEMPT" >> "$OUT"; echo "$NAME"'
          env: { OUT: "{{ inputs.out }}", NAME: "{{ inputs.width }}.{{ item }}" }
  - id: after
    dependencies: [leaf]
    operations:
      id: join
      type: shell
      params:
        run: 'echo "$SAGE_STEP $SAGE_ATTEMPT" >> "$OUT"; echo "$ALL"'
        env: { OUT: "{{ inputs.out }}", ALL: '{{ steps["leaf/each"].result | map(attribute="stdout") | join("") }}' }
"#;

/// Shell steps of the template: their effects are counted.
const EFFECTS: usize = 1 + 1 + (3 + 1 + 2) + 3 + 1;

/// Kills of one run before it may end: late kills find little left to do.
const KILLS_PER_RUN: u32 = 12;

struct Storm {
    sage: Sage,
    limit: u32,
    random: Random,
    /// How long an undisturbed run takes here and now.
    whole: Duration,
    expected: serde_json::Value,
    cycles: u32,
    kills: u32,
    steps: usize,
}

impl Storm {
    fn new(limit: u32) -> Storm {
        let sage = Sage::new().template("outer", OUTER).template("inner", INNER);
        let mut storm = Storm {
            sage,
            limit,
            random: Random::new(u64::from(limit) + 7),
            whole: Duration::ZERO,
            expected: serde_json::Value::Null,
            cycles: 0,
            kills: 0,
            steps: 0,
        };
        let started = Instant::now();
        storm.sage.args(storm.run("calm")).run().exit(0);
        storm.whole = started.elapsed();
        storm.expected = storm.sage.results("calm");
        assert_eq!(storm.effects("calm").len(), EFFECTS, "the template does what this test believes");
        storm
    }

    fn run(&self, feature: &str) -> Vec<String> {
        let out = self.sage.path(&format!("{feature}.out"));
        let out = format!("out={}", out.display());
        let limit = self.limit.to_string();
        ["run", feature, "-t", "outer", "-i", &out, "--parallel", &limit].map(str::to_owned).to_vec()
    }

    /// How often each step has done its work.
    fn effects(&self, feature: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.sage.lines(&format!("{feature}.out")) {
            let step = line.split(' ').next().unwrap_or_default().to_owned();
            *counts.entry(step).or_default() += 1;
        }
        counts
    }

    /// One run, killed until it has had enough, then left alone.
    fn feature(&mut self, feature: &str) {
        let mut args = self.run(feature);
        let mut known: Vec<sage_engine::journal::Head> = Vec::new();
        let mut done: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..KILLS_PER_RUN {
            // All over the run, and more often early: that is where a resume begins.
            let within = self.whole.as_micros() as u64 >> self.random.below(4);
            let delay = self.random.below(within);
            let mut running = self.sage.args(&args).spawn();
            let moment = Instant::now() + Duration::from_micros(delay);
            wait_until(|| running.ended() || Instant::now() >= moment, DEADLINE, "the moment to kill");
            let killed = running.kill();
            self.cycles += 1;
            self.kills += u32::from(killed);
            if self.sage.engine().latest(feature).is_none() {
                continue;
            }
            args = vec!["resume".to_owned(), feature.to_owned()];
            let journal = self.sage.journal(feature);
            let heads = journal.heads();
            assert!(heads.starts_with(&known), "{feature}: a record was lost or changed");
            known = heads;
            let effects = self.effects(feature);
            for step in journal.succeeded() {
                done.entry(step.clone()).or_insert_with(|| effects.get(&step).copied().unwrap_or(0));
            }
            if !killed {
                break;
            }
        }
        self.sage.args(&args).run().exit(0);
        self.judge(feature, &known, &done);
    }

    fn judge(&mut self, feature: &str, known: &[sage_engine::journal::Head], done: &BTreeMap<String, usize>) {
        let journal = self.sage.journal(feature);
        assert!(journal.heads().starts_with(known), "{feature}: a record was lost or changed");
        journal.assert_nothing_repeated();
        let effects = self.effects(feature);
        for (step, count) in done {
            assert_eq!(
                effects.get(step).copied().unwrap_or(0),
                *count,
                "{feature}: {step} had its effect again"
            );
        }
        assert_eq!(effects.len(), EFFECTS, "{feature}: {effects:?}");
        let states = self.sage.status(feature);
        let steps = states["steps"].as_array().unwrap();
        assert!(steps.iter().all(|step| step["state"] == "succeeded"), "{states}");
        assert_eq!(self.sage.results(feature), self.expected, "{feature}");
        self.steps += journal.succeeded().len();
    }

    fn rage(mut self, kills: u32) {
        let mut number = 0;
        while self.kills < kills {
            number += 1;
            self.feature(&format!("storm-{number}"));
        }
        self.sage.sage("verify").exit(0).stdout_has(" 0 damaged");
        self.sage.assert_nothing_alive();
        println!(
            "storm at limit {}: {number} runs, {} cycles, {} kills, {} steps finished, an undisturbed run {:?}",
            self.limit, self.cycles, self.kills, self.steps, self.whole
        );
    }
}

fn share() -> u32 {
    if long() { 334 } else { 67 }
}

// covers: R5, P8; LESSONS "Resume"
#[test]
fn kill_storm_at_limit_1() {
    Storm::new(1).rage(share());
}

// covers: R5, P8; LESSONS "Resume"
#[test]
fn kill_storm_at_limit_2() {
    Storm::new(2).rage(share());
}

// covers: R5, P8; LESSONS "Resume"
#[test]
fn kill_storm_at_limit_100() {
    Storm::new(100).rage(share());
}
