//! Limits from the command line: the configuration of targets, pools and agents, `limits`, `breakers`, and what
//! runs make of them.

use sage_core::event::Event;
use sage_core::port::StepExecutor;
use serde_json::Value;

use crate::dsl::{Running, Sage};

/// Steps that note when they begin and end; each runs until `go` is there or for a moment.
fn noted(count: usize, fields: &str, wait: &str) -> String {
    let step = |n: usize| {
        format!(
            "      - {{ id: s{n}, {fields}, params: {{ run: \"echo + >> log; {wait}; echo - >> log\" }} }}\n"
        )
    };
    let steps: String = (0..count).map(step).collect();
    format!("name: t\nphases:\n  - id: p\n    operations:\n{steps}")
}

const MOMENT: &str = "sleep 0.15";
const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.02; done";

/// An agent that any program can be: it notes when it begins and ends.
const NOTING: &str = "command = [\"sh\", \"-c\", \"echo + >> log; sleep 0.15; echo - >> log; echo done\"]";

/// How many were at work at once at most.
fn widest(sage: &Sage) -> i32 {
    let (mut now, mut most) = (0, 0);
    for line in sage.lines("log") {
        now += if line == "+" { 1 } else { -1 };
        most = most.max(now);
    }
    most
}

fn begun(sage: &Sage) -> usize {
    sage.lines("log").iter().filter(|line| *line == "+").count()
}

fn setting(sage: &Sage, name: &str) -> (String, String) {
    let config = sage.sage("config --json").exit(0).json();
    let settings = config["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {config}"));
    (found["value"].as_str().unwrap().into(), found["source"].as_str().unwrap().into())
}

fn target(sage: &Sage, command: &str, name: &str) -> Value {
    let shown = sage.sage(command).exit(0).json();
    let targets = shown["targets"].as_array().unwrap();
    targets.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("no {name} in {shown}")).clone()
}

fn pool(sage: &Sage, name: &str) -> Value {
    let shown = sage.sage("limits --json").exit(0).json();
    assert_eq!(shown["type"], "limits");
    let pools = shown["pools"].as_array().unwrap();
    pools.iter().find(|p| p["name"] == name).unwrap_or_else(|| panic!("no {name} in {shown}")).clone()
}

// covers: R13, P6
#[test]
fn every_limit_has_a_default_and_a_place_it_comes_from() {
    let sage = Sage::new();
    for name in ["cpu", "memory", "io"] {
        let (size, source) = setting(&sage, &format!("pools.{name}"));
        assert!(size.parse::<u32>().unwrap() > 0);
        assert_eq!(source, "default", "{name}");
    }
    for provider in ["anthropic", "openai", "google"] {
        assert_eq!(
            setting(&sage, &format!("targets.provider:{provider}")),
            ("4 at once".into(), "default".into())
        );
    }
    assert_eq!(setting(&sage, "minMemory"), ("256MB".into(), "default".into()));
    sage.write(
        "sage.toml",
        "[pools]\ncpu = 3\n[agents.claude]\nadapter = \"command\"\ncommand = [\"cat\"]\naccount = \"work\"\n[targets.\"provider:anthropic\"]\nconcurrent = 7\nrequestsPerMinute = 50\n",
    );
    assert_eq!(setting(&sage, "pools.cpu"), ("3".into(), "sage.toml".into()));
    assert_eq!(setting(&sage, "agents.claude.provider").0, "anthropic/work");
    let account = target(&sage, "limits --json", "provider:anthropic/work");
    assert_eq!((&account["size"], &account["requestsPerMinute"]), (&7.into(), &50.into()), "as its provider");
    assert_eq!(pool(&sage, "cpu")["size"], 3);
}

// covers: R13, P6, R18
#[test]
fn wrong_values_are_refused_with_their_place() {
    let sage = Sage::new();
    let cases = [
        ("budget = \"5eur\"", "`budget`"),
        ("priority = \"P9\"", "P0 (first)"),
        ("minMemory = \"lots\"", "`minMemory`"),
        ("ageing = \"0s\"", "`ageing`"),
        ("[pools]\ncpu = 0", "pool `cpu` has no room"),
        ("[pools]\nglobal = 1", "`global` cannot be the name of a pool"),
        ("[targets.api]\nconcurrent = 1", "`api` is not a target"),
        ("[targets.\"hots:a\"]\nconcurrent = 1", "did you mean `host`?"),
        ("[targets.\"host:a\"]\nconcurrent = 0", "`targets.\"host:a\".concurrent`"),
        ("[targets.\"host:a\"]\nconcurent = 1", "unknown field `concurent`"),
        ("[targets.\"host:a\".breaker]\non = [\"timeot\"]", "did you mean `timeout`?"),
        ("[targets.\"host:a\".breaker]\nratio = { share = 1.5 }", "ratio.share`"),
        ("[targets.\"host:a\".breaker]\nopenFor = \"soon\"", "openFor`"),
        ("[targets.\"host:a\".breaker]\nsuccesses = 0", "successes`"),
        ("[agents.a]\nbudget = \"x\"", "`agents.a.budget`"),
        ("[agents.a]\nprovider = \"a/b\"", "`agents.a.provider`"),
        ("[[affinity]]\nagents = []\nmaxConcurrent = 1", "names no agents"),
        ("[[affinity]]\nagents = [\"a\"]\nmaxConcurrent = 0", "wait for ever"),
        (
            "[[affinity]]\nagents = [\"a\"]\nmaxConcurrent = 1\nresourceProfile = \"cpuu\"",
            "did you mean `cpu`?",
        ),
        ("[prices.m]\ninput = -1\noutput = 1", "cannot be negative"),
    ];
    for (text, told) in cases {
        sage.write("sage.toml", text);
        sage.sage("config").exit(2).stderr_has(told).stderr_has("sage.toml");
    }
}

