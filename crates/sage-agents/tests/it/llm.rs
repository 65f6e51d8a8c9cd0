//! The `llm` agent against the scripted endpoint, in all three protocols.

mod sessions;
mod trouble;

use sage_agents::AgentConfig;
use sage_agents::fake_llm::FakeLlm;
use sage_core::policy::FailureClass;
use sage_core::port::{Message, Progress, QuotaSignal, StepOutcome};
use sage_core::role::Role;
use sage_core::template::Kind;
use serde_json::{Value, json};

use crate::bench::{Bench, until};

const APIS: [&str; 3] = ["anthropic", "responses", "chat"];

fn config(api: &str, url: &str) -> AgentConfig {
    AgentConfig {
        name: "model".into(),
        adapter: "llm".into(),
        api: Some(api.into()),
        url: Some(url.into()),
        model: Some("m-1".into()),
        api_key_env: Some("MODEL_KEY".into()),
        env: [("MODEL_KEY".to_string(), "k-secret".to_string())].into(),
        ..AgentConfig::default()
    }
}

fn bench(api: &str, fake: &FakeLlm) -> Bench {
    bench_of(config(api, &fake.url()))
}

fn bench_of(config: AgentConfig) -> Bench {
    let mut bench = Bench::new(Kind::Agent, json!({"prompt": "do it"})).agent(config);
    bench.call.agent = Some("model".into());
    bench.config.sessions = Some(bench.path("sessions"));
    bench
}

fn quotas(bench: &Bench) -> Vec<QuotaSignal> {
    let progress = bench.progress.lock().unwrap();
    let quota = |it: &Progress| match it {
        Progress::Quota(signal) => Some(*signal),
        _ => None,
    };
    progress.iter().filter_map(quota).collect()
}

/// All entries of a request's conversation, whatever its protocol calls them.
fn entries(request: &Value) -> &Vec<Value> {
    request["messages"].as_array().or(request["input"].as_array()).unwrap()
}

fn usage(input: u64, output: u64) -> Value {
    json!({"input_tokens": input, "output_tokens": output, "cached": 40, "cacheCreationInputTokens": 5, "reasoning": 3})
}

// covers: S1, P2
#[tokio::test]
async fn an_answer_comes_with_exactly_the_usage_that_was_sent() {
    for api in APIS {
        let limits = json!({
            "anthropic-ratelimit-requests-limit": 50, "anthropic-ratelimit-requests-remaining": 49,
            "x-ratelimit-limit-requests": 50, "x-ratelimit-remaining-requests": 49,
        });
        let turn = json!({"thinking": "hm", "text": "done: {{last_user}}", "usage": usage(100, 20), "headers": limits});
        let fake = FakeLlm::start(json!([turn])).unwrap();
        let bench = bench(api, &fake).param("system", json!("be brief"));
        let outcome = bench.run().await.0;
        let StepOutcome::Succeeded { result, usage } = outcome else { panic!("{api}: {outcome:?}") };
        assert_eq!(result, "done: do it", "{api}");
        assert_eq!(usage.tokens(), fake.sent_usage(), "{api}");
        assert_eq!(usage.total(), if api == "anthropic" { 165 } else { 120 });
        assert_eq!(bench.usages(), [usage]);
        assert_eq!(quotas(&bench)[0].requests.unwrap().left, 49, "{api}");
        assert_eq!(bench.activity(), "done: do it\n");

        let [request] = fake.requests().try_into().unwrap();
        let auth = if api == "anthropic" { "x-api-key" } else { "bearer" };
        assert_eq!((&request["auth"], &request["body"]["model"]), (&json!(auth), &json!("m-1")));
        let text = request["body"].to_string();
        assert!(text.contains("be brief") && text.contains("read_file"), "{text}");
        if api == "anthropic" {
            assert_eq!(request["headers"]["anthropic-version"], "2023-06-01");
            let marked = json!({"type": "ephemeral"});
            assert_eq!(request["body"]["system"][0]["cache_control"], marked);
            assert_eq!(request["body"]["messages"][0]["content"][0]["cache_control"], marked);
        }
    }
}

