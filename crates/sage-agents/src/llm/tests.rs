//! Answers of the scripted endpoint, cut at every byte: whatever the network does, the reply is the same.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::reply::{Heard, Reply};
use super::sse::Parser;
use super::wire::{Api, Ask};
use crate::fake_llm::FakeLlm;

const APIS: [Api; 3] = [Api::Anthropic, Api::Responses, Api::Chat];

/// The bytes of a streamed answer, without HTTP around them.
fn streamed(api: Api, script: Value) -> Vec<u8> {
    let fake = FakeLlm::start(script).unwrap();
    let history = [api.said("hello", &[])];
    let ask = Ask {
        model: "m",
        system: None,
        history: &history,
        tools: &[],
        shape: None,
        max_tokens: Some(99),
        effort: Some("low"),
    };
    let body = api.body(&ask).to_string();
    let head = format!(
        "POST /v1{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        api.path(),
        body.len()
    );
    let mut stream = TcpStream::connect(fake.url().trim_start_matches("http://")).unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (_, mut chunks) = text.split_once("\r\n\r\n").unwrap();
    let mut plain = Vec::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        plain.extend_from_slice(&rest.as_bytes()[..size]);
        chunks = if size == 0 { "" } else { &rest[size + 2..] };
    }
    plain
}

fn replied<'a>(api: Api, chunks: impl Iterator<Item = &'a [u8]>) -> Reply {
    let (mut parser, mut fold) = (Parser::default(), api.fold());
    for chunk in chunks {
        for event in parser.push(chunk).unwrap() {
            if fold.event(&event).unwrap() == Heard::Over {
                return fold.reply().unwrap();
            }
        }
    }
    panic!("no end was heard")
}

#[test]
fn an_answer_is_the_same_wherever_its_stream_is_cut() {
    for api in APIS {
        let tool = json!({"name": "look", "input": {"path": "ü", "deep": [1, {"a": "\n"}]}, "id": "t1"});
        let usage = json!({"input_tokens": 100, "output_tokens": 30, "cached": 40, "reasoning": 10});
        let turn = json!({"thinking": "hm…", "text": "grüße\n\n data: x", "tool": tool, "usage": usage});
        let bytes = streamed(api, json!([turn]));
        let whole = replied(api, [bytes.as_slice()].into_iter());
        assert_eq!(whole.text, "grüße\n\n data: x");
        assert_eq!(whole.calls[0].input, Ok(tool["input"].clone()));
        assert_eq!(whole.usage.total(), if api == Api::Anthropic { 170 } else { 130 });
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(replied(api, [first, second].into_iter()), whole, "{api:?} cut at {cut}");
        }
        for size in [1, 2, 7] {
            assert_eq!(replied(api, bytes.chunks(size)), whole, "{api:?} in pieces of {size}");
        }
    }
}

#[test]
fn the_end_of_a_stream_is_no_end_of_an_answer() {
    for api in APIS {
        let bytes =
            streamed(api, json!([{"text": "whole", "usage": {"input_tokens": 5, "output_tokens": 2}}]));
        let text = String::from_utf8(bytes).unwrap();
        // Without the last event, which says that it is over.
        let cut = text.trim_end().rfind("\n\n").unwrap() + 2;
        let (mut parser, mut fold) = (Parser::default(), api.fold());
        for event in parser.push(&text.as_bytes()[..cut]).unwrap() {
            assert_ne!(fold.event(&event).unwrap(), Heard::Over);
        }
        assert_eq!(fold.text(), "whole");
        // Only of chat endpoints it is known that some leave out the last event.
        assert_eq!(fold.reply().is_some(), api == Api::Chat, "{api:?}");
    }
}

#[test]
fn calls_of_endpoints_that_number_nothing_are_told_apart() {
    let mut fold = Api::Chat.fold();
    let chunk = |calls: Value| super::sse::Event {
        name: String::new(),
        data: json!({"choices": [{"delta": {"tool_calls": calls}}]}).to_string(),
    };
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    fold.event(&chunk(json!([{"id": "a", "function": function("f", "{\"x\"")}]))).unwrap();
    fold.event(&chunk(json!([{"function": {"arguments": ":1}"}}]))).unwrap();
    fold.event(&chunk(json!([{"id": "b", "function": function("g", "")}]))).unwrap();
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    fold.event(&super::sse::Event { name: String::new(), data: end.to_string() }).unwrap();
    let calls = fold.reply().unwrap().calls;
    let told: Vec<(&str, &Value)> =
        calls.iter().map(|call| (call.id.as_str(), call.input.as_ref().unwrap())).collect();
    assert_eq!(told, [("a", &json!({"x": 1})), ("b", &json!({}))]);
}
