//! Gaps in tests, on either side.

use serde_json::json;

use super::{Project, finding, found};

fn project() -> Project {
    Project::new(&[
        (
            "src/orders.ts",
            "export function place(order: Order) {\n  if (!order.items) {\n    throw new Error('empty');\n  }\n  return total(order);\n}\n\nfunction total(order: Order) {\n  let sum = 0;\n  sum += order.price;\n  return sum;\n}\n",
        ),
        (
            "src/refunds.ts",
            "export function refund(order: Order) {\n  const money = order.price;\n  send(money);\n  return money;\n}\n",
        ),
        (
            "src/orders.test.ts",
            "import { place } from './orders';\n\nit('gives the total', () => {\n  expect(place(order)).toBe(1);\n});\n",
        ),
    ])
}

// covers: R6
#[test]
fn changed_modules_without_tests_are_told_first() {
    let changed = json!({"filesChanged": ["src/refunds.ts"]});
    let report = project().step("implementation/backend", changed).run("qa.backend");
    assert_eq!(
        found(&report),
        ["No test reaches `refund` @ src/refunds.ts:1", "No test reaches `src/refunds.ts` @ src/refunds.ts"]
    );
    assert_eq!(report["openQuestions"], json!([]));
}

// covers: R6
#[test]
fn what_tests_reach_through_others_is_no_gap_but_an_error_nobody_looks_for_is() {
    let report = project().title("place").run("qa.backend");
    assert_eq!(found(&report), ["No test sees `place` fail @ src/orders.ts:1"]);
    assert_eq!(finding(&report, "place")["detail"], "Called by 1 test, none of which looks for an error.");
}

// covers: R6
#[test]
fn a_side_that_is_not_there_has_no_findings() {
    let report = project().run("qa.frontend");
    assert_eq!(report["summary"], "There is no frontend code here: nothing to check.");
    assert_eq!(found(&report), Vec::<String>::new());
    let page = Project::new(&[("web/index.html", "<p>x</p>")]).run("qa.frontend");
    assert_eq!(page["summary"], "The frontend has 1 file and no code that could have tests.");
}
