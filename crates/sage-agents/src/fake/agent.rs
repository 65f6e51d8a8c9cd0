//! The fake agent's own process: plays one turn of its script, faults included.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use sage_fence::Fence;
use serde_json::{Value, json};

use super::line::{Answer as Permitted, Line, Told, Used};
use super::script::{Fault, Response, Script, Turn};
use super::server::{self, Answer};
use crate::complaint::Complaint;

/// Where a flood ends if nobody stops it.
const FLOOD_BYTES: usize = 1 << 30;
/// Names the directory that its files stay in.
pub const PROJECT: &str = "SAGE_PROJECT";
/// How often a hanging agent looks for a reminder.
const NUDGE_POLL: Duration = Duration::from_millis(20);

/// Entry of `sage debug fake-agent <script.json> [--attempt n]`; works in the current directory.
pub fn fake_agent_main(script: &Path, attempt: u32) -> ExitCode {
    let script = std::fs::read_to_string(script).map_err(|error| error.to_string());
    match script.and_then(|text| Script::parse(&text)) {
        Ok(script) => play(script.turn(attempt)).unwrap_or_else(|error| {
            eprintln!("fake agent: {error}");
            ExitCode::FAILURE
        }),
        Err(error) => {
            eprintln!("fake agent: {error}");
            ExitCode::from(2)
        }
    }
}

fn play(turn: &Turn) -> io::Result<ExitCode> {
    if let Some(limits) = turn.limits {
        print_line(&Line::Limits(limits))?;
    }
    // Held to the end of the turn, however it ends: so long the server sees it as in flight.
    let _served = match turn.server.as_ref().map(server::call).transpose()? {
        Some(Answer::Refused(complaint)) => return fail(complaint),
        Some(Answer::Served(call)) => Some(call),
        None => None,
    };
    sleep_ms(turn.delay_ms);
    for _ in 0..turn.beats {
        sleep_ms(turn.beat_ms);
        print_line(&Line::Text { text: ".".into() })?;
    }
    let mut early = VecDeque::new();
    let allowed = allowed(turn, &mut early)?;
    (0..turn.hear).try_for_each(|_| hear(early.pop_front()))?;
    if allowed {
        for (path, text) in &turn.write {
            use_tool("Write", json!({"path": path}), || write_file(Path::new(path), text))?;
        }
        if let Some(command) = &turn.run {
            use_tool("Run", json!({"command": command}), || run_command(command))?;
        }
    }
    let last = Response { say: turn.say.clone(), usage: turn.usage.clone(), delay_ms: 0 };
    let mut responses = turn.responses.iter().chain([&last]);
    while let Some(response) = responses.next() {
        respond(response, responses.clone().any(|later| later.usage.is_some()))?;
    }
    match turn.fault {
        Some(fault) => misbehave(fault, turn),
        None => succeed(turn),
    }
}

/// Whether it may write and run. Without anybody who answers (a script played by hand) it goes on. Messages that come
/// before the answer are kept in `early`.
fn allowed(turn: &Turn, early: &mut VecDeque<String>) -> io::Result<bool> {
    let Some(ask) = &turn.ask else { return Ok(true) };
    print_line(&Line::Ask { ask: ask.clone() })?;
    let answer: Permitted = loop {
        let Some(line) = read_line()? else { return Ok(true) };
        match serde_json::from_str(&line) {
            Ok(answer) => break answer,
            Err(_) => early.push_back(line),
        }
    };
    let said = match (&answer.message, &answer.input) {
        (Some(message), _) => format!("denied: {message}"),
        (None, Some(input)) => format!("allowed with {input}"),
        (None, None) => "allowed".into(),
    };
    print_line(&Line::Text { text: said })?;
    Ok(answer.allow)
}

/// The end of its input is a message that nobody sends any more.
fn hear(early: Option<String>) -> io::Result<()> {
    let line = match early {
        Some(line) => Some(line),
        None => read_line()?,
    };
    let Some(line) = line else { return Ok(()) };
    let Told { message } = serde_json::from_str(&line).map_err(io::Error::other)?;
    print_line(&Line::Heard { text: message.clone() })?;
    print_line(&Line::Text { text: format!("heard: {message}") })
}

fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    Ok((io::stdin().read_line(&mut line)? > 0).then_some(line))
}

fn use_tool(tool: &str, input: Value, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    print_line(&Line::Tool { tool: tool.into(), input })?;
    let done = work();
    let output = done.as_ref().err().map_or_else(|| "done".into(), ToString::to_string);
    print_line(&Line::ToolResult { tool: tool.into(), output, failed: done.is_err() })?;
    done
}

