//! Results that later runs take, with the real binary: how much faster, how it is told, what happens to old, damaged
//! and too many of them.

use std::os::unix::fs::MetadataExt;

use sage_engine::cache::{Cache, CacheConfig, DAY_MS, Entry};
use sage_engine::vfs::DiskFs;
use serde_json::{Value, json};

use crate::dsl::Sage;

fn store(sage: &Sage) -> Cache {
    Cache::new(DiskFs::new(), sage.path(".sage/cache"), CacheConfig::default(), sage.key())
}

/// Makes all entries that `wanted` takes older than they are.
fn age(sage: &Sage, ms: u64, wanted: impl Fn(&Entry) -> bool) {
    let cache = store(sage);
    for (mut entry, _) in cache.entries().into_iter().filter(|(entry, _)| wanted(entry)) {
        entry.created_ms -= ms;
        entry.last_used_ms -= ms;
        cache.put(&entry).unwrap();
    }
}

fn active_ms(status: &Value) -> u64 {
    status["steps"].as_array().unwrap().iter().map(|step| step["elapsedMs"].as_u64().unwrap()).sum()
}

fn agent(id: &str, cache: &str, delay_ms: u32) -> String {
    format!(
        "{{ id: {id}, type: agent, agent: fake, cache: {cache}, prompt: {id}, params: {{ script: [{{ delayMs: {delay_ms}, result: {{ said: {id} }}, usage: {{ input: 1000, output: 50 }} }}] }} }}"
    )
}

/// Four agents and one whose file will change.
fn research() -> Sage {
    let found: Vec<String> = ["a", "b", "c", "d"].iter().map(|id| agent(id, "{ ttl: 30d }", 400)).collect();
    let changing = agent("e", "{ files: [notes.md] }", 40);
    let sage = Sage::new().template(
        "t",
        &format!(
            "name: t\nphases:\n  - id: research\n    operations: [{}, {changing}]\n  - id: end\n    dependencies: [research]\n    operations: {{ id: sum, type: shell, params: {{ argv: [echo, \"{{{{ steps['research/a'].result.said }}}}\"] }} }}\n",
            found.join(", ")
        ),
    );
    sage.write("notes.md", "one");
    sage
}

// covers: R11, R19
#[test]
fn a_repeated_run_takes_four_of_five_results_and_a_fifth_of_the_time() {
    let sage = research();
    sage.sage("run x -t t").exit(0).stdout_has("cache 0% (0 of 5 hits)");
    let (first, results) = (sage.status("x"), sage.results("x"));
    assert_eq!(first["metrics"]["cacheHitRate"], 0.0);
    sage.write("notes.md", "two");
    let plan = sage.sage("run x -t t --dry-run").exit(0).stdout_has("4 steps from the cache");
    assert!(plan.stdout.contains("research/a") && plan.stdout.contains("a moment old"), "{}", plan.stdout);
    let plan = sage.sage("run x -t t --dry-run --json").exit(0).json();
    assert_eq!(plan["cached"].as_array().unwrap().len(), 4);
    assert_eq!(plan["cached"][0]["savedTokens"], 1050);
    sage.sage("run x -t t").exit(0).stdout_has("cache 80% (4 of 5 hits)").stdout_has("research/a cached");
    let second = sage.status("x");
    assert_eq!(
        (&second["metrics"]["cacheHitRate"], &second["metrics"]["totalTokens"]),
        (&json!(0.8), &json!(1050))
    );
    assert_eq!(second["metrics"]["tokensSaved"], 4200);
    let (before, after) = (active_ms(&first), active_ms(&second));
    assert!(before >= 1600 && after * 5 <= before, "{before} ms, then {after} ms");
    assert_eq!(sage.results("x"), results);
    let cached: Vec<bool> =
        second["steps"].as_array().unwrap().iter().map(|step| step["cached"].as_bool().unwrap()).collect();
    assert_eq!(cached, [true, true, true, true, false, false]);
    sage.sage("verify").exit(0);
    sage.sage("explain x research/a").exit(0).stdout_has("taken from the cache");
    let stats = sage.sage("cache stats --json").exit(0).json();
    assert_eq!((&stats["entries"], &stats["hits"], &stats["misses"]), (&json!(6), &json!(4), &json!(6)));
    assert_eq!((&stats["hitRate"], &stats["savedTokens"]), (&json!(0.4), &json!(4200)));
    sage.sage("cache").exit(0).stdout_has("6 results").stdout_has("40% hits over all runs (4 of 10)");
    let list = sage.sage("cache list research/a --json").exit(0).json();
    assert_eq!((&list["entries"][0]["uses"], &list["entries"][0]["operation"]), (&json!(1), &json!("agent")));
    assert!(list["entries"][0]["expiresInMs"].as_u64().unwrap() > 29 * DAY_MS);
    sage.sage("cache list").exit(0).stdout_has("29 days left").stdout_has("used 1 time");
    let mode = |path: &str| sage.path(path).metadata().unwrap().mode() & 0o777;
    let file = format!(".sage/cache/{}.json", list["entries"][0]["key"].as_str().unwrap());
    assert_eq!((mode(".sage/cache"), mode(&file)), (0o700, 0o600));
}

