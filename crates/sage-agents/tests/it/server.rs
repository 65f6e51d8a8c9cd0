//! The scripted server behind all fake agents: refused calls, in total and over all processes.

use std::time::{Duration, SystemTime};

use sage_core::policy::FailureClass;
use sage_core::port::StepOutcome;
use serde_json::{Value, json};

use crate::bench::{Bench, until};

fn calls(bench: &Bench) -> Vec<Value> {
    bench.read("calls.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn epoch_ms() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis().try_into().unwrap()
}

// covers: R7
#[tokio::test]
async fn the_first_calls_of_all_agents_together_are_refused() {
    let server = json!({"log": "calls.jsonl", "refuse": 3, "retryAfterMs": 40});
    let turn = json!({"server": server, "say": "served", "usage": {"input": 5}});
    let home = Bench::fake(json!([turn]));
    let benches: Vec<Bench> = (0..8)
        .map(|n| Bench::fake(json!([turn])).attempt(n + 1).beside(&home, &format!("build/a[{n}]")))
        .collect();
    let running: Vec<_> = benches.iter().map(|bench| tokio::spawn(bench.start())).collect();
    let (mut served, mut refused) = (0, 0);
    for outcome in running {
        match outcome.await.unwrap() {
            StepOutcome::Succeeded { result, .. } if result == "served" => served += 1,
            StepOutcome::Failed { class: FailureClass::RateLimit, usage, refusal, .. } => {
                assert_eq!(refusal.unwrap().retry_after_ms, Some(40));
                assert!(usage.is_empty());
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((served, refused), (5, 3));
    let calls = calls(&home);
    let answers: Vec<bool> = calls.iter().map(|call| call["refused"].as_bool().unwrap()).collect();
    assert_eq!(answers, [true, true, true, false, false, false, false, false]);
    let mut who: Vec<String> = calls.iter().map(|it| format!("{} {}", it["step"], it["attempt"])).collect();
    who.sort();
    let expected: Vec<String> = (0..8).map(|n| format!("\"build/a[{n}]\" {}", n + 1)).collect();
    assert_eq!(who, expected);
    assert!(calls.is_sorted_by_key(|call| call["t"].as_u64().unwrap()));
    assert_eq!(calls[0]["opensAt"].as_u64().unwrap(), calls[0]["t"].as_u64().unwrap() + 40);
}

// covers: R7
#[tokio::test]
async fn a_closed_server_refuses_who_comes_too_early() {
    let server = json!({
        "log": "../calls.jsonl", "refuse": 1, "fault": "quota", "resetAfterMs": 2_000,
        "whileClosed": true,
    });
    let outside = Bench::fake(json!([{ "server": server }]));
    outside.run().await.failed(FailureClass::Failed).says("is outside the project");

    let mut server = server;
    server["log"] = "calls.jsonl".into();
    let bench = Bench::fake(json!([{"server": server, "result": 1}]));
    let first = bench.run().await.failed(FailureClass::Quota).refusal.unwrap().reset_at_ms.unwrap();
    let second = bench.run().await.failed(FailureClass::Quota).refusal.unwrap().reset_at_ms.unwrap();
    assert_eq!(second, first, "all are told the same time");
    until("the reset", || epoch_ms() >= first).await;
    assert_eq!(bench.run().await.succeeded(), 1);
    let told: Vec<(Value, Value)> =
        calls(&bench).iter().map(|it| (it["refused"].clone(), it["early"].clone())).collect();
    let expected = [(true, false), (true, true), (false, false)];
    assert_eq!(told, expected.map(|(refused, early)| (json!(refused), json!(early))));
}

#[tokio::test]
async fn calls_that_are_served_at_the_same_time_are_counted() {
    let server = json!({"log": "calls.jsonl", "refuse": 0});
    let home = Bench::fake(json!([{"server": server, "say": "done"}])).grace(Duration::from_secs(5));
    let slow = json!([{"server": server, "fault": "hang", "wakeOnNudge": true}]);
    let waiting = Bench::fake(slow.clone()).beside(&home, "build/waits");
    let killed = Bench::fake(slow).beside(&home, "build/dies");
    let story = async {
        until("two calls", || calls(&home).len() == 2).await;
        killed.cx.stop.set(sage_core::port::Stop::Now);
    };
    let second = async {
        until("one call", || calls(&home).len() == 1).await;
        killed.run_with(story).await.stopped();
        home.run().await.succeeded();
        waiting.cx.nudge.give();
    };
    waiting.run_with(second).await.succeeded();
    home.run().await.succeeded();
    let in_flight: Vec<u64> = calls(&home).iter().map(|it| it["inFlight"].as_u64().unwrap()).collect();
    assert_eq!(in_flight, [1, 2, 2, 1]);
}
