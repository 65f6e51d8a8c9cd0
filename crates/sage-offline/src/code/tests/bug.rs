//! The code that a bug may be in.

use super::{Project, finding, found};

// covers: R6
#[test]
fn suspects_come_with_risks_callers_and_tests() {
    let project = Project::new(&[
        ("shop/invoice.py", "def round_invoice(total):\n    for i in range(len(total) + 1):\n        try:\n            total[i] = clean(total[i - 1])\n        except Exception:\n            pass\n    # TODO: negative amounts\n    return total\n\n\ndef send_invoice(order):\n    return round_invoice(order.total)\n"),
        ("shop/stock.py", "def count_stock(shelf):\n    raise ValueError(\"invoice rounding failed for this shelf\")\n"),
        ("tests/test_invoice.py", "from shop.invoice import round_invoice\n\n\ndef test_cents_are_kept():\n    assert round_invoice([1]) == [1]\n"),
    ])
    .title("invoice rounding is wrong");
    let report = project.run("analyze.code");
    let first = &report["findings"][0];
    assert_eq!(first["title"], "`round_invoice` may be involved");
    let detail = first["detail"].as_str().unwrap();
    for part in [
        "Line 5: `except Exception` does nothing with the error",
        "one too far",
        "TODO: negative amounts",
        "Called by `send_invoice`",
        "Tested by `test_cents_are_kept`",
    ] {
        assert!(detail.contains(part), "no `{part}` in {detail}");
    }
    assert_eq!(finding(&report, "A text with the words")["evidence"][0], "shop/stock.py:2");
    assert!(!found(&report).iter().any(|line| line.contains("count_stock")));
    assert!(report["claims"].as_array().unwrap().iter().any(|claim| claim["predicate"] == "swallowed error"));
}
