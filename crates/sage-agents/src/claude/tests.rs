//! The fold and the outcome table, with lines as the program prints them (2.1.325), shortened.

use sage_core::policy::FailureClass;
use sage_core::port::{Refusal, Usage};
use sage_core::price::PriceTable;
use serde_json::{Value, json};

use super::event::{Block, Event, Fault, Line};
use super::judge::judge;
use super::shape::Shape;
use super::tab::Counted;
use super::transcript::Transcript;
use crate::outcome::Miss;
use crate::process::{Captured, End, Finished};

fn line(value: &Value) -> Line {
    Line::parse(value.to_string().as_bytes()).unwrap()
}

fn transcript(lines: &[Value]) -> Transcript {
    let mut transcript = Transcript::new(None);
    lines.iter().for_each(|value| transcript.take(&line(value).event));
    transcript
}

fn finished(end: End, stderr: &str) -> Finished {
    let stderr = Captured { tail: stderr.into(), ..Captured::default() };
    Finished { end, stdout: Captured::default(), stderr }
}

fn judged(lines: &[Value]) -> Result<Value, Miss> {
    judge(&transcript(lines), &finished(End::Exited(1), ""), false, None)
}

#[track_caller]
fn failed(answer: Result<Value, Miss>, wanted: FailureClass, says: &str) -> Option<Refusal> {
    let Err(Miss::Failed { class, message, refusal, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(class, wanted, "{message}");
    assert!(message.contains(says), "`{says}` is not in: {message}");
    refusal
}

fn api_error(kind: &str, status: Option<u16>, text: &str) -> [Value; 2] {
    let message = json!({"model": "<synthetic>", "content": [{"type": "text", "text": text}]});
    [
        json!({"type": "assistant", "message": message, "error": kind, "is_api_error_message": true,
            "api_error_status": status}),
        json!({"type": "result", "subtype": "success", "is_error": true, "terminal_reason": "api_error",
            "api_error_status": status, "result": text, "num_turns": 1, "stop_reason": "stop_sequence"}),
    ]
}

fn result(subtype: &str, reason: &str, errors: &[&str]) -> Value {
    json!({"type": "result", "subtype": subtype, "is_error": subtype != "success", "terminal_reason": reason,
        "errors": errors, "num_turns": 2, "result": "fine"})
}

fn retry(status: Option<u16>, kind: &str, delay_ms: u64) -> Value {
    json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 1, "retry_delay_ms": delay_ms,
        "error_status": status, "error": kind})
}

#[test]
fn lines_are_read_and_unknown_ones_mean_nothing() {
    for unknown in
        [json!({}), json!({"type": "stream_event"}), json!({"type": "system", "subtype": "status"})]
    {
        assert!(matches!(line(&unknown).event, Event::Other), "{unknown}");
    }
    for odd in ["", "7", "[1]", "{\"type\":", "\u{0}"] {
        assert!(Line::parse(odd.as_bytes()).is_none(), "{odd}");
    }
    let said = json!({"type": "assistant", "session_id": "s1", "parent_tool_use_id": null, "message": {
        "content": [{"type": "text", "text": "hello"}, {"type": "thinking", "thinking": "hm"},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}],
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5, "output_tokens": 1},
    }});
    let read = line(&said);
    assert_eq!(read.session.as_deref(), Some("s1"));
    let Event::Said { blocks, context_tokens, .. } = read.event else { panic!() };
    assert_eq!(context_tokens, Some(18));
    let [Block::Text(text), Block::Tool { name, input, .. }] = blocks.as_slice() else {
        panic!("{blocks:?}")
    };
    assert_eq!((text.as_str(), name.as_str()), ("hello", "Bash"));
    assert_eq!(input["command"], "ls");
    // A subagent's words are not the agent's, nor is its context.
    let mut of_subagent = said.clone();
    of_subagent["parent_tool_use_id"] = "t".into();
    let Event::Said { blocks, context_tokens, below: true, .. } = line(&of_subagent).event else { panic!() };
    assert_eq!((blocks.len(), context_tokens), (1, None));
}

