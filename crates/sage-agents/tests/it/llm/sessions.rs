//! Conversations that go on: after a failure, after a kill, in a copy, and not with what is broken.

use sage_agents::fake_llm::FakeLlm;
use sage_agents::session::Store;
use sage_core::policy::FailureClass;
use sage_core::port::{Continuity, Progress};
use serde_json::{Value, json};

use super::{APIS, bench, entries};
use crate::bench::{Bench, key};

fn continuities(bench: &Bench) -> Vec<Continuity> {
    let progress = bench.progress.lock().unwrap();
    let session = |it: &Progress| match it {
        Progress::Session { continuity, .. } => Some(*continuity),
        _ => None,
    };
    progress.iter().filter_map(session).collect()
}

/// Everything that a request says, without marks for the cache.
fn said(request: &Value) -> String {
    serde_json::to_string(entries(request)).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

// covers: S3, R3
#[tokio::test]
async fn a_failed_turn_goes_on_where_it_was() {
    for api in APIS {
        let fake = FakeLlm::start(json!([
            {"status": 529},
            {"text": "I look.", "tool": {"name": "read_file", "input": {"path": "a.txt"}}},
            {"text": "half", "drop": true},
            {"text": "whole"},
        ]))
        .unwrap();
        let mut bench = bench(api, &fake);
        std::fs::write(bench.path("a.txt"), "apple").unwrap();
        bench.run().await.failed(FailureClass::Transient);
        bench.call.attempt = 2;
        bench.run().await.failed(FailureClass::Transient).says("broke off");
        bench.call.attempt = 3;
        assert_eq!(bench.run().await.succeeded(), "whole");
        assert_eq!(continuities(&bench), [Continuity::New, Continuity::Resumed, Continuity::Resumed]);

        let prompts = fake.prompts();
        assert_eq!(prompts.len(), 4);
        assert_eq!(said(&prompts[1]), said(&prompts[0]), "{api}: a prompt nobody heard is not said twice");
        let (before, last) = (said(&prompts[2]), said(&prompts[3]));
        assert!(last.starts_with(before.trim_end_matches(']')), "{api}: {last}");
        assert!(last.contains("apple") && last.contains("Go on from there"), "{api}: {last}");
        assert_eq!(last.matches("do it").count(), 1, "{api}: {last}");
    }
}

// covers: S3
#[tokio::test]
async fn a_call_without_a_result_does_not_spoil_the_conversation() {
    for api in APIS {
        let fake = FakeLlm::start(json!([
            {"text": "I look.", "tool": {"name": "list_files", "input": {}, "id": "t-1"}, "stop_reason": "max_tokens"},
            {"text": "whole"},
        ]))
        .unwrap();
        let mut bench = bench(api, &fake);
        bench.run().await.failed(FailureClass::Failed);
        bench.call.attempt = 2;
        assert_eq!(bench.run().await.succeeded(), "whole");
        let last = said(&fake.prompts()[1]);
        assert_eq!(last.matches("t-1").count(), if last.contains("t-1") { 2 } else { 0 }, "{api}: {last}");
        assert_eq!(last.contains("t-1"), last.contains("nobody knows whether it was done"), "{api}: {last}");
        assert!(last.contains("t-1"), "{api}: the call is part of the conversation: {last}");
    }
}

// covers: S3, S4
#[tokio::test]
async fn a_named_session_goes_on_and_a_fork_goes_its_own_way() {
    for api in APIS {
        let fake = FakeLlm::start(json!([{"text": "answer {{n}}"}])).unwrap();
        let mut bench = bench(api, &fake).param("prompt", json!("first"));
        let store = Store::new(bench.path("sessions"), Some(key()));
        bench.call.session = Some("main".into());
        bench.run().await.succeeded();
        let step = async |bench: &mut Bench, session: &str, prompt: &str| {
            bench.call.session = Some(session.into());
            bench.call.key = prompt.into();
            bench.call.params.insert("prompt".into(), prompt.into());
            bench.run().await.succeeded()
        };
        assert_eq!(step(&mut bench, "main", "second").await, "answer 2");
        store.fork("main", "copy").unwrap();
        assert_eq!(step(&mut bench, "copy", "third").await, "answer 3");
        assert_eq!(step(&mut bench, "main", "fourth").await, "answer 4");
        assert_eq!(step(&mut bench, "copy", "fifth").await, "answer 5");
        use Continuity::{Forked, New, Resumed};
        assert_eq!(continuities(&bench), [New, Resumed, Forked, Resumed, Resumed]);
        let prompts = fake.prompts();
        for (number, known) in [
            (1, "first answer 1 second"),
            (2, "first answer 1 second answer 2 third"),
            (3, "first answer 1 second answer 2 fourth"),
            (4, "first answer 1 second answer 2 third answer 3 fifth"),
        ] {
            let text = said(&prompts[number]);
            let mut at = 0;
            let words = [
                "first", "second", "third", "fourth", "fifth", "answer 1", "answer 2", "answer 3", "answer 4",
            ];
            for word in words {
                assert_eq!(text.contains(word), known.contains(word), "{api} {number}: `{word}` in {text}");
            }
            for word in known.split(' ').filter(|word| word.len() > 3 && *word != "answer") {
                let found = text[at..].find(word).unwrap_or_else(|| panic!("{word} in order: {text}"));
                at += found;
            }
        }
        assert!(store.load("main").unwrap().context_tokens.unwrap() > 0);
    }
}

// covers: S3, R3
#[tokio::test]
async fn a_conversation_that_is_gone_or_damaged_is_told_again() {
    for damage in ["gone", "damaged", "other protocol"] {
        let fake = FakeLlm::start(json!([{"text": "apples"}, {"text": "pears"}])).unwrap();
        let mut bench = bench("anthropic", &fake).param("prompt", json!("what do you like?"));
        bench.call.session = Some("main".into());
        bench.run().await.succeeded();
        let folder = bench.path("sessions/main");
        let file = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let file =
            file.into_iter().find(|path| path.display().to_string().contains("conversation-")).unwrap();
        match damage {
            "gone" => std::fs::remove_file(file).unwrap(),
            "damaged" => std::fs::write(file, "{").unwrap(),
            _ => bench.config.agents.get_mut("model").unwrap().api = Some("chat".into()),
        }
        bench.call.key = "other".into();
        bench.call.params.insert("prompt".into(), "and now?".into());
        assert_eq!(bench.run().await.succeeded(), "pears", "{damage}");
        assert_eq!(*continuities(&bench).last().unwrap(), Continuity::Reloaded, "{damage}");
        let text = said(&fake.prompts()[1]);
        assert!(text.contains("what do you like?") && text.contains("apples") && text.contains("and now?"));
        assert_eq!(entries(&fake.prompts()[1]).len(), 1, "{damage}: told in one message");
    }
}
