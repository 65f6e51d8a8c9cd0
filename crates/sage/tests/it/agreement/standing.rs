//! Runs that stand still until a person acts.

use super::{Desk, fan, shell, template};
use crate::dsl::Sage;

const ASK: &str = "{ id: ask, type: approval, params: { message: Go? } }";

// covers: R8, R16
#[test]
fn of_approvals() {
    let text = template(&[
        ("a", &[shell("q", "true", ""), fan("f", "test $I != 1", ", tolerate: 1")]),
        ("b", &[ASK.into()]),
        ("c", &[shell("z", "true", "")]),
    ]);
    let mut desk = Desk::new(Sage::new().template("asks", &text));
    let views = desk.runs("asks", 4, "paused");
    assert_eq!(views.step("b/ask")["elapsedMs"], 0, "a person's time is not the step's");
    desk.sage.sage("approve x-asks").exit(0);
    desk.agrees("x-asks", "paused");
    desk.sage.sage("resume x-asks").exit(3);
    desk.agrees("x-asks", "degraded");

    desk.sage.sage("run no -t asks").exit(4);
    desk.sage.sage("reject no -m never").exit(0);
    desk.agrees("no", "paused");
    desk.sage.sage("resume no").exit(1);
    desk.agrees("no", "failed");

    desk.sage.sage("run gone -t asks").exit(4);
    desk.sage.sage("cancel gone").exit(0);
    desk.agrees("gone", "cancelled");
    desk.sage.sage("resume gone").exit(4);
    desk.agrees("gone", "paused");
}

/// What holds others waits as they do.
// covers: R8, R16
#[test]
fn of_approvals_inside_of_other_steps() {
    let each = "{ id: f, type: approval, foreach: \"[1, 2]\", params: { message: Go? } }".to_string();
    let sub = "{ id: w, type: workflow, params: { template: sub } }".to_string();
    let sage = Sage::new()
        .code(
            "code",
            "export default async (sage: any) => { await sage.shell('true'); await sage.approve('ok?'); };\n",
        )
        .template("sub", &template(&[("s", &[ASK.into()])]))
        .template("nested", &template(&[("a", &[sub])]))
        .template("each", &template(&[("a", &[each])]));
    let mut desk = Desk::new(sage);
    for (template, holder) in [("code", "main/script"), ("nested", "a/w"), ("each", "a/f")] {
        let views = desk.runs(template, 4, "paused");
        let step = views.step(holder);
        assert_eq!(
            (&step["state"], &step["waitReason"]),
            (&"waiting".into(), &"approval".into()),
            "{step:#}"
        );
    }
}

// covers: R8, R16
#[test]
fn of_checks_that_could_not_be_made() {
    let text = template(&[
        ("a", &["{ id: t, type: test.run }".into(), shell("q", "true", "")]),
        ("b", &[shell("z", "true", "")]),
    ]);
    let mut desk = Desk::new(Sage::new().template("unknown", &text));
    desk.runs("unknown", 4, "paused");
    desk.sage.sage("approve x-unknown a/t").exit(0);
    desk.agrees("x-unknown", "paused");
    desk.sage.sage("resume x-unknown").exit(3);
    desk.agrees("x-unknown", "degraded");
}

// covers: R8, R16
#[test]
fn of_joins_budgets_and_limits() {
    let agent = "{ id: g, type: agent, agent: fake, params: { prompt: x, script: [{ result: x, usage: { input: 9000, output: 50 } }] } }";
    let sage = Sage::new()
        .template(
            "join",
            &template(&[
                ("a,onJoin: pause", &[shell("q", "true", ""), shell("r", "false", "")]),
                ("b", &[shell("z", "true", "")]),
            ]),
        )
        .template("budget", &template(&[("a", &[agent.into()]), ("b", &[agent.into()])]))
        .template("slow", &template(&[("a", &[shell("q", "true", ""), shell("s", "sleep 600", "")])]));
    let mut desk = Desk::new(sage);
    desk.runs("join", 4, "paused");
    desk.sage.sage("run rich -t budget --budget 5k").exit(4);
    desk.agrees("rich", "paused");
    desk.sage.sage("run late -t slow --timeout 500ms").exit(4);
    desk.agrees("late", "paused");
    desk.sage.sage("cancel late").exit(0);
    desk.agrees("late", "cancelled");
}
