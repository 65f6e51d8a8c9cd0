//! Every line of what is known about workflow scripts of Claude Code.

use super::*;

fn run(body: &str) -> Run {
    Script::claude(body).run(echo)
}

// covers: R16, R21
#[test]
fn the_body_awaits_and_returns_at_top_level() {
    assert_eq!(run("const a = await agent('x')\nreturn { a }").value(), &json!({"a": "x"}));
    assert_eq!(run("await agent('x')").value(), &json!(null));
    let typed = run("const f = (n: number): number => n + 1\nreturn f(1) as number");
    assert_eq!(typed.value(), &json!(2));
    assert_eq!(run("const x = 1\nthrow new Error('mine') // tail").threw(), "Error: mine\n    at t.js:3:11");
}

#[test]
fn args_are_the_callers_value_as_it_is() {
    assert_eq!(run("return typeof args").value(), &json!("undefined"));
    assert_eq!(
        Script::claude("return args").input(json!([1, {"a": null}])).run(echo).value(),
        &json!([1, {"a": null}])
    );
    assert_eq!(Script::claude("return args").input(json!("text")).run(echo).value(), &json!("text"));
}

#[test]
fn there_is_no_clock_and_no_chance() {
    for call in ["Date.now()", "new Date()", "Math.random()", "Date()"] {
        let run = run(&format!("return {call}"));
        assert!(
            run.threw().contains(&format!("{call} is not available in workflow scripts")),
            "{}",
            run.threw()
        );
    }
    let dates = run(
        "const d = new Date(0); return [d.toISOString(), new Date('2026-01-02').getTime(), d instanceof Date, Date.UTC(1970, 0)]",
    );
    assert_eq!(dates.value(), &json!(["1970-01-01T00:00:00.000Z", 1_767_312_000_000_i64, true, 0]));
    assert_eq!(
        run("return [typeof require, typeof process, typeof fetch, typeof setTimeout]").value(),
        &json!(vec!["undefined"; 4])
    );
}

#[test]
fn agent_takes_its_options() {
    let body = "return await agent('look', { label: 'Look', phase: 'Scan', schema: { type: 'object' }, model: 'haiku', effort: 'low', agentType: 'Explore', isolation: 'worktree', agent: 'codex' })";
    let run = run(body);
    let expected = json!([{
        "type": "agent", "prompt": "look", "agent": "codex", "model": "haiku", "schema": {"type": "object"},
        "isolation": "worktree", "params": {"agentType": "Explore", "effort": "low"},
    }]);
    assert_eq!(json!(run.operations()), expected);
    assert_eq!((run.calls[0].label.as_str(), run.calls[0].group.as_deref()), ("Look", Some("Scan")));
    assert_eq!(run.calls[0].at.as_deref(), Some("t.js:2:14"));
    let plain =
        Script::claude("await agent('Find everything that is wrong with the parser, and say so')").run(echo);
    assert_eq!(
        json!(plain.operations()),
        json!([{"type": "agent", "prompt": "Find everything that is wrong with the parser, and say so"}])
    );
    assert_eq!(plain.calls[0].label, "Find everything that is wrong with the");
}

#[test]
fn agent_refuses_what_it_does_not_know() {
    for (call, expected) in [
        ("agent()", "agent takes a prompt"),
        ("agent('x', { efort: 'low' })", "no option `efort`; did you mean `effort`? there are: "),
        ("agent('x', { lable: 'low' })", "no option `lable`; did you mean `label`?"),
        ("agent('x', { effort: 'tiny' })", "`effort` is one of low, medium, high, xhigh, max"),
        ("agent('x', { isolation: 'docker' })", "`isolation` is 'worktree'"),
        (
            "agent('x', { schema: { type: 'object', required: ['a'], properties: {}, additionalProperties: false } })",
            "the root requires `a` and allows no such property",
        ),
        ("agent('x', { schema: { type: 'array' } })", "its root must have `type: \"object\"`"),
    ] {
        let run = run(&format!("await {call}"));
        assert!(run.threw().contains(expected), "{call}: {}", run.threw());
        assert_eq!(run.calls.len(), 0);
    }
}

#[test]
fn an_agent_that_dies_gives_null_and_a_bad_result_throws() {
    let body = "return await agent('x')";
    for class in [
        FailureClass::Failed,
        FailureClass::Lost,
        FailureClass::Timeout,
        FailureClass::Auth,
        FailureClass::Quota,
    ] {
        assert_eq!(Script::claude(body).run(|_| failed(class, "dead")).value(), &json!(null));
    }
    assert_eq!(Script::claude(body).run(|_| CallOutcome::Cancelled).value(), &json!(null));
    for class in [FailureClass::Invalid, FailureClass::Budget] {
        let run = Script::claude(body).run(|_| failed(class, "`a` is missing"));
        assert_eq!(run.threw(), "StepError: `a` is missing\n    at t.js:2:14");
    }
    let object = Script::claude("return (await agent('x', { schema: { type: 'object' } })).n")
        .run(|_| value(json!({"n": 3})));
    assert_eq!(object.value(), &json!(3));
}