#[test]
fn questions_are_read() {
    let ask = json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "input": {"command": "make"}, "blocked_path": "/x", "tool_use_id": "t"}});
    let Event::Ask { id, tool, input, blocked_path } = line(&ask).event else { panic!() };
    assert_eq!((id.as_str(), tool.as_str(), blocked_path.as_deref()), ("r1", "Bash", Some("/x")));
    assert_eq!(input, json!({"command": "make"}));
    let request = |subtype: &str| json!({"type": "control_request", "request_id": "r2", "request": {"subtype": subtype}});
    assert!(matches!(line(&request("hook_callback")).event, Event::Holds { id } if id == "r2"));
    assert!(matches!(line(&request("mcp_message")).event, Event::OtherRequest { id } if id == "r2"));
    let gone = json!({"type": "control_cancel_request", "request_id": "r1"});
    assert!(matches!(line(&gone).event, Event::Withdrawn { id } if id == "r1"));
    let servers = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "sage-servers",
        "response": {"mcpServers": [{"name": "a", "status": "failed", "error": "ENOENT"}]}}});
    let Event::Servers(Some(servers)) = line(&servers).event else { panic!() };
    assert_eq!((servers[0].status.as_str(), servers[0].error.as_deref()), ("failed", Some("ENOENT")));
    let cannot =
        json!({"type": "control_response", "response": {"subtype": "error", "request_id": "sage-servers"}});
    assert!(matches!(line(&cannot).event, Event::Servers(None)));
}

#[test]
fn only_a_result_without_error_is_an_answer() {
    let good = result("success", "completed", &[]);
    // Its exit code says nothing, nor does how it went away after its result.
    for end in [End::Exited(0), End::Exited(1), End::Signaled(9), End::Stopped, End::TimedOut("late".into())]
    {
        let answer = judge(&transcript(std::slice::from_ref(&good)), &finished(end, ""), true, None);
        assert_eq!(answer, Ok("fine".into()));
    }
    let mut unsure = good.clone();
    unsure.as_object_mut().unwrap().remove("is_error");
    failed(judged(&[unsure]), FailureClass::Transient, "fine");
    let mut blank = good.clone();
    blank["result"] = " \n".into();
    failed(judged(&[blank]), FailureClass::Lost, "empty answer");
    let shape = Shape::of(&json!({"type": "object"}));
    let schema =
        |lines: &[Value]| judge(&transcript(lines), &finished(End::Exited(0), ""), false, Some(&shape));
    failed(schema(std::slice::from_ref(&good)), FailureClass::Invalid, "structured output");
    let mut structured = good.clone();
    structured["structured_output"] = json!({"n": 3});
    assert_eq!(schema(&[structured]), Ok(json!({"n": 3})));
    // An answer is not taken back by what comes after it.
    let broken = result("error_during_execution", "aborted_streaming", &[]);
    assert_eq!(judged(&[good, broken]), Ok("fine".into()));
}

// covers: R7
#[test]
fn faults_of_the_endpoint_have_their_class() {
    let rows = [
        ("authentication_failed", Some(401), FailureClass::Auth),
        ("authentication_failed", Some(403), FailureClass::Auth),
        ("authentication_failed", None, FailureClass::Auth),
        ("rate_limit", Some(429), FailureClass::RateLimit),
        ("billing_error", Some(400), FailureClass::Quota),
        ("invalid_request", Some(400), FailureClass::Invalid),
        ("model_not_found", Some(404), FailureClass::Invalid),
        ("invalid_request", Some(413), FailureClass::Invalid),
        ("server_error", Some(500), FailureClass::Transient),
        ("server_error", Some(529), FailureClass::Transient),
        ("server_error", None, FailureClass::Transient),
        ("unknown", None, FailureClass::Transient),
    ];
    for (kind, status, class) in rows {
        assert_eq!(
            failed(judged(&api_error(kind, status, "words")), class, "words"),
            None,
            "{kind} {status:?}"
        );
    }
    let limit = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1_794_806_952}});
    let [fault, end] = api_error("rate_limit", Some(429), "You've hit your 5-hour limit");
    let refusal = failed(judged(&[limit, fault, end]), FailureClass::Quota, "5-hour");
    assert_eq!(refusal.unwrap().reset_at_ms, Some(1_794_806_952_000));
    let allowed =
        json!({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "resetsAt": 7}});
    assert!(matches!(line(&allowed).event, Event::Allowances(told) if told.is_empty()));
}