// covers: S1, P2
#[tokio::test]
async fn tools_are_used_until_there_is_an_answer() {
    for api in APIS {
        let look = json!({"name": "read_file", "input": {"path": "notes.txt"}});
        let list = json!({"name": "list_files", "input": {}});
        let fake = FakeLlm::start(json!([
            {"text": "I look.", "tools": [look, list], "usage": usage(100, 20)},
            {"tool": {"name": "read_file", "input": {"path": "../../etc/passwd"}}, "usage": usage(200, 5)},
            {"tool": {"name": "dance", "input": {}}, "usage": usage(200, 5)},
            {"tool": {"name": "read_file", "input": "no object"}, "usage": usage(300, 6)},
            {"text": "It says: forty-two", "usage": usage(400, 7)},
        ]))
        .unwrap();
        let bench = bench(api, &fake);
        std::fs::write(bench.path("notes.txt"), "forty-two").unwrap();
        let outcome = bench.run().await.0;
        let StepOutcome::Succeeded { result, usage } = outcome else { panic!("{api}: {outcome:?}") };
        assert_eq!(result, "It says: forty-two", "the last answer alone");
        assert_eq!(usage.tokens(), fake.sent_usage(), "{api}");
        let totals: Vec<u64> = bench.usages().iter().map(|usage| usage.total()).collect();
        assert!(totals.len() == 5 && totals.is_sorted() && totals[4] == usage.total(), "{totals:?}");

        let prompts = fake.prompts();
        let told: Vec<String> =
            prompts.iter().map(|it| serde_json::to_string(entries(it).last().unwrap()).unwrap()).collect();
        let all = serde_json::to_string(entries(&prompts[1])).unwrap();
        assert!(all.contains("forty-two") && all.contains("notes.txt"), "{all}");
        for (number, part) in
            [(2, "outside the project"), (3, "there is no tool `dance`"), (4, "not a JSON object")]
        {
            assert!(told[number].contains(part), "{api}: {}", told[number]);
        }
        // Each request is the one before and what came of it, so that a cache can help.
        for pair in prompts.windows(2) {
            let plain = |request: &Value| {
                serde_json::to_string(entries(request))
                    .unwrap()
                    .replace(r#","cache_control":{"type":"ephemeral"}"#, "")
            };
            let (before, after) = (plain(&pair[0]), plain(&pair[1]));
            assert!(after.starts_with(before.trim_end_matches(']')), "{before}\n{after}");
        }
        let log = bench.activity();
        assert!(log.starts_with("I look.\n> read_file notes.txt\n"), "{log}");
    }
}

// covers: S6
#[tokio::test]
async fn only_who_may_write_can_write() {
    for (role, written) in [(Role::Implementer, true), (Role::Auditor, false), (Role::Planner, false)] {
        let write = json!({"name": "write_file", "input": {"path": "src/new.rs", "content": "// new"}});
        let fake = FakeLlm::start(json!([{"tool": write}, {"text": "done"}])).unwrap();
        let mut bench = bench("anthropic", &fake);
        bench.call.role = Some(role);
        bench.run().await.succeeded();
        assert_eq!(bench.path("src/new.rs").exists(), written, "{role}");
        let offered = fake.prompts()[0]["tools"].to_string();
        assert_eq!(offered.contains("write_file"), role != Role::Auditor);
    }
    let fake = FakeLlm::start(json!([{"text": "done"}])).unwrap();
    let bench = bench("chat", &fake).param("tools", json!(["list_files", "Bash"]));
    bench.run().await.succeeded();
    let tools = fake.prompts()[0]["tools"].as_array().unwrap().clone();
    assert_eq!((tools.len(), &tools[0]["function"]["name"]), (1, &json!("list_files")));
    assert!(bench.activity().contains("there is no tool `Bash` here"));
}

// covers: S1
#[tokio::test]
async fn a_schema_is_asked_for_in_each_protocols_way() {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false,
    });
    for api in APIS {
        let answer = match api {
            "anthropic" => json!({"tool": {"name": "structured_output", "input": {"n": 7}}}),
            _ => json!({"text": "```json\n{\"n\": 7}\n```"}),
        };
        let fake = FakeLlm::start(json!([
            {"tool": {"name": "list_files", "input": {}}}, answer,
        ]))
        .unwrap();
        let mut bench = bench(api, &fake);
        bench.call.schema = Some(schema.clone());
        assert_eq!(bench.run().await.succeeded(), json!({"n": 7}), "{api}");
        let request = &fake.prompts()[0];
        match api {
            "anthropic" => {
                assert_eq!(request["tool_choice"], json!({"type": "any"}));
                let tools = request["tools"].as_array().unwrap();
                assert_eq!(tools.last().unwrap()["input_schema"], schema);
            }
            "responses" => {
                let format =
                    json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": true});
                assert_eq!(request["text"]["format"], format);
            }
            _ => assert_eq!(request["response_format"]["json_schema"]["schema"], schema),
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_no_object_is_wrapped_on_the_way() {
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let give = json!({"name": "structured_output", "input": {"value": ["a"]}});
    let fake = FakeLlm::start(json!([{"text": "here", "tools": [give, {"name": "list_files"}]}])).unwrap();
    let mut bench = bench("anthropic", &fake).param("tools", json!(["none"]));
    bench.call.schema = Some(schema.clone());
    assert_eq!(bench.run().await.succeeded(), json!(["a"]));
    let request = &fake.prompts()[0];
    assert_eq!(request["tool_choice"], json!({"type": "tool", "name": "structured_output"}));
    assert_eq!(request["tools"][0]["input_schema"]["properties"]["value"], schema);

    // Text that is no JSON is for the engine to judge.
    let fake = FakeLlm::start(json!([{"text": "I would rather not"}])).unwrap();
    let mut bench = bench_of(config("responses", &fake.url()));
    bench.call.schema = Some(schema);
    assert_eq!(bench.run().await.succeeded(), "I would rather not");
}

#[tokio::test]
async fn going_round_in_circles_has_an_end() {
    let fake = FakeLlm::start(json!([{"text": "again", "tool": {"name": "list_files"}}])).unwrap();
    let bench = bench("responses", &fake).param("maxTurns", json!(3));
    let failure = bench.run().await.failed(FailureClass::Failed).says("no answer after 3 turns");
    assert_eq!(fake.prompts().len(), 3);
    assert_eq!(failure.usage.tokens(), fake.sent_usage());
    assert_eq!(failure.partial, json!({"text": "again\nagain\nagain"}));
}

// covers: S11
#[tokio::test]
async fn the_key_is_sent_and_nowhere_else() {
    let fake =
        FakeLlm::start(json!([{"tool": {"name": "list_files"}}, {"status": 401, "message": "bad key"}]))
            .unwrap();
    let bench = bench("chat", &fake);
    let outcome = format!("{:?}", bench.run().await.0);
    assert!(outcome.contains("bad key") && !outcome.contains("k-secret"), "{outcome}");
    let mut open = vec![bench.dir.path().to_path_buf()];
    let mut files = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            files += 1;
            assert!(
                !String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains("k-secret"),
                "{path:?}"
            );
        }
    }
    assert!(files >= 4, "log, session, turn, conversation");
}

