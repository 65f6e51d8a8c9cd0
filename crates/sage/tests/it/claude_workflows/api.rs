//! The globals: "API" of the format, row by row.

use serde_json::json;

use super::ten::{git, with_git};
use super::{asked, returned, script, value};

// "resolves to its final text, or with `opts.schema` to the validated object"
// covers: R21
#[test]
fn an_agent_gives_text_or_an_object() {
    let value = returned(
        r#"
const schema = { type: 'object', required: ['count'], properties: { count: { type: 'integer' } } }
return [await agent('say hello'), (await agent('Count the words of four.', { schema })).count]"#,
    );
    assert_eq!(value, json!(["hello", 4]));
}

// "(retries, then throws with the last validation failure)"
// covers: R21, R9
#[test]
fn an_answer_that_does_not_fit_is_asked_for_again_and_then_thrown() {
    let sage = script(
        r#"
const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }
try { return await agent('say {"n": "seven"}', { schema }) } catch (error) { return [error.code, error.message] }"#,
    );
    sage.sage("run x -t t").exit(3);
    let value = value(&sage);
    assert_eq!(value[0], "invalid", "{value}");
    assert!(value[1].as_str().unwrap().contains("n"), "{value}");
    assert!(asked(&sage).len() > 1, "it was asked again: {:?}", asked(&sage));
}

// "`null` when it is stopped, skipped or dies on a terminal API error"
// covers: R21, R7
#[test]
fn a_dead_agent_is_null() {
    let sage = script("return [await agent('die'), await agent('say alive')]");
    sage.sage("run x -t t").exit(3);
    assert_eq!(value(&sage), json!([null, "alive"]));
}

// "a self-contradictory schema throws before the agent starts"
// covers: R21
#[test]
fn a_schema_that_nothing_can_satisfy_costs_nothing() {
    let sage = script(
        r#"
const schemas = [
  { type: 'string' },
  { type: 'object', required: ['a'], properties: {}, additionalProperties: false },
  { type: 'object', properties: { a: { enum: [] } } },
  { type: 'object', properties: { a: { type: 'number', minimum: 2, maximum: 1 } } },
]
const told = []
for (const schema of schemas) { try { await agent('say x', { schema }); told.push('asked') } catch (error) { told.push('threw') } }
return told"#,
    );
    sage.sage("run x -t t").exit(0);
    assert_eq!(value(&sage), json!(["threw", "threw", "threw", "threw"]));
    assert!(asked(&sage).is_empty());
}

// "`label`, `phase`, `schema`, `model`, `effort`, `agentType`"
// covers: R21
#[test]
fn options_reach_the_agent() {
    let sage = script(
        r#"
phase('First')
const one = await agent('model', { label: 'Named So', model: 'big-2' })
const two = await agent('model', { label: 'elsewhere', phase: 'Second' })
const input = JSON.parse(await agent('input', { label: 'typed', agentType: 'explorer', effort: 'xhigh' }))
return [one, two, input.params.agentType, input.params.effort]"#,
    );
    sage.sage("run x -t t").exit(0);
    assert_eq!(value(&sage), json!(["big-2", "none", "explorer", "xhigh"]));
    let paths = ["first/named-so", "second/elsewhere", "first/typed"];
    for path in paths {
        assert_eq!(sage.state_of("x", path), "succeeded");
    }
    let wrong =
        returned("try { await agent('say x', { effort: 'huge' }) } catch (error) { return error.message }");
    assert!(wrong.as_str().unwrap().contains("low, medium, high, xhigh, max"), "{wrong}");
    let wrong =
        returned("try { await agent('say x', { scheme: {} }) } catch (error) { return error.message }");
    assert!(wrong.as_str().unwrap().contains("schema"), "{wrong}");
}

