//! Endpoints that refuse, break off, hang, or are no endpoints at all.

use std::time::{Duration, Instant};

use sage_agents::fake_llm::FakeLlm;
use sage_core::policy::FailureClass;
use sage_core::port::{Refusal, Stop, Usage};
use serde_json::{Value, json};

use super::{APIS, bench, bench_of, config, quotas};
use crate::bench::until;

// covers: R7, P5
#[tokio::test]
async fn every_refusal_has_its_class_and_is_not_tried_again() {
    use FailureClass::{Auth, Invalid, Quota, RateLimit, Transient};
    let soon = Some(Refusal { retry_after_ms: Some(2_000), reset_at_ms: None });
    let rows: [(Value, FailureClass, Option<Refusal>); 12] = [
        (json!({"status": 429, "headers": {"Retry-After": "2"}}), RateLimit, soon),
        (json!({"status": 429}), RateLimit, None),
        (json!({"status": 429, "error": "insufficient_quota"}), Quota, None),
        (json!({"status": 529}), Transient, None),
        (json!({"status": 503, "headers": {"Retry-After": "2"}}), Transient, soon),
        (json!({"status": 500}), Transient, None),
        (json!({"status": 502, "message": "bad gateway"}), Transient, None),
        (json!({"status": 401}), Auth, None),
        (json!({"status": 403}), Auth, None),
        (json!({"status": 400, "message": "prompt is too long"}), Invalid, None),
        (json!({"status": 404}), Invalid, None),
        (json!({"status": 413}), Invalid, None),
    ];
    for api in APIS {
        for (turn, class, refusal) in &rows {
            let fake = FakeLlm::start(json!([turn, {"text": "never"}])).unwrap();
            let failure = bench(api, &fake).run().await.failed(*class);
            assert_eq!(failure.refusal, *refusal, "{api} {turn}");
            assert_eq!(
                (fake.prompts().len(), &failure.usage),
                (1, &Usage::none()),
                "{api} {turn}: known to be nothing"
            );
            let said = turn["message"].as_str().unwrap_or("scripted");
            failure.says(&turn["status"].to_string()).says(said);
        }
    }
}

// covers: R7
#[tokio::test]
async fn a_far_reset_is_a_quota_with_its_time() {
    let fake = FakeLlm::start(json!([{"status": 429, "headers": {
        "Retry-After": 7200, "anthropic-ratelimit-input-tokens-limit": 1000,
        "anthropic-ratelimit-input-tokens-remaining": 0,
    }}]))
    .unwrap();
    let bench = bench("anthropic", &fake);
    let now_ms = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    let before = now_ms();
    let refusal = bench.run().await.failed(FailureClass::Quota).refusal.unwrap();
    let reset = refusal.reset_at_ms.unwrap();
    assert!((before + 7_200_000..=now_ms() + 7_200_000).contains(&reset));
    assert_eq!(quotas(&bench)[0].input_tokens.unwrap().left, 0, "limits are told with a refusal, too");
}

// covers: P5
#[tokio::test]
async fn an_answer_that_breaks_off_is_passing_and_its_text_is_kept() {
    for api in APIS {
        for fault in [json!({"drop": true}), json!({"midstreamError": "overloaded_error"})] {
            let mut turn =
                json!({"text": "half a thought", "usage": {"input_tokens": 9, "output_tokens": 4}});
            turn.as_object_mut().unwrap().extend(fault.as_object().unwrap().clone());
            let fake = FakeLlm::start(json!([turn, {"text": "never"}])).unwrap();
            let failure = bench(api, &fake).run().await.failed(FailureClass::Transient);
            assert_eq!(failure.partial, json!({"text": "half a thought"}), "{api} {fault}");
            assert_eq!(failure.usage.tokens(), fake.sent_usage(), "{api}: what was said about usage counts");
            assert_eq!(fake.prompts().len(), 1);
            failure.says("broke off");
        }
    }
    let fake =
        FakeLlm::start(json!([{"failed": "server_error", "usage": {"input_tokens": 9, "output_tokens": 4}}]));
    let fake = fake.unwrap();
    let failure = bench("responses", &fake).run().await.failed(FailureClass::Transient);
    assert_eq!(failure.usage.tokens(), fake.sent_usage());
    failure.says("server_error: scripted failure");
}

