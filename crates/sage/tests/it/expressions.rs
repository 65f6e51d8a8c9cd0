//! Expressions that never end or need too much memory fail their step, and nothing else.

use crate::dsl::Sage;

const GREEDY: &str = r#"
name: greedy
phases:
  - id: a
    operations:
      - { id: list, type: shell, foreach: "[range(1000000000)]", params: { run: "true" } }
      - { id: text, type: agent, agent: fake, prompt: "{{ '%999999999d' | format(1) }}{{ '%999999999d' | format(2) }}", params: { script: [{ say: x }] } }
      - { id: plain, type: shell, params: { run: "echo fine" } }
"#;

// covers: R14, R20
#[test]
fn a_greedy_expression_fails_its_step_and_the_others_finish() {
    let sage = Sage::new().template("greedy", GREEDY);
    let run = sage.sage("run x -t greedy").exit(1);
    let _ = run.stdout_has("the expression needs more than 1024 MiB of memory");
    assert_eq!(sage.state_of("x", "a/list"), "failed");
    assert_eq!(sage.state_of("x", "a/text"), "failed");
    assert_eq!(sage.state_of("x", "a/plain"), "succeeded");
    sage.assert_nothing_alive();
}

// covers: R14
#[test]
fn a_look_at_a_greedy_template_ends() {
    let sage = Sage::new().template(
        "greedy",
        &GREEDY.replace("type: shell, foreach", "cache: { ttl: 1d }, type: shell, foreach"),
    );
    sage.sage("run x -t greedy --dry-run").exit(0);
}
