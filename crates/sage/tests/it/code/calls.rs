//! Everything that a workflow in code can call.

use serde_json::json;

use super::{flow, paths, ran, returned, value, whole};
use crate::dsl::Sage;

/// An agent that says how long its prompt is and which model it was asked to be.
const COUNTER: &str = r#"
agent = "counter"
[agents.counter]
adapter = "command"
command = ["sh", "-c", 'echo "$SAGE_STEP" >> ran; n=$(wc -c); echo "${SAGE_MODEL:-none} $n"']
"#;

// covers: R21, R3
#[test]
fn an_agent_is_called_by_name_with_a_prompt_or_with_options() {
    let sage = flow(
        r#"
  const plain = await sage.agent("plain", "12345");
  const more: string = await sage.agent("more", { prompt: "123", model: "m1" });
  const scripted = await sage.agent("scripted", { agent: "fake", prompt: "go", params: { script: [{ result: { deep: [1, null] } }] } });
  return { plain, more, scripted };"#,
    );
    sage.write("sage.toml", COUNTER);
    sage.sage("run x -t t").exit(0);
    assert_eq!(value(&sage), json!({"plain": "none 5", "more": "m1 3", "scripted": {"deep": [1, null]}}));
    assert_eq!(ran(&sage), ["main/more", "main/plain"]);
    assert_eq!(paths(&sage), ["main/script", "main/plain", "main/more", "main/scripted"]);
}

// covers: R21, R9
#[test]
fn an_answer_in_a_schema_is_an_object_and_another_one_is_refused() {
    let value = returned(
        r#"
  const schema = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
  const good = await sage.agent("good", { schema, prompt: "n?", params: { script: [{ result: { n: 7 } }] } });
  let bad = null;
  try { await sage.agent("bad", { schema, prompt: "n?", params: { script: [{ result: { n: "seven" } }] } }) }
  catch (error) { bad = { code: error.code, error: error instanceof Error, told: error.message.length > 0 } }
  return { n: good.n + 1, bad };"#,
    );
    assert_eq!(value, json!({"n": 8, "bad": {"code": "invalid", "error": true, "told": true}}));
}