#[tokio::test]
async fn an_answer_that_is_cut_off_or_refused_is_a_failure_with_its_text() {
    for api in APIS {
        let usage = json!({"input_tokens": 9, "output_tokens": 4});
        let fake = FakeLlm::start(json!([
            {"text": "once upon", "stop_reason": "max_tokens", "usage": usage},
            {"text": "I must not", "stop_reason": "refusal", "usage": usage},
            {"text": "hm", "stop_reason": "tired", "usage": usage},
            {"usage": usage},
        ]))
        .unwrap();
        let mut named = bench(api, &fake);
        let mut failed = async || {
            // Another step each time: nobody goes on with what the others said.
            named.call.key.push('x');
            named.run().await.failed(FailureClass::Failed)
        };
        let cut = failed().await.says("cut off");
        assert_eq!(cut.partial, json!({"text": "once upon"}), "{api}");
        let refused = failed().await.says("the model refused: I must not");
        assert_eq!(refused.partial, json!({"text": "I must not"}), "{api}");
        // Only the protocols that have a word for it can use an unknown one.
        if api != "responses" {
            failed().await.says("unknown reason, `tired`");
        } else {
            named.call.key.push('y');
            assert_eq!(named.run().await.succeeded(), "hm");
        }
        named.call.key.push('z');
        named.run().await.failed(FailureClass::Failed).says("no answer");
    }
}

// covers: P4
#[tokio::test]
async fn silence_ends_with_the_idle_timeout_and_a_trickle_does_not() {
    async fn wait(api: &str) {
        let fake = FakeLlm::start(json!([
            {"hang": true},
            {"text": "half", "stall": true},
            {"text": "slow", "paceMs": 400},
            {"text": "slow", "paceMs": 400},
        ]))
        .unwrap();
        let idle = || bench(api, &fake).idle_timeout(1_000);
        idle().run().await.failed(FailureClass::Timeout).says("no progress for 1s");
        let half = idle().run().await.failed(FailureClass::Timeout);
        assert_eq!(half.partial, json!({"text": "half"}), "{api}");
        // Four pauses: longer than the limit in sum, and each of them shorter.
        assert_eq!(idle().run().await.succeeded(), "slow");
        idle().timeout(100).run().await.failed(FailureClass::Timeout).says("timed out after 100ms");
    }
    tokio::join!(wait("anthropic"), wait("responses"), wait("chat"));
}

// covers: P3
#[tokio::test]
async fn a_stop_is_obeyed_at_once() {
    for (api, turn) in APIS.into_iter().zip([
        json!({"hang": true}),
        json!({"text": "x", "stall": true}),
        json!({"hang": 60}),
    ]) {
        let fake = FakeLlm::start(json!([turn])).unwrap();
        let bench = bench(api, &fake);
        let begun = Instant::now();
        let story = async {
            until("the request", || fake.prompts().len() == 1).await;
            bench.cx.stop.set(Stop::Graceful);
        };
        bench.run_with(story).await.stopped();
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

// covers: P5
#[tokio::test]
async fn nobody_there_is_passing_and_somebody_else_there_is_not() {
    let gone = FakeLlm::start(json!([])).unwrap();
    let url = gone.url();
    drop(gone);
    let failure = bench_of(config("anthropic", &url)).run().await.failed(FailureClass::Transient);
    failure.says("cannot reach 127.0.0.1:").says("refused");

    let fake = FakeLlm::start(json!([{"text": "x", "headers": {"content-type": "text/html"}}])).unwrap();
    bench("chat", &fake)
        .run()
        .await
        .failed(FailureClass::Invalid)
        .says("`text/html` instead of an event stream");
}

// covers: S12
#[tokio::test]
async fn a_wrong_configuration_is_told_before_anything_is_sent() {
    let fake = FakeLlm::start(json!([{"text": "never"}])).unwrap();
    let good = config("chat", &fake.url());
    let told = async |config: sage_agents::AgentConfig, class: FailureClass, part: &str| {
        bench_of(config).run().await.failed(class).says(part);
    };
    let with = |change: fn(&mut sage_agents::AgentConfig)| {
        let mut config = good.clone();
        change(&mut config);
        config
    };
    told(with(|c| c.model = None), FailureClass::Invalid, "needs a `model`").await;
    told(with(|c| c.api = None), FailureClass::Invalid, "anthropic, responses or chat").await;
    told(with(|c| c.url = Some("http://example.com".into())), FailureClass::Invalid, "https").await;
    told(with(|c| c.env.clear()), FailureClass::Auth, "`MODEL_KEY` is not set").await;
    let newline = with(|c| drop(c.env.insert("MODEL_KEY".into(), "a\nb".into())));
    told(newline, FailureClass::Auth, "characters that no key has").await;
    assert!(fake.requests().is_empty());
}
