//! "Where Sage differs on purpose", line by line.

use serde_json::json;

use super::{asked, script, value, whole};
use crate::dsl::{DEADLINE, wait_until};

// "finished calls are never paid for again, whatever their order, and after edits"
// covers: R21, R5, LESSONS "Resume"
#[test]
fn an_edit_in_front_does_not_pay_again_for_the_rest() {
    let list = |names: &str| {
        whole(&format!("return await parallel({names}.map((name) => () => agent(`say ${{name}}`)))"))
    };
    let sage = script("");
    sage.write(".claude/workflows/t.js", list("['a', 'b', 'c']"));
    sage.sage("run x -t t").exit(0);
    sage.write(".claude/workflows/t.js", list("['new', 'c', 'b', 'a']"));
    sage.sage("resume x -t t").exit(0);
    assert_eq!(value(&sage), json!(["new", "c", "b", "a"]));
    assert_eq!(asked(&sage), ["say a", "say b", "say c", "say new"]);
}

// "Terminal quota parks the run instead of turning hundreds of agents into `null`."
// covers: R21, R18, LESSONS "Quota"
#[test]
fn a_terminal_quota_parks_the_run() {
    let sage = script(
        "return await parallel([...Array(50).keys()].map((n) => () => agent(n === 0 ? 'quota' : `say ${n}`)))",
    );
    sage.sage("run x -t t --parallel 1 --no-wait").exit(4);
    let status = sage.status("x");
    assert_eq!(status["status"], "paused", "{status}");
    assert!(asked(&sage).len() <= 2, "nobody was asked after it: {:?}", asked(&sage));
}

// "Any installed agent, any model; per-call `agent` option"
// covers: R21
#[test]
fn a_call_may_name_its_agent() {
    let sage = script("return [await agent('say x'), await agent('say x', { agent: 'other' })]");
    sage.sage("run x -t t").exit(0);
    assert_eq!(value(&sage), json!(["x", "other"]));
    sage.sage("run y -t t --agent other").exit(0);
    assert_eq!(sage.sage("result y main/script").exit(0).json(), json!(["other", "other"]));
}

// "budgets in tokens of all classes and in USD"
// covers: R21, R18
#[test]
fn a_budget_in_dollars_stops_the_script_too() {
    let sage = script(
        "let n = 0\ntry { while (n < 20) { await agent(`say ${n}`, { model: 'claude-haiku-4-5' }); n++ } } catch (error) { return ['over', error.code, n] }\nreturn ['not over', n]",
    );
    sage.sage("run x -t t --budget 0.005usd").exit(3);
    let value = value(&sage);
    assert_eq!((&value[0], &value[1]), (&"over".into(), &"budget".into()), "{value}");
    assert!(value[2].as_u64().unwrap() < 10, "{value}");
}

// covers: R21, R5
#[test]
fn a_cancelled_script_comes_to_its_end() {
    let sage = script("await agent('say x')\nconst held = await workflow('hold')\nreturn held");
    sage.write(".sage/templates/hold.yaml", "name: hold\nphases:\n  - id: p\n    operations: { id: s, type: shell, params: { run: 'echo held >> held; sleep 300' } }\n");
    let running = sage.spawn("run x -t t");
    wait_until(|| !sage.lines("held").is_empty(), DEADLINE, "the inner step");
    sage.sage("cancel x").exit(0);
    running.end().exit(130);
    assert_eq!(sage.status("x")["status"], "cancelled");
    sage.assert_nothing_alive();
}
