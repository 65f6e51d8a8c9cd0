//! Servers at an address: what they say instead of an answer, and who must not be asked at all.

use std::io::{Read, Write};
use std::net::TcpListener;

use sage_agents::mcp::{Hub, HubConfig, McpServer, ToolFailure};
use sage_core::policy::FailureClass;

use crate::bench::{DEADLINE, sage};

/// Asks a server at `url` for its tools, and is told no.
async fn refused(url: &str, headers: &[(&str, &str)]) -> ToolFailure {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let server = McpServer { url: Some(url.into()), headers, ..McpServer::default() };
    let hub = Hub::new(HubConfig {
        servers: [("far".to_owned(), server)].into(),
        untrusted: Default::default(),
        project: ".".into(),
        keeper: sage(),
        key: None,
        state: None,
        log_bytes: 0,
        redactor: Default::default(),
    });
    let asking = hub.tools_of("far");
    tokio::time::timeout(DEADLINE, asking).await.expect("an answer").unwrap_err()
}

/// Gives everybody the same answer. Returns its address, and what it was asked last.
fn answering(answer: &str) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let answer = format!("HTTP/1.1 {answer}");
    let (sender, asked) = std::sync::mpsc::channel();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut buffer = [0; 64 << 10];
            let count = stream.read(&mut buffer).unwrap_or(0);
            let _ = sender.send(String::from_utf8_lossy(&buffer[..count]).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, asked)
}

// covers: R24, R17
#[tokio::test]
async fn what_an_address_says_instead_is_told() {
    let (url, asked) = answering("401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let no = refused(&url, &[("Authorization", "Bearer key")]).await;
    assert_eq!(no.class, FailureClass::Auth);
    assert_eq!(no.message, format!("server `far` at {url}: HTTP 401; its `headers` must let sage in"));
    let first = asked.recv().unwrap().to_lowercase();
    assert!(
        first.starts_with("post /mcp http/1.1") && first.contains("authorization: bearer key"),
        "{first}"
    );
    assert!(first.contains("server/discover") && first.contains("mcp-method: server/discover"), "{first}");

    for (challenge, said) in [
        (
            "Bearer resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource\"",
            "it wants OAuth, and sage cannot log in there by itself: get a token from it and give it to the server \
             in sage.toml: headers = { Authorization = \"Bearer ${TOKEN}\" }",
        ),
        ("Bearer error=\"invalid_token\"", "the token in its `headers` is wrong or too old: get a new one"),
        ("Basic realm=\"x\"", "its `headers` must let sage in"),
    ] {
        let answer = format!(
            "401 Unauthorized\r\nwww-authenticate: {challenge}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let no = refused(&answering(&answer).0, &[]).await;
        assert_eq!(no.class, FailureClass::Auth);
        assert!(no.message.ends_with(&format!("HTTP 401; {said}")), "{no}");
    }

    let busy = "429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let no = refused(&answering(busy).0, &[]).await;
    assert_eq!((no.class, no.refusal.unwrap().retry_after_ms), (FailureClass::RateLimit, Some(7_000)));

    let page = "200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\nconnection: close\r\n\r\n<p/>";
    let no = refused(&answering(page).0, &[]).await;
    assert_eq!(no.class, FailureClass::Invalid);
    assert!(
        no.message.contains("does not speak MCP as expected") && no.message.contains("text/html"),
        "{no}"
    );

    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let no = refused(&format!("http://{closed}/mcp"), &[]).await;
    assert_eq!(no.class, FailureClass::Transient);
    assert!(no.message.contains(&format!("cannot reach {closed}")), "{no}");
}

// covers: R17
#[tokio::test]
async fn nobody_is_told_anything_in_the_open() {
    let no = refused("http://example.com/mcp", &[]).await;
    assert!(no.message.contains("must begin with https"), "{no}");
    let no = refused("http://127.0.0.1:1/mcp", &[("Mcp-Session-Id", "x")]).await;
    assert!(no.message.contains("belongs to the protocol"), "{no}");
}
