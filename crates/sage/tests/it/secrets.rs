//! Keys that Sage sends: an endpoint, a server or an agent may repeat them, and they are kept nowhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use crate::dsl::Sage;

const MODEL_KEY: &str = "canary-model/Key+4711=0123456789abcdef";
const WEB_KEY: &str = "canary-web-header-value-0123456789abcdef";
const SERVER_KEY: &str = "canary-server-env-value-0123456789abcdef";
const AGENT_KEY: &str = "canary-agent-env-value-0123456789abcdefg";
const KEYS: [&str; 4] = [MODEL_KEY, WEB_KEY, SERVER_KEY, AGENT_KEY];

/// An address that refuses everybody and repeats what it was told, in all the ways that endpoints do.
fn parrot() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(repeat(stream))));
    address
}

fn repeat(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? < 3 {
            break;
        }
        let (name, value) = line.trim().split_once(": ").unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "authorization" => key = value.trim_start_matches("Bearer ").to_string(),
            "content-length" => length = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    reader.take(length).read_to_end(&mut Vec::new())?;
    let told = told(&key).join("; ");
    let body = serde_json::json!({"error": {"message": told, "type": "authentication_error"}}).to_string();
    write!(
        stream,
        "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Whole, in part, percent-encoded, in base64.
fn told(key: &str) -> [String; 4] {
    let percent: String = key
        .bytes()
        .map(|byte| match byte {
            b'/' | b'+' | b'=' => format!("%{byte:02X}"),
            byte => char::from(byte).to_string(),
        })
        .collect();
    [
        format!("invalid api key: Bearer {key}"),
        format!("it begins with {}", key.get(..24).unwrap_or_default()),
        format!("?key={percent}"),
        format!("Basic {}", base64(format!("user:{key}").as_bytes())),
    ]
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = bytes.chunks(3).flat_map(|three| {
        let number =
            three.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        (0..=three.len()).map(move |n| char::from(DIGITS[(number >> (18 - 6 * n) & 63) as usize]))
    });
    digits.collect()
}

/// Every piece of a key that would tell something.
fn pieces() -> Vec<String> {
    KEYS.iter()
        .flat_map(|key| {
            let encoded = base64(format!("user:{key}").as_bytes());
            let percent = key.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D");
            [
                key[..20].to_string(),
                key[key.len() - 20..].to_string(),
                percent[..24].to_string(),
                encoded[12..40].to_string(),
            ]
        })
        .collect()
}

#[track_caller]
fn assert_unknown(place: &str, text: &str) {
    for piece in pieces() {
        assert!(!text.contains(&piece), "{place} has {piece}: {text}");
    }
}

#[track_caller]
fn assert_nothing_kept(dir: &Path) -> usize {
    let (mut open, mut count) = (vec![dir.to_path_buf()], 0);
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()));
        } else if meta.is_file() && path.file_name().is_some_and(|name| name != "sage.toml") {
            assert_unknown(
                &path.display().to_string(),
                &String::from_utf8_lossy(&std::fs::read(&path).unwrap()),
            );
            count += 1;
        }
    }
    count
}

