//! Figures through the binary: what filters save, how fast it was, what monitors and people are told (R10, R18).

mod research;

use std::time::Instant;

use sage_core::event::{Crowded, End, Event};
use serde_json::{Value, json};

use crate::dsl::Sage;

const LOG: &str = ".sage/logs/orchestration.jsonl";

fn summary(lines: &[Value]) -> &Value {
    let last = lines.last().unwrap();
    assert_eq!(last["type"], "summary");
    last
}

/// What monitors were told, without wakes.
fn told(sage: &Sage) -> Vec<Value> {
    let lines = sage.lines(LOG);
    let all = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|line| line["event"] != "wake").collect()
}

const RESEARCHED: &str = r#"
name: r
phases:
  - id: research
    operations:
      - id: market
        type: agent
        agent: fake
        prompt: look around
        filter: { top: 20, minRelevance: 0.5, maxTokens: 1200 }
        params: { script: research.json }
  - id: specification
    dependencies: [research]
    operations:
      - id: spec
        type: agent
        agent: reader
        prompt: |
          Write the specification from
          {{ steps["research/market"].result | tojson }}
          Left out: {{ steps["research/market"].pointer }}
"#;

/// 180 KB of findings: the next agent reads 8 KB of it, the fact that it needs among them, and nothing is lost.
// covers: R10, R19
#[test]
fn a_filter_keeps_the_needed_fact_and_eight_kilobytes() {
    let sage = Sage::new().template("r", RESEARCHED);
    sage.write("sage.toml", "[agents.reader]\ncommand = [\"cat\"]\n");
    let data = research::report();
    let bytes = data.to_string().len();
    assert!((178_000..=182_000).contains(&bytes), "{bytes} bytes of research");
    sage.write("research.json", json!([{ "result": data }]).to_string());
    let lines = sage.sage("run x -t r --json").exit(0).json_lines();

    let prompt = sage.sage("result x specification/spec").exit(0).stdout;
    assert!(prompt.len() <= 8 * 1024, "{} bytes reach the next agent", prompt.len());
    assert!(prompt.contains(research::FACT), "{prompt}");
    let findings = data["findings"].as_array().unwrap().len();
    let pointer = format!("of {findings} findings; all: sage result x research/market --full");
    assert!(prompt.contains(&pointer), "{prompt}");
    let full = sage.sage("result x research/market --full").exit(0).json();
    assert_eq!(full, data, "the whole of it is kept");
    let short = sage.sage("result x research/market").exit(0).json();
    assert!(!short["findings"].as_array().unwrap().is_empty());

    let journal = sage.journal("x");
    let filtered = journal.records.iter().find_map(|record| match &record.event {
        Event::StepFinished(finished) => finished.filtered,
        _ => None,
    });
    let filtered = filtered.expect("the journal says what the filter took away");
    let (before, after) = (filtered.tokens_before.unwrap(), filtered.tokens_after.unwrap());
    println!("{} -> {} bytes, {before} -> {after} tokens", filtered.bytes_before, filtered.bytes_after);
    assert!(after <= 1200 && filtered.bytes_before >= 178_000);
    assert!((after as f64) < before as f64 * 0.14, "86 % less are asked for: {after} of {before}");
    let metrics = &summary(&lines)["results"]["metrics"];
    assert_eq!(metrics["tokensSaved"], before - after);
    assert_eq!(metrics["tokensSavedBy"], json!({"filter": before - after, "cache": 0, "codeMode": 0}));
    // Neither agent told what it used; only a program that never does is estimated, and not in the sum.
    let tokens = &metrics["tokensByClass"];
    assert_eq!((&metrics["totalTokens"], &tokens["unattributed"]), (&json!(0), &json!(2)));
    assert_eq!(tokens["estimatedTokens"]["attempts"], 1);
    let input = tokens["estimatedTokens"]["input"].as_u64().unwrap();
    assert!((after..after + 200).contains(&input), "{input}");

    sage.sage("run again -t r").exit(0).stdout_has(" KB -> ").stdout_has("tokens saved by filter");
}

