//! MCP servers of the real Claude Code: those that were ordered, and they must be there.

use sage_core::policy::{Cause, FailureClass};
use serde_json::json;

use crate::claude_desk::{Desk, tool};

/// As much of a server as it takes, in the shell: tools that say a word; `look` promises that it only reads.
pub const SERVER: &str = r#"
sleep 0.3
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    version=$(printf '%s' "$line" | sed -n 's/.*"protocolVersion":"\([^"]*\)".*/\1/p')
    case $line in
        *'"initialize"'*) result='{"protocolVersion":"'$version'","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"say","description":"d","inputSchema":{"type":"object","properties":{}}},{"name":"look","description":"d","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}]}' ;;
        *'"tools/call"'*) result='{"content":[{"type":"text","text":"the word"}]}' ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

// covers: P9, R3
#[tokio::test]
async fn a_server_that_does_not_start_fails_the_turn_before_anything_is_spent() {
    let Some(desk) = Desk::new(json!([{"text": "never"}])) else { return };
    let good = json!({"command": "/bin/sh", "args": ["-c", SERVER]});
    let desk = desk.server("good", good).server("bad", json!({"command": "/no/such/server"}));
    let failure = desk.run().await.failed(FailureClass::Invalid).because_of(Cause::Setup);
    failure.says("MCP server `bad` is failed").says("`mcpServers`");
    assert!(desk.llm.prompts().is_empty());
}

// covers: R3
#[tokio::test]
async fn a_server_that_was_ordered_is_there() {
    let Some(desk) = Desk::new(json!([tool("mcp__good__say", json!({})), {"text": "done"}])) else { return };
    let desk = desk.server("good", json!({"command": "/bin/sh", "args": ["-c", SERVER]})).allows();
    assert_eq!(desk.run().await.succeeded(), "done");
    assert_eq!(desk.tools_asked(), ["mcp__good__say"]);
    assert!(desk.last_sent().contains("the word"));
}
