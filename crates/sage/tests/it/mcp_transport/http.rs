//! The HTTP door: who gets in, what strangers learn, and what is left when it closes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::dsl::{Running, Sage};
use crate::mcp_conformance::serving;

/// A server of a project, and what its card says.
struct Served {
    server: Running,
    port: u16,
    token: String,
}

/// Status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn card(sage: &Sage) -> Value {
    serde_json::from_slice(&std::fs::read(sage.path(".sage/state/serve.json")).unwrap()).unwrap()
}

impl Served {
    fn start(sage: &Sage) -> Served {
        let (server, url) = serving(sage, &[]);
        let card = card(sage);
        assert_eq!((&card["url"], &card["pid"]), (&json!(url), &json!(server.pid())));
        let port = url.rsplit(':').next().unwrap().trim_end_matches("/mcp").parse().unwrap();
        Served { server, port, token: card["token"].as_str().unwrap().to_string() }
    }

    fn raw(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        // Whoever is refused may be hung up on before all was said.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_lowercase(), body: body.to_string() }
    }

    /// With the right `Host`.
    fn ask(&self, line: &str, headers: &str, body: &str) -> Answer {
        self.raw(&format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{headers}", self.port), body)
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    fn call(&self, headers: &str) -> Answer {
        self.request("tools/list", headers, json!({}))
    }

    /// From a client that can ask its user.
    fn request(&self, method: &str, headers: &str, mut params: Value) -> Answer {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let fixed = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n";
        self.ask("POST /mcp", &format!("{fixed}Mcp-Method: {method}\r\n{headers}"), &body.to_string())
    }
}

// covers: R16
#[test]
fn only_those_who_know_the_token_and_come_from_here_get_in() {
    let sage = Sage::new();
    let served = Served::start(&sage);
    let good = served.call(&served.bearer());
    assert_eq!(good.status, 200, "{}", good.body);
    assert!(good.body.contains("sage_workflow_execute"));
    let wrong = format!("Authorization: Bearer {}\r\n", "0".repeat(served.token.len()));
    for (headers, status) in [
        (String::new(), 401),
        (wrong, 401),
        (served.bearer() + "Origin: http://evil.example\r\n", 403),
        (served.bearer() + "Origin: null\r\n", 403),
        (served.bearer() + "Host: evil.example\r\n", 400),
        (format!("{}Origin: http://localhost:{}\r\n", served.bearer(), served.port), 200),
    ] {
        let answer = served.call(&headers);
        assert_eq!(answer.status, status, "{headers} {}", answer.body);
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
        assert!(status == 200 || !answer.body.contains("sage_workflow"), "{}", answer.body);
    }
    let rebound = format!("POST /mcp HTTP/1.1\r\nHost: evil.example:{}\r\n{}", served.port, served.bearer());
    assert_eq!(served.raw(&rebound, "{}").status, 403);
    assert_eq!(served.ask(&format!("POST /mcp?token={}", served.token), "", "{}").status, 400);
    assert_eq!(served.ask("OPTIONS /mcp", "Access-Control-Request-Method: POST\r\n", "").status, 401);
    assert_eq!(served.ask("GET /elsewhere", &served.bearer(), "").status, 404);
}

/// Steps of the project can read the token.
// covers: R16, R17
#[test]
fn no_answer_over_http_is_a_persons() {
    let asks =
        "name: ask\nphases: [{id: p, operations: {id: ok, type: approval, params: {message: Ship?}}}]\n";
    let sage = Sage::new().template("ask", asks);
    sage.sage("run x -t ask").exit(4);
    let served = Served::start(&sage);
    let headers = served.bearer() + "Mcp-Name: sage_inbox\r\n";
    let answer = json!({"action": "answer", "feature": "x", "step": "p/ok"});
    let said = served.request("tools/call", &headers, json!({"name": "sage_inbox", "arguments": answer}));
    assert!(said.body.contains("only a person can answer, and over HTTP"), "{} {}", said.status, said.body);
    assert!(said.body.contains("ask the user to type: sage approve x p/ok"), "{}", said.body);
    assert!(!said.body.contains("input_required"), "{}", said.body);
    assert_eq!(sage.status("x")["status"], "paused");
}

// covers: R16, S1
#[test]
fn what_is_too_large_is_refused() {
    let sage = Sage::new();
    let served = Served::start(&sage);
    let long = format!("{}X-Long: {}\r\n", served.bearer(), "x".repeat(1 << 20));
    // It is answered or hung up on, but never read to its end.
    assert!(matches!(served.call(&long).status, 431 | 0));
    let many = served.bearer() + &"X-Many: 1\r\n".repeat(500);
    assert_eq!(served.call(&many).status, 431);
    let headers =
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n".to_string();
    let body = "x".repeat((64 << 20) + 1);
    let answer = served.ask("POST /mcp", &(headers + &served.bearer()), &body);
    assert!(matches!(answer.status, 413 | 0), "{} {}", answer.status, answer.body);
    assert_eq!(served.call(&served.bearer()).status, 200);
}

// covers: R23
#[test]
fn three_hundred_half_open_connections_keep_nobody_out() {
    let sage = Sage::new();
    let served = Served::start(&sage);
    let half_open: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
            stream.write_all(b"GET /health HTTP/1.1\r\nHost: 127").unwrap();
            stream
        })
        .collect();
    assert_eq!(served.ask("GET /health", "", "").status, 200);
    assert_eq!(served.ask("POST /mcp", "", "{}").status, 401);
    assert_eq!(served.call(&served.bearer()).status, 200);
    drop(half_open);
}