/// Units that are long beside the start of a process.
const UNIT_MS: u64 = 20;

fn timed(id: &str, units: u64) -> String {
    let ms = units * UNIT_MS;
    format!(
        "{{ id: {id}, type: agent, agent: fake, prompt: x, params: {{ script: [{{ result: 1, delayMs: {ms} }}] }} }}"
    )
}

/// The times that are shown are those that passed: compared with the journal's own records, and with the world's.
// covers: R3, R18, P11
#[test]
fn times_are_true() {
    let research: String = [45, 30, 40, 20]
        .iter()
        .map(|units| format!("      - {}\n", timed(&format!("r{units}"), *units)))
        .collect();
    let mut text = format!("name: t\nphases:\n  - id: research\n    operations:\n{research}");
    for (id, units, before) in [("spec", 20, "research"), ("plan", 15, "spec"), ("build", 30, "plan")] {
        let operation = timed("one", units);
        text.push_str(&format!("  - id: {id}\n    dependencies: [{before}]\n    operations: {operation}\n"));
    }
    let sage = Sage::new().template("t", &text);
    let begun = Instant::now();
    let lines = sage.sage("run x -t t --json").exit(0).json_lines();
    let outside_ms = begun.elapsed().as_millis() as u64;
    let metrics = &summary(&lines)["results"]["metrics"];
    let figure = |name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("no {name} in {metrics}"));

    let records = sage.journal("x").records;
    let total = records.last().unwrap().at_ms - records[0].at_ms;
    // Alone, one after another, with what lies between them.
    let mut at_work = 0;
    let (mut sequential, mut last_ms) = (0, records[0].at_ms);
    for record in &records {
        sequential += if at_work == 0 { record.at_ms - last_ms } else { 0 };
        last_ms = record.at_ms;
        match &record.event {
            Event::StepStarted(_) => at_work += 1,
            Event::StepFinished(end) => {
                at_work -= 1;
                let lost = match end.crowded {
                    Some(Crowded::LostMs(lost)) => lost,
                    _ => 0,
                };
                sequential += end.ms - lost;
            }
            _ => {}
        }
    }
    println!(
        "nominal {} / {}; journal {total} / {sequential}; shown {metrics}",
        110 * UNIT_MS,
        200 * UNIT_MS
    );
    let near = |shown: f64, real: f64| (shown - real).abs() <= real * 0.02;
    assert!(near(figure("totalTime"), total as f64), "{metrics}");
    assert!(near(figure("parallelTime"), total as f64), "{metrics}");
    assert!(near(figure("sequentialTime"), sequential as f64), "{metrics}");
    assert!(near(figure("speedup"), sequential as f64 / total as f64), "{metrics}");
    let saved = (1.0 - total as f64 / sequential as f64) * 100.0;
    assert!((figure("percentageSaved") - saved).abs() <= 2.0, "{metrics}");
    assert_eq!(figure("timeSaved"), figure("sequentialTime") - figure("parallelTime"));
    assert!(figure("totalTime") >= 110.0 * UNIT_MS as f64 && figure("totalTime") <= outside_ms as f64);
    assert!(figure("sequentialTime") >= 200.0 * UNIT_MS as f64 * 0.9, "they sleep: {metrics}");
    assert_eq!((&metrics["operationCount"], &metrics["parallelOperations"]), (&json!(7), &json!(4)));
    assert_eq!((&metrics["contextReloads"], &metrics["resumeSuccess"]), (&json!(0), &Value::Null));
    // The same figures everywhere.
    for (name, other) in [
        ("status", &sage.status("x")["metrics"]),
        ("checkpoint", &checkpoint(&sage, "x")["metrics"]),
        ("monitor", &told(&sage).last().unwrap()["metrics"]),
    ] {
        for field in ["totalTime", "sequentialTime", "parallelTime", "percentageSaved", "speedup", "alerts"] {
            assert_eq!(other[field], metrics[field], "{field} of the {name}");
        }
    }
}

