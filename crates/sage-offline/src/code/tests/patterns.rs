//! Conventions, their exceptions, and the code near a title.

use super::{Project, finding, found};
use serde_json::json;

fn shop() -> Project {
    Project::new(&[
        (
            "shop/payments.py",
            "class PaymentError(Exception):\n    pass\n\n\ndef charge_card(card: str, amount: int) -> bool:\n    \"\"\"Takes money.\"\"\"\n    if amount < 1:\n        raise PaymentError()\n    return send_charge(card)\n\n\ndef send_charge(card: str) -> bool:\n    try:\n        return post(card)\n    except IOError:\n        pass\n",
        ),
        (
            "shop/orders.py",
            "from shop.payments import charge_card\n\n\ndef placeOrder(cart):\n    charge_card(cart.card, 1)\n\n\ndef cancel_order(cart: Cart) -> None:\n    raise ValueError()\n",
        ),
        (
            "shop/cart.py",
            "from shop.payments import PaymentError\n\n\ndef add_item(cart: Cart, item: Item) -> None:\n    cart.items.append(item)\n    cart.count += 1\n",
        ),
        (
            "tests/test_payments.py",
            "from shop.payments import charge_card\n\n\ndef test_a_card_is_charged_only_once():\n    assert charge_card('x', 1)\n\n\ndef test_a_charge_of_nothing_is_refused():\n    pass\n\n\ndef test_send():\n    pass\n",
        ),
    ])
}

// covers: R6
#[test]
fn conventions_come_with_figures_and_exceptions() {
    let report = shop().title("refund payments").run("patterns.extract");
    let naming = finding(&report, "Functions are named in snake_case");
    assert_eq!(naming["confidence"], 0.8);
    assert_eq!(naming["detail"], "80% of 5 function names. Exceptions: `placeOrder` shop/orders.py:4.");
    assert_eq!(naming["kind"], "naming");
    assert!(naming["relevance"].as_f64().unwrap() >= 0.6);
    let errors = finding(&report, "Errors are thrown and caught");
    assert_eq!(
        errors["detail"],
        "Thrown in 2 places, caught in 1 place; 1 error swallowed; own error types: PaymentError. Exceptions: empty handler shop/payments.py:15."
    );
    let typing = finding(&report, "typed parameters");
    assert_eq!(typing["detail"], "86% of 7 parameters typed. Exceptions: `placeOrder` shop/orders.py:4.");
    assert_eq!(finding(&report, "Tests run with pytest")["confidence"], 1.0);
    assert_eq!(finding(&report, "Tests live in a folder of tests")["confidence"], 1.0);
    assert_eq!(finding(&report, "are reached by tests")["evidence"][0], "shop/payments.py");
    let claims = report["claims"].as_array().unwrap();
    let naming = claims.iter().find(|claim| claim["subject"] == "function naming").unwrap();
    assert_eq!((&naming["predicate"], &naming["value"]), (&json!("style"), &json!("snake_case")));
}

// covers: R6
#[test]
fn code_near_the_title_is_ranked() {
    let report = shop().title("refund payments").run("patterns.extract");
    let near: Vec<String> = found(&report).into_iter().filter(|line| line.starts_with("Near")).collect();
    assert_eq!(near[0], "Near this feature: `PaymentError` @ shop/payments.py:1");
    assert!(finding(&report, "`PaymentError`")["relevance"].as_f64().unwrap() < 1.0);
    let nothing = shop().title("quantum teleportation").run("patterns.extract");
    assert!(found(&nothing).iter().all(|line| !line.starts_with("Near")));
    assert!(nothing["openQuestions"][0].as_str().unwrap().contains("quantum teleportation"));
}

// covers: R6
#[test]
fn the_page_is_one_to_keep() {
    let report = shop().title("refund payments").run("patterns.extract");
    let page = report["document"].as_str().unwrap();
    for part in [
        "# Patterns of this code\n",
        "## Code near \"refund payments\"",
        "| `shop/payments.py:5` | `def charge_card(card: str, amount: int) -> bool` — Takes money. |",
        "## Names",
        "## Tests",
        "## Exceptions",
        "offline: ",
    ] {
        assert!(page.contains(part), "no `{part}` in:\n{page}");
    }
}

// covers: R6
#[test]
fn the_modules_that_everything_builds_on_are_found() {
    let rust = Project::new(&[
        ("src/lib.rs", "mod a;\nmod b;\nmod c;\nmod base;\n"),
        ("src/base.rs", "pub struct Base;\n"),
        ("src/a.rs", "use crate::base::Base;\npub fn a(_: Base) {}\n"),
        ("src/b.rs", "use super::base::Base;\npub fn b(_: Base) {}\n"),
        ("src/c.rs", "use crate::{a::a, base::Base};\npub fn c(_: Base) {}\n"),
    ]);
    let scripts = Project::new(&[
        ("src/base.ts", "export const base = 1;\n"),
        ("src/a.ts", "import { base } from './base';\n"),
        ("src/b.ts", "import { base } from './base.js';\n"),
        ("src/deep/c.ts", "import { base } from '../base';\n"),
    ]);
    let go = Project::new(&[
        ("base/base.go", "package base\n"),
        ("a/a.go", "package a\nimport \"example.com/x/base\"\n"),
        ("b/b.go", "package b\nimport \"example.com/x/base\"\n"),
        ("c/c.go", "package c\nimport \"example.com/x/base\"\n"),
    ]);
    let java = Project::new(&[
        ("src/x/Base.java", "package x;\nclass Base {}\n"),
        ("src/a/A.java", "package a;\nimport x.Base;\n"),
        ("src/b/B.java", "package b;\nimport x.Base;\n"),
        ("src/c/C.java", "package c;\nimport x.Base;\n"),
    ]);
    for (project, module) in
        [(rust, "src/base.rs"), (scripts, "src/base.ts"), (go, "base"), (java, "src/x/Base.java")]
    {
        let report = project.run("patterns.extract");
        let central = finding(&report, "most of the code builds on");
        assert_eq!(central["title"], format!("`{module}` is what most of the code builds on"));
        assert!(central["detail"].as_str().unwrap().contains("by 3"), "{central}");
    }
}