#[test]
fn parallel_is_a_barrier_that_never_rejects() {
    let run = run(
        "return await parallel([() => agent('a'), () => { throw new Error('x') }, async () => { throw 1 }, () => 4])",
    );
    assert_eq!(run.value(), &json!(["a", null, null, 4]));
    assert!(
        Script::claude("await parallel([agent('a')])").run(echo).threw().contains("parallel takes functions")
    );
    let many = Script::claude("await parallel(Array(4097).fill(() => 1))").run(echo);
    assert!(many.threw().contains("parallel takes at most 4096 items, these are 4097"), "{}", many.threw());
    assert_eq!(
        Script::claude("return (await parallel(Array(4096).fill(() => 1))).length").run(echo).value(),
        &json!(4096)
    );
}

#[test]
fn pipeline_has_no_barrier_and_keeps_the_order_of_items() {
    let body = "const seen = []
        const out = await pipeline(['a', 'b', 'c'],
          (prev, item, index) => agent(`${prev}1`),
          (prev, item, index) => { seen.push(`${item}${index}`); if (item === 'b') throw new Error('drop'); return agent(`${prev}2`) })
        return { out, seen }";
    assert_eq!(run(body).value(), &json!({"out": ["a12", null, "c12"], "seen": ["a0", "b1", "c2"]}));
    // The newest call is answered first, so the last item is through before the first one begins its second stage.
    let turned = Engine { answer: echo, newest_first: true }.play(&Script::claude(body), &Run::default());
    assert_eq!(turned.value()["seen"], json!(["c2", "b1", "a0"]));
    assert!(run("await pipeline(Array(4097).fill(1), (x) => x)").threw().contains("at most 4096 items"));
    assert_eq!(run("return await pipeline([], (x) => x)").value(), &json!([]));
}

#[test]
fn phases_group_calls_and_give_their_model() {
    let text = "export const meta = { name: 't', description: 'd', phases: [{ title: 'Scan', model: 'haiku' }, { title: 'Judge', detail: 'x' }] }
        phase('Scan'); log('scanning')
        await parallel([() => agent('1'), () => agent('2', { phase: 'Judge' }), () => agent('3'), () => agent('4', { model: 'opus' })])
        phase('Judge'); await agent('5'); return 1";
    let run = Script::new(Dialect::Claude, "t.js", text).run(echo);
    let seen: Vec<Value> = run
        .calls
        .iter()
        .map(|call| json!([call.operation["prompt"], call.group, call.operation.get("model")]))
        .collect();
    assert_eq!(
        json!(seen),
        json!([
            ["1", "Scan", "haiku"],
            ["2", "Judge", null],
            ["3", "Scan", "haiku"],
            ["4", "Scan", "opus"],
            ["5", "Judge", null]
        ])
    );
    assert_eq!(run.log, ["scanning"]);
}

#[test]
fn the_budget_is_seen_and_holds() {
    let body = "const before = [budget.total, budget.spent(), budget.remaining()]
        const results = []
        for (let i = 0; i < 5; i++) { try { results.push(await agent(`${i}`)) } catch (e) { return { before, results, code: e.code, message: e.message, left: budget.remaining() } } }";
    let mut script = Script::claude(body);
    script.budget = Some(250);
    let run = script.run(echo);
    assert_eq!(
        run.value(),
        &json!({"before": [250, 0, 250], "results": ["0", "1", "2"], "code": "budget", "message": "the budget of 250 tokens is used up", "left": 0})
    );
    assert_eq!(
        Script::claude("return [budget.total, budget.remaining() === Infinity]").run(echo).value(),
        &json!([null, true])
    );
}

#[test]
fn workflow_runs_another_by_name_or_path() {
    let run = run("return [await workflow('audit', { a: 1 }), await workflow({ scriptPath: './x.js' })]");
    assert_eq!(
        json!(run.operations()),
        json!([
            {"type": "workflow", "params": {"template": "audit", "inputs": {"a": 1}}},
            {"type": "workflow", "params": {"template": "./x.js"}},
        ])
    );
    assert!(
        Script::claude("await workflow()")
            .run(echo)
            .threw()
            .contains("workflow takes a name or { scriptPath }")
    );
    let failed_inside = Script::claude("try { await workflow('x') } catch (e) { return e.code }")
        .run(|_| failed(FailureClass::Failed, "no"));
    assert_eq!(failed_inside.value(), &json!("failed"));
}

#[test]
fn the_number_of_agents_is_limited() {
    let mut script = Script::claude("for (let i = 0; i < 20; i++) await agent(`${i}`)");
    script.limits.max_calls = 10;
    let run = script.run(echo);
    assert!(run.threw().contains("a script can make at most 10 calls"), "{}", run.threw());
    assert_eq!(run.calls.len(), 10);
}

#[test]
fn it_resumes_whatever_the_order() {
    let body = "const r = await parallel(['a', 'b', 'c'].map((x) => () => agent(x))); return [r, await agent('last')]";
    let whole = Engine { answer: echo, newest_first: true }.play(&Script::claude(body), &Run::default());
    for count in 0..=whole.settled.len() {
        let before = whole.first(count);
        let open = whole.calls.len() - before.calls.len();
        let again = Engine { answer: echo, newest_first: false }.play(&Script::claude(body), &before);
        assert_eq!((again.value(), again.asked), (whole.value(), open), "after {count}");
    }
}
