//! Budgets and estimates from the command line: what a dry run says, where a run stops, how it goes on.

use sage_core::event::{Event, Settings};
use serde_json::Value;

use crate::dsl::Sage;

/// One agent step after the other; each uses 10,000 tokens.
fn chain(extra: &str, fields: &str) -> String {
    let step = |id: &str, needs: &str| {
        format!(
            "      - {{ id: {id}, type: agent, agent: fake, model: my-model, prompt: go, {needs} {fields} params: {{ script: [{{ result: 1, usage: {{ input: 8000, output: 2000 }} }}] }} }}\n"
        )
    };
    format!(
        "name: t\n{extra}phases:\n  - id: p\n    operations:\n{}{}",
        step("a", ""),
        step("b", "needs: [a],")
    )
}

const PRICES: &str = "[prices.my-model]\ninput = 1\noutput = 5\n";

fn settings(sage: &Sage, feature: &str) -> Settings {
    let journal = sage.journal(feature);
    let Event::RunStarted(started) = &journal.records[0].event else { panic!("no start") };
    started.settings.clone()
}

fn estimate(sage: &Sage, command: &str) -> Value {
    let plan = sage.sage(command).exit(0).json();
    assert_eq!(plan["type"], "plan");
    plan["estimate"].clone()
}

// covers: R18
#[test]
fn a_dry_run_projects_tokens_and_money_and_spends_nothing() {
    let sage = Sage::new().template("t", &chain("", ""));
    sage.write("sage.toml", PRICES);
    let before = estimate(&sage, "run x -t t --dry-run --json");
    assert_eq!((&before["unknown"], &before["tokens"]), (&2.into(), &0.into()), "{before}");
    assert!(!sage.path(".sage/state").exists(), "nothing was started");
    sage.sage("run x -t t --dry-run").exit(0).stdout_has("2 agent steps; 2 of them unknown");
    sage.sage("run x -t t --quiet").exit(0);
    let after = estimate(&sage, "run x -t t --dry-run --json");
    assert_eq!((&after["unknown"], &after["tokens"]), (&0.into(), &20_000.into()), "{after}");
    let first = &after["steps"][0];
    assert_eq!((&first["path"], &first["from"]), (&"p/a".into(), &"history".into()), "{after}");
    // 8,000 in and 2,000 out, at 1 and 5 dollars for a million.
    assert!((after["costUsd"].as_f64().unwrap() - 0.036).abs() < 1e-9, "{after}");
    assert_eq!(sage.journal("x").started().len(), 2, "dry runs started nothing");
    let fits = estimate(&sage, "run x -t t --dry-run --json --budget 1usd+30k");
    assert_eq!((&fits["fits"], &fits["budget"]), (&true.into(), &"1usd+30k".into()), "{fits}");
    sage.sage("run x -t t --dry-run --budget 15k").exit(0).stderr_has("more than the budget of 15k");
    assert_eq!(estimate(&sage, "run x -t t --dry-run --json --budget 0.01usd")["fits"], false);
}

