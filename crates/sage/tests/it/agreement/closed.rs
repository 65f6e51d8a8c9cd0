//! Runs that have ended, in every way there is.

use super::{Desk, fan, shell, template};
use crate::dsl::Sage;

const SUB: &str = "
name: sub
phases:
  - id: s1
    operations:
      - { id: a, type: shell, params: { run: 'true' } }
      - { id: b, type: shell, params: { run: 'test ! -e bad' } }
  - { id: s2, dependencies: [s1], operations: { id: c, type: shell, params: { run: 'true' } } }
";

fn end() -> [String; 1] {
    [shell("z", "true", "")]
}

// covers: R8, R16, R18
#[test]
fn of_runs_that_ended() {
    let workflow = "{ id: w, type: workflow, params: { template: sub } }".to_string();
    let cases: [(&str, String, i32, &str); 10] = [
        ("plain", template(&[("a", &[shell("q", "true", ""), shell("r", "true", "")])]), 0, "succeeded"),
        (
            "failed",
            template(&[
                ("a", &[shell("q", "true", ""), shell("r", "exit 3", "")]),
                ("b", &[fan("f", "true", "")]),
                ("c", &end()),
            ]),
            1,
            "failed",
        ),
        (
            "skipped",
            template(&[
                ("a", &[shell("q", "true", ", when: \"false\""), shell("r", "true", "")]),
                ("b", &[shell("s", "true", ", when: \"false\"")]),
            ]),
            0,
            "succeeded",
        ),
        (
            "empty",
            template(&[("a", &[fan("empty", "true", "").replace("[range(3)]", "[]")]), ("b", &end())]),
            0,
            "succeeded",
        ),
        ("nested", template(&[("a", &[workflow.clone(), shell("q", "true", "")])]), 0, "succeeded"),
        (
            "retried",
            template(&[(
                "a",
                &[shell("f", "test -e ok || { touch ok; false; }", ", retry: { attempts: 3, delay: 50ms }")],
            )]),
            0,
            "succeeded",
        ),
        (
            "fallback",
            template(&[("a", &[shell("f", "false", ", fallback: { value: 1 }")]), ("b", &end())]),
            3,
            "degraded",
        ),
        (
            "share",
            template(&[
                ("a,join: { atLeast: 0.5 }", &[shell("q", "true", ""), shell("r", "false", "")]),
                ("b", &end()),
            ]),
            3,
            "degraded",
        ),
        (
            "race",
            template(&[
                ("a,join: any", &[shell("q", "true", ""), shell("slow", "sleep 600", "")]),
                ("b", &end()),
            ]),
            0,
            "succeeded",
        ),
        (
            "timeout",
            template(&[
                ("a,timeout: 300ms", &[shell("q", "true", ""), shell("s", "sleep 600", "")]),
                ("b", &end()),
            ]),
            1,
            "failed",
        ),
    ];
    let sage = cases
        .iter()
        .fold(Sage::new().template("sub", SUB), |sage, (name, text, ..)| sage.template(name, text));
    let mut desk = Desk::new(sage);
    for (name, _, exit, word) in &cases {
        desk.runs(name, *exit, word);
    }
    // Resumed once it has ended, and run once more.
    desk.sage.sage("resume x-failed").exit(1);
    desk.agrees("x-failed", "failed");
    desk.sage.sage("run x-plain -t plain").exit(0);
    desk.agrees("x-plain", "succeeded");
    desk.sage.sage("resume x-plain --from a/r").exit(0);
    desk.agrees("x-plain", "succeeded");
    // With another template: what did not change is reused.
    let edited = template(&[("a", &[shell("q", "true", ""), shell("r", "echo 2", "")]), ("c", &end())]);
    desk.sage.write(".sage/templates/edited.yaml", edited);
    desk.sage.sage("resume x-plain -t edited").exit(0);
    desk.agrees("x-plain", "succeeded");
    desk.sage.sage("fork x-failed --from a/r --as other").exit(1);
    desk.agrees("other", "failed");
    desk.sage.write("bad", "");
    desk.sage.sage("run y -t nested").exit(1);
    desk.agrees("y", "failed");
    std::fs::remove_file(desk.sage.path("bad")).unwrap();
    desk.sage.sage("resume y").exit(0);
    desk.agrees("y", "succeeded");
}