// covers: R11
#[test]
fn without_the_cache_everything_runs_and_what_is_cleared_is_gone() {
    let sage = research();
    sage.sage("run x -t t").exit(0);
    sage.sage("run x -t t --no-cache").exit(0);
    let status = sage.status("x");
    assert_eq!(
        (&status["metrics"]["cacheHitRate"], &status["metrics"]["attempts"]),
        (&Value::Null, &json!(6))
    );
    sage.sage("cache clear research/a").exit(0).stdout_has("1 result removed");
    sage.sage("cache clear --older-than 7d").exit(0).stdout_has("0 results removed");
    sage.sage("cache clear --older-than 7").exit(2).stderr_has("has no unit");
    sage.sage("run x -t t").exit(0).stdout_has("cache 80% (4 of 5 hits)");
    age(&sage, 8 * DAY_MS, |entry| entry.step != "research/a");
    let removed = sage.sage("cache clear --older-than 7d --json").exit(0).json();
    assert_eq!(removed["removed"], 4);
    sage.write("sage.toml", "[cache]\nenabled = false\n");
    sage.sage("run x -t t").exit(0);
    assert_eq!(sage.status("x")["metrics"]["cacheHitRate"], Value::Null);
    sage.sage("cache").exit(0).stderr_has("switched off").stdout_has("1 result,");
}

// covers: R11
#[test]
fn damage_is_told_once_and_what_expires_soon_is_told() {
    let sage = research();
    sage.sage("run x -t t").exit(0);
    let key = store(&sage).entries().iter().find(|(entry, _)| entry.step == "research/b").unwrap().0.key;
    let path = sage.path(&format!(".sage/cache/{key}.json"));
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let run = sage.sage("run x -t t").exit(0).stdout_has("cache 80% (4 of 5 hits)");
    assert_eq!(run.stdout.matches("damaged").count(), 2, "the step's line and the summary: {}", run.stdout);
    let run = sage.sage("run x -t t").exit(0).stdout_has("cache 100% (5 of 5 hits)");
    assert!(!run.stdout.contains("damaged") && !run.stdout.contains("expires"), "{}", run.stdout);
    age(&sage, 25 * DAY_MS, |entry| entry.step == "research/b");
    sage.sage("run x -t t")
        .exit(0)
        .stdout_has("research/b cached, 25 days old, expires in 4 days")
        .stdout_has("1 result from the cache will be too old within 7 days");
    age(&sage, 5 * DAY_MS, |entry| entry.step == "research/b");
    sage.sage("run x -t t").exit(0).stdout_has("cache 80% (4 of 5 hits)");
}

// covers: R15, R23
#[test]
fn an_old_result_stands_in_when_a_target_is_down() {
    let step = "{ id: a, type: shell, retry: 1, cache: { ttl: 1d }, fallback: cache, params: { run: 'test ! -e down && echo good' } }";
    let sage = Sage::new().template("t", &format!("name: t\nphases:\n  - id: p\n    operations: {step}\n"));
    sage.sage("run x -t t").exit(0);
    sage.write("down", "");
    sage.sage("run x -t t").exit(0).stdout_has("p/a cached");
    age(&sage, 5 * DAY_MS, |_| true);
    let run = sage.sage("run x -t t").exit(3);
    assert_eq!(
        run.stdout.matches("used a result from 5 days ago instead (stale)").count(),
        2,
        "{}",
        run.stdout
    );
    let step = &sage.status("x")["steps"][0];
    assert_eq!(
        (&step["cached"], &step["stale"], &step["state"]),
        (&json!(true), &json!(true), &json!("succeeded"))
    );
    assert_eq!(sage.results("x")[0]["results"]["a"]["stdout"], "good\n");
    sage.sage("explain x p/a").exit(0).stdout_has("fell back to what run_");
    std::fs::remove_file(sage.path("down")).unwrap();
    sage.sage("run x -t t").exit(0).stdout_has("cache 0% (0 of 1 hits)");
}