// covers: R18
#[test]
fn estimates_know_budgets_fan_outs_and_sub_workflows() {
    let inner = "name: inner\nphases:\n  - id: deep\n    operations: { id: a, type: agent, agent: fake, model: gpt-5, budget: 10k, prompt: x }\n";
    let outer = "name: t\nphases:\n  - id: p\n    operations:\n      - { id: all, type: agent, agent: fake, foreach: \"[1, 2]\", prompt: x }\n      - { id: sub, type: workflow, params: { template: inner } }\n";
    let sage = Sage::new().template("t", outer).template("inner", inner);
    let found = estimate(&sage, "run x -t t --dry-run --json --budget 50k");
    let steps = found["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["path"], &steps[0]["perItem"]), (&"p/all".into(), &true.into()), "{found}");
    assert_eq!((&steps[1]["path"], &steps[1]["tokens"]), (&"p/sub/deep/a".into(), &10_000.into()), "{found}");
    assert_eq!((&steps[1]["from"], &steps[1]["perItem"]), (&"budget".into(), &false.into()));
    assert!(steps[1]["costUsd"].as_f64().unwrap() > 0.0, "{found}");
    assert_eq!(found["fits"], Value::Null, "one of them is not known");
    sage.sage("run x -t t --dry-run").exit(0).stdout_has("unknown, per item").stdout_has("prices of 20");
}

// covers: R18
#[test]
fn flags_win_over_the_template_and_the_template_over_the_project() {
    let sage =
        Sage::new().template("t", &chain("", "")).template("own", &chain("budget: 90k\npriority: P3\n", ""));
    sage.write(
        "sage.toml",
        "budget = \"80k\"\npriority = \"P1\"\n[agents.fake]\nbudget = \"70k\"\n[agents.claude]\nadapter = \"command\"\ncommand = [\"cat\"]\naccount = \"work\"\n",
    );
    sage.sage("run a -t t --quiet").exit(0);
    let from_project = settings(&sage, "a");
    assert_eq!((from_project.budget.unwrap().tokens, from_project.priority), (Some(80_000), Some(1)));
    assert_eq!(from_project.agent_budgets["fake"].tokens, Some(70_000));
    let providers: Vec<(&str, &str)> =
        from_project.providers.iter().map(|(agent, provider)| (agent.as_str(), provider.as_str())).collect();
    assert_eq!(providers, [("claude", "anthropic/work"), ("codex", "openai"), ("gemini", "google")]);
    assert_eq!(from_project.pools["io"], 8);
    sage.sage("run b -t own --quiet").exit(0);
    let from_template = settings(&sage, "b");
    assert_eq!((from_template.budget, from_template.priority), (None, None), "left to the template");
    sage.sage("run c -t own --quiet --budget 1usd+60k --priority p0").exit(0);
    let from_flags = settings(&sage, "c");
    assert_eq!(from_flags.budget.unwrap().to_string(), "1usd+60k");
    assert_eq!(from_flags.priority, Some(0));
    sage.sage("run d -t t --budget 5eur").exit(2).stderr_has("is not a budget");
    sage.sage("run d -t t --priority high").exit(2).stderr_has("P0 (first)");
}

// covers: R18
#[test]
fn a_run_stops_at_its_budget_and_goes_on_when_it_is_raised() {
    let sage = Sage::new().template("t", &chain("budget: 15k\n", ""));
    // The first one teaches what a step needs, so that the second run stops before its second step.
    sage.sage("run first -t t --quiet --budget 1M").exit(0);
    sage.sage("run x -t t --quiet").exit(4);
    let tree = sage.sage("budget x --json").exit(0).json();
    assert_eq!((&tree["type"], &tree["capped"]), (&"budget".into(), &true.into()), "{tree}");
    let node = |name: &str| {
        let nodes = tree["nodes"].as_array().unwrap();
        nodes
            .iter()
            .find(|node| node["node"] == name)
            .unwrap_or_else(|| panic!("no {name} in {tree}"))
            .clone()
    };
    assert_eq!(node("run")["cap"]["tokens"], 15_000);
    assert_eq!(node("run")["spent"]["tokens"], 10_000);
    assert_eq!(node("run")["left"]["tokens"], 5_000);
    assert_eq!(node("phase:p")["spent"]["tokens"], 10_000);
    assert_eq!(node("step:p/a")["spent"]["tokens"], 10_000);
    assert_eq!(node("agent:fake")["spent"]["tokens"], 10_000);
    sage.sage("budget x").exit(0).stdout_has("15k").stderr_has("sage resume x");
    sage.sage("budget x raise 10k").exit(2).stderr_has("spent already: 10k").stderr_has("raise 20k");
    sage.sage("budget x raise nothing").exit(2).stderr_has("is not a budget");
    sage.sage("budget x raise +1usd").exit(2).stderr_has("there is none in money");
    sage.sage("budget x raise 50k --of fase:p").exit(2).stderr_has("did you mean `phase:p`?");
    sage.sage("budget x raise +35k").exit(0).stdout_has("is 50k now").stderr_has("sage resume x");
    sage.sage("resume x --budget 60k --quiet").exit(0);
    assert_eq!(sage.status("x")["metrics"]["budget"]["cap"]["tokens"], 60_000, "the newest word counts");
    sage.journal("x").assert_nothing_repeated();
    sage.sage("budget none").exit(2).stderr_has("no run of `none`");
}

// covers: R18
#[test]
fn what_is_over_is_told() {
    let sage = Sage::new().template("t", &chain("", "budget: 9k,"));
    sage.sage("run x -t t --quiet");
    sage.sage("budget x").exit(0).stdout_has("over by 1k tokens");
    let free = Sage::new().template("t", &chain("", ""));
    free.sage("run x -t t --quiet").exit(0);
    free.sage("budget x").exit(0).stdout_has("nothing is capped").stdout_has("20k tokens");
}

// covers: R18
#[test]
fn a_budget_is_raised_while_the_run_is_at_work() {
    let text = "name: t\nbudget: 15k\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: fake, prompt: go, params: { script: [{ run: \"echo up >> up; until [ -e go ]; do sleep 0.02; done\", result: 1, usage: { input: 20000 } }] } }\n";
    let sage = Sage::new().template("t", text);
    let mut running = sage.spawn("run x -t t");
    running.until(|| !sage.lines("up").is_empty(), "the agent");
    let raised = sage.sage("budget x raise 40k --json").exit(0).json();
    assert_eq!((&raised["type"], &raised["cap"]), (&"budgetRaised".into(), &"40k".into()), "{raised}");
    sage.write("go", "");
    running.end().exit(0);
    let kinds: Vec<&str> = sage.journal("x").records.iter().map(|entry| entry.event.kind()).collect();
    assert!(kinds.contains(&"budget.raised"), "{kinds:?}");
}

// covers: R18
#[test]
fn a_resume_changes_only_what_is_given() {
    let sage = Sage::new().template("t", &chain("", ""));
    sage.sage("run first -t t --quiet").exit(0);
    sage.sage("run x -t t --quiet --budget 15k --priority P1 --parallel 3").exit(4);
    sage.sage("resume x --quiet --budget 50k").exit(0);
    let journal = sage.journal("x");
    let changed = journal.records.iter().find_map(|entry| match &entry.event {
        Event::RunOpened(opened) => opened.settings.clone(),
        _ => None,
    });
    let changed = changed.unwrap();
    assert_eq!(changed.budget.unwrap().tokens, Some(50_000));
    assert_eq!((changed.priority, changed.parallel), (Some(1), 3));
}
