//! Expressions in processes of their own: values as in this process, an end to time and memory, nothing left.

use std::sync::Arc;

use sage_agents::Evaluators;
use sage_core::expr::Order;
use sage_core::port::{Evaluator, Unguarded};
use serde_json::{Value, json};

use crate::bench::{sage, until};

/// Processes that this test program has started and that still live.
fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    listed.map(|pids| pids.split_whitespace().count()).sum()
}

// covers: R14
#[test]
fn values_are_those_of_this_process() {
    let evaluators = Evaluators::new(sage());
    let context =
        json!({"title": "a \u{1b} b", "inputs": {"n": [3, 1, 2], "big": 9_007_199_254_740_993_u64}});
    let params =
        json!({"env": {"A": "{% for n in inputs.n %}{{ n }},{% endfor %}"}, "n": "{{ inputs.n | sort }}"});
    let orders = [
        Order::value("inputs.n | map(. * 2)", &context),
        Order::value(".[", &context),
        Order::value("error(\"no\")", &context),
        Order::filter("sort | .[:2]", &context["inputs"]["n"], &context),
        Order::text("{% for n in inputs.n %}{{ n }}{% endfor %} {{ title }}", &context),
        Order::text("{{ nothing }}", &context),
        Order::params(sage_core::template::Kind::Tool, params.as_object().unwrap(), &context),
        Order::value("inputs.big", &context),
    ];
    for order in &orders {
        assert_eq!(evaluators.evaluate(order), Unguarded.evaluate(order), "{order:?}");
    }
}

// covers: R14, R20
#[test]
fn an_expression_without_end_or_measure_costs_only_its_process() {
    let evaluators = Evaluators::new(sage());
    let null = Value::Null;
    for (order, limit) in [
        (Order::value("[range(1000000000)] | length", &null), "1024 MiB of memory"),
        (
            Order::text("{{ '%999999999d' | format(1) }}{{ '%999999999d' | format(1) }}", &null),
            "1024 MiB of memory",
        ),
        (Order::value("until(false; .)", &null), "10 s"),
    ] {
        let why = evaluators.evaluate(&order).unwrap_err();
        assert!(why.to_string().contains(limit), "{order:?}: {why}");
        assert_eq!(evaluators.evaluate(&Order::value("[.[]?] | length", &null)), Ok(json!(0)));
    }
    drop(evaluators);
    assert_eq!(children(), 0);
}

// covers: R13
#[test]
fn many_at_once_share_a_few_processes() {
    let evaluators = Arc::new(Evaluators::new(sage()));
    std::thread::scope(|scope| {
        for n in 0..20 {
            let evaluators = Arc::clone(&evaluators);
            scope.spawn(move || {
                let context = json!({"inputs": (0..n).collect::<Vec<u32>>()});
                let value = evaluators.evaluate(&Order::value("[inputs[]] | length", &context));
                assert_eq!(value, Ok(json!(n)));
                assert!(children() <= 2);
            });
        }
    });
}

// covers: R5
#[tokio::test]
async fn a_process_ends_with_its_input_also_in_the_middle_of_an_expression() {
    let mut child = std::process::Command::new(sage())
        .arg(sage_agents::EVALUATE_ARG)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let line = serde_json::to_string(&Order::value("until(false; .)", &Value::Null)).unwrap() + "\n";
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    until("the expression is under way", || cpu_ticks(&stat) > 5).await;
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

fn cpu_ticks(stat: &str) -> u64 {
    let text = std::fs::read_to_string(stat).unwrap_or_default();
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split_whitespace().nth(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