// covers: R23
#[test]
fn health_is_told_to_all_and_explained_to_those_who_know_the_token() {
    let sage = Sage::new();
    sage.write("sage.toml", "[mcp.gone]\ncommand = \"no-such-program\"\nenv = { KEY = \"s3cret-value\" }\n");
    let served = Served::start(&sage);
    let stranger = served.ask("GET /health", "", "");
    assert_eq!((stranger.status, stranger.body.as_str()), (200, r#"{"ok":true}"#));
    let known = served.ask("GET /health", &served.bearer(), "");
    let health: Value = serde_json::from_str(&known.body).unwrap();
    assert_eq!((&health["ok"], &health["version"]), (&json!(true), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(health["project"], json!(sage.root()));
    let checks = health["checks"].as_array().unwrap();
    let check = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap();
    assert_eq!(check("servers")["state"], "warn", "{health}");
    for name in ["disk", "targets", "state"] {
        assert_eq!(check(name)["state"], "good", "{health}");
    }
    assert!(!known.body.contains("s3cret") && !known.body.contains(&served.token), "{health}");
    assert_eq!(served.ask("POST /health", &served.bearer(), "").status, 405);
    assert_eq!(served.ask("GET /health", "Origin: http://evil.example\r\n", "").status, 403);
}

// covers: R16, R23
#[test]
fn the_card_is_private_and_gone_with_its_server() {
    let sage = Sage::new();
    for signal in [Signal::INT, Signal::TERM] {
        let served = Served::start(&sage);
        let path = sage.path(".sage/state/serve.json");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // An open connection does not keep it.
        let idle = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
        served.server.signal(signal);
        served.server.end().exit(0);
        drop(idle);
        assert!(!path.exists());
    }
    let first = Served::start(&sage);
    let second = Served::start(&sage);
    assert_ne!(first.token, second.token);
    first.server.signal(Signal::TERM);
    first.server.end().exit(0);
    assert_eq!(card(&sage)["pid"], second.server.pid(), "the other's card stays");
    second.server.kill();
    // Nobody took this one's card away; the next one puts its own there.
    let third = Served::start(&sage);
    assert_eq!(card(&sage)["pid"], third.server.pid());
}

// covers: R16
#[test]
fn a_taken_port_is_told_with_what_to_type() {
    let sage = Sage::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = sage.args(["serve", "--port", &port]).run().exit(5);
    refused.stderr_has(&format!("port {port}")).stderr_has("sage serve --port 0");
    assert!(!sage.path(".sage/state/serve.json").exists());
}

// covers: R16
#[test]
fn a_token_can_be_kept_in_a_file() {
    let sage = Sage::new();
    let file = sage.path("token");
    let shown = file.display().to_string();
    let tokens: Vec<String> = (0..2)
        .map(|_| {
            let (server, _) = serving(&sage, &["--token-file", &shown]);
            let token = card(&sage)["token"].as_str().unwrap().to_string();
            server.signal(Signal::TERM);
            server.end().exit(0);
            token
        })
        .collect();
    assert_eq!(tokens[0], tokens[1]);
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), tokens[0]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = sage.args(["serve", "--port", "0", "--token-file", &shown]).run().exit(2);
    refused.stderr_has("others can read").stderr_has("chmod 600");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&file, "short").unwrap();
    sage.args(["serve", "--port", "0", "--token-file", &shown]).run().exit(2).stderr_has("holds no token");
}
