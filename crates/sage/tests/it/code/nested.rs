//! Code calls templates, templates call code, code calls code.

use serde_json::json;

use super::{flow, paths, ran, value, whole};
use crate::dsl::{DEADLINE, Sage, wait_until};

const INNER: &str = r#"
name: inner
phases:
  - id: work
    operations:
      - { id: say, type: shell, params: { run: 'echo "$WHO" >> ran; printf "%s" "$WHO"', env: { WHO: "{{ inputs.who }}" } } }
"#;

// covers: R21, P2
#[test]
fn code_calls_a_template() {
    let sage = flow("const said = await sage.workflow('inner', { who: 'me' });\nreturn said;")
        .template("inner", INNER);
    sage.sage("run x -t t").exit(0);
    assert_eq!(ran(&sage), ["me"]);
    let value = value(&sage);
    assert_eq!(value["work"]["say"]["stdout"], "me", "{value}");
    assert_eq!(paths(&sage), ["main/script", "main/inner", "main/inner/work/say"]);
}

// covers: R21, P2
#[test]
fn code_calls_code_and_gets_what_it_returned() {
    let inner = "sage.phase('Deep');\nconst said = await sage.shell(`echo ${input.n} >> ran; echo ${input.n * 2}`, { label: 'double' });\nreturn Number(said.stdout);";
    let sage =
        flow("const all = await Promise.all([1, 2].map((n) => sage.workflow('inner', { n })));\nreturn all;")
            .code("inner", &whole(inner));
    sage.sage("run x -t t").exit(0);
    assert_eq!((value(&sage), ran(&sage)), (json!([2, 4]), vec!["1".to_owned(), "2".to_owned()]));
    let paths = paths(&sage);
    assert!(paths.contains(&"main/inner[1]/deep/double".to_owned()), "{paths:?}");
}

// covers: R21, R7
#[test]
fn a_failed_inner_workflow_is_an_error_that_can_be_caught() {
    let sage =
        flow("try { await sage.workflow('inner'); return 'no'; } catch (error) { return error.message; }")
            .code("inner", &whole("await sage.shell('exit 5', { label: 'bad' });"));
    sage.sage("run x -t t").exit(0);
    let value = value(&sage);
    assert!(value.as_str().unwrap().contains("exit code 5"), "{value}");
}

// covers: R21
#[test]
fn a_workflow_that_is_not_there_is_told_before_anything_runs() {
    let sage = flow("await sage.shell('echo a >> ran'); await sage.workflow('nowhere');");
    sage.sage("run x -t t").exit(2).stderr_has("nowhere");
    assert!(ran(&sage).is_empty());
}

// covers: R21
#[test]
fn a_workflow_may_be_named_by_a_computed_text() {
    let body = "const name = ['in', 'ner'].join('');
        const lost = await sage.workflow(name + 's').catch((error) => error.message);
        return [await sage.workflow(name, { who: 'me' }), lost];";
    let sage = flow(body).template("inner", INNER);
    // What it cannot call does not stop it from starting.
    let sage = sage.template("broken", "name: broken\nphases: []\n");
    sage.sage("run x -t t").exit(0);
    let value = value(&sage);
    assert_eq!(value[0]["work"]["say"]["stdout"], "me", "{value}");
    let lost = value[1].as_str().unwrap();
    assert!(lost.contains("no workflow `inners`") && lost.contains("did you mean `inner`?"), "{value}");
    assert!(!lost.contains("broken"), "{value}");
}

// covers: R21, P2
#[test]
fn templates_run_code_by_file_and_inline_and_over_a_list() {
    let template = r#"
name: outer
phases:
  - id: list
    operations:
      - { id: names, type: shell, params: { run: 'echo "[1,2,3]"', json: true } }
      - id: inline
        type: script
        params:
          code: |
            export default async (sage, input) => {
              const said = await sage.shell(`echo inline >> ran; echo ${input.word}`, { label: "said" });
              return { said: said.stdout.trim() };
            };
          input: { word: "{{ inputs.word }}" }
  - id: each
    dependencies: [list]
    operations:
      - id: double
        type: script
        foreach: '.steps["list/names"].result'
        params: { file: flows/double.ts, input: { n: "{{ item }}" } }
  - id: after
    dependencies: [each]
    operations:
      - { id: sum, type: shell, params: { argv: [printf, '%s', '{{ steps["each/double"].result | sum }} {{ steps["list/inline"].result.said }}'] } }
"#;
    let sage = Sage::new().template("t", template);
    sage.write("flows/double.ts", whole("const n = Number(input.n);\nawait sage.shell(`echo ${n} >> ran`, { label: 'seen' });\nreturn n * 2;"));
    sage.sage("validate t").exit(0);
    sage.sage("run x -t t -i word=hey").exit(0);
    assert_eq!(ran(&sage), ["1", "2", "3", "inline"]);
    assert_eq!(sage.sage("result x each/double").exit(0).json(), json!([2, 4, 6]));
    assert_eq!(sage.sage("result x after/sum").exit(0).json()["stdout"], "12 hey");
    let paths = paths(&sage);
    assert!(paths.contains(&"list/inline/list/said".to_owned()), "{paths:?}");
    sage.sage("resume x").exit(0);
    assert_eq!(ran(&sage).len(), 4);
}

// covers: R21, R5
#[test]
fn code_in_a_fan_out_survives_a_kill() {
    let template = r#"
name: outer
phases:
  - id: each
    operations:
      - id: work
        type: script
        foreach: "[range(4)]"
        params:
          input: { n: "{{ item }}" }
          code: |
            export default async (sage, input) => {
              await sage.shell(`echo ${input.n}-a >> ran`);
              await sage.shell(`echo ${input.n}-b >> ran; [ ${input.n} -lt 2 ] || [ -e go ] || sleep 300`);
              return Number(input.n);
            };
"#;
    let sage = Sage::new().template("t", template);
    let running = sage.spawn("run x -t t --parallel 4");
    let ready = || {
        let done = sage.engine().latest("x").map(|_| sage.journal("x").succeeded().len());
        done == Some(6) && sage.lines("ran").len() == 8
    };
    wait_until(ready, DEADLINE, "two of four to end");
    running.kill();
    sage.write("go", "");
    sage.sage("resume x").exit(0);
    assert_eq!(sage.sage("result x each/work").exit(0).json(), json!([0, 1, 2, 3]));
    assert_eq!(ran(&sage).len(), 10, "{:?}", ran(&sage));
    sage.journal("x").assert_nothing_repeated();
}
