//! What people are told about limits: who waits for what, what is wrong with a setting, what to type.

use crate::calls::{agents, first, is_pause};
use crate::dsl::Sage;

const QUOTA: &str = "refuse: 1, fault: quota, resetAfterMs: 3630000, whileClosed: true";

fn stands_still(sage: &Sage) -> bool {
    sage.engine().latest("x").is_some() && first(&sage.journal("x"), is_pause).is_some()
}

// covers: R7, R8, R13
#[test]
fn a_wait_is_told_with_an_owner_and_otherwise_what_to_type() {
    let sage = Sage::new().template("t", &agents(4, QUOTA, ""));
    let mut running = sage.spawn("run x -t t --parallel 2 --quiet");
    running.until(|| stands_still(&sage), "the run to stand still");
    let text = "a provider's limit is reached";
    let owned = sage.sage("status x").exit(0).stdout_has(text).stderr_lacks("nobody");
    owned
        .stdout_has("paused, 1h 00m left: a")
        .stdout_has("4 wait for the quota of provider:fake, 1h 00m left");
    sage.sage("explain x").exit(0).stdout_has("waits for the quota of provider:fake");
    running.kill();
    sage.sage("status x")
        .exit(0)
        .stdout_has(&format!("paused: {text}, until 20"))
        .stderr_has("sage resume x");
    sage.sage("status x").exit(0).stderr_has("note: no process waits for it");
    sage.sage("list").exit(0).stdout_has("no process waits for it: sage resume");
    assert_eq!(sage.status("x")["owner"], serde_json::Value::Null);
}

// covers: R7, R8
#[test]
fn a_quiet_run_says_that_it_waits() {
    let quota = QUOTA.replace("3630000", "1500");
    let sage = Sage::new().template("t", &agents(2, &quota, ""));
    sage.sage("run x -t t --quiet").exit(0).stderr_has("paused until 20").stderr_has("a provider's limit");
    let left = Sage::new().template("t", &agents(2, QUOTA, ""));
    left.sage("run x -t t --quiet --no-wait").exit(4).stderr_lacks("paused until");
}

// covers: R13, R18
#[test]
fn times_need_units_and_mistakes_name_their_place() {
    let sage = Sage::new();
    let breaker = |field: &str| format!("[targets.\"host:a\".breaker]\n{field}\n");
    let cases = [
        ("timeout = \"60\"".to_string(), "\"60\" has no unit", "timeout = \"60s\""),
        ("ageing = \"2\"".into(), "\"2\" has no unit", "ageing = \"2s\""),
        ("ageing = 2".into(), "2 milliseconds", "ageing = \"2s\""),
        (breaker("openFor = \"60\""), "\"60\" has no unit", "openFor = \"60s\""),
        (breaker("openFor = 60"), "60 milliseconds", "openFor = \"60s\""),
        (breaker("window = 60"), "60 milliseconds", "window = \"60s\""),
        (breaker("slow = { after = 5 }"), "5 milliseconds", "slow.after = \"5s\""),
        ("parallel = 0".into(), "`sage.toml`: `parallel`", "parallel = 4"),
        ("[agents.mine]\ncommand = []".into(), "`agents.mine.command`: it is empty", "[agents.mine] command"),
    ];
    for (text, told, hint) in cases {
        sage.write("sage.toml", &text);
        sage.sage("config").exit(2).stderr_has(told).stderr_has(hint);
    }
    sage.write("sage.toml", format!("timeout = 60000\nageing = 2000\n{}", breaker("openFor = \"500ms\"")));
    sage.sage("config").exit(0);
}

// covers: R13, P6
#[test]
fn what_limits_nothing_is_warned_of() {
    let step = "name: t\nphases:\n  - id: p\n    operations: { id: a, type: shell, pool: POOL, params: { run: \"true\" } }\n";
    let sage = Sage::new()
        .template("t", &step.replace("POOL", "cup"))
        .template("wide", &step.replace("POOL", "{ gpu: 5 }"));
    sage.write(
        "sage.toml",
        "[pools]\ngpu = 2\n[agents.bare]\nprovider = \"p\"\n[[affinity]]\nagents = [\"cluade\"]\nmaxConcurrent = 1\n",
    );
    let told = "pool `cup` is not configured, so it limits nothing";
    sage.sage("validate t")
        .exit(0)
        .stderr_has(told)
        .stderr_has("did you mean `cpu`?")
        .stdout_has("1 warning)");
    assert_eq!(sage.sage("validate t --json").exit(0).json()["warnings"][0], told);
    sage.sage("run x -t t").exit(0).stderr_has(told).stderr_has("agent `cluade` is not configured");
    sage.sage("run y -t t --json").exit(0).stderr_lacks("warning");
    sage.sage("validate wide").exit(0).stderr_has("step `p/a` takes 5 of pool `gpu`, which has 2");
    let config = sage.sage("config").exit(0).stderr_has("did you mean `claude`?");
    config.stderr_has("agent `bare` has no command");
}