// covers: R7
#[test]
fn agents_of_fallbacks_are_missed_before_the_run() {
    let text = |agent: &str| {
        format!(
            "name: t\nphases:\n  - id: p\n    operations: {{ id: a, type: agent, agent: fake, prompt: x, fallback: [{{ agent: {agent} }}], params: {{ script: [{{ result: 1 }}] }} }}\n"
        )
    };
    let sage = Sage::new().template("t", &text("nobody")).template("u", &text("bare"));
    sage.sage("run x -t t").exit(2).stderr_has("fallback to agent `nobody` is not configured");
    sage.write("sage.toml", "[agents.bare]\nprovider = \"p\"\n");
    sage.sage("run x -t u").exit(2).stderr_has("fallback to agent `bare` has no command");
    assert!(!sage.path(".sage/state").exists(), "found before anything is spent");
}

// covers: R14
#[test]
fn only_agents_that_show_progress_can_stall() {
    let agent = |adapter: &str| sage_agents::AgentConfig { adapter: adapter.into(), ..Default::default() };
    let agents = [("mine".to_string(), agent("command")), ("played".to_string(), agent("fake"))];
    let config = sage_agents::ExecutorConfig { agents: agents.into(), ..Default::default() };
    let executor = sage_agents::Executor::new(config);
    assert!(executor.shows_progress("fake") && executor.shows_progress("played"));
    assert!(!executor.shows_progress("command") && !executor.shows_progress("mine"));
}

// covers: R7
#[test]
fn what_has_not_begun_is_given_up_and_the_rest_finishes() {
    let sage = Sage::new().template("t", &noted(4, "type: shell", UNTIL_GO));
    let mut running = sage.spawn("run x -t t --parallel 1");
    running.until(|| begun(&sage) == 1, "the first step");
    let cleared = sage.sage("cancel x --queued --json").exit(0).json();
    assert_eq!((&cleared["type"], &cleared["cancelled"]), (&"cleared".into(), &3.into()), "{cleared}");
    sage.write("go", "");
    running.end().exit(1);
    assert_eq!((begun(&sage), sage.lines("log").len()), (1, 2), "it finished, and no other began");
    sage.sage("cancel x --queued --no-checkpoint").exit(2);
    sage.sage("cancel x --queued").exit(2).stderr_has("nothing to cancel");
}

// covers: R23
#[test]
fn little_memory_means_one_step_at_a_time() {
    let sage = Sage::new().template("t", &noted(4, "type: shell", MOMENT));
    sage.write("sage.toml", "minMemory = \"100000GB\"\n");
    sage.sage("run x -t t --quiet --parallel 4").exit(0);
    assert_eq!(widest(&sage), 1);
    let why = sage.journal("x").records.iter().find_map(|entry| match &entry.event {
        Event::LimitsChanged(changed) => Some(changed.why.clone()),
        _ => None,
    });
    assert!(why.unwrap().contains("memory"));
    sage.write("sage.toml", "minMemory = \"0\"\n");
    std::fs::remove_file(sage.path("log")).unwrap();
    sage.sage("run y -t t --quiet --parallel 4").exit(0);
    assert!(widest(&sage) > 1);
}

