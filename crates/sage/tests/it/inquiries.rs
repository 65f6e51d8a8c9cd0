//! Questions of agents' own, and plans: they reach a person, and the answer reaches the agent.

use std::io::Write;
use std::process::Stdio;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, wait_until};
use crate::real_agents::project;

/// An agent that asks for two things at once, in the words of Claude Code.
const ASKS: &str = r#"
name: asks
phases:
  - id: work
    operations:
      - id: one
        type: agent
        agent: fake
        params:
          prompt: go
          script:
            - ask:
                tool: AskUserQuestion
                input:
                  questions:
                    - { question: "Which color?", header: Color, options: [{ label: Red, description: warm }, { label: Blue, description: cold }] }
                    - { question: "Which sizes?", header: Sizes, multiSelect: true, options: [{ label: S }, { label: M }, { label: L }] }
              run: touch painted
              say: done
"#;

const PLANS: &str = r#"
name: plans
phases:
  - id: work
    operations:
      - { id: one, type: agent, agent: fake, params: { prompt: go, script: [ { ask: { tool: ExitPlanMode, input: { plan: "1. buy paint\n2. paint" } }, run: "touch painted", say: done } ] } }
"#;

fn asks(sage: &Sage) -> Vec<Value> {
    let Some(status) = sage.engine().latest("x").map(|_| sage.status("x")) else { return Vec::new() };
    let steps = status["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().flat_map(|step| step["asks"].as_array().cloned().unwrap_or_default()).collect()
}

fn wait_for_question(sage: &Sage) -> Value {
    wait_until(|| !asks(sage).is_empty(), DEADLINE, "the question");
    asks(sage).remove(0)
}

/// What the agent was told, as its log has it.
fn told(sage: &Sage) -> String {
    sage.sage("logs x work/one").exit(0).stdout
}

// covers: P3, S4
#[test]
fn a_question_is_shown_whole_and_its_answer_reaches_the_agent() {
    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    let ask = wait_for_question(&sage);
    assert_eq!(
        (&ask["kind"], &ask["questions"][1]["multiSelect"]),
        (&json!("question"), &json!(true)),
        "{ask}"
    );
    let line = "Which color? (Red, Blue) · Which sizes? (any of: S, M, L)";
    sage.sage("status x").exit(0).stdout_has(line).stdout_has("sage approve x work/one");
    let inbox = sage.sage("inbox").exit(0);
    let inbox = inbox.stdout_has("    Color: Which color?\n      1. Red   warm\n      2. Blue  cold\n");
    let inbox =
        inbox.stdout_has("Sizes: Which sizes? (several may be chosen)").stdout_has("then: the agent decides");
    inbox.stdout_has("--choice Color=Red --choice Sizes=S");
    let listed = sage.sage("inbox --json").exit(0).json();
    assert_eq!(listed["questions"][0]["kind"], "question");
    assert_eq!(listed["questions"][0]["questions"][0]["options"][1]["description"], "cold", "{listed:#}");
    let roster = sage.sage("status --json").exit(0).json();
    assert_eq!(roster["runs"][0]["asks"][0]["questions"], listed["questions"][0]["questions"], "{roster:#}");
    let approve = |args: &[&str]| sage.args(["approve", "x", "work/one"].iter().chain(args)).run();
    approve(&[]).exit(2).stderr_has("no answer to: Color, Sizes").stderr_has("--choice Color=Red");
    approve(&["-c", "Red", "-c", "XL"]).exit(2).stderr_has("`XL` is no option; there are `Red`");
    approve(&["-c", "Red", "-c", "Blue", "-c", "S"]).exit(2).stderr_has("`Color` takes one option");
    approve(&["--always"]).exit(2);
    approve(&["-c", "s", "-c", "L", "-m", "green"]).exit(0).stdout_has("work/one: approve");
    run.end().exit(0);
    assert!(sage.path("painted").exists());
    let said = told(&sage);
    assert!(said.contains(r#""Which color?":{"text":"green"}"#), "{said}");
    assert!(said.contains(r#""Which sizes?":{"choices":["S","L"]}"#), "{said}");
    sage.sage("logs x").exit(0).stdout_has("allowed by").stdout_has(": green; S, L");
    sage.assert_nothing_alive();
}

// covers: P3
#[test]
fn nobody_answers_and_the_agent_decides() {
    let decide = "Decide yourself";
    let sage = Sage::new().template("asks", ASKS);
    sage.sage("run x -t asks --quiet --yes").exit(0);
    assert!(told(&sage).contains(decide) && told(&sage).contains("state in your answer what you assumed"));
    // No default allows what has no answer.
    let sage = Sage::new().template("asks", ASKS);
    sage.write("sage.toml", "[approvals]\ndeadline = \"300ms\"\ndefault = \"allow\"\nmode = \"all\"\n");
    sage.sage("run x -t asks --quiet").exit(0);
    assert!(!sage.path("painted").exists() && told(&sage).contains(decide));
    sage.sage("logs x").exit(0).stdout_has("work/one denied by deadline: no answer before the deadline");
    // By choice of the project, without waiting for anybody.
    let sage = Sage::new().template("asks", ASKS);
    sage.write("sage.toml", "[approvals]\nquestions = \"decide\"\ndeadline = \"never\"\n");
    sage.sage("run x -t asks --quiet").exit(0);
    assert!(told(&sage).contains(&format!("agents decide questions themselves in this project. {decide}")));
    sage.sage("config").exit(0).stdout_has("approvals.questions");
    sage.write("sage.toml", "[approvals]\nquestions = \"never\"\n");
    sage.sage("run y -t asks --quiet").exit(2).stderr_has("questions");
    // A person who says no.
    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_for_question(&sage);
    sage.sage("reject x work/one").exit(0);
    run.end().exit(0);
    assert!(
        told(&sage).contains("denied: the person does not answer it. Decide yourself"),
        "{}",
        told(&sage)
    );
}

// covers: P3
#[test]
fn a_plan_is_approved_with_a_comment_or_sent_back() {
    let sage = Sage::new().template("plans", PLANS);
    let run = sage.spawn("run x -t plans --quiet");
    let ask = wait_for_question(&sage);
    assert_eq!((&ask["kind"], &ask["plan"]), (&json!("plan"), &json!("1. buy paint\n2. paint")));
    sage.sage("status x").exit(0).stdout_has("may it carry out its plan: 1. buy paint?");
    let inbox = sage.sage("inbox").exit(0).stdout_has("    1. buy paint\n    2. paint\n");
    inbox.stdout_has("may it carry out this plan?").stdout_has("then: denied");
    sage.args(["approve", "x", "-c", "Red"]).run().exit(2).stderr_has("asks for a yes or a no");
    sage.args(["approve", "x", "-m", "red paint"]).run().exit(0);
    run.end().exit(0);
    assert!(sage.path("painted").exists());
    assert!(
        told(&sage).contains(r"2. paint\n\n## From the person who approved this plan\n\nred paint"),
        "{}",
        told(&sage)
    );

    let sage = Sage::new().template("plans", PLANS);
    let run = sage.spawn("run x -t plans --quiet");
    wait_for_question(&sage);
    sage.args(["reject", "x", "-m", "no paint"]).run().exit(0);
    run.end().exit(0);
    assert!(!sage.path("painted").exists() && told(&sage).contains("denied: no paint"));

    let sage = Sage::new().template("plans", PLANS);
    sage.sage("run x -t plans --quiet --yes").exit(0);
    assert!(
        !sage.path("painted").exists() && told(&sage).contains("give the whole plan as your final answer")
    );
    let sage = Sage::new().template("plans", PLANS);
    sage.write("sage.toml", "[approvals]\ndefault = \"allow\"\n");
    sage.sage("run x -t plans --quiet --yes").exit(0);
    assert!(sage.path("painted").exists());
}

/// Types `keys` into a terminal in which `sage approve` runs.
fn typed(sage: &Sage, command: &str, keys: &str) -> String {
    let mut terminal = sage.args([""; 0]).command_of("script");
    let command = format!("{} -C {} {command}", env!("CARGO_BIN_EXE_sage"), sage.root().display());
    terminal.args(["-qec", &command, "/dev/null"]);
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = terminal.spawn().expect("`script` of util-linux is a terminal without a person");
    child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

// covers: P3
#[test]
fn on_a_terminal_the_options_are_shown_and_answered() {
    let sage = Sage::new().template("asks", ASKS).template("plans", PLANS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_for_question(&sage);
    let shown = typed(&sage, "approve x", "2\n1, 3\n");
    assert!(shown.contains("1. Red   warm") && shown.contains("a number, or your own words:"), "{shown}");
    assert!(shown.contains("work/one: approve"), "{shown}");
    run.end().exit(0);
    let said = told(&sage);
    assert!(said.contains(r#""choices":["Blue"]"#) && said.contains(r#"["S","L"]"#), "{said}");
    let run = sage.spawn("run x -t plans --quiet --new");
    wait_for_question(&sage);
    let shown = typed(&sage, "approve x", "use brushes\n");
    assert!(shown.contains("approve this plan?") && shown.contains("work/one: reject"), "{shown}");
    run.end().exit(0);
    assert!(told(&sage).contains("denied: use brushes"));
}

const QUESTION: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { id: one, type: agent, agent: claude, prompt: "paint the fence", params: PARAMS }
"#;

fn question_script() -> Value {
    let option = |label: &str| json!({"label": label, "description": format!("the {label} one")});
    let question = json!({"question": "Which color?", "header": "Color", "multiSelect": false,
        "options": [option("Red"), option("Blue")]});
    json!([
        {"tool": {"name": "AskUserQuestion", "input": {"questions": [question]}}},
        {"text": "painted: {{last_tool_result}}"},
    ])
}

// covers: P3, S4
#[test]
fn the_real_claude_asks_and_hears_the_answer() {
    let model = FakeLlm::start(question_script()).unwrap();
    let Some(sage) = project(&model, &QUESTION.replace("PARAMS", "{}")) else { return };
    let run = sage.spawn("run x -t t --quiet");
    let ask = wait_for_question(&sage);
    assert_eq!((&ask["tool"], &ask["questions"][0]["header"]), (&json!("AskUserQuestion"), &json!("Color")));
    sage.args(["approve", "x", "--choice", "Blue", "-m", "navy, please"]).run().exit(0);
    run.end().exit(0);
    let last = model.prompts().last().unwrap()["messages"].to_string();
    assert!(last.contains("Blue (navy, please)"), "the model's next request has it: {last}");
    let result = sage.results("x")[0]["results"]["one"].as_str().unwrap().to_string();
    assert!(result.contains("Blue (navy, please)"), "{result}");
    sage.assert_nothing_alive();
    // A step can do without.
    let model = FakeLlm::start(question_script()).unwrap();
    let Some(sage) = project(&model, &QUESTION.replace("PARAMS", "{ questions: false }")) else { return };
    sage.sage("run x -t t --quiet").exit(0);
    let offered = model.prompts()[0]["tools"].to_string();
    assert!(!offered.contains("\"AskUserQuestion\"") && offered.contains("\"Bash\""), "{offered}");
}

/// A plan, written to its file as Claude Code wants it, and work after it.
fn plan_script(root: &std::path::Path) -> Value {
    let write = |path: &str, content: &str| json!({"tool": {"name": "Write", "input": {"file_path": path, "content": content}}});
    let fence = root.join("fence.txt").display().to_string();
    json!([
        write(&fence, "too early"),
        write("{{after:You should create your plan at}}", "# Paint\n1. red\n"),
        {"tool": {"name": "ExitPlanMode", "input": {}}},
        write("{{after:You should create your plan at}}", "# Paint\n1. blue\n"),
        {"tool": {"name": "ExitPlanMode", "input": {}}},
        write(&fence, "blue"),
        {"tool": {"name": "Bash", "input": {"command": "echo once >> begun; sleep 300", "description": "dry"}}},
        {"text": "painted"},
    ])
}

// covers: P3, R5, R17
#[test]
fn the_real_claude_plans_first_and_works_when_its_plan_is_approved() {
    let model = FakeLlm::start(json!([{"text": "x"}])).unwrap();
    let Some(sage) = project(&model, &QUESTION.replace("PARAMS", "{ mode: plan }")) else { return };
    model.reset(plan_script(sage.root()).try_into().unwrap());
    let config = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    sage.write("sage.toml", config.replace("[approvals]", "[approvals]\nmode = \"commands\""));
    let run = sage.spawn("run x -t t --quiet");
    let ask = wait_for_question(&sage);
    assert_eq!((&ask["kind"], &ask["plan"]), (&json!("plan"), &json!("# Paint\n1. red\n")));
    assert!(!sage.path("fence.txt").exists(), "nothing changes before the plan is approved");
    let denied = model.prompts()[1]["messages"].to_string();
    assert!(denied.contains("nothing may change before your plan is approved"), "{denied}");
    sage.args(["reject", "x", "-m", "blue, not red"]).run().exit(0);
    wait_until(
        || asks(&sage).first().is_some_and(|ask| ask["plan"] != "# Paint\n1. red\n"),
        DEADLINE,
        "another plan",
    );
    let sent = model.prompts()[3]["messages"].to_string();
    assert!(sent.contains("blue, not red"), "the model hears why: {sent}");
    sage.sage("approve x").exit(0);
    wait_until(|| !sage.lines("begun").is_empty(), DEADLINE, "the work after the plan");
    assert_eq!(sage.lines("fence.txt"), ["blue"]);
    // Killed after its plan was approved, it does not plan again.
    run.kill();
    sage.sage("resume x --quiet").exit(0);
    assert_eq!(sage.results("x")[0]["results"]["one"], "painted");
    assert_eq!(sage.lines("begun"), ["once"]);
    let last = model.prompts().last().unwrap().to_string();
    assert_eq!(last.matches("Plan mode is active").count(), 1, "only in the turn that planned");
    sage.assert_nothing_alive();
}