// covers: R13, P6
#[test]
fn the_configuration_shows_rates_breakers_and_agents() {
    let sage = Sage::new();
    sage.write(
        "sage.toml",
        "[agents.mine]\ncommand = [\"my-agent\", \"two words\"]\nbudget = \"5usd\"\n[targets.\"host:a\"]\nrequestsPerMinute = 50\nbreaker = { failures = 1, openFor = \"5m\", slow = { after = \"2s\" } }\n",
    );
    let config = sage.sage("config").exit(0);
    let config = config.stdout_has("agents.mine.command").stdout_has("my-agent 'two words'");
    let config = config.stdout_has("agents.mine.budget").stdout_has("50 requests");
    config
        .stdout_has("opens after 5 failures, for 1m 00s; closes after 2 successes")
        .stdout_has("opens after 1 failure or when 50% of 10 calls take 2s within 1m 00s, for 5m 00s");
}

/// One agent step after the other; each uses 10,000 tokens.
fn chain(extra: &str, phase: &str) -> String {
    let step = |id: &str, needs: &str| {
        format!(
            "      - {{ id: {id}, type: agent, agent: fake, prompt: go, {needs} params: {{ script: [{{ result: 1, usage: {{ input: 8000, output: 2000 }} }}] }} }}\n"
        )
    };
    let steps = format!("{}{}", step("a", ""), step("b", "needs: [a],"));
    format!("name: t\n{extra}phases:\n  - id: p\n{phase}    operations:\n{steps}")
}

// covers: R18
#[test]
fn a_short_budget_is_named_with_what_to_type() {
    let sage = Sage::new()
        .template("t", &chain("", "    budget: 15k\n"))
        .template("free", &chain("", ""))
        .template("fail", &chain("budget: 15k\nonBudget: fail\n", ""));
    sage.sage("run first -t free --quiet").exit(0);
    let run = sage.sage("run x -t t").exit(4);
    let run = run.stdout_has("run paused: a budget has no room: the budget of phase `p` is 15k tokens");
    run.stdout_has("a budget has no room\n").stdout_has("sage budget x raise 30k --of phase:p");
    sage.sage("status x").exit(0).stderr_has("hint: sage budget x raise 30k --of phase:p");
    let short = sage.sage("budget x raise 5 --of phase:p").exit(2);
    short.stderr_has("sage budget x raise 5usd --of phase:p    # for money; 5 means 5 tokens");
    sage.sage("budget x raise 1M --of step:p/a")
        .exit(2)
        .stderr_has("`step:p/a` has no budget of its own; raise `phase:p`");
    sage.sage("budget x raise 2M --of phase:p").exit(0);
    sage.sage("budget x raise 1M --of phase:p").exit(0).stdout_has("is 1M now, lowered from 2M");
    sage.sage("resume x --quiet").exit(0);
    let failed = sage.sage("run y -t fail --quiet").exit(1).stdout_has("next: sage budget y raise 30k");
    assert!(!failed.stdout.contains("sage logs"), "{}", failed.stdout);
}

// covers: R7, R8
#[test]
fn an_isolated_target_and_its_reset_are_told() {
    let text = "name: t\nphases:\n  - id: p\n    operations: { id: a, type: shell, target: \"host:iso\", params: { run: \"true\" } }\n";
    let sage = Sage::new().template("t", text);
    sage.args(["breakers", "isolate", "host:iso", "-m", "maintenance"]).run().exit(0);
    sage.sage("run x -t t").exit(4).stdout_has("`host:iso` is isolated: maintenance");
    sage.sage("status x").exit(0).stdout_has("waits for host:iso (isolated: maintenance)");
    sage.sage("breakers reset").exit(2).stderr_has("or `--all`").stderr_has("sage breakers reset --all");
    sage.sage("run y -t t --no-wait").exit(4);
    sage.sage("breakers reset --all").exit(0).stdout_has("reset host:iso\n");
    sage.sage("breakers reset --all").exit(0).stdout_has("nothing to reset");
    sage.sage("resume x --quiet").exit(0);
    sage.sage("list --status failed").exit(0).stderr_has("no failed runs");
}