// covers: R7
#[test]
fn a_retry_that_was_interrupted_tells_what_the_endpoint_said() {
    let broken = result("error_during_execution", "aborted_streaming", &["[ede_diagnostic] ..."]);
    let interrupted = |status: Option<u16>, kind: &str, delay_ms: u64| {
        let Event::Retry { fault, delay_ms } = line(&retry(status, kind, delay_ms)).event else { panic!() };
        let mut transcript = transcript(std::slice::from_ref(&broken));
        transcript.retry = Some((fault, delay_ms));
        judge(&transcript, &finished(End::Exited(1), ""), false, None)
    };
    let refusal = failed(interrupted(Some(429), "rate_limit", 17_000), FailureClass::RateLimit, "429");
    assert_eq!(refusal.unwrap().retry_after_ms, Some(17_000));
    // Its own guess is not the endpoint's word.
    assert_eq!(failed(interrupted(Some(429), "rate_limit", 587), FailureClass::RateLimit, "429"), None);
    failed(interrupted(Some(529), "overloaded", 500), FailureClass::Transient, "overloaded (529)");
    failed(interrupted(Some(401), "authentication_failed", 500), FailureClass::Auth, "/login");
    failed(interrupted(None, "unknown", 500), FailureClass::Transient, "connection");
    failed(judged(std::slice::from_ref(&broken)), FailureClass::Lost, "broken off");
    let stopped = judge(&transcript(&[broken]), &finished(End::Exited(1), ""), true, None);
    assert_eq!(stopped, Err(Miss::Stopped));
}

#[test]
fn limits_refusals_and_lost_conversations_have_their_row() {
    let turns = result("error_max_turns", "max_turns", &["Reached maximum number of turns (1)"]);
    failed(judged(&[turns]), FailureClass::Failed, "max turns");
    let budget = result("error_max_budget_usd", "budget_exhausted", &["Reached maximum budget ($0.001)"]);
    failed(judged(&[budget]), FailureClass::Budget, "`maxBudgetUsd`");
    let schema = result(
        "error_max_structured_output_retries",
        "structured_output_retry_exhausted",
        &["must be integer"],
    );
    failed(judged(&[schema]), FailureClass::Invalid, "must be integer");
    let [fault, mut refusal] = api_error("invalid_request", None, "safeguards flagged this");
    refusal["stop_reason"] = "refusal".into();
    failed(judged(&[fault, refusal]), FailureClass::Failed, "the model refused");
    let mut unknown = result("error_during_execution", "", &["No conversation found with session ID: x"]);
    unknown["num_turns"] = 0.into();
    let unknown = transcript(&[unknown]);
    assert!(unknown.is_unknown());
    failed(
        judge(&unknown, &finished(End::Exited(1), ""), false, None),
        FailureClass::Failed,
        "No conversation",
    );
}

#[test]
fn without_a_result_the_end_of_the_process_decides() {
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "mcp_servers": []});
    let ended = |end: End, stopped: bool| {
        judge(&transcript(std::slice::from_ref(&init)), &finished(end, "oh"), stopped, None)
    };
    failed(ended(End::Signaled(9), false), FailureClass::Lost, "SIGKILL");
    failed(ended(End::Exited(143), false), FailureClass::Lost, "143");
    failed(ended(End::Exited(0), false), FailureClass::Lost, "without a result");
    failed(ended(End::Exited(1), false), FailureClass::Lost, "oh");
    failed(ended(End::TimedOut("timed out after 3s".into()), false), FailureClass::Timeout, "3s");
    failed(ended(End::Stopped, false), FailureClass::Lost, "did not end");
    assert_eq!(ended(End::Stopped, true), Err(Miss::Stopped));
    assert_eq!(ended(End::Exited(143), true), Err(Miss::Stopped));
    let silent =
        |end: End| judge(&transcript(&[]), &finished(end, "error: unknown option '--x'"), false, None);
    failed(silent(End::Exited(1)), FailureClass::Invalid, "unknown option '--x'");
    failed(silent(End::Exited(134)), FailureClass::Lost, "134");
    let refused = |passing| End::Refused { passing, message: "program `claude` was not found".into() };
    failed(silent(refused(false)), FailureClass::Invalid, "npm install");
    failed(silent(refused(true)), FailureClass::System, "not found");
}

fn used(transcript: &Transcript) -> Usage {
    transcript.usage(&PriceTable::built_in(), Vec::new)
}

