//! Running again: the same world in the same order, and only what changed is asked.

use super::*;

const RACES: &str = r#"
    const log = []
    const first = await Promise.race([1, 2, 3].map((n) => sage.agent("race", `r${n}`)))
    log.push(first, Date.now())
    for (let i = 0; i < 3; i++) {
      const [a, b] = await Promise.all([sage.agent("a", `a${i} ${Math.random()}`), sage.agent("b", `b${Date.now()}`)])
      log.push(a, b, Math.random())
      sage.log(`round ${i}`)
    }
    try { await sage.shell("fails") } catch (e) { log.push(e.code, e.message) }
    const late = sage.agent("late", "x").then((v) => { log.push(v, Date.now()) })
    await Promise.any([sage.agent("u", "1"), sage.agent("u", "1")])
    await late
    return log"#;

fn answers(call: &NewCall) -> CallOutcome {
    if call.label == "shell" { failed(FailureClass::Failed, "exit 1") } else { echo(call) }
}

// covers: R21, R16
#[test]
fn killed_after_any_completion_it_comes_to_the_same_end() {
    for newest_first in [false, true] {
        let script = Script::sage(RACES);
        let mut engine = Engine { answer: answers, newest_first };
        let whole = engine.play(&script, &Run::default());
        assert!(whole.settled.len() >= 11, "{whole:?}");
        assert_eq!(whole.log, ["round 0", "round 1", "round 2"]);
        for count in 0..=whole.settled.len() {
            let before = whole.first(count);
            let resumed = engine.play(&script, &before);
            assert_eq!(resumed.value(), whole.value(), "after {count}");
            assert_eq!(resumed.asked, whole.calls.len() - before.calls.len(), "after {count}");
            // Killed before the calls of the last turn were written: they are made again, with the same numbers.
            let mut torn = before.clone();
            torn.calls.truncate(count.checked_sub(1).map_or(0, |last| whole.known[last]));
            let resumed = engine.play(&script, &torn);
            assert_eq!(resumed.value(), whole.value(), "torn after {count}");
            assert_eq!(resumed.calls.len(), whole.calls.len());
        }
        let pure = engine.play(&script, &whole.first(whole.settled.len()));
        assert_eq!((pure.value(), pure.asked), (whole.value(), 0));
    }
}

#[test]
fn a_race_is_won_by_the_recorded_winner() {
    let script = Script::sage("return await Promise.race([sage.agent('a', '1'), sage.agent('b', '2')])");
    let whole = Engine { answer: echo, newest_first: true }.play(&script, &Run::default());
    assert_eq!(whole.value(), &json!("2"));
    let again = Engine { answer: echo, newest_first: false }.play(&script, &whole.first(1));
    assert_eq!((again.value(), again.asked), (&json!("2"), 0));
}

#[test]
fn an_edit_asks_only_for_what_changed() {
    let before = Script::sage(
        "return [await sage.agent('a', 'one'), await sage.agent('b', 'two'), await sage.agent('c', 'two')]",
    )
    .run(echo);
    let edited = |body: &str| {
        let run = Engine { answer: echo, newest_first: false }.play(&Script::sage(body), &before.first(3));
        (run.asked, run.value().clone())
    };
    let list = "return [await sage.agent('a', 'one'), await sage.agent('new', 'zero'), await sage.agent('b', 'two'), await sage.agent('c', 'two')]";
    assert_eq!(edited(list), (1, json!(["one", "zero", "two", "two"])));
    assert_eq!(edited("return await sage.agent('b', 'two')"), (0, json!("two")));
    let turned = "const c = await sage.agent('c', 'two'); const a = await sage.agent('a', 'one'); return [c, a, await sage.agent('z', 'two')]";
    assert_eq!(edited(turned), (0, json!(["two", "one", "two"])));
    assert_eq!(
        edited("return await Promise.all([1, 2, 3].map(() => sage.agent('x', 'two')))"),
        (1, json!(["two", "two", "two"]))
    );
    assert_eq!(
        edited(
            "return await sage.agent('other label', { prompt: 'one', timeout: 5, retry: { attempts: 2 } })"
        ),
        (0, json!("one"))
    );
    assert_eq!(edited("return await sage.agent('a', { prompt: 'one', key: 'again' })"), (1, json!("one")));
}

#[test]
fn lines_that_were_logged_are_not_said_again() {
    let script = Script::sage("sage.log('1'); await sage.agent('a', 'x'); sage.log('2'); return 1");
    let whole = script.run(echo);
    let mut before = whole.first(1);
    before.log = vec!["1".into()];
    let again = Engine { answer: echo, newest_first: false }.play(&script, &before);
    assert_eq!(again.log, ["2"]);
}

#[test]
fn one_turn_says_its_calls_at_once() {
    let run =
        Script::sage("await Promise.all([1, 2, 3].map((n) => sage.agent('a', `${n}`))); return 1").run(echo);
    // At the start, and after each of the first two completions.
    assert_eq!((run.asked, run.rests), (3, 3));
    let numbers: Vec<u32> = run.calls.iter().map(|call| call.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn a_completion_nobody_asks_for_is_taken_and_skipped() {
    let before =
        Script::sage("return [await sage.agent('a', 'one'), await sage.agent('b', 'two')]").run(echo);
    let mut crashed = before.first(1);
    crashed.settled.clear();
    // Both calls are open in the record, the edited script wants a third one only.
    let script = Script::sage("return await sage.agent('c', 'three')");
    let run = Engine { answer: echo, newest_first: false }.play(&script, &crashed);
    assert_eq!((run.value(), run.asked), (&json!("three"), 1));
}
