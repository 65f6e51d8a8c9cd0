//! A small MCP server for tests and bug reports: JSON-RPC lines by hand, so that it can also be wrong.
//!
//! Each start adds its pid as a line to a file. Tools: `echo` (its arguments as structured content), `text` (its
//! argument `text`), `slow` (`ms`, with progress; a cancelled one is noted in the file), `error`, `crash`, `hang`.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

const TOOLS: [&str; 6] = ["echo", "text", "slow", "error", "crash", "hang"];

/// Serves on standard input and output until the input ends.
pub fn fake_mcp_main(starts: &Path) -> ExitCode {
    note(starts, &std::process::id().to_string());
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            eprintln!("not JSON: {line}");
            return ExitCode::FAILURE;
        };
        if message["method"] == "notifications/cancelled" {
            note(starts, "cancelled");
        }
        if !message["id"].is_null() {
            answer(message);
        }
    }
    ExitCode::SUCCESS
}

/// One write, so that lines of several servers do not mix.
fn note(file: &Path, line: &str) {
    let opened = std::fs::File::options().create(true).append(true).open(file);
    if let Err(error) = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())) {
        eprintln!("{}: {error}", file.display());
    }
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    // Nobody listens any more: the input ends, too.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

fn answer(message: Value) {
    let (id, params) = (&message["id"], &message["params"]);
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake-mcp", "version": "1"},
        }),
        "tools/list" => {
            let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": TOOLS.iter().map(tool).collect::<Vec<_>>()})
        }
        "tools/call" => return call(message),
        method => {
            let error = json!({"code": -32601, "message": format!("unknown method {method}")});
            return say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn call(message: Value) {
    let (id, arguments) = (message["id"].clone(), message["params"]["arguments"].clone());
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let told = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let result = match message["params"]["name"].as_str().unwrap_or_default() {
        "echo" => json!({"content": text(&arguments.to_string()), "structuredContent": arguments}),
        "text" => json!({"content": text(&told("text"))}),
        "error" => json!({"content": text(&told("text")), "isError": true}),
        "slow" => return work_slowly(message),
        "hang" => return,
        "crash" => {
            eprintln!("crashing as told");
            std::process::exit(3);
        }
        name => {
            let error = json!({"code": -32602, "message": format!("unknown tool {name}")});
            return say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

/// Beside other calls; tells progress ten times.
fn work_slowly(message: Value) {
    std::thread::spawn(move || {
        let token = &message["params"]["_meta"]["progressToken"];
        let arguments = &message["params"]["arguments"];
        let part = Duration::from_millis(arguments["ms"].as_u64().unwrap_or(0) / 10);
        for progress in 1..=10 {
            std::thread::sleep(part);
            let params = json!({"progressToken": token, "progress": progress, "total": 10});
            say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        }
        let result = json!({"content": [], "structuredContent": arguments});
        say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    });
}