// covers: R21
#[test]
fn a_prompt_of_code_is_a_plain_text() {
    let sage = flow(r#"return await sage.agent("a", "{{ inputs.secret }} {% raw");"#);
    sage.write("sage.toml", COUNTER.replace("n=$(wc -c); echo \"${SAGE_MODEL:-none} $n\"", "cat"));
    sage.sage("run x -t t -i secret=no").exit(0);
    assert_eq!(value(&sage), json!("{{ inputs.secret }} {% raw"));
}

// covers: R21
#[test]
fn shell_takes_a_text_or_arguments_and_gives_what_was_printed() {
    let value = returned(
        r#"
  const text = await sage.shell("echo out; echo err >&2");
  const list = await sage.shell({ argv: ["printf", "%s", "a b"], env: { A: "1" } });
  const data = await sage.shell({ run: "echo \"{\\\"here\\\": \\\"$PWD\\\", \\\"a\\\": $A}\"", json: true, cwd: "sub", env: { A: "1" } }).catch(() => null);
  const named = await sage.shell("true", { label: "Named Step", phase: "Other Things" });
  return { text, list: list.stdout, named: named.exitCode, data };"#,
    );
    assert_eq!(value["text"], json!({"stdout": "out\n", "stderr": "err\n", "exitCode": 0}));
    assert_eq!(value["list"], "a b");
    assert_eq!(value["named"], 0);
    assert_eq!(value["data"], json!(null), "there is no folder `sub`");
}

// covers: R21, S4
#[test]
fn a_label_and_a_phase_become_the_path() {
    let sage = flow(
        r#"
  await sage.shell("true");
  sage.phase("Look Around!");
  await sage.shell("true", { label: "First One" });
  await sage.shell("echo", { label: "First One" });
  await sage.shell("true", { label: "x", phase: "Elsewhere" });
  await sage.shell("echo y", { label: "y" });
  return null;"#,
    );
    sage.sage("run x -t t").exit(0);
    let expected = [
        "main/script",
        "main/shell",
        "look-around/first-one",
        "look-around/first-one[1]",
        "elsewhere/x",
        "look-around/y",
    ];
    assert_eq!(paths(&sage), expected);
    assert_eq!(sage.sage("result x look-around/first-one[1]").exit(0).json()["stdout"], "\n");
}

// covers: R21, R24
#[test]
fn a_tool_of_a_server_is_called() {
    let sage = flow(
        r#"
  const echoed = await sage.tool("research", "echo", { a: [1, 2] });
  const failed = await sage.tool("research", "nothing", {}).then(() => "done", (error) => error.code);
  return { echoed, failed };"#,
    );
    let (binary, starts) = (env!("CARGO_BIN_EXE_sage"), sage.path("starts"));
    let config =
        format!("[mcp.research]\ncommand = {binary:?}\nargs = [\"debug\", \"fake-mcp\", {starts:?}]\n");
    sage.write("sage.toml", config);
    sage.sage("run x -t t").exit(0);
    let value = value(&sage);
    assert_eq!(value["echoed"], json!({"a": [1, 2]}), "{value}");
    assert_ne!(value["failed"], "done", "{value}");
    assert_eq!(sage.lines("starts").len(), 1, "one server for the whole workflow");
    sage.assert_nothing_alive();
}

// covers: R21, R3
#[test]
fn a_named_operation_is_called_and_sees_earlier_results() {
    let sage = flow(
        r#"
  sage.phase("Research");
  const market = await sage.run("our.look", { at: "market" });
  sage.phase("Then");
  return await sage.run("our.sum", {}, { steps: { "research/look": market } });"#,
    );
    let look =
        "---\nkind: agent\nagent: counter\nparams: { at: nothing }\n---\nLook at the {{ params.at }}.\n";
    let sum = "---\nkind: agent\nagent: counter\n---\n{% for name, step in steps | items %}{{ name }}={{ step.result }}{% endfor %}\n";
    sage.write(".sage/operations/our.look.md", look);
    sage.write(".sage/operations/our.sum.md", sum);
    sage.write("sage.toml", COUNTER.replace("n=$(wc -c); echo \"${SAGE_MODEL:-none} $n\"", "cat"));
    sage.sage("run x -t t").exit(0);
    let value = value(&sage);
    assert_eq!(value, json!("research/look=Look at the market."));
    assert_eq!(ran(&sage), ["research/look", "then/sum"]);
}

// covers: R21
#[test]
fn inputs_title_feature_and_budget_are_known() {
    let sage = flow(
        "return { input, feature: sage.feature, title: sage.title, total: sage.budget.total, left: String(sage.budget.remaining()) };",
    );
    sage.args(["run", "Blue Sky", "-t", "t", "-i", "n=3", "-i", "list=[1,2]", "-i", "word=yes please"])
        .run()
        .exit(0);
    let value = sage.sage("result blue-sky main/script").exit(0).json();
    let input = json!({"n": 3, "list": [1, 2], "word": "yes please"});
    let expected = json!({"input": input, "feature": "blue-sky", "title": "Blue Sky", "total": null, "left": "Infinity"});
    assert_eq!(value, expected);
    sage.args(["run", "Grey Sky", "-t", "t", "--budget", "200k"]).run().exit(0);
    assert_eq!(sage.sage("result grey-sky main/script").exit(0).json()["total"], 200_000);
}

// covers: R21, S2
#[test]
fn what_is_logged_is_told_and_kept() {
    let sage = flow("sage.log('one of two'); await sage.shell('true'); sage.log('two of two'); return 1;");
    sage.sage("run x -t t").exit(0).stdout_has("one of two").stdout_has("two of two");
    sage.sage("logs x").exit(0).stdout_has("one of two").stdout_has("two of two");
    assert_eq!(crate::calls::count(&sage.journal("x"), "step.noted"), 2);
}

// covers: R21, R5
#[test]
fn a_question_waits_for_a_person_without_an_owner() {
    let sage = flow(
        r#"
  await sage.shell("echo before >> ran");
  const color = await sage.approve("which?", { choices: ["blue", "green"] });
  let ship;
  try { ship = await sage.approve("ship?"); } catch (error) { ship = error.code + ": " + error.message }
  return { color: color.choice, by: color.by, ship };"#,
    );
    sage.sage("run x -t t").exit(4).stdout_has("sage approve x");
    let status = sage.status("x");
    assert_eq!((&status["status"], &status["pauseReason"]), (&"paused".into(), &"approval".into()));
    sage.sage("approve x --choice green").exit(0);
    sage.sage("resume x").exit(4);
    sage.args(["reject", "x", "-m", "not on a friday"]).run().exit(0);
    sage.sage("resume x").exit(0);
    let value = value(&sage);
    assert_eq!(value["color"], "green", "{value}");
    assert!(value["by"].as_str().unwrap().ends_with(" via command line"), "{value}");
    let ship = value["ship"].as_str().unwrap();
    assert!(ship.starts_with("rejected") && ship.contains("not on a friday"), "{ship}");
    assert_eq!(ran(&sage), ["before"]);
}

// covers: R21
#[test]
fn a_question_nobody_answers_takes_its_default() {
    let value = returned(
        r#"
  const asked = await sage.approve("go?", { deadline: "50ms", default: "approve" });
  return asked.choice;"#,
    );
    assert_eq!(value, json!("approve"));
}

// covers: R21
#[test]
fn parallel_has_a_limit_and_pipeline_no_barrier() {
    let sage = flow(
        r#"
  const now = { open: 0, most: 0 };
  const one = (n: number) => async () => {
    now.most = Math.max(now.most, ++now.open);
    const { stdout } = await sage.shell(`sleep 0.05; echo ${n}`);
    now.open--;
    return Number(stdout);
  };
  const limited = await sage.parallel([1, 2, 3, 4, 5, 6].map(one), { limit: 2 });
  const most = now.most;
  const piped = await sage.pipeline([1, 2, 3],
    (n) => sage.shell(`echo ${n * 2}`),
    (said, item, index) => [Number(said.stdout), item, index]);
  return { limited, most, piped };"#,
    );
    sage.sage("run x -t t --parallel 8").exit(0);
    let value = value(&sage);
    assert_eq!(value["limited"], json!([1, 2, 3, 4, 5, 6]));
    assert_eq!(value["most"], 2);
    assert_eq!(value["piped"], json!([[2, 1, 0], [4, 2, 1], [6, 3, 2]]));
}

// covers: R21
#[test]
fn code_may_be_javascript_and_of_any_extension() {
    for extension in ["ts", "mts", "js", "mjs"] {
        let sage = Sage::new();
        sage.write(&format!(".sage/templates/t.{extension}"), whole("return 'here';"));
        sage.sage("run x -t t").exit(0);
        assert_eq!(value(&sage), json!("here"), "{extension}");
        sage.sage("templates").exit(0).stdout_has("t");
    }
}

// covers: R21
#[test]
fn a_function_declaration_is_a_workflow_too() {
    let sage = Sage::new().code(
        "t",
        "export default async function main(sage: Sage, input: { n: number }) {\n  return input.n + 1;\n}\n",
    );
    sage.sage("run x -t t -i n=1").exit(0);
    assert_eq!(value(&sage), json!(2));
}

// covers: R21, R16
#[test]
fn clock_and_chance_are_the_same_in_every_turn() {
    let sage = flow(
        r#"
  const a = [Math.random(), Date.now(), new Date().getFullYear() > 2020];
  await sage.shell(`echo ${a[0]} >> ran`);
  const b = [Math.random(), Date.now()];
  await sage.shell(`echo ${b[0]} >> ran`);
  const later = b[1] >= a[1];
  await sage.approve("go on?");
  await sage.shell(`echo ${Math.random()} >> ran`);
  return { a, b, later };"#,
    );
    sage.sage("run x -t t").exit(4);
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0);
    assert_eq!(sage.lines("ran").len(), 3, "nothing ran again: {:?}", sage.lines("ran"));
    let value = value(&sage);
    assert_eq!((&value["later"], &value["a"][2]), (&true.into(), &true.into()));
    assert_eq!(sage.lines("ran")[0], value["a"][0].to_string());
}

