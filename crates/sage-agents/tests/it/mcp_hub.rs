//! Servers that make it difficult: other lifecycles, bad manners, crashes. One connection for all, and none left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sage_agents::mcp::{Hub, HubConfig, Lifecycle, McpServer, ToolAnswer, ToolFailure};
use sage_core::policy::FailureClass;
use serde_json::{Value, json};

use crate::bench::{DEADLINE, alive, key, sage, until};

/// A folder with the fake server `s`, and the way to it.
pub struct Place {
    pub dir: tempfile::TempDir,
    pub hub: Arc<Hub>,
}

impl Place {
    pub fn new(manners: &[&str]) -> Place {
        Place::with(manners, |_| {})
    }

    pub fn with(manners: &[&str], change: impl Fn(&mut McpServer)) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let hub = hub(dir.path(), manners, change);
        Place { dir, hub }
    }

    /// As after a restart, with what was remembered.
    pub fn again(self, manners: &[&str]) -> Place {
        Place { hub: hub(self.dir.path(), manners, |_| {}), dir: self.dir }
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolAnswer, ToolFailure> {
        let arguments = arguments.as_object().unwrap().clone();
        let calling = self.hub.call("s", tool, arguments, None, None);
        tokio::time::timeout(DEADLINE, calling).await.expect("the call does not end")
    }

    pub fn starts(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.dir.path().join("starts")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

fn hub(dir: &std::path::Path, manners: &[&str], change: impl Fn(&mut McpServer)) -> Arc<Hub> {
    let mut args = vec!["debug".into(), "fake-mcp".into(), dir.join("starts").display().to_string()];
    args.extend(manners.iter().map(ToString::to_string));
    let mut server = McpServer { command: sage().display().to_string(), args, ..McpServer::default() };
    change(&mut server);
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

// covers: R24
#[tokio::test]
async fn each_server_is_met_in_the_way_that_it_knows() {
    for (manners, lifecycle, starts) in [
        (&[][..], Lifecycle::Initialize, 1),
        (&["empty"], Lifecycle::Initialize, 1),
        (&["deaf"], Lifecycle::Initialize, 1),
        // It ends when it hears of the newer one, so it is started again for the older.
        (&["prim"], Lifecycle::Initialize, 2),
        (&["modern"], Lifecycle::Discover, 1),
    ] {
        let place = Place::new(manners);
        let answer = place.call("echo", json!({"n": 1})).await;
        assert_eq!(answer.unwrap().value, json!({"n": 1}), "{manners:?}");
        let met = place.hub.meet("s").await.unwrap();
        assert_eq!((met.lifecycle, met.tools), (lifecycle, 10), "{manners:?}: {met:?}");
        assert_eq!(place.starts().len(), starts, "{manners:?}");
        place.hub.close().await;
        // What worked is remembered: nobody waits, and nobody dies of a question.
        let place = place.again(manners);
        let begun = Instant::now();
        place.call("echo", json!({})).await.unwrap();
        assert!(begun.elapsed() < Duration::from_millis(1_900), "{manners:?}: {:?}", begun.elapsed());
        assert_eq!(place.starts().len(), starts + 1, "{manners:?}");
        place.hub.close().await;
    }
}

// covers: R24
#[tokio::test]
async fn a_slow_start_is_not_taken_for_an_old_server() {
    let (old, new) = (Place::new(&["slow"]), Place::new(&["slow", "modern"]));
    let (one, other) = tokio::join!(old.call("echo", json!({})), new.call("echo", json!({})));
    one.unwrap();
    other.unwrap();
    assert_eq!(old.starts().len(), 1, "it is asked both questions in one start");
    assert_eq!(new.hub.meet("s").await.unwrap().lifecycle, Lifecycle::Discover);
    tokio::join!(old.hub.close(), new.hub.close());
}

// covers: R24, R20
#[tokio::test]
async fn only_what_may_be_repeated_is_repeated() {
    let place = Place::new(&["brittle"]);
    for n in 1..=9 {
        let answer = place.call("read", json!({"path": "a", "lines": n})).await;
        assert_eq!(answer.unwrap().value["lines"], n);
    }
    let starts = place.starts().len();
    assert!(starts >= 4, "{starts}");
    place.hub.close().await;

    let place = Place::new(&["brittle"]);
    let mut lost = 0;
    for _ in 1..=6 {
        if let Err(failure) = place.call("echo", json!({})).await {
            assert_eq!(failure.class, FailureClass::Lost);
            assert_eq!(failure.message, "server `s` died: exit code 3: three is too much");
            lost += 1;
        }
    }
    assert_eq!((lost, place.starts().len()), (2, 2), "it was called once each time");
    place.hub.close().await;
}

// covers: R24
#[tokio::test]
async fn a_message_without_end_is_an_error_that_names_its_server() {
    let place = Place::new(&[]);
    let failure = place.call("flood", json!({})).await.unwrap_err();
    assert_eq!(failure.message, "server `s` said a message of more than 16 MiB");
    place.call("echo", json!({})).await.unwrap();
    assert_eq!(place.starts().len(), 2);
    until("the first to be gone", || !alive(place.starts()[0])).await;
    place.hub.close().await;
}

// covers: R24, S2
#[tokio::test]
async fn a_server_that_does_not_want_to_go_goes() {
    let place = Place::new(&["stubborn"]);
    place.call("echo", json!({})).await.unwrap();
    let pid = place.starts()[0];
    let begun = Instant::now();
    place.hub.close().await;
    assert!(!alive(pid));
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    let left: Vec<String> = std::fs::read_dir(place.dir.path().join("tools"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".pipe"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

// covers: R24, R3
#[tokio::test]
async fn a_server_is_started_once_and_asked_no_more_at_once_than_it_may() {
    let place = Place::with(&[], |server| server.parallel = Some(2));
    let begun = Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..6 {
        let hub = Arc::clone(&place.hub);
        calls.spawn(async move {
            let arguments = json!({"ms": 200, "n": n}).as_object().unwrap().clone();
            hub.call("s", "slow", arguments, None, None).await.unwrap()
        });
    }
    assert_eq!(calls.join_all().await.len(), 6);
    assert!(begun.elapsed() >= Duration::from_millis(600), "{:?}", begun.elapsed());
    assert_eq!(place.starts().len(), 1);
    place.hub.close().await;
}

// covers: S2
#[tokio::test]
async fn what_a_dead_owner_left_is_swept_and_what_a_living_one_has_is_not() {
    let place = Place::new(&[]);
    place.call("echo", json!({})).await.unwrap();
    let living = place.starts()[0];
    let environ = std::fs::read_to_string(format!("/proc/{living}/environ")).unwrap();
    let mark = environ.split('\0').find(|line| line.starts_with("SAGE_OWNER=")).unwrap();
    // The same process number, long ago.
    let dead = format!("{}.1", mark.rsplit_once('.').unwrap().0);
    let (name, value) = dead.split_once('=').unwrap();
    let mut orphan = std::process::Command::new("sleep").arg("600").env(name, value).spawn().unwrap();
    let swept = tokio::task::spawn_blocking(|| sage_agents::sweep("run_of_nobody", None)).await.unwrap();
    assert_eq!(swept.killed, [orphan.id()]);
    orphan.wait().unwrap();
    assert!(alive(living));
    place.call("echo", json!({})).await.unwrap();
    assert_eq!(place.starts(), [living]);
    place.hub.close().await;
}

/// Whatever a server asks of us, it has its answer at once, and the person hears of it.
// covers: R24, R17
#[tokio::test]
async fn what_a_server_asks_for_is_declined() {
    let form = json!({"message": "Really delete?", "requestedSchema": {"type": "object", "properties": {}}});
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "hi"}}]);
    let asks = [
        ("elicitation/create", form),
        ("sampling/createMessage", json!({"messages": messages, "maxTokens": 10})),
        ("roots/list", json!({})),
        ("made/up", json!({})),
    ];
    let place = Place::new(&["curious"]);
    let mut got = Vec::new();
    for (method, params) in &asks {
        let answer = place.call("ask", json!({"method": method, "params": params})).await.unwrap();
        got.push(answer.value);
    }
    assert_eq!(got[0]["result"]["action"], "decline", "{got:?}");
    let refused: Vec<&Value> = got[1..].iter().map(|got| &got["error"]["code"]).collect();
    assert_eq!(refused, [-32601; 3], "{got:?}");
    assert!(got[1]["error"]["message"].as_str().unwrap().contains("sampling is not supported"), "{got:?}");
    let notes = place.hub.take_notes();
    assert!(
        notes.iter().any(|note| note.contains("server `s` asked `Really delete?`; nobody is there")),
        "{notes:?}"
    );
    place.hub.close().await;

    let place = Place::new(&["curious", "modern"]);
    for (method, params) in &asks[..3] {
        let failure = place.call("ask", json!({"method": method, "params": params})).await.unwrap_err();
        assert_eq!(failure.class, FailureClass::Invalid, "{method}: {failure}");
        assert!(failure.message.contains("nobody is there to answer"), "{method}: {failure}");
    }
    place.hub.close().await;
}
