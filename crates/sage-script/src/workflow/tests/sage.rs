//! The words of `sage`, and that templates know what they say.

use super::*;

// covers: R21, R16
#[test]
fn every_word_is_an_operation() {
    let script = Script::sage(
        r#"sage.phase("Work")
        await sage.agent("scout", "look")
        await sage.agent("author", { prompt: "write", agent: "fake", model: "m", schema: { type: "object" }, role: "planner",
          isolation: "worktree", output: "a.md", timeout: "5m", system: "be brief", params: { maxTurns: 3 }, label: "Author", phase: "Other", key: 7 })
        await sage.tool("github", "search", { q: 1 }, { timeout: 5 })
        await sage.shell("ls"); await sage.shell({ argv: ["ls"], json: true }); await sage.shell(["pwd"])
        await sage.approve("Ship?", { choices: ["yes", "no"], default: "no", deadline: "1h" })
        await sage.workflow("audit", { deep: true }); await sage.sleep("10m"); await sage.sleep(5.4)
        await sage.run("research.market", { topic: "x" }, { filter: { top: 3 } })
        sage.log("done", { a: 1 }); console.warn("w")
        return [sage.feature, sage.title, input]"#,
    )
    .input(json!({"a": 1}));
    let run = script.run(echo);
    assert_eq!(run.value(), &json!(["search", "Search box", {"a": 1}]));
    assert_eq!(run.log, ["done {\"a\":1}", "w"]);
    let expected = json!([
        {"type": "agent", "prompt": "look"},
        {"type": "agent", "prompt": "write", "agent": "fake", "model": "m", "schema": {"type": "object"}, "role": "planner",
            "isolation": "worktree", "output": "a.md", "timeout": "5m", "params": {"system": "be brief", "maxTurns": 3}},
        {"type": "tool", "timeout": 5, "params": {"server": "github", "tool": "search", "arguments": {"q": 1}}},
        {"type": "shell", "params": {"run": "ls"}},
        {"type": "shell", "params": {"argv": ["ls"], "json": true}},
        {"type": "shell", "params": {"argv": ["pwd"]}},
        {"type": "approval", "params": {"message": "Ship?", "choices": ["yes", "no"], "default": "no", "deadline": "1h"}},
        {"type": "workflow", "params": {"template": "audit", "inputs": {"deep": true}}},
        {"type": "sleep", "params": {"for": "10m"}},
        {"type": "sleep", "params": {"ms": 5}},
        {"type": "research.market", "params": {"topic": "x"}, "filter": {"top": 3}},
    ]);
    assert_eq!(json!(run.operations()), expected);
    let labels: Vec<&str> = run.calls.iter().map(|call| call.label.as_str()).collect();
    let expected = [
        "scout", "Author", "search", "shell", "shell", "shell", "approve", "audit", "sleep", "sleep",
        "market",
    ];
    assert_eq!(labels, expected);
    let groups: Vec<Option<&str>> = run.calls.iter().take(3).map(|call| call.group.as_deref()).collect();
    assert_eq!(groups, [Some("Work"), Some("Other"), Some("Work")]);
    assert_eq!(run.calls[0].at.as_deref(), Some("t.ts:3:20"));
}

/// What a script says is read by the same reader as a template.
#[test]
fn templates_know_what_scripts_say() {
    let body = r#"await sage.agent("author", { prompt: "write", agent: "fake", model: "m", schema: { type: "object" },
          role: "planner", isolation: "worktree", output: "a.md", timeout: "5m", system: "be brief", maxTurns: 3, priority: "P1" })
        await sage.tool("github", "search", { q: 1 }); await sage.shell("ls"); await sage.shell({ argv: ["ls"], json: true })
        await sage.approve("Ship?", { choices: ["yes", "no"], default: "no", deadline: "1h" })
        await sage.workflow("audit", { deep: true }); await sage.sleep("10m"); await sage.sleep(5)"#;
    let operations = Script::sage(body).run(echo).operations();
    assert_eq!(operations.len(), 8);
    let text =
        json!({"name": "t", "phases": [{"id": "p", "name": "P", "operations": operations}]}).to_string();
    let (node, problems) = sage_core::source::parse(&text, sage_core::source::Format::Json);
    assert!(problems.is_empty(), "{problems:?}");
    let (template, problems) =
        sage_core::read::read_template(&node.unwrap(), &sage_core::read::Library::default());
    assert!(template.is_some() && problems.is_empty(), "{problems:?}");
}