// "`isolation: 'worktree'` (removed if unchanged)"
// covers: R21, S6
#[test]
fn a_worktree_without_changes_is_removed() {
    let sage = script(
        "return [await agent('say nothing', { label: 'idle', isolation: 'worktree' }), await agent('Paint the door red.', { label: 'busy', isolation: 'worktree' })]",
    );
    with_git(&sage);
    sage.sage("run x -t t").exit(0);
    sage.sage("gc --older-than 0s --keep 0").exit(0);
    let trees = git(&sage, &["worktree", "list"]);
    assert!(!trees.contains("idle"), "{trees}");
    let branches = git(&sage, &["branch", "--list", "--all"]);
    assert!(branches.contains("busy"), "what was painted is kept: {branches}");
}

// "all at once, a barrier, never rejects; a throwing thunk gives `null`"
// covers: R21
#[test]
fn parallel_never_rejects() {
    let value = returned(
        r#"
const order = []
const results = await parallel([
  async () => { const a = await agent('say a'); order.push('a'); return a },
  () => { throw new Error('at once') },
  async () => { await agent('say b'); throw new Error('later') },
  () => 'plain',
])
order.push('after')
return { results, last: order.at(-1), empty: await parallel([]) }"#,
    );
    assert_eq!(value, json!({"results": ["a", null, null, "plain"], "last": "after", "empty": []}));
}

// "each item through all stages without barrier; a stage gets `(previous, item, index)`; a throwing stage drops
// that item to `null`; results in item order"
// covers: R21
#[test]
fn pipeline_has_no_barrier() {
    let value = returned(
        r#"
const seen = []
const results = await pipeline([3, 1, 2],
  async (n, item, index) => { for (let i = 0; i < (n === 3 ? 12 : 1); i++) await agent(`say ${n}.${i}`); return [n, item, index] },
  (previous, item, index) => { seen.push(item); if (item === 2) throw new Error('no'); return [previous, item, index] })
return { results, last: seen.at(-1) }"#,
    );
    let results = json!([[[3, 3, 0], 3, 0], [[1, 1, 1], 1, 1], null]);
    assert_eq!(value, json!({"results": results, "last": 3}), "the short ones were not held back");
}

// "start a progress group / a narrator line"
// covers: R21, S2
#[test]
fn phases_and_lines_are_seen() {
    let sage = script("phase('Look')\nlog('looking now')\nawait agent('say x', { label: 'x' })\nreturn 1");
    sage.sage("run x -t t").exit(0).stdout_has("looking now");
    assert_eq!(sage.state_of("x", "look/x"), "succeeded");
}

// "`{total, spent(), remaining()}`; `total` null without target; `remaining()` is Infinity then; at the cap further
// `agent()` calls throw"
// covers: R21, R18
#[test]
fn the_budget_is_known_and_kept() {
    let body = "await agent('say x')\nlet over = null\ntry { await agent('say y') } catch (error) { over = error.code }\nreturn [budget.total, budget.spent(), String(budget.remaining()), over]";
    assert_eq!(returned(body), json!([null, 2_000, "Infinity", null]));
    let sage = script(body);
    sage.sage("run x -t t --budget 1000").exit(0);
    assert_eq!(value(&sage), json!([1_000, 1_000, "0", "budget"]));
}

// "another workflow inline, by name or `{scriptPath}`; shares limits, counter, budget, abort" and
// "Sage: ... no one-level limit"
// covers: R21
#[test]
fn workflows_nest_deeper_than_one_level() {
    let sage = script("return await workflow('two', { n: 1 })");
    sage.write(".claude/workflows/two.js", "export const meta = { name: 'two', description: 'd' }\nawait agent('say two')\nreturn await workflow({ scriptPath: '.claude/workflows/three.js' }, { n: args.n + 1 })\n");
    sage.write(".claude/workflows/three.js", "export const meta = { name: 'three', description: 'd' }\nreturn [args.n, await agent('say three'), budget.spent(), budget.total]\n");
    sage.sage("run x -t t --budget 50k").exit(0);
    assert_eq!(value(&sage), json!([2, "three", 2_000, 50_000]));
}

