//! Real servers of others: the reference servers from npm, and one made with the official Python SDK.
//!
//! Without them on this machine the tests say so and pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sage_agents::mcp::{Hub, HubConfig, Lifecycle, McpServer, ToolProgress};
use sage_core::policy::FailureClass;
use serde_json::{Map, Value, json};

use crate::bench::{alive, key, sage, until};

/// These are large programs, and some machines are small and busy.
const PATIENCE: Duration = Duration::from_secs(150);

fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("tools")
}

fn found(variable: &str, by_default: &str, file: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map_or_else(|| tools().join(by_default), PathBuf::from);
    let path = folder.join(file);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: there is no {}", path.display());
    None
}

fn npm(name: &str) -> Option<McpServer> {
    let program = found("SAGE_TEST_SERVERS", "servers", &format!("node_modules/.bin/{name}"))?;
    Some(McpServer { command: program.display().to_string(), ..McpServer::default() })
}

fn hub(dir: &Path, server: McpServer) -> Arc<Hub> {
    Arc::new(Hub::new(HubConfig {
        servers: [("s".to_owned(), server)].into(),
        untrusted: Default::default(),
        project: dir.to_owned(),
        keeper: sage(),
        key: Some(key()),
        state: Some(dir.join("tools")),
        log_bytes: 1 << 20,
        redactor: Default::default(),
    }))
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

// covers: R24
#[tokio::test]
async fn the_file_server_reads_and_writes_and_refuses() {
    let Some(mut server) = npm("mcp-server-filesystem") else { return };
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().canonicalize().unwrap().join("inside");
    std::fs::create_dir(&inside).unwrap();
    server.args = vec![inside.display().to_string()];
    let hub = hub(dir.path(), server);
    let file = inside.join("a.txt").display().to_string();
    let call = async |tool: &str, arguments: Value| hub.call("s", tool, map(arguments), None, None).await;
    call("write_file", json!({"path": file, "content": "hello"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(inside.join("a.txt")).unwrap(), "hello");
    let read = call("read_text_file", json!({"path": file})).await.unwrap();
    assert!(read.text.contains("hello") && read.notes.is_empty(), "{read:?}");
    assert!(hub.tool("s", "read_text_file").await.unwrap().read_only);
    let outside = call("read_text_file", json!({"path": "/etc/hostname"})).await.unwrap();
    assert!(outside.is_error && outside.text.to_lowercase().contains("denied"), "{outside:?}");
    let wrong = call("read_text_file", json!({"pth": file})).await.unwrap_err();
    assert_eq!(wrong.class, FailureClass::Invalid);
    hub.close().await;
}

// covers: R24, R3
#[tokio::test]
async fn the_server_with_everything_works_over_both_ways() {
    let Some(mut program) = npm("mcp-server-everything") else { return };
    let dir = tempfile::tempdir().unwrap();
    program.args = vec!["stdio".into()];
    everything(&hub(dir.path(), program.clone())).await;

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut process = tokio::process::Command::new(&program.command)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until("it to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
    let url = Some(format!("http://127.0.0.1:{port}/mcp"));
    let far = tempfile::tempdir().unwrap();
    everything(&hub(far.path(), McpServer { url, ..McpServer::default() })).await;
    process.kill().await.unwrap();
}

async fn everything(hub: &Arc<Hub>) {
    let met = hub.meet("s").await.unwrap();
    assert!(met.tools > 8 && met.calls_itself.contains("everything"), "{met:?}");
    let echo = hub.call("s", "echo", map(json!({"message": "hi"})), None, None).await.unwrap();
    assert_eq!(echo.value, "Echo: hi");
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel::<ToolProgress>();
    let on_progress = Arc::new(move |progress| drop(sender.send(progress)));
    let long = map(json!({"duration": 1, "steps": 3}));
    let long = hub.call("s", "trigger-long-running-operation", long, None, Some(on_progress)).await.unwrap();
    assert!(long.text.contains("completed"), "{long:?}");
    let first = told.recv().await.unwrap();
    assert_eq!(first.total, Some(3.0));
    let late = hub
        .call(
            "s",
            "trigger-long-running-operation",
            map(json!({"duration": 60, "steps": 2})),
            Some(Duration::from_millis(300)),
            None,
        )
        .await;
    assert_eq!(late.unwrap_err().class, FailureClass::Timeout);
    let mut sums = tokio::task::JoinSet::new();
    for n in 0..20 {
        let hub = Arc::clone(hub);
        sums.spawn(async move {
            let sum = hub.call("s", "get-sum", map(json!({"a": n, "b": 1})), None, None).await.unwrap();
            assert!(sum.text.contains(&(n + 1).to_string()), "{sum:?}");
        });
    }
    sums.join_all().await;
    hub.close().await;
}

const PYTHON: &str = r#"
import os, sys
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

open(sys.argv[1], "a").write(f"{os.getpid()}\n")
server = MCPServer("notes")

class Note(BaseModel):
    title: str
    words: int

@server.tool()
def note(title: str, text: str = "") -> Note:
    """Counts the words of a note."""
    return Note(title=title, words=len(text.split()))

@server.tool()
def fail() -> str:
    """Never works."""
    raise ValueError("no paper left")

server.run(transport="stdio")
"#;

// covers: R24
#[tokio::test]
async fn a_server_made_with_the_python_sdk_works() {
    let Some(python) = found("SAGE_TEST_MCP", "mcp", "python") else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("server.py"), PYTHON).unwrap();
    let pids = dir.path().join("pids");
    let server = McpServer {
        command: "python3".into(),
        args: vec!["server.py".into(), pids.display().to_string()],
        env: BTreeMap::from([
            ("PYTHONPATH".into(), python.display().to_string()),
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
        ]),
        ..McpServer::default()
    };
    let hub = hub(dir.path(), server);
    let call = hub.call("s", "note", map(json!({"title": "a", "text": "one two"})), None, None);
    let answer = tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap();
    assert_eq!((answer.value, answer.notes.len()), (json!({"title": "a", "words": 2}), 0));
    let failed = hub.call("s", "fail", Map::new(), None, None).await.unwrap();
    // This SDK keeps to itself what was wrong.
    assert!(failed.is_error && failed.text.contains("fail"), "{failed:?}");
    let met = hub.meet("s").await.unwrap();
    assert!(met.lifecycle != Lifecycle::Auto && met.tools == 2, "{met:?}");
    println!("{met:?}");
    hub.close().await;
    let pid: u32 = std::fs::read_to_string(pids).unwrap().lines().last().unwrap().parse().unwrap();
    assert!(!alive(pid));
}
