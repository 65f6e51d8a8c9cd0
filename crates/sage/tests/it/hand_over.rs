//! A person can take a conversation over: `sage session show` names the agent's own command.

use std::process::Command;
use std::time::Duration;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::Sage;
use crate::installed::finished;
use crate::mcp_server::client::{BOTH, Client};
use crate::real_agents::project;

const STEP: &str = "name: t\nphases:\n  - id: p\n    operations: { id: one, type: agent, agent: AGENT, session: talk, prompt: remember it }\n";

fn template(agent: &str) -> String {
    STEP.replace("AGENT", agent)
}

fn session(sage: &Sage) -> Value {
    sage.sage("session show talk --json").exit(0).json()
}

/// Types a command into a shell that knows nothing of the project.
fn type_in(sage: &Sage, model: &FakeLlm, command: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(sage.outside());
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    shell.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "dummy").env("FAKE_KEY", "dummy");
    shell.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    let (succeeded, stdout, stderr) = finished(shell, Duration::from_secs(120));
    assert!(succeeded, "{command}\n{stdout}\n{stderr}");
}

// covers: S3, S4
#[test]
fn the_command_of_a_real_agent_goes_on_with_its_conversation() {
    for agent in ["claude", "codex"] {
        let model = FakeLlm::start(json!([{"text": "it is the albatross"}])).unwrap();
        let Some(sage) = project(&model, &template(agent)) else { return };
        sage.sage("run x -t t --quiet").exit(0);
        let shown = session(&sage);
        let command = shown["resumeCommand"].as_str().unwrap();
        let id = shown["conversation"].as_str().unwrap();
        sage.sage("session show talk").exit(0).stdout_has(&format!("resume it in {agent}: {command}"));
        let mut client = Client::start(&sage, BOTH[0]);
        let over_mcp = client.call("sage_session", json!({"action": "show", "name": "talk"})).good();
        assert_eq!(over_mcp["session"]["resumeCommand"], command);
        let typed = match agent {
            "claude" => format!("{command} -p 'which bird?'"),
            // The command itself needs a terminal.
            _ => command.replace(
                &format!(" resume {id}"),
                &format!(" exec --skip-git-repo-check -m fake-1 resume {id} 'which bird?'"),
            ),
        };
        model.reset(json!([{"text": "done"}]).try_into().unwrap());
        type_in(&sage, &model, &typed);
        let sent = model.prompts().last().unwrap().to_string();
        assert!(sent.contains("it is the albatross") && sent.contains("which bird?"), "{agent}: {sent}");
    }
}

// covers: S3
#[test]
fn a_command_is_offered_only_where_it_works() {
    let agent = |command: &str| format!("[agents.mine]\nadapter = \"claude\"\ncommand = [\"{command}\"]\n");
    let sage = Sage::new().template("t", &template("foreign"));
    sage.sage("session new --agent claude talk").exit(0);
    assert_eq!(session(&sage)["resumeCommand"], Value::Null, "nothing was said yet");
    let store = sage_agents::session::Store::new(sage.path(".sage/sessions"), sage.key());
    let has = |id: &str, agent: &str, cwd: Option<&str>| {
        let mut record = store.load("talk").unwrap();
        (record.conversation, record.agent) = (Some(id.into()), agent.into());
        record.cwd = cwd.map(|cwd| sage.path(cwd));
        store.save(&record, false).unwrap();
        session(&sage)["resumeCommand"].as_str().map(str::to_string)
    };
    let root = sage.root().display();
    assert_eq!(has("c-1", "claude", None), Some(format!("cd {root} && claude --resume c-1")));
    assert_eq!(has("c-1", "codex", None), Some(format!("cd {root} && codex resume c-1")));
    std::fs::create_dir(sage.path("a b")).unwrap();
    assert_eq!(has("c-1", "claude", Some("a b")), Some(format!("cd '{root}/a b' && claude --resume c-1")));
    assert_eq!(has("c-1", "claude", Some("gone")), None, "its directory was removed");
    assert_eq!(has("c-1", "gemini", None), None);
    for odd in ["--help", "a b", "$(id)", ""] {
        assert_eq!(has(odd, "claude", None), None, "{odd}");
    }
    sage.write("sage.toml", agent("my claude"));
    assert_eq!(has("c-1", "mine", None), Some(format!("cd {root} && 'my claude' --resume c-1")));
}