// "lists over 4,096 items refused; 1,000 agents a run", "the same defaults, configurable"
// covers: R21
#[test]
fn lists_and_agents_have_an_end() {
    let body = r#"
const many = await parallel(Array(4097).fill(() => 1)).catch((error) => error.message)
const enough = (await parallel(Array(4096).fill(() => 1))).length
return [many, enough]"#;
    let value = returned(body);
    assert!(value[0].as_str().unwrap().contains("4096"), "{value}");
    assert_eq!(value[1], 4096);
    let sage = script(
        "let n = 0\ntry { for (;;) { await agent(`say ${n}`); n++ } } catch (error) { return [n, error.message] }",
    );
    let config = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    sage.write("sage.toml", format!("{config}\n[scripts]\nmaxAgents = 5\n"));
    sage.sage("run x -t t").exit(0);
    let value = super::value(&sage);
    assert_eq!(value[0], 5, "{value}");
    assert!(value[1].as_str().unwrap().contains('5'), "{value}");
    assert_eq!(asked(&sage).len(), 5);
}

// "`null` when it ... dies on a terminal API error"; an answer that does not fit still throws.
// covers: R21, R7
#[test]
fn an_agent_whose_request_is_rejected_is_null() {
    let sage = script(
        r#"
const lost = await agent('reject')
const schema = { type: 'object', required: ['n'] }
const thrown = await agent('say nothing', { schema }).catch((error) => error.code)
return [lost, thrown, await agent('say on')]"#,
    );
    sage.sage("run x -t t").exit(3);
    assert_eq!(value(&sage), json!([null, "invalid", "on"]));
    assert_eq!(asked(&sage).iter().filter(|prompt| *prompt == "reject").count(), 1);
}

// covers: R21
#[test]
fn a_workflow_may_be_named_by_a_computed_text_and_an_unknown_name_fails_only_its_call() {
    let sage = script(
        r#"
const name = ['t', 'wo'].join('')
const lost = await workflow('nowhere').catch((error) => error.message)
return [await workflow(name, { n: 2 }), lost]"#,
    );
    let two =
        "export const meta = { name: 'two', description: 'd' }\nreturn [args.n, await agent('say two')]\n";
    sage.write(".claude/workflows/two.js", two);
    let told = sage.sage("run x -t t").exit(0);
    told.stderr_has("warning: no workflow `nowhere`; this call will fail").stderr_has("t.js:4:");
    let value = value(&sage);
    assert_eq!(value[0], json!([2, "two"]));
    assert!(value[1].as_str().unwrap().contains("no workflow `nowhere`"), "{value}");
    // Nobody catches it: the script fails, with the place of the call.
    sage.write(
        ".claude/workflows/t.js",
        super::whole("await agent('say first')\nreturn await workflow('nowhere')"),
    );
    sage.sage("run y -t t").exit(1).stdout_has("no workflow `nowhere`").stdout_has("t.js:3:");
    assert_eq!(sage.lines("y.out").len(), 1, "what comes before it runs");
}

// covers: R21, R8
#[test]
fn scripts_can_be_tried_with_the_scripted_agent() {
    let sage = script(
        r#"
const schema = { type: 'object', required: ['ok'], properties: { ok: { type: 'boolean' } } }
const [first, second] = await parallel([() => agent('Review a.py', { schema }), () => agent('Review b.py', { schema })])
return [first, second, await agent('Write it up')]"#,
    );
    let turns = json!([
        {"match": "b.py", "result": {"ok": false}, "usage": {"input": 5, "output": 1}},
        {"match": "Review", "result": {"ok": true}},
        {"say": "written"},
    ]);
    sage.write("turns.json", turns.to_string());
    let config = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    sage.write("sage.toml", format!("{config}[agents.fake]\nscript = \"turns.json\"\n"));
    sage.sage("run x -t t --agent fake").exit(0);
    assert_eq!(value(&sage), json!([{"ok": true}, {"ok": false}, "written"]));
    assert!(asked(&sage).is_empty(), "nobody was paid");
}
