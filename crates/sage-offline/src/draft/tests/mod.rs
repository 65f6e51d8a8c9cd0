//! Small projects in three languages, and what is drafted about them.

mod critique;
mod examples;
mod plan;
mod running;
mod shapes;
mod spec;
mod swarm;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::request::{Request, Trouble};
pub(super) use crate::research::tests::project;

/// A request that is built up and performed.
pub struct Ask {
    request: Request,
}

pub fn ask(operation: &str, dir: &TempDir, title: &str) -> Ask {
    let feature = title.replace(' ', "-");
    let (operation, title, project) = (operation.to_string(), title.to_string(), dir.path().to_path_buf());
    Ask { request: Request { operation, project, feature, title, ..Request::default() } }
}

impl Ask {
    pub fn steps(mut self, steps: Value) -> Ask {
        self.request.steps = object(steps);
        self
    }

    pub fn params(mut self, params: Value) -> Ask {
        self.request.params = object(params);
        self
    }

    pub fn item(mut self, item: Value) -> Ask {
        self.request.item = Some(item);
        self
    }

    pub fn try_it(self) -> Result<Value, Trouble> {
        crate::perform(&self.request)
    }

    #[track_caller]
    pub fn done(self) -> Value {
        self.try_it().unwrap()
    }

    #[track_caller]
    pub fn document(self) -> String {
        self.done()["document"].as_str().unwrap().to_string()
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[track_caller]
pub fn assert_line(document: &str, line: &str) {
    assert!(document.lines().any(|known| known == line), "no line\n  {line}\nin\n{document}");
}

/// A shop in Python, with a mark, a caller, and tests that leave gaps.
pub fn shop() -> TempDir {
    project(&[
        ("README.md", "# Shop\n\nA shop. Payments can be refunded within 30 days.\n"),
        ("docs/changes.md", "# Changes\n\n## 1.1\n\n- Payment by card.\n"),
        (
            "shop/payments.py",
            concat!(
                "\"\"\"Taking money.\"\"\"\n\n\n",
                "class Declined(Exception):\n    \"\"\"The card was not accepted.\"\"\"\n\n\n",
                "def charge(card, cents):\n    \"\"\"Charge a card and return a receipt.\"\"\"\n",
                "    if cents <= 0:\n        raise ValueError(\"nothing to pay\")\n",
                "    if not card:\n        raise Declined(\"no card\")\n",
                "    # FIXME: a repeated charge takes the money twice.\n",
                "    return {\"cents\": cents}\n\n\n",
                "def refund(receipt):\n    if receipt[\"cents\"] <= 0:\n        raise ValueError(\"nothing left\")\n",
                "    return {\"cents\": 0}\n",
            ),
        ),
        (
            "shop/orders.py",
            concat!(
                "from shop import payments\n\n\n",
                "def place(cart, card):\n    receipt = payments.charge(card, cart)\n    return {\"receipt\": receipt}\n\n\n",
                "def cancel(order):\n    return payments.refund(order[\"receipt\"])\n",
            ),
        ),
        ("shop/stock.py", "def count(code):\n    return 3\n"),
        (
            "tests/test_shop.py",
            concat!(
                "import unittest\n\nfrom shop import payments\n\n\n",
                "class PaymentTest(unittest.TestCase):\n    def test_cards_are_needed(self):\n",
                "        with self.assertRaises(payments.Declined):\n            payments.charge(\"\", 100)\n",
            ),
        ),
    ])
}

/// A cart in TypeScript with a component that shows it.
pub fn web() -> TempDir {
    project(&[
        ("package.json", "{\n  \"scripts\": {\n    \"test\": \"vitest run\"\n  }\n}\n"),
        (
            "src/cart.ts",
            concat!(
                "// The cart and what is in it.\n\n",
                "export class CartError extends Error {}\n\n",
                "/** Adds one product. */\nexport function addToCart(cart: string[], code: string): string[] {\n",
                "  if (code === \"\") {\n    throw new CartError(\"no product\");\n  }\n  return [...cart, code];\n}\n",
            ),
        ),
        (
            "src/components/CartView.tsx",
            concat!(
                "import { addToCart } from \"../cart\";\n\n",
                "export function CartView(props: { codes: string[] }) {\n",
                "  const codes = addToCart(props.codes, \"mug\");\n  return <ul>{codes.length}</ul>;\n}\n",
            ),
        ),
        (
            "src/cart.test.ts",
            concat!(
                "import { expect, test } from \"vitest\";\nimport { addToCart, CartError } from \"./cart\";\n\n",
                "test(\"empty codes are refused\", () => {\n  expect(() => addToCart([], \"\")).toThrow(CartError);\n});\n",
            ),
        ),
    ])
}

/// A crate with a parser.
pub fn parser() -> TempDir {
    project(&[
        ("Cargo.toml", "[package]\nname = \"calc\"\n"),
        (
            "src/parser.rs",
            concat!(
                "//! Reads expressions.\n\n",
                "/// What went wrong.\npub enum ParseError {\n    Empty,\n}\n\n",
                "/// Parses one expression.\npub fn parse_expression(text: &str) -> Result<i64, ParseError> {\n",
                "    if text.is_empty() {\n        return Err(ParseError::Empty);\n    }\n    Ok(1)\n}\n\n",
                "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn one_is_one() {\n",
                "        assert!(parse_expression(\"1\").is_ok());\n    }\n}\n",
            ),
        ),
        (
            "src/lib.rs",
            "mod parser;\n\npub fn value(text: &str) -> i64 {\n    parser::parse_expression(text).unwrap_or(0)\n}\n",
        ),
    ])
}

/// The result of a step as expressions see it.
pub fn step(result: Value) -> Value {
    json!({"state": "done", "result": result, "full": null, "artifacts": []})
}