// covers: R13
#[test]
fn limits_are_set_by_name_and_stay_until_they_are_unset() {
    let sage = Sage::new();
    sage.write("sage.toml", "parallel = 5\n[pools]\ngpu = 2\n");
    for (name, limit) in [("gpu", "0"), ("gpu", "-1"), ("gpu", "many"), ("gpu", "")] {
        sage.args(["limits", "set", name, limit]).run().exit(2).stderr_has("whole number from 1 on");
    }
    sage.sage("limits set gpuu 3").exit(2).stderr_has("did you mean `gpu`?");
    sage.sage("limits set hots:a 3").exit(2).stderr_has("did you mean `host`?");
    sage.sage("limits unset gpu").exit(2).stderr_has("is not set");
    sage.sage("limits set gpu 3").exit(0).stderr_has("sage limits unset gpu");
    sage.sage("limits set parallel 2").exit(0).stdout_has("global is 2");
    sage.sage("limits set provider:anthropic 1 --json").exit(0);
    let gpu = pool(&sage, "gpu");
    assert_eq!((&gpu["size"], &gpu["overridden"]), (&3.into(), &true.into()), "{gpu}");
    assert_eq!(pool(&sage, "global")["size"], 2);
    assert_eq!(target(&sage, "limits --json", "provider:anthropic")["size"], 1);
    sage.sage("limits").exit(0).stdout_has("3*").stdout_has("* set by `sage limits set`");
    for name in ["gpu", "global", "provider:anthropic"] {
        sage.args(["limits", "unset", name]).run().exit(0);
    }
    let global = pool(&sage, "global");
    assert_eq!((&global["size"], &global["overridden"]), (&5.into(), &false.into()));
    assert_eq!(target(&sage, "limits --json", "provider:anthropic")["size"], 4);
}

// covers: R13
#[test]
fn a_limit_that_is_set_holds_for_a_run_under_way() {
    let sage = Sage::new().template("t", &noted(6, "type: shell", UNTIL_GO));
    let mut running = sage.spawn("run x -t t --parallel 2");
    running.until(|| begun(&sage) == 2, "two steps");
    sage.sage("limits set global 4").exit(0);
    running.until(|| begun(&sage) == 4, "two more, because the limit was raised");
    sage.write("go", "");
    running.end().exit(0);
    assert_eq!(widest(&sage), 4);
    // It stays for the next run, whatever that one asks for.
    sage.sage("limits set global 1").exit(0);
    std::fs::remove_file(sage.path("log")).unwrap();
    sage.sage("run y -t t --quiet --parallel 4").exit(0);
    assert_eq!(widest(&sage), 1);
}

// covers: R7
#[test]
fn an_isolated_target_is_left_alone_until_it_is_reset() {
    let sage = Sage::new().template("t", &noted(1, "type: shell, target: \"host:a\"", "true"));
    sage.sage("breakers isolate a").exit(2).stderr_has("<kind>:<name>");
    sage.args(["breakers", "isolate", "host:a", "-m", "being mended"])
        .run()
        .exit(0)
        .stderr_has("nothing has called");
    sage.sage("breakers").exit(0).stdout_has("isolated").stdout_has("being mended");
    sage.sage("run x -t t --quiet --no-wait").exit(4);
    assert_eq!(begun(&sage), 0);
    sage.sage("limits").exit(0).stdout_has("isolated: being mended");
    sage.sage("breakers reset host:b").exit(2).stderr_has("did you mean `host:a`?");
    sage.sage("breakers reset").exit(2);
    sage.sage("breakers reset host:a").exit(0).stdout_has("reset host:a");
    sage.sage("resume x --quiet").exit(0);
    let changes = target(&sage, "breakers host:a --json", "host:a")["changes"].clone();
    assert_eq!((&changes[0]["to"], &changes[1]["to"]), (&"isolated".into(), &"closed".into()), "{changes}");
}

// covers: R7
#[test]
fn a_breaker_opens_as_configured_is_shown_and_is_reset() {
    let text = "name: t\nphases:\n  - id: p\n    operations: { id: a, type: shell, target: \"host:a\", params: { run: \"[ -e mended ]\" } }\n";
    let sage = Sage::new().template("t", text);
    sage.write("sage.toml", "[targets.\"host:a\"]\nbreaker = { failures = 2, openFor = \"1h\" }\n");
    sage.sage("run a -t t --quiet").exit(1);
    assert_eq!(target(&sage, "breakers --json", "host:a")["failures"], 1);
    sage.sage("run b -t t --quiet").exit(1);
    let open = target(&sage, "breakers host:a --json", "host:a");
    assert_eq!((&open["state"], &open["openings"]), (&"open".into(), &1.into()), "{open}");
    assert_eq!(open["hold"]["reason"], "breaker", "{open}");
    assert!(open["changes"][0]["why"].as_str().unwrap().starts_with("2 failures in a row"), "{open}");
    sage.sage("breakers").exit(0).stdout_has("open for").stderr_has("sage breakers reset host:a");
    sage.sage("run c -t t --quiet --no-wait").exit(4);
    sage.write("mended", "");
    sage.sage("breakers reset --all").exit(0).stdout_has("host:a");
    sage.sage("breakers reset --all --json").exit(0);
    sage.sage("resume c --quiet").exit(0);
    assert_eq!(target(&sage, "breakers --json", "host:a")["state"], "closed");
}