// covers: R17
#[test]
fn what_endpoints_servers_and_agents_repeat_is_kept_nowhere() {
    let url = parrot();
    let text = r#"
name: t
phases:
  - id: p
    onFailure: continue
    operations:
      - { id: model, type: agent, agent: model, prompt: hello, retry: 1 }
      - { id: talker, type: agent, agent: talker, prompt: hello, retry: 1 }
      - { id: printer, type: agent, agent: printer, prompt: hello }
      - { id: web, type: tool, params: { server: web, tool: x }, retry: 1 }
      - { id: local, type: tool, params: { server: local, tool: x }, retry: 1 }
"#;
    let sage = Sage::new().template("t", text);
    let agent = |name: &str, command: &str| {
        format!(
            "[agents.{name}]\ncommand = [\"sh\", \"-c\", {command:?}]\nenv = {{ ROBOT_TOKEN = \"{AGENT_KEY}\" }}\n"
        )
    };
    let toml = format!(
        "[agents.model]\nadapter = \"llm\"\napi = \"chat\"\nurl = \"{url}\"\nmodel = \"m\"\napiKeyEnv = \"MY_MODEL\"\n{}{}\
         [mcp.web]\nurl = \"{url}/mcp\"\nheaders = {{ Authorization = \"Bearer ${{WEB_KEY}}\" }}\n\
         [mcp.local]\ncommand = \"sh\"\nargs = [\"-c\", \"echo no: $LOCAL_TOKEN >&2; exit 3\"]\nenv = {{ LOCAL_TOKEN = \"{SERVER_KEY}\" }}\n",
        agent("talker", "echo \"denied for $ROBOT_TOKEN\" >&2; exit 1"),
        agent("printer", "printf 'my key: %s, ' \"$ROBOT_TOKEN\"; printf '%s' \"$ROBOT_TOKEN\" | cut -c1-25"),
    );
    sage.write("sage.toml", toml);
    let run = |args: &[&str]| sage.args(args).env("MY_MODEL", MODEL_KEY).env("WEB_KEY", WEB_KEY).run();
    let outcome = run(&["run", "x", "-t", "t"]);
    assert_unknown("the terminal", &(outcome.stdout.clone() + &outcome.stderr));
    assert!(outcome.stdout.contains("[REDACTED:MY_MODEL]") || outcome.stderr.contains("[REDACTED:MY_MODEL]"));
    for command in [
        "status x",
        "status x --json",
        "result x --json",
        "explain x",
        "logs x",
        "logs x p/talker",
        "inbox",
        "doctor",
    ] {
        let args: Vec<&str> = command.split(' ').collect();
        let shown = run(&args);
        assert_unknown(command, &(shown.stdout + &shown.stderr));
    }
    let printed = run(&["result", "x", "p/printer", "--json"]).exit(0).stdout;
    assert!(printed.contains("my key: [REDACTED:ROBOT_TOKEN], [REDACTED:ROBOT_TOKEN]"), "{printed}");
    let call = run(&["tools", "call", "web/x"]);
    assert_unknown("tools call", &(call.stdout + &call.stderr));
    let kept = assert_nothing_kept(sage.root()) + assert_nothing_kept(&sage.user_state());
    assert!(kept > 20, "{kept} files were looked at");
}

// covers: R24, R17
#[test]
fn servers_see_few_variables_and_those_that_are_named() {
    let sage = Sage::new();
    let binary = env!("CARGO_BIN_EXE_sage");
    let script = format!("env > seen; exec {binary} debug fake-mcp starts");
    sage.write("sage.toml", format!("[mcp.probe]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\ninherit = [\"EXTRA_*\"]\nenv = {{ OWN = \"set\" }}\n"));
    let call = sage.args(["tools", "call", "probe/text", "--arg", "text=hi"]);
    let secrets = [
        ("ANTHROPIC_API_KEY", "k-1"),
        ("GITHUB_TOKEN", "k-2"),
        ("HTTPS_PROXY", "http://u:p@h"),
        ("OTHER", "k-3"),
    ];
    let shared = [("EXTRA_ONE", "e-1"), ("LANG", "C.UTF-8"), ("LC_TIME", "C"), ("TZ", "UTC")];
    secrets.iter().chain(&shared).fold(call, |call, (name, value)| call.env(name, value)).run().exit(0);
    let seen = sage.lines("seen");
    let has = |name: &str| seen.iter().any(|line| line.starts_with(&format!("{name}=")));
    for name in
        ["PATH", "HOME", "USER", "TMPDIR", "XDG_STATE_HOME", "OWN", "EXTRA_ONE", "LANG", "LC_TIME", "TZ"]
    {
        assert!(has(name), "{name}: {seen:?}");
    }
    for (name, _) in secrets {
        assert!(!has(name), "{name}: {seen:?}");
    }
}

// covers: R24
#[test]
fn a_server_that_misses_a_variable_is_told_how_to_get_it() {
    let sage = Sage::new();
    let script = "test -n \"$NEEDED_TOKEN\" || { echo NEEDED_TOKEN is not set >&2; exit 1; }";
    sage.write("sage.toml", format!("[mcp.needy]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n"));
    let outcome =
        sage.args(["tools", "call", "needy/x"]).env("NEEDED_TOKEN", "some-token-value").run().exit(1);
    outcome.stderr_has("NEEDED_TOKEN is not set").stderr_has("[mcp.needy] inherit = [\"NEEDED_TOKEN\"]");
    sage.write("sage.toml", "[mcp.odd]\ncommand = \"sh\"\ninherit = [\"a b\"]\n");
    sage.sage("list").exit(2).stderr_has("mcp.odd.inherit");
}