// covers: R8, R16, R18
#[test]
fn of_fan_outs_with_failures() {
    let tolerant = ", tolerate: 3";
    let each = "{ id: w, type: workflow, foreach: \"[1, 2]\", params: { template: sub } }".to_string();
    let sage = Sage::new()
        .template("sub", SUB)
        .template("failed", &template(&[("a", &[fan("f", "test $I != 1", "")]), ("b", &end())]))
        .template(
            "some",
            &template(&[("a", &[fan("f", "test $I != 1", tolerant), shell("q", "true", "")]), ("b", &end())]),
        )
        .template("none", &template(&[("a", &[fan("f", "false", tolerant)]), ("b", &end())]))
        .template("workflows", &template(&[("a", &[each]), ("b", &end())]));
    sage.write("bad", "");
    let mut desk = Desk::new(sage);
    let views = desk.runs("failed", 1, "failed");
    assert!(views.graph_text.contains("shell, fan-out  2/3 · 1 failed · "), "{}", views.graph_text);
    let views = desk.runs("some", 3, "degraded");
    assert!(
        views.status_text.contains("! a         3 of 4 succeeded, 1 failure tolerated · "),
        "{}",
        views.status_text
    );
    let views = desk.runs("none", 3, "degraded");
    assert!(
        views.status_text.contains(" 0 of 3 succeeded, 3 failures tolerated · "),
        "{}",
        views.status_text
    );
    let lines = desk.sage.sage("logs x-none").exit(0).stdout;
    let line = lines.lines().find(|line| line.contains("phase a completed with failures")).unwrap();
    assert!(line.ends_with(", 0 of 3 succeeded, 3 failures tolerated)"), "{line}");
    desk.runs("workflows", 1, "failed");
    std::fs::remove_file(desk.sage.path("bad")).unwrap();
    desk.sage.sage("resume x-workflows").exit(0);
    desk.agrees("x-workflows", "succeeded");
}

// covers: R8, R16, P3
#[test]
fn of_rounds() {
    let rounds = |fields: &str, run: &str| {
        let again = format!("b,repeat: {{ from: b, while: \"{fields}\", max: 3 }}");
        template(&[(&again, &[fan("f", run, ", tolerate: 1")]), ("c", &end())])
    };
    let learns = "test -e ok || test $I != 1 || { touch ok; false; }";
    let sage = Sage::new().template("never", &rounds("true", "test $I != 1")).template(
        "learns",
        &rounds("([.steps[\\\"b/f\\\"].result[] | select(. == null)] | length) > 0", learns),
    );
    let mut desk = Desk::new(sage);
    let views = desk.runs("never", 3, "degraded");
    assert_eq!(views.status["progress"], serde_json::json!({"completed": 7, "total": 10, "percentage": 70}));
    assert_eq!(views.status["metrics"]["operationCount"], 10);
    assert_eq!(views.status["errors"].as_array().unwrap().len(), 3);
    let views = desk.runs("learns", 0, "succeeded");
    assert_eq!(views.status["progress"], serde_json::json!({"completed": 6, "total": 6, "percentage": 100}));
    assert_eq!(
        (&views.status["errors"], &views.step("b/f[1]")["replaced"]),
        (&serde_json::Value::Null, &true.into())
    );
}

// covers: R8, R16, R21
#[test]
fn of_scripts() {
    let code = |body: &str| format!("export default async (sage: any) => {{\n{body}\n}};\n");
    let sage = Sage::new()
        .code("good", &code("await sage.shell(\"true\"); await Promise.all([1, 2].map((i) => sage.shell(\"true\", { label: \"l\", key: i }))); return 1;"))
        .code("handled", &code("try { await sage.shell(\"exit 3\"); } catch {} await sage.shell(\"true\"); return 1;"))
        .code("threw", &code("throw new Error(\"boom\");"))
        .code("late", &code("await sage.shell(\"true\"); throw new Error(\"boom\");"))
        .code("broken", &code("await sage.shell(\"exit 3\"); return 1;"))
        .code("unawaited", &code("sage.shell(\"sleep 600\"); await sage.shell(\"true\"); return 1;"))
        .template("inner", &template(&[("a", &["{ id: w, type: workflow, params: { template: threw } }".into()])]));
    let mut desk = Desk::new(sage);
    desk.runs("good", 0, "succeeded");
    desk.runs("handled", 0, "succeeded");
    let views = desk.runs("threw", 1, "failed");
    assert!(views.status_text.contains("✗ script  Error: boom"), "{}", views.status_text);
    desk.runs("late", 1, "failed");
    desk.runs("broken", 1, "failed");
    desk.runs("unawaited", 0, "succeeded");
    let views = desk.runs("inner", 1, "failed");
    assert!(views.status_text.contains("✗ w/main/script  Error: boom"), "{}", views.status_text);
}

/// Two attempts beside each other: neither the step nor its phase takes longer than the run.
// covers: R7, R18
#[test]
fn of_a_hedged_step() {
    let hedged = shell("h", "if [ $SAGE_ATTEMPT = 1 ]; then sleep 600; fi", ", hedge: 200ms");
    let mut desk = Desk::new(Sage::new().template("hedged", &template(&[("a", &[hedged])])));
    let views = desk.runs("hedged", 0, "succeeded");
    assert_eq!(views.status["metrics"]["hedges"], 1);
    assert!(views.step("a/h")["elapsedMs"].as_u64().unwrap() >= 200, "{}", views.status);
}