// covers: P6
#[test]
fn agents_of_an_affinity_rule_share_its_slots() {
    let step =
        |n: usize, agent: &str| format!("      - {{ id: s{n}, type: agent, agent: {agent}, prompt: go }}\n");
    let steps: String = (0..6).map(|n| step(n, if n % 2 == 0 { "one" } else { "two" })).collect();
    let sage = Sage::new().template("t", &format!("name: t\nphases:\n  - id: p\n    operations:\n{steps}"));
    let agents = format!("[agents.one]\n{NOTING}\n[agents.two]\n{NOTING}\n");
    sage.write(
        "sage.toml",
        format!(
            "{agents}[[affinity]]\nagents = [\"one\", \"two\"]\nmaxConcurrent = 2\nresourceProfile = \"io\"\n"
        ),
    );
    sage.sage("run x -t t --quiet --parallel 6").exit(0);
    assert_eq!((begun(&sage), widest(&sage)), (6, 2));
    assert_eq!(pool(&sage, "affinity:0")["agents"], serde_json::json!(["one", "two"]));
    sage.sage("limits set affinity:0 3").exit(2).stderr_has("maxConcurrent");
}

// covers: R13
#[test]
fn a_provider_takes_four_at_once_unless_it_is_said_otherwise() {
    let step = |n: usize| format!("      - {{ id: s{n}, type: agent, agent: mine, prompt: go }}\n");
    let steps: String = (0..10).map(step).collect();
    let sage = Sage::new().template("t", &format!("name: t\nphases:\n  - id: p\n    operations:\n{steps}"));
    let agent = format!("[agents.mine]\n{NOTING}\nprovider = \"anthropic\"\n");
    sage.write("sage.toml", &agent);
    sage.sage("run x -t t --quiet --parallel 10").exit(0);
    assert_eq!((begun(&sage), widest(&sage)), (10, 4));
    std::fs::remove_file(sage.path("log")).unwrap();
    sage.write("sage.toml", format!("{agent}[targets.\"provider:anthropic\"]\nconcurrent = 2\n"));
    sage.sage("run y -t t --quiet --parallel 10").exit(0);
    assert_eq!((begun(&sage), widest(&sage)), (10, 2));
}

// covers: R13
#[test]
fn limits_show_who_uses_and_who_waits() {
    let sage = Sage::new().template("t", &noted(3, "type: shell, pool: gpu", UNTIL_GO));
    sage.write("sage.toml", "[pools]\ngpu = 1\n");
    let mut first = sage.spawn("run x -t t");
    first.until(|| begun(&sage) == 1, "the first step");
    let mut second: Running = sage.spawn("run y -t t --priority P0");
    let waits = || pool(&sage, "gpu")["waiting"].as_array().unwrap().iter().any(|w| w["feature"] == "y");
    second.until(waits, "the second run to wait");
    let gpu = pool(&sage, "gpu");
    assert_eq!((&gpu["used"], &gpu["users"][0]["feature"]), (&1.into(), &"x".into()), "{gpu}");
    assert_eq!(gpu["waiting"][0]["priority"], "P0", "{gpu}");
    sage.sage("limits").exit(0).stdout_has("x 1").stdout_has("waits: y (P0");
    sage.write("go", "");
    first.end().exit(0);
    second.end().exit(0);
    assert_eq!((begun(&sage), widest(&sage)), (6, 1), "two runs share one pool");
    assert_eq!(pool(&sage, "gpu")["used"], 0, "nothing is left behind");
}

// covers: R13
#[test]
fn who_waits_for_more_is_also_a_user() {
    let sage = Sage::new()
        .template("one", &noted(1, "type: shell, pool: gpu", UNTIL_GO))
        .template("two", &noted(2, "type: shell, pool: gpu", UNTIL_GO));
    sage.write("sage.toml", "[pools]\ngpu = 2\n");
    let mut first = sage.spawn("run y -t one");
    first.until(|| begun(&sage) == 1, "the first run's step");
    let mut second = sage.spawn("run x -t two");
    let waits = || !pool(&sage, "gpu")["waiting"].as_array().unwrap().is_empty();
    second.until(|| begun(&sage) == 2 && waits(), "the second run to hold one and wait for another");
    let gpu = pool(&sage, "gpu");
    assert_eq!((&gpu["used"], &gpu["users"][0]["units"]), (&2.into(), &1.into()), "{gpu}");
    assert_eq!((&gpu["waiting"][0]["feature"], &gpu["waiting"][0]["units"]), (&"x".into(), &Value::Null));
    sage.sage("limits").exit(0).stdout_has("x 1, y 1").stdout_has("waits: x (P2, for ");
    sage.write("go", "");
    first.end().exit(0);
    second.end().exit(0);
}