/// Says `Blue` to everything.
struct Blue(std::sync::Mutex<Vec<String>>);

impl sage_core::port::Asks for Blue {
    fn ask(
        &self,
        ask: sage_core::port::PermissionAsk,
    ) -> sage_core::port::BoxFuture<'static, sage_core::port::Permission> {
        let inquiry = ask.inquiry.unwrap();
        let given =
            sage_core::inquiry::PersonAnswers::to(inquiry.questions(), &["Blue".into()], None).unwrap();
        self.0.lock().unwrap().push(inquiry.title());
        Box::pin(async move {
            // Longer than the attempt may be idle.
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            sage_core::port::Permission::Allow { input: Some(given.into_input()) }
        })
    }
}

// covers: P3, R14
#[tokio::test]
async fn a_model_asks_a_person_where_its_step_lets_it() {
    for api in APIS {
        let ask =
            json!({"name": "ask_person", "input": {"question": "Which color?", "options": ["Red", "Blue"]}});
        let fake = FakeLlm::start(json!([{"tool": ask}, {"text": "so: {{last_tool_result}}"}])).unwrap();
        let blue = std::sync::Arc::new(Blue(Default::default()));
        let mut asking = bench(api, &fake).param("questions", json!(true)).idle_timeout(200);
        asking.cx.questions = sage_core::port::Questions::new(blue.clone());
        asking.call.params.insert("tools".into(), json!(["read_file"]));
        assert_eq!(asking.run().await.succeeded(), "so: Blue", "{api}");
        assert_eq!(*blue.0.lock().unwrap(), ["Which color? (Red, Blue)"]);
        let quiet = bench(api, &fake);
        fake.reset(json!([{"text": "x"}]).try_into().unwrap());
        quiet.run().await.succeeded();
        assert!(!fake.prompts()[0].to_string().contains("ask_person"), "{api}");
        let planning = bench(api, &fake).param("mode", json!("plan"));
        planning.run().await.failed(FailureClass::Invalid).says("agent `model` has no plan mode");
    }
}

// covers: S4
#[tokio::test]
async fn a_persons_message_comes_with_the_next_request() {
    for api in APIS {
        let script = json!([
            {"tool": {"name": "list_files", "input": {}}, "usage": usage(10, 1)},
            // Time to say something while the model gives its last answer: it is not the last one then.
            {"text": "first", "usage": usage(10, 1), "delayMs": 1_500},
            {"text": "second", "usage": usage(10, 1)},
        ]);
        let fake = FakeLlm::start(script).unwrap();
        let bench = bench(api, &fake);
        let message = |id: &str| Message { id: id.into(), text: format!("mind the {id}") };
        bench.cx.messages.send(message("gap"));
        let late = async {
            until("the last request", || fake.requests().len() == 2).await;
            bench.cx.messages.send(message("door"));
        };
        let (outcome, ()) = tokio::join!(bench.start(), late);
        let StepOutcome::Succeeded { result, usage } = outcome else { panic!("{api}: {outcome:?}") };
        assert_eq!(result, "second", "{api}");
        assert_eq!(usage.tokens(), fake.sent_usage(), "{api}");
        let prompts: Vec<String> = fake.prompts().iter().map(Value::to_string).collect();
        let first = |id: &str| prompts.iter().position(|prompt| prompt.contains(&format!("mind the {id}")));
        assert_eq!((prompts.len(), first("gap"), first("door")), (3, Some(0), Some(2)), "{api}");
        assert!(bench.activity().ends_with("first\n@ mind the door\nsecond\n"), "{}", bench.activity());
    }
}
