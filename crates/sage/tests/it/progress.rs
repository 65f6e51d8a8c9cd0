//! One run, one answer to "how far is it?": every reader tells the same (R8, R16).

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::dsl::Sage;
use crate::mcp_server::client::{BOTH, Client};

/// How a run ended, and how far it is then.
struct Case {
    name: &'static str,
    /// A template, or code.
    text: &'static str,
    exit: i32,
    status: &'static str,
    completed: u64,
    total: u64,
    percentage: u64,
    phase: &'static str,
}

const CHAIN: &str = "
name: t
phases:
  - { id: one, operations: { id: a, type: shell, params: { run: 'true' } } }
  - { id: two, dependencies: [one], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const FAILED: &str = "
name: t
phases:
  - id: one
    operations:
      - { id: good, type: shell, params: { run: 'true' } }
      - { id: bad, type: shell, params: { run: 'exit 3' } }
  - { id: two, dependencies: [one], operations: { id: b, type: shell, params: { run: 'true' } } }
  - { id: three, dependencies: [two], operations: { id: c, type: shell, params: { run: 'true' } } }
";
const MISSED: &str = "
name: t
phases:
  - id: research
    join: { atLeast: 0.75 }
    onJoin: pause
    operations:
      - { id: good, type: shell, params: { run: 'true' } }
      - { id: bad, type: shell, params: { run: 'exit 3' } }
      - { id: worse, type: shell, params: { run: 'exit 4' } }
      - { id: worst, type: shell, params: { run: 'exit 5' } }
  - { id: spec, dependencies: [research], operations: { id: s, type: shell, params: { run: 'true' } } }
";
const DEGRADED: &str = "
name: t
phases:
  - id: research
    join: { atLeast: 0.5 }
    operations:
      - { id: good, type: shell, params: { run: 'true' } }
      - { id: bad, type: shell, params: { run: 'exit 3' } }
      - { id: blocked, type: shell, needs: [research/bad], params: { run: 'true' } }
      - { id: fine, type: shell, params: { run: 'true' } }
  - { id: spec, dependencies: [research], operations: { id: s, type: shell, params: { run: 'true' } } }
";
const SKIPPED: &str = "
name: t
phases:
  - id: one
    operations:
      - { id: a, type: shell, params: { run: 'true' } }
      - { id: never, type: shell, when: 'false', params: { run: 'true' } }
";
/// The loser runs until it is stopped; a loser that failed is not missed either.
const RACE: &str = "
name: t
phases:
  - id: race
    join: any
    operations:
      - { id: quick, type: shell, params: { run: 'until [ -e lost ]; do sleep 0.02; done' } }
      - { id: slow, type: shell, params: { run: 'sleep 600' } }
      - { id: broken, type: shell, params: { run: 'touch lost; exit 3' } }
";
const ASKING: &str = "
name: t
phases:
  - { id: one, operations: { id: a, type: shell, params: { run: 'true' } } }
  - { id: gate, dependencies: [one], operations: { id: ok, type: approval, params: { message: '?' } } }
  - { id: two, dependencies: [gate], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const FAN: &str = "
name: t
phases:
  - id: each
    operations:
      - { id: item, type: shell, foreach: '[0, 1, 2, 3]', params: { argv: [sh, -c, 'test {{ index }} -lt 3'] } }
  - { id: after, dependencies: [each], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const TOLERANT: &str = "
name: t
phases:
  - id: each
    operations:
      - id: item
        type: shell
        foreach: '[0, 1, 2, 3]'
        tolerate: 1
        params: { argv: [sh, -c, 'test {{ index }} -lt 3'] }
  - { id: after, dependencies: [each], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const NESTED: &str = "
name: t
phases:
  - { id: outer, operations: { id: inner, type: workflow, params: { template: failed } } }
  - { id: after, dependencies: [outer], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const ROUNDS: &str = "
name: t
phases:
  - { id: work, operations: { id: a, type: shell, params: { run: 'echo x >> rounds' } } }
  - id: judge
    dependencies: [work]
    repeat: { from: work, while: '.steps[\"judge/b\"].result.stdout == \"1\\n\"', max: 3 }
    operations: { id: b, type: shell, params: { run: 'wc -l < rounds | tr -d \" \"' } }
  - { id: end, dependencies: [judge], operations: { id: c, type: shell, params: { run: 'exit 3' } } }
";
const HANDLED: &str = r#"
export default async (sage: any) => {
  await sage.shell("true", { label: "a" });
  try { await sage.shell("exit 3", { label: "b" }) } catch { await sage.shell("true", { label: "c" }) }
  return 1;
};
"#;
const THREW: &str = r#"
export default async (sage: any) => {
  await sage.shell("true", { label: "a" });
  throw new Error("no more");
};
"#;

const CASES: &[Case] = &[
    case("chain", CHAIN, 0, "completed", (2, 2, 100), "two"),
    case("failed", FAILED, 1, "failed", (1, 4, 25), "one"),
    case("missed", MISSED, 4, "paused", (1, 5, 20), "research"),
    case("degraded", DEGRADED, 3, "completed", (3, 5, 60), "spec"),
    case("skipped", SKIPPED, 0, "completed", (2, 2, 100), "one"),
    case("race", RACE, 0, "completed", (1, 1, 100), "race"),
    case("asking", ASKING, 4, "paused", (1, 3, 33), "gate"),
    case("fan", FAN, 1, "failed", (3, 5, 60), "each"),
    case("tolerant", TOLERANT, 3, "completed", (4, 5, 80), "after"),
    case("nested", NESTED, 1, "failed", (1, 5, 20), "outer"),
    case("rounds", ROUNDS, 1, "failed", (4, 5, 80), "end"),
    case("handled", HANDLED, 0, "completed", (2, 2, 100), "main"),
    case("threw", THREW, 1, "failed", (1, 2, 50), "main"),
];

const fn case(
    name: &'static str,
    text: &'static str,
    exit: i32,
    status: &'static str,
    (completed, total, percentage): (u64, u64, u64),
    phase: &'static str,
) -> Case {
    Case { name, text, exit, status, completed, total, percentage, phase }
}

fn project() -> Sage {
    let mut sage = Sage::new();
    for case in CASES {
        sage = match case.text.contains("export default") {
            true => sage.code(case.name, case.text),
            false => sage.template(case.name, case.text),
        };
    }
    sage
}

/// What a document says: `{completed, total, percentage}` and the phase.
fn told(document: &Value) -> (Value, Value) {
    (document["progress"].clone(), document["phase"].clone())
}

/// Everything that reads a run and says how far it is.
#[track_caller]
fn all_agree(sage: &Sage, client: &mut Client, expected: &Case) {
    let Case { status, completed, total, percentage, phase, .. } = *expected;
    let name = &*format!("x-{}", expected.name);
    let progress = json!({"completed": completed, "total": total, "percentage": percentage});
    let expected = (progress, json!(phase));

    let seen = sage.status(name);
    assert_eq!((told(&seen), &seen["status"]), (expected.clone(), &status.into()), "status of {name}");
    let checkpoint = std::fs::read(sage.path(&format!(".sage/state/workflow-{name}.json"))).unwrap();
    let checkpoint: Value = serde_json::from_slice(&checkpoint).unwrap();
    assert_eq!(told(&checkpoint), expected, "checkpoint of {name}");
    let over_mcp = client.call("sage_workflow_status", json!({"feature": name}));
    let steps = if total == 1 { "step" } else { "steps" };
    let word = seen["verdict"].as_str().unwrap_or(status);
    let text = format!("{name}: {word}, {completed} of {total} {steps} done");
    assert!(over_mcp.text.starts_with(&text), "{} is not {text}", over_mcp.text);
    assert_eq!(told(&over_mcp.good()), expected, "MCP status of {name}");

    let row = |rows: &Value| {
        let rows = rows["workflows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["feature"] == name).unwrap();
        (row["progress"].clone(), row["phase"].clone(), row["status"].clone())
    };
    let listed = (json!(percentage), json!(phase), json!(status));
    assert_eq!(row(&sage.sage("list --json").exit(0).json()), listed, "list of {name}");
    assert_eq!(row(&client.call("sage_workflow_list", json!({})).good()), listed, "MCP list of {name}");
    let table = sage.sage("list").exit(0).stdout;
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
    assert!(line.contains(&format!(" {percentage}%  {phase} ")), "{line}");

    let figures = format!(" · {completed}/{total} · {percentage}%");
    let picture = sage.args(["status", name]).run().exit(0).stdout;
    assert!(picture.lines().next().unwrap().contains(&figures), "{picture} without {figures}");
    let graph = sage.args(["graph", name]).run().exit(0).stdout;
    assert!(graph.lines().next().unwrap().contains(&format!("{completed}/{total}")), "{graph}");
    only_failed_steps_are_failed(name, &seen, &checkpoint["checkpoints"]);
}

/// `failed` of a phase names its failed operations, and nothing that runs, waits, is blocked or was cancelled.
#[track_caller]
fn only_failed_steps_are_failed(name: &str, status: &Value, phases: &Value) {
    for (phase, image) in phases.as_object().unwrap() {
        for (list, failed) in [("failed", true), ("unfinished", false)] {
            for operation in image[list].as_array().into_iter().flatten() {
                let path = format!("{}/{}", image["phaseId"].as_str().unwrap(), operation.as_str().unwrap());
                let step =
                    status["steps"].as_array().unwrap().iter().find(|step| step["path"] == path.as_str());
                let state = step.unwrap_or_else(|| panic!("{name}: no {path}"))["state"].as_str().unwrap();
                assert_eq!(state == "failed", failed, "{name}: {path} is {state} and in {list} of {phase}");
            }
        }
    }
}

/// Runs that ended in every way there is, and their readers.
// covers: R8, R16, R18
#[test]
fn every_reader_tells_the_same_of_runs_that_ended_in_many_ways() {
    let sage = project();
    let mut client = Client::start(&sage, BOTH[0]);
    for case in CASES {
        let feature = format!("x-{}", case.name);
        let done = sage.args(["run", &feature, "-t", case.name, "--json"]).run().exit(case.exit);
        let last = done.json_lines().last().unwrap().clone();
        let progress =
            json!({"completed": case.completed, "total": case.total, "percentage": case.percentage});
        assert_eq!(told(&last), (progress, json!(case.phase)), "{}: {last:#}", case.name);
        all_agree(&sage, &mut client, case);
    }
    // Cancelled where it stood, and resumed: nothing of it is counted twice, reused steps count.
    sage.sage("cancel x-asking").exit(0);
    let asking = case("asking", "", 0, "cancelled", (1, 3, 33), "gate");
    all_agree(&sage, &mut client, &asking);
    sage.sage("resume x-failed").exit(1).stdout_has("1 of 4 steps done, 1 reused · 1 failed · 2 blocked");
    all_agree(&sage, &mut client, &CASES[1]);
    sage.sage("resume x-chain").exit(0);
    all_agree(&sage, &mut client, &CASES[0]);
}

/// While it runs, and after its owner was killed.
// covers: R8, R16
#[test]
fn every_reader_tells_the_same_of_a_run_under_way_and_of_a_dead_one() {
    let text = "
name: t
phases:
  - id: one
    operations:
      - { id: quick, type: shell, params: { run: 'true' } }
      - { id: slow, type: shell, params: { run: 'touch up; sleep 600' } }
      - { id: bad, type: shell, params: { run: 'exit 3' } }
  - { id: two, dependencies: [one], operations: { id: b, type: shell, params: { run: 'true' } } }
";
    let sage = Sage::new().template("t", text);
    let mut client = Client::start(&sage, BOTH[1]);
    let mut running = sage.spawn("run x -t t");
    let settled = || {
        let up = sage.path("up").exists() && sage.path(".sage/state/workflow-x.json").exists();
        up && sage.state_of("x", "one/quick") == "succeeded" && sage.state_of("x", "one/bad") == "failed"
    };
    running.until(settled, "the quick steps");
    let status = sage.status("x");
    assert_eq!(told(&status).0, json!({"completed": 1, "total": 4, "percentage": 25}), "{status:#}");
    assert_eq!(told(&status).1, "one");
    let seen = client.call("sage_workflow_status", json!({"feature": "x"}));
    assert!(seen.text.starts_with("x: running, 1 of 4 steps done"), "{}", seen.text);
    sage.sage("status x").exit(0).stdout_has(" · 1/4 · 25%");

    running.signal(Signal::KILL);
    running.kill();
    sage.assert_nothing_alive();
    let dead = sage.args(["status", "x"]).run().exit(0);
    let picture = dead.stdout.clone();
    assert!(picture.contains("no process owns it · 1/4 · 25%"), "{picture}");
    let moves = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
    assert!(!picture.contains(moves) && !picture.contains(" left"), "{picture}");
    assert!(picture.contains("slow") && picture.contains("interrupted"), "{picture}");
    assert_eq!(
        told(&sage.status("x")),
        (json!({"completed": 1, "total": 4, "percentage": 25}), "one".into())
    );
    let listed = sage.sage("list --json").exit(0).json();
    assert_eq!(listed["workflows"][0]["progress"], 25, "{listed:#}");
    dead_is_dead_for_every_reader(&sage, &mut client);
}

/// The journal says `running`, and no process owns the run: people are told that, programs get `abandoned`, and no
/// clock goes on.
#[track_caller]
fn dead_is_dead_for_every_reader(sage: &Sage, client: &mut Client) {
    let roster = || sage.sage("status --json").exit(0).json()["runs"][0].clone();
    let seen = client.call("sage_workflow_status", json!({"feature": "x"}));
    assert!(seen.text.starts_with("x: interrupted, 1 of 4 steps done"), "{}", seen.text);
    let documents = [
        sage.status("x"),
        seen.good(),
        sage.sage("list --json").exit(0).json()["workflows"][0].clone(),
        client.call("sage_workflow_list", json!({})).good()["workflows"][0].clone(),
        roster(),
    ];
    for document in documents {
        let told = (&document["status"], &document["abandoned"]);
        assert_eq!(told, (&json!("running"), &json!(true)), "{document:#}");
    }
    for command in ["list", "list --status interrupted", "status"] {
        let text = sage.sage(command).exit(0).stdout;
        assert!(text.contains("interrupted") && !text.contains("running"), "{command}: {text}");
    }
    let elapsed = |status: &Value| status["steps"][1]["elapsedMs"].clone();
    assert_eq!(elapsed(&sage.status("x")), elapsed(&sage.status("x")));
    let (before, after) = (roster(), roster());
    assert_eq!((&before["elapsedMs"], &before["working"]), (&after["elapsedMs"], &after["working"]));
}

/// The answer of a call that did not wait for the end: what runs and what waits has not failed.
// covers: R16
#[test]
fn an_answer_about_a_running_workflow_names_no_failures() {
    let text = "
name: t
phases:
  - { id: one, operations: [{ id: a, type: shell, params: { run: 'sleep 600' } }, { id: b, type: sleep, params: { for: 10m } }] }
  - { id: two, dependencies: [one], operations: { id: c, type: shell, params: { run: 'true' } } }
";
    let sage = Sage::new().template("t", text);
    let mut client = Client::start(&sage, BOTH[0]);
    let answer =
        client.call("sage_workflow_execute", json!({"feature": "x", "template": "t", "waitMs": 300})).good();
    assert_eq!((&answer["status"], &answer["phase"]), (&"running".into(), &"one".into()), "{answer:#}");
    assert_eq!(answer["progress"], json!({"completed": 0, "total": 3, "percentage": 0}));
    for phase in answer["results"]["phases"].as_array().unwrap() {
        assert_eq!((phase.get("failed"), phase.get("error")), (None, None), "{phase:#}");
    }
    assert_eq!(answer["results"]["phases"][0]["unfinished"], json!(["a", "b"]));
    assert_eq!(answer["results"]["phases"][1]["unfinished"], json!(["c"]));
    client.call("sage_workflow_cancel", json!({"feature": "x"})).good();
}

/// A run that waits for a known time is paused in the registry, too, while its owner stays.
// covers: R9, R16
#[test]
fn the_registry_says_paused_while_a_run_waits() {
    let text = "
name: t
phases:
  - id: p
    operations: { id: a, type: agent, agent: fake, params: { prompt: hi, script: [{ fault: quota, resetAt: '2099-01-01T00:00:00Z' }] } }
";
    let sage = Sage::new().template("t", text);
    let mut running = sage.spawn("run x -t t --quiet");
    let entry = || {
        let registry = std::fs::read(sage.path(".sage/state/ACTIVE_WORKFLOWS.json")).unwrap_or_default();
        let registry: Value = serde_json::from_slice(&registry).unwrap_or_default();
        registry["workflows"][0].clone()
    };
    running.until(|| entry()["status"] == "paused", "the registry");
    assert_eq!(sage.status("x")["status"], "paused");
    assert_eq!(entry()["pid"], running.pid());
    running.signal(Signal::INT);
    running.end().exit(130);
    assert_eq!((&entry()["status"], &entry()["pid"]), (&"paused".into(), &json!(0)));
}
