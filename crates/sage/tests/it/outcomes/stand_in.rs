//! A shell script in place of Claude Code: what the real one does not do on demand.

use serde_json::json;

use super::agent::{Agent, Setup};
use super::claude::CLAUDE;
use super::play::play_at_once;
use super::row::{Row, SOON, row};

const STAND_IN: Agent =
    Agent { name: "claude", install: |_| Some(Setup { adapter: "claude", ..Setup::default() }), ..CLAUDE };

fn does(name: &'static str, script: &str) -> Row {
    row(name).command(&["sh", "-c", &format!("read -r prompt; {script}")]).requests(0)
}

/// What older versions said of a used-up subscription, with the time of its reset.
const LIMIT: &str = "Claude AI usage limit reached|4102444800";

/// No pause is longer than eight days: then it is looked again.
fn limit(name: &'static str, is_error: bool, more: &str) -> Row {
    let result = json!({"type": "result", "subtype": "success", "is_error": is_error, "result": LIMIT, "num_turns": 1});
    does(name, &format!("{more} echo '{result}'")).pauses("quota").until_s(8 * 86_400 - 60..=8 * 86_400 + 60)
}

fn rows() -> Vec<Row> {
    let rate_limit = json!({"type": "assistant", "is_api_error_message": true, "error": "rate_limit",
        "message": {"content": [{"type": "text", "text": LIMIT}]}});
    vec![
        does("200 kB of nonsense, exit 0", "head -c 150000 /dev/urandom | base64")
            .fields(SOON)
            .fails("lost")
            .attempts(3)
            .unattributed(3),
        does("says that it is done, exit 0", "echo 'all done!'")
            .fields(SOON)
            .fails("lost")
            .attempts(3)
            .unattributed(3)
            .says("without a result"),
        does(
            "ignores signals, child in a session of its own",
            "trap '' TERM INT HUP; setsid sleep 300 & while :; do sleep 1; done",
        )
        .fields("timeout: 2s, retry: 1")
        .fails("timeout")
        .unattributed(1)
        .blamed(1),
        does("endless output without a newline", "yes | tr -d '\\n'")
            .fields("timeout: 2s, retry: 1")
            .fails("timeout")
            .unattributed(1)
            .blamed(1)
            .afterwards(|it| {
                let logs = it.sage.latest_dir("x").join("steps/p.one/1/stdout.log");
                assert!(std::fs::metadata(logs).unwrap().len() < 20 << 20);
            }),
        limit("usage limit as an error", true, ""),
        limit("usage limit as an answer", false, ""),
        limit("usage limit as a rate limit", true, &format!("echo '{rate_limit}';")),
    ]
}

// covers: R7, R14
#[test]
fn outcomes() {
    play_at_once(4, &STAND_IN, rows());
}