// covers: R11
#[test]
fn when_there_are_too_many_the_least_used_go_and_the_young_stay() {
    let step =
        "{ id: a, type: shell, cache: true, params: { run: 'head -c 15000 /dev/zero | tr \"\\\\0\" x' } }";
    let sage = Sage::new().template("t", &format!("name: t\nphases:\n  - id: p\n    operations: {step}\n"));
    sage.write("sage.toml", "[cache]\nmaxSize = \"40KB\"\n");
    let features = || {
        let mut features: Vec<String> =
            store(&sage).entries().into_iter().map(|(entry, _)| entry.feature).collect();
        features.sort();
        features.join("")
    };
    for feature in ["a", "b"] {
        sage.args(["run", feature, "-t", "t"]).run().exit(0);
    }
    age(&sage, 3 * DAY_MS, |_| true);
    sage.sage("run a -t t").exit(0).stdout_has("3 days old");
    sage.sage("run c -t t").exit(0);
    assert_eq!(features(), "ac", "a was used, b was not");
    for feature in ["d", "e"] {
        sage.args(["run", feature, "-t", "t"]).run().exit(0);
    }
    assert_eq!(features(), "cde", "nothing younger than a day goes, however many there are");
    sage.write("sage.toml", "[cache]\nmaxSize = \"30KB\"\n");
    age(&sage, 2 * DAY_MS, |entry| entry.feature != "e");
    sage.sage("run f -t t").exit(0);
    assert_eq!(features(), "ef", "of the old ones as many as are too much");
    age(&sage, 2 * DAY_MS, |entry| entry.feature == "e");
    sage.sage("cache clear --older-than 1d").exit(0).stdout_has("1 result removed");
    assert_eq!(features(), "f");
}

// covers: R15
#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    let sage = research();
    sage.write(".sage/cache", "in the way");
    let run = sage.sage("run x -t t").exit(0).stderr_has("note: running without the cache");
    assert_eq!(run.stderr.matches("without the cache").count(), 1);
    assert_eq!(sage.status("x")["metrics"]["cacheHitRate"], Value::Null);
    sage.sage("cache").exit(0).stdout_has("0 results");
}

// covers: R11
#[test]
fn many_processes_use_one_cache_at_once() {
    let sage = research();
    sage.write("sage.toml", "[cache]\nmaxSize = \"100B\"\n");
    for _ in 0..2 {
        let names: Vec<String> = (0..6).map(|n| format!("run f{n} -t t")).collect();
        let all: Vec<_> = names.iter().map(|command| sage.spawn(command)).collect();
        for run in all {
            let outcome = run.end().exit(0);
            assert!(!outcome.stdout.contains("damaged"), "{}", outcome.stdout);
        }
    }
    let hits: u64 = (0..6)
        .map(|n| (sage.status(&format!("f{n}"))["metrics"]["tokensSaved"].as_u64().unwrap()) / 1050)
        .sum();
    assert_eq!(hits, 0, "an entry larger than the cache is not kept");
    sage.write("sage.toml", "");
    for round in 0..2 {
        let names: Vec<String> = (0..6).map(|n| format!("run f{n} -t t")).collect();
        let all: Vec<_> = names.iter().map(|command| sage.spawn(command)).collect();
        let ended: Vec<_> = all.into_iter().map(|run| run.end().exit(0)).collect();
        assert!(round == 0 || ended.iter().all(|o| o.stdout.contains("cache 100% (5 of 5 hits)")));
    }
    assert_eq!(store(&sage).entries().len(), 30);
}

// covers: R11
#[test]
fn settings_have_their_sources_and_useless_ones_are_told() {
    let sage = Sage::new();
    sage.write("sage.toml", "[cache]\nmaxSize = \"5MB\"\n");
    let shown = sage.args(["config", "--json"]).env("SAGE_CACHE_TTL", "3d").run().exit(0).json();
    let setting = |name: &str| {
        let all = shown["settings"].as_array().unwrap();
        let found = all.iter().find(|setting| setting["name"] == name).unwrap();
        format!("{} {}", found["value"].as_str().unwrap(), found["source"].as_str().unwrap())
    };
    assert_eq!(setting("cache.ttl"), "3d environment SAGE_CACHE_TTL");
    assert_eq!(setting("cache.maxSize"), "5MB sage.toml");
    assert_eq!(setting("cache.enabled"), "true default");
    sage.args(["config"]).env("SAGE_CACHE_TTL", "soon").run().exit(2).stderr_has("SAGE_CACHE_TTL");
    sage.write("sage.toml", "[cache]\nttl = \"30\"\n");
    sage.sage("config").exit(2).stderr_has("cache.ttl");
    sage.write("sage.toml", "");
    let text = "name: w\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: fake, role: implementer, cache: true, prompt: x }\n";
    sage.write(".sage/templates/w.yaml", text);
    sage.sage("validate w").exit(0).stderr_has("`cache` has no effect here");
}