/// Braces of code, data or people in it are text.
// covers: R21, R3
#[test]
fn a_prompt_that_code_gives_is_never_a_template() {
    let sage = flow(
        r#"
  const prompt = "what is {{ feature }} or {% if %}?";
  const own = await sage.run("our.look", { at: "x" });
  const given = await sage.run("our.look", { at: "x" }, { prompt });
  const params = await sage.run("our.look", { at: "x", prompt });
  return { own, given, params };"#,
    );
    sage.write(
        ".sage/operations/our.look.md",
        "---\nkind: agent\nagent: echo\nparams: { at: nothing }\n---\nLook at {{ params.at }} of {{ feature }}\n",
    );
    sage.write("sage.toml", "[agents.echo]\nadapter = \"command\"\ncommand = [\"cat\"]\n");
    sage.sage("run x -t t").exit(0);
    let value = value(&sage);
    assert!(value["own"].as_str().unwrap().contains("Look at x of x"), "{value}");
    for given in ["given", "params"] {
        assert!(value[given].as_str().unwrap().contains("{{ feature }} or {% if %}"), "{value}");
    }
}

// covers: R21, R24, R19
#[test]
fn a_kept_result_of_a_tool_is_that_of_its_definition() {
    let sage = flow("return await sage.tool('research', 'echo', { a: 1 }, { cache: true });");
    let (binary, starts) = (env!("CARGO_BIN_EXE_sage"), sage.path("starts"));
    let config =
        format!("[mcp.research]\ncommand = {binary:?}\nargs = [\"debug\", \"fake-mcp\", {starts:?}]\n");
    sage.write("sage.toml", config);
    // Before the first call nobody knows what the server says of it.
    sage.sage("run x -t t").exit(0);
    sage.sage("run x -t t").exit(0);
    sage.sage("run x -t t").exit(0).stdout_has("cache 100% (1 of 1 hits)");
    let files = std::fs::read_dir(sage.path(".sage/cache")).unwrap().flatten();
    let entries = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let known = |text: &String| text.contains("tool definition");
    assert_eq!(entries.filter(known).count(), 1);
}