fn checkpoint(sage: &Sage, feature: &str) -> Value {
    let path = sage.path(&format!(".sage/state/workflow-{feature}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const TWO: &str = r#"
name: t
phases:
  - id: a
    operations:
      - { id: one, type: shell, params: { run: "echo one" } }
      - { id: two, type: shell, params: { run: "echo two" } }
  - id: b
    dependencies: [a]
    operations: { id: wait, type: shell, params: { run: "until test -e go; do sleep 0.01; done" } }
"#;

/// Each group once, the end once, also after a death and after a look at what is done.
// covers: P11, R18
#[test]
fn monitors_are_told_each_thing_once() {
    let sage = Sage::new().template("t", TWO);
    let mut running = sage.spawn("run x -t t");
    running.until(|| sage.lines(LOG).iter().any(|line| line.contains("group.completed")), "the first group");
    assert!(running.kill());
    sage.write("go", "");
    sage.sage("resume x").exit(0);
    sage.sage("resume x").exit(0);
    let told = told(&sage);
    let groups: Vec<&Value> = told.iter().filter(|line| line["event"] == "group.completed").collect();
    assert_eq!(groups.iter().map(|group| &group["group"]).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((&groups[0]["stagesCompleted"], &groups[0]["status"]), (&json!(2), &json!("completed")));
    assert!(groups.iter().all(|group| group["duration"].is_u64() && group["feature"] == "x"));
    let ends: Vec<&Value> = told.iter().filter(|line| line["event"] == "workflow.performance").collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    for field in
        ["sequentialTime", "parallelTime", "timeSaved", "percentageSaved", "speedup", "tokens", "seq", "at"]
    {
        assert!(!ends[0][field].is_null(), "no {field} in {}", ends[0]);
    }
    let mut ids: Vec<&str> = told.iter().map(|line| line["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), told.len(), "every line has an id of its own");
    let metrics = &sage.status("x")["metrics"];
    assert_eq!((&metrics["resumes"], &metrics["resumeSuccess"]), (&json!(1), &json!(1.0)));
}

/// A line that was lost with its writer is made up for, one that was written is not repeated.
// covers: P11
#[test]
fn what_was_not_told_is_made_up_for() {
    let sage = Sage::new().template("t", TWO);
    let mut running = sage.spawn("run x -t t");
    running.until(|| sage.lines(LOG).iter().any(|line| line.contains("group.completed")), "the first group");
    assert!(running.kill());
    let mark = sage.latest_dir("x").join("orchestration");
    std::fs::write(&mark, format!("{:020}\n", 1)).unwrap();
    sage.write("go", "");
    let again = sage.sage("resume x --json").exit(0).json_lines();
    assert_eq!(again.iter().filter(|line| line["type"] == "group.completed").count(), 1, "only what is new");
    let groups = || told(&sage).iter().filter(|line| line["event"] == "group.completed").count();
    assert_eq!(groups(), 2, "known lines are not written again");
    std::fs::write(&mark, format!("{:020}\n", 1)).unwrap();
    std::fs::write(sage.path(LOG), "").unwrap();
    sage.sage("resume x --from b").exit(0);
    let told = told(&sage);
    let groups: Vec<&Value> = told.iter().filter(|line| line["event"] == "group.completed").collect();
    assert_eq!(groups.iter().map(|g| g["group"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b", "b"]);
}

const FLAKY: &str = r#"
name: t
phases:
  - id: p
    operations: { id: s, type: shell, retry: { attempts: 2, delay: 1ms, on: [failed] }, params: { run: "test -e been || { touch been; exit 1; }" } }
"#;

// covers: R18
#[test]
fn alerts_are_told_and_can_be_set() {
    let sage = Sage::new().template("t", FLAKY);
    let alerts = |feature: &str| sage.status(feature)["metrics"]["alerts"].clone();
    sage.sage("run x -t t").exit(0).stdout_has("! 50 % of attempts failed, more than 5 %");
    let usual = json!([{"metric": "errorRate", "level": "critical", "value": 0.5, "limit": 0.05}]);
    assert_eq!(alerts("x"), usual);
    assert_eq!(checkpoint(&sage, "x")["metrics"]["alerts"], usual);
    sage.write("sage.toml", "[alerts]\nerrors = 0.6\ntimeCritical = \"1ms\"\n");
    std::fs::remove_file(sage.path("been")).unwrap();
    sage.sage("run y -t t").exit(0).stdout_has("more than 0s");
    assert_eq!(
        (&alerts("y")[0]["metric"], &alerts("y")[0]["level"]),
        (&json!("totalTime"), &json!("critical"))
    );
    assert_eq!(alerts("y").as_array().unwrap().len(), 1);
    sage.write("sage.toml", "[alerts]\nenabled = false\n");
    std::fs::remove_file(sage.path("been")).unwrap();
    sage.sage("run z -t t").exit(0);
    assert_eq!(alerts("z"), json!([]));
    sage.write("sage.toml", "[alerts]\nerrors = 5\n");
    sage.sage("run w -t t").exit(2).stderr_has("alerts.errors").stderr_has("0 to 1");
    sage.write("sage.toml", "[alerts]\ntimeWarn = \"2m\"\n");
    let config = sage.sage("config --json").exit(0).json();
    let setting = config["settings"].as_array().unwrap().iter().find(|s| s["name"] == "alerts.timeWarn");
    assert_eq!(setting.unwrap()["source"], "sage.toml");
}

/// Half of a phase was finished when the journal was lost: those steps run again, and that is told.
// covers: R5, R18
#[test]
fn what_a_lost_journal_costs_is_told() {
    let text = r#"
name: t
phases:
  - id: a
    operations: { id: kept, type: shell, params: { run: "echo a" } }
  - id: b
    dependencies: [a]
    operations:
      - { id: lost, type: shell, params: { run: "echo b" } }
      - { id: ask, type: approval, needs: [lost], params: { message: "go on?" } }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(4);
    std::fs::remove_file(sage.latest_dir("x").join("journal.jsonl")).unwrap();
    sage.sage("resume x").exit(4).stdout_has("resumes kept 50 % of what was finished, less than 90 %");
    let metrics = sage.status("x")["metrics"].clone();
    assert_eq!(metrics["resumeSuccess"], 0.5);
    let journal = sage.journal("x");
    let succeeded = journal.records.iter().filter(|record| {
        matches!(&record.event, Event::StepFinished(end) if matches!(end.end, End::Succeeded { .. }))
    });
    assert_eq!(succeeded.count(), 1, "one step ran again");
}

/// Agents without a model cost nothing, and say so.
// covers: R3, R18
#[test]
fn agents_that_cost_nothing_still_tell_their_reloads() {
    let text = "name: t\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: fake, prompt: x, \
                params: { script: [{ result: 1, usage: { input: 0, output: 0 } }] } }\n";
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(0).stdout_has("0 tokens · 0 context reloads");
}

const THIRD_FAILS: &str = r#"
name: t
phases:
  - { id: one, operations: { id: a, type: shell, params: { run: "echo a >> ran" } } }
  - { id: two, dependencies: [one], operations: { id: b, type: shell, params: { run: "echo b >> ran" } } }
  - { id: three, dependencies: [two], operations: { id: c, type: shell, params: { run: "test -e go" } } }
"#;

/// The journal is gone, and nothing that was finished with it: the checkpoint had all of it.
// covers: R18, R5
#[test]
fn a_resume_that_kept_all_that_was_finished_is_a_full_success() {
    let sage = Sage::new().template("t", THIRD_FAILS);
    sage.sage("run x -t t").exit(1);
    std::fs::remove_file(sage.latest_dir("x").join("journal.jsonl")).unwrap();
    sage.write("go", "");
    let done = sage.sage("resume x --json").exit(0).json_lines();
    let metrics = &summary(&done)["results"]["metrics"];
    assert_eq!((&metrics["resumeSuccess"], &metrics["alerts"]), (&json!(1.0), &json!([])), "{metrics:#}");
    assert_eq!(sage.lines("ran"), ["a", "b"], "nothing ran again");
}

/// What a lost journal did cost is told: a finished step of a phase that was not complete.
// covers: R18, R5
#[test]
fn a_resume_that_lost_finished_steps_says_which_share_it_kept() {
    let text = THIRD_FAILS.replace(
        "operations: { id: c, type: shell, params: { run: \"test -e go\" } }",
        "operations: [{ id: c, type: shell, params: { run: \"test -e go\" } }, { id: d, type: shell, params: { run: \"echo d >> ran\" } }]",
    );
    let sage = Sage::new().template("t", &text);
    sage.sage("run x -t t").exit(1);
    std::fs::remove_file(sage.latest_dir("x").join("journal.jsonl")).unwrap();
    sage.write("go", "");
    let done = sage.sage("resume x --json").exit(0).json_lines();
    let metrics = &summary(&done)["results"]["metrics"];
    assert_eq!(metrics["resumeSuccess"], json!(0.667), "2 of 3: {metrics:#}");
    assert_eq!(metrics["alerts"][0]["level"], "critical");
    assert_eq!(sage.lines("ran"), ["a", "b", "d", "d"]);
}

/// The target is ill until its breaker has opened, then well again: one opening, whatever is tried meanwhile.
// covers: R18, R7
#[test]
fn a_breaker_that_opened_once_is_counted_once() {
    let text = r#"
name: t
phases:
  - id: p
    join: { atLeast: 1 }
    operations:
      - id: each
        type: shell
        foreach: "[range(8)]"
        tolerate: 7
        target: command:flaky
        params: { run: "test -e well && sleep 0.1" }
"#;
    let sage = Sage::new().template("t", text);
    sage.write(
        "sage.toml",
        "[targets.\"command:flaky\"]\nbreaker = { failures = 3, openFor = \"300ms\", successes = 2 }\n",
    );
    let mut running = sage.spawn("run x -t t --parallel 4");
    let opened = || {
        let known = sage.engine().latest("x").is_some();
        known && sage.journal("x").records.iter().any(|record| matches!(record.event, Event::TargetParked(_)))
    };
    running.until(opened, "the opening");
    sage.write("well", "");
    running.end();
    let journal = sage.journal("x");
    let parks =
        journal.records.iter().filter(|record| matches!(record.event, Event::TargetParked(_))).count();
    assert!(parks > 1, "others waited for the probe: {parks}");
    assert_eq!(sage.status("x")["metrics"]["breakerOpenings"], 1);
}

/// Steps that compute and steps that sleep, more of them at once than there are processors.
fn crowd(run: &str) -> (u64, u64) {
    let processors = std::thread::available_parallelism().unwrap().get();
    let steps = processors * 6;
    let text = format!(
        "name: t\nphases:\n  - id: p\n    operations: {{ id: s, type: shell, foreach: '[range({steps})]', params: {{ run: {run:?} }} }}\n"
    );
    let sage = Sage::new().template("t", &text);
    let done = sage.args(["run", "x", "-t", "t", "--json", "--parallel", &steps.to_string()]).run().exit(0);
    let lines = done.json_lines();
    let metrics = &summary(&lines)["results"]["metrics"];
    let finished = lines.iter().filter(|line| line["type"] == "step.finished");
    let took: u64 = finished.map(|line| line["ms"].as_u64().unwrap()).sum();
    println!("{took} ms in steps, {} ms if sequential", metrics["sequentialTime"]);
    assert_eq!(metrics.get("sequentialAtMost"), None, "all of it was measured: {metrics:#}");
    (took, metrics["sequentialTime"].as_u64().unwrap())
}

/// Alone, a step that computes would not have waited for the others; one that sleeps waits for nobody.
// covers: R1, R18
#[cfg(target_os = "linux")]
#[test]
fn time_if_sequential_does_not_count_waiting_for_each_others_processors() {
    let (took, sequential) = crowd("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
    assert!(sequential * 100 < took * 97, "{sequential} of {took} ms");
    let (took, sequential) = crowd("sleep 0.4");
    assert!(sequential * 100 >= took * 90, "{sequential} of {took} ms");
}