#[test]
fn mistakes_in_arguments_say_what_exists() {
    for (call, expected) in [
        (
            "sage.agent('a', { propmt: 'x' })",
            "sage.agent: no option `propmt`; did you mean `prompt`? there are: ",
        ),
        (
            "sage.run('shell', { run: 'true' }, { reties: 1 })",
            "no option `reties`; did you mean `retry`? there are: ",
        ),
        ("sage.agent('a', { zzz: 'x' })", "sage.agent: no option `zzz`; there are: "),
        ("sage.parallel([() => 1], { limt: 1 })", "no option `limt`; did you mean `limit`? there are: limit"),
        ("sage.parallel([() => 1], 3)", "sage.parallel: options must be an object, such as { limit: 3 }"),
        ("sage.agnet('a', 'b')", "sage has no `agnet`; did you mean `agent`? there are: agent, "),
        ("sage.agent('a', { when: 'x' })", "no option `when` in code: use if"),
        ("sage.agent()", "sage.agent: the name must be a text"),
        ("sage.tool('s')", "sage.tool: the tool must be a text"),
        ("sage.sleep()", "sage.sleep takes milliseconds"),
        ("sage.parallel([sage.agent('a', 'b')])", "sage.parallel takes functions, item 0 is not one"),
        (
            "sage.parallel(Array(5000).fill(() => 1))",
            "sage.parallel takes at most 4096 items, these are 5000",
        ),
        ("sage.parallel([() => 1], { limit: 0 })", "limit must be 1 or more"),
        ("sage.nothing()", "sage has no `nothing`; there are: agent, "),
    ] {
        let run = Script::sage(&format!("return await {call}")).run(echo);
        assert!(run.threw().contains(expected), "{call}: {}", run.threw());
    }
}

#[test]
fn a_failed_call_rejects_with_its_class_and_where_it_was_made() {
    let body = "try { await sage.agent('scout', 'x') } catch (e) { return [e instanceof Error, e.name, e.message, e.code, e.step, e.stack.includes('t.ts:2:')] }";
    let fails = |_: &NewCall| failed(FailureClass::RateLimit, "too fast");
    let run = Script::sage(body).run(fails);
    assert_eq!(run.value(), &json!([true, "StepError", "too fast", "rate-limit", "scout", true]));
    let again = Engine { answer: fails, newest_first: false }.play(&Script::sage(body), &run.first(1));
    assert_eq!(again.value(), run.value());
    let run = Script::sage("\n  await sage.approve('Ship?')").run(|_| failed(FailureClass::Rejected, "no"));
    assert_eq!(run.threw(), "StepError: no\n    at t.ts:3:14");
}

#[test]
fn parallel_and_pipeline_keep_order_and_limits() {
    let body = "let now = 0, most = 0
        const work = (n) => async () => { now++; most = Math.max(most, now); const r = await sage.agent('a', 'p' + n); now--; return r }
        const all = await sage.parallel([0, 1, 2, 3, 4].map(work), { limit: 2 })
        const piped = await sage.pipeline([1, 2], (p, item, i) => sage.agent('b', `${p}${item}${i}`), (p) => p + '!')
        return { all, most, piped }";
    let run = Script::sage(body).run(echo);
    assert_eq!(
        run.value(),
        &json!({"all": ["p0", "p1", "p2", "p3", "p4"], "most": 2, "piped": ["110!", "221!"]})
    );
    let body = "try { await sage.parallel([() => sage.agent('a', 'x'), () => { throw new Error('mine') }]) } catch (e) { return e.message }";
    assert_eq!(Script::sage(body).run(echo).value(), &json!("mine"));
}

#[test]
fn budget_clock_and_chance_come_from_the_engine() {
    let body = "const seen = [Date.now(), sage.budget.spent(), sage.budget.remaining()]
        await sage.agent('a', 'x')
        return [...seen, Date.now(), sage.budget.spent(), sage.budget.remaining(), sage.budget.total, Math.random() === Math.random()]";
    let mut script = Script::sage(body);
    script.budget = Some(150);
    assert_eq!(script.run(echo).value(), &json!([1000, 0, 150, 1000, 100, 50, 150, false]));
    let unlimited =
        Script::sage("return [sage.budget.total, sage.budget.remaining() === Infinity]").run(echo);
    assert_eq!(unlimited.value(), &json!([null, true]));
}

#[test]
fn modules_and_blobs_are_read() {
    let mut script = Script::new(
        Dialect::Sage,
        "t.ts",
        "import { rank, type Row } from './lib/rank.ts'\nexport default async function (sage: any): Promise<Row[]> {\n  return [rank(2), await sage.agent('a', 'x')]\n}",
    );
    let text =
        "export interface Row { n: number }\nexport const rank = (n: number): number => n * 2".to_owned();
    script.program.modules.push(Module { path: "./lib/rank.ts".into(), text });
    let digest = sage_core::digest::Digest::of(b"x");
    let run = script.run(|_| CallOutcome::Value(Text::Blob(digest)));
    assert_eq!(run.value(), &json!([4, format!("blob {}", digest.short())]));
}