fn respond(response: &Response, goes_on: bool) -> io::Result<()> {
    sleep_ms(response.delay_ms);
    if let Some(text) = &response.say {
        print_line(&Line::Text { text: text.clone() })?;
    }
    if let Some(usage) = &response.usage {
        print_line(&Line::Usage(Used { usage: usage.clone(), goes_on }))?;
    }
    Ok(())
}

fn succeed(turn: &Turn) -> io::Result<ExitCode> {
    print(format!("{}\n", result_line(turn)?).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn misbehave(fault: Fault, turn: &Turn) -> io::Result<ExitCode> {
    match fault {
        Fault::Hang => {
            hang_until_nudged(turn.wake_on_nudge);
            return succeed(turn);
        }
        Fault::Crash => crash(turn),
        Fault::Garbage => print(b"\xff\xfe not json \x00\x1b[31m\n{\"type\":\"result\"\n[1,2\n")?,
        Fault::Truncated => {
            let line = result_line(turn)?;
            print(&line.as_bytes()[..line.len() / 2])?;
        }
        Fault::SilentExit => {}
        Fault::IgnoreTerm => ignore_term()?,
        Fault::Flood => flood()?,
        Fault::RateLimit => return fail(complaint("rate-limit", "too many requests", turn)),
        Fault::Quota => return fail(complaint("quota", "the quota is used up", turn)),
        Fault::Overloaded => return fail(complaint("overloaded", "the service is overloaded", turn)),
        Fault::Auth => return fail(complaint("auth", "not logged in", turn)),
        Fault::DoubleResult => {
            let line = result_line(turn)?;
            print(format!("{line}\n{line}\n").as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3_600));
    }
}

/// Returns after `count` reminders; without a file for them, or with 0, it hangs for good.
fn hang_until_nudged(count: u32) {
    let Some(path) = std::env::var_os("SAGE_NUDGE").filter(|_| count > 0) else { hang() };
    let nudges = || std::fs::read_to_string(&path).ok()?.trim().parse::<u32>().ok();
    while nudges().is_none_or(|nudges| nudges < count) {
        std::thread::sleep(NUDGE_POLL);
    }
}

/// Dies by SIGABRT, without a core file in the user's project; a `result` is printed before.
fn crash(turn: &Turn) -> ! {
    let no_core = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, no_core);
    if turn.result.is_some() {
        let _ = result_line(turn).and_then(|line| print(format!("{line}\n").as_bytes()));
    }
    std::process::abort()
}

/// Catches the polite signals and does nothing about them.
fn ignore_term() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _guard = runtime.enter();
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let _caught = kinds.map(signal);
    // From here on it is deaf; whoever watches the output knows.
    print_line(&Line::Text { text: "ignoring SIGTERM".into() })?;
    hang()
}

fn flood() -> io::Result<()> {
    let line = to_text(&Line::Text { text: "flood ".repeat(10_000) })?;
    for _ in 0..FLOOD_BYTES / line.len() {
        print(format!("{line}\n").as_bytes())?;
    }
    Ok(())
}

fn complaint(class: &str, message: &str, turn: &Turn) -> Complaint {
    Complaint {
        class: class.into(),
        message: message.into(),
        retry_after_ms: turn.retry_after_ms,
        reset_at: turn.reset_at.clone(),
    }
}

fn fail(complaint: Complaint) -> io::Result<ExitCode> {
    print_line(&Line::Error(complaint))?;
    Ok(ExitCode::FAILURE)
}

/// Only inside of the project, and nothing that configures agents: scripts come with bug reports of strangers.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    fence().write(path, text.as_bytes()).map(drop).map_err(io::Error::other)
}

pub fn fence() -> Fence {
    let here = Path::new(".");
    match std::env::var_os(PROJECT) {
        Some(project) => Fence::around(project.as_ref(), here),
        None => Fence::new(here),
    }
}

/// Its output goes to stderr: stdout belongs to the protocol.
fn run_command(command: &str) -> io::Result<()> {
    let status = Command::new("/bin/sh").arg("-c").arg(command).stdout(Stdio::from(io::stderr())).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`{command}` failed: {status}"))) }
}

fn sleep_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn result_line(turn: &Turn) -> io::Result<String> {
    to_text(&Line::Result { result: turn.answer().unwrap_or(Value::Null) })
}

fn to_text(line: &Line) -> io::Result<String> {
    serde_json::to_string(line).map_err(io::Error::other)
}

fn print_line(line: &Line) -> io::Result<()> {
    print(format!("{}\n", to_text(line)?).as_bytes())
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}