// covers: R18
#[test]
fn what_terminal_events_tell_adds_up() {
    let models =
        |input: u64, cost: f64| json!({"m": {"inputTokens": input, "outputTokens": 2, "costUSD": cost}});
    let mut first = result("error_during_execution", "aborted_streaming", &[]);
    first["model_usage_since_last_result"] = models(10, 0.5);
    first["total_cost_usd"] = json!(0.5);
    let mut second = result("success", "completed", &[]);
    second["model_usage_since_last_result"] = models(5, 0.25);
    second["total_cost_usd"] = json!(0.75);
    let both = transcript(&[first, second]);
    let usage = used(&both);
    assert_eq!((usage.input, usage.output, usage.cost_usd), (Some(15), Some(4), Some(0.75)));
    assert_eq!(both.counters(), Some(Usage { cost_usd: Some(0.75), ..Usage::default() }));
}

fn begins(id: &str) -> Value {
    let usage = json!({"input_tokens": 7, "cache_read_input_tokens": 2, "output_tokens": 1});
    let message = json!({"id": id, "model": "claude-opus-5-5", "usage": usage});
    json!({"type": "stream_event", "event": {"type": "message_start", "message": message}})
}

fn ends(stop_reason: &str) -> Value {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 30}});
    json!({"type": "stream_event", "event": delta})
}

// covers: R18
#[test]
fn what_was_seen_counts_where_it_is_more_than_what_is_told() {
    let piece = br#"{"type":"stream_event","event":{"type":"content_block_delta","index":0}}"#;
    assert!(matches!(Line::parse(piece).unwrap().event, Event::Other));
    assert!(matches!(line(&ends("tool_use")).event, Event::Response { goes_on: true, .. }));
    assert!(matches!(line(&ends("end_turn")).event, Event::Response { goes_on: false, .. }));
    let seen = [begins("a"), ends("tool_use"), begins("b"), ends("tool_use"), begins("c")];
    // Killed: two responses, and a third that had begun.
    let usage = used(&transcript(&seen));
    assert_eq!((usage.input, usage.cache_read, usage.output), (Some(21), Some(6), Some(61)));
    assert_eq!((usage.cost_estimated, usage.model.as_deref()), (true, Some("claude-opus-5-5")));
    // Its own file knows how the third one ended, and of a subagent.
    let recorded = || {
        let of = |id: &str| json!({"id": id, "model": "claude-opus-5-5", "usage": {"input_tokens": 7, "output_tokens": 9}});
        ["c", "of a subagent"].map(|id| Counted::of(&of(id))).to_vec()
    };
    let usage = transcript(&seen).usage(&PriceTable::built_in(), recorded);
    assert_eq!((usage.input, usage.output), (Some(28), Some(30 + 30 + 9 + 9)));
    // It ended and forgot what broke off; or it ended and knows more than was seen.
    let told = |input: u64| {
        let mut end = result("success", "completed", &[]);
        end["model_usage_since_last_result"] =
            json!({"claude-opus-5-5": {"inputTokens": input, "outputTokens": 30, "costUSD": 0.5}});
        used(&transcript(&[seen.to_vec(), vec![end]].concat()))
    };
    assert_eq!((told(7).input, told(7).cost_usd, told(7).cost_estimated), (Some(21), Some(0.5), true));
    assert_eq!(
        (told(700).input, told(700).cost_usd, told(700).cost_estimated),
        (Some(700), Some(0.5), false)
    );
    let none = transcript(&[json!({"type": "assistant", "message": {"usage": {"input_tokens": 9}}})]);
    assert_eq!((used(&none), none.counters(), none.context_tokens), (Usage::default(), None, Some(9)));
}

// covers: R18
#[test]
fn a_connection_that_broke_before_anything_was_seen_used_nobody_knows_what() {
    let nothing = |status: Option<u16>, kind: &str| {
        let mut end = result("error_during_execution", "aborted_streaming", &[]);
        end["model_usage_since_last_result"] = json!({});
        used(&transcript(&[retry(status, kind, 500), end]))
    };
    // Told by whoever drives the program when it interrupts it for the retry.
    let mut broken = transcript(&[result("error_during_execution", "aborted_streaming", &[])]);
    broken.retry = Some((Fault { kind: "unknown".into(), status: None, text: String::new() }, 500));
    assert!(used(&broken).is_empty());
    assert_eq!(nothing(Some(529), "overloaded").total(), 0);
    assert!(!nothing(Some(529), "overloaded").is_empty(), "an error of the endpoint costs nothing");
}
