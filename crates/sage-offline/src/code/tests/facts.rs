//! What is read from a file of each language.

use super::super::facts::FileFacts;
use super::super::survey::facts_of;

/// One line for each function: enough to see every fact.
fn told(facts: &FileFacts) -> String {
    let yes = |flag: bool, name: &str| if flag { format!(" {name}") } else { String::new() };
    let functions = facts.functions.iter().map(|f| {
        format!(
            "{}@{} lines={} params={}/{} complexity={} nesting={}{}{}{}{}{}{}{} calls={}",
            f.full_name(),
            f.line,
            f.lines,
            f.typed_params,
            f.params,
            f.complexity,
            f.nesting,
            yes(f.returns_typed, "returns"),
            yes(f.is_public, "public"),
            yes(f.is_async, "async"),
            yes(f.is_test, "test"),
            yes(f.is_expected, "expected"),
            yes(f.is_fallible, "fallible"),
            f.doc.as_ref().map(|doc| format!(" \"{doc}\"")).unwrap_or_default(),
            f.calls.join(",")
        )
    });
    let types = facts.types.iter().map(|t| format!("{} {}@{}", t.kind, t.name, t.line));
    let constants = facts.constants.iter().map(|c| format!("const {}@{}", c.name, c.line));
    let imports = facts.imports.iter().map(|i| format!("import {}@{}", i.path, i.line));
    imports.chain(constants).chain(types).chain(functions).collect::<Vec<_>>().join("\n")
}

// covers: R6
#[test]
fn rust() {
    let facts = facts_of(
        "src/cart.rs",
        r#"
use crate::shop::{Item, Price};

const MAX_ITEMS: usize = 10;

/// What somebody wants to buy.
pub struct Cart { items: Vec<Item> }

impl Cart {
    /// Adds one item.
    #[must_use]
    pub fn add(&mut self, item: Item, count: u32) -> Result<(), Full> {
        if self.items.len() >= MAX_ITEMS || count == 0 {
            return Err(Full);
        } else if count > 5 {
            log(count)?;
        }
        for _ in 0..count {
            self.items.push(item.clone());
        }
        let _ = std::fs::remove_file("x");
        Ok(())
    }
}

impl Drop for Cart {
    fn drop(&mut self) { self.items.first().unwrap(); }
}

async fn wait() {}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn a_cart_takes_items() { assert_eq!(add_up(1), 2); }
}
"#,
    );
    insta::assert_snapshot!(told(&facts), @r#"
    import crate::shop::{Item, Price}@2
    const MAX_ITEMS@4
    struct Cart@7
    Cart.add@12 lines=12 params=2/2 complexity=5 nesting=1 returns public fallible "Adds one item." calls=Err,Ok,clone,len,log,push,remove_file
    Cart.drop@27 lines=1 params=0/0 complexity=1 nesting=0 returns expected calls=first,unwrap
    wait@30 lines=1 params=0/0 complexity=1 nesting=0 returns async calls=
    a_cart_takes_items@35 lines=1 params=0/0 complexity=1 nesting=0 returns async test expected calls=add_up,assert_eq
    "#);
    assert_eq!((facts.errors.swallowed, facts.errors.unwraps, facts.errors.propagated), (1, 1, 1));
    assert_eq!((facts.loops, facts.lines, facts.broken), (1, 36, false));
}

// covers: R6
#[test]
fn typescript() {
    let facts = facts_of(
        "src/cart.tsx",
        r#"
import { Item } from './item';

export const LIMIT = 10;

/** What is in the cart. */
export interface Cart { items: Item[] }

/** Adds one. */
export const add = async (cart: Cart, item) => {
    try {
        await save(cart);
    } catch (error) {}
    return cart ?? null;
};

export class Shop extends Base {
    private price(item: Item): number {
        switch (item.kind) { case 'a': return 1; default: return 2; }
    }
}

export function View({ cart }: Props) {
    return <ul>{cart.items.map((item) => <Row item={item} />)}</ul>;
}

it('adds an item to the cart', () => { expect(add(cart, item)).toBe(1); });
"#,
    );
    insta::assert_snapshot!(told(&facts), @r#"
    import ./item@2
    const LIMIT@4
    interface Cart@7
    class Shop@17
    add@10 lines=6 params=1/2 complexity=3 nesting=1 public async "Adds one." calls=save
    Shop.price@18 lines=3 params=1/1 complexity=2 nesting=1 returns expected calls=
    View@23 lines=3 params=1/1 complexity=1 nesting=0 public calls=Row,map
    adds an item to the cart@27 lines=1 params=0/0 complexity=1 nesting=0 test calls=add,expect,toBe
    "#);
    assert_eq!((facts.errors.catches, facts.errors.swallowed, facts.markup.len()), (1, 1, 1));
}

// covers: R6
#[test]
fn python() {
    let facts = facts_of(
        "tests/test_cart.py",
        r#"
import os
from shop.cart import Cart

MAX_ITEMS = 3
T = TypeVar("T")

class Cart(Base):
    """What somebody wants to buy."""

    def add(self, item: Item, count=1) -> bool:
        """Adds items."""
        for i in range(count):
            if item in self.items and count:
                try:
                    self.items.append(item)
                except ValueError:
                    pass
        return True

@app.route("/")
async def index(request, *args, **kwargs):
    # TODO: render it
    return await render(request)

def test_add():
    assert Cart().add(1)
"#,
    );
    insta::assert_snapshot!(told(&facts), @r#"
    import os@2
    import shop.cart@3
    class Cart@8
    Cart.add@11 lines=9 params=1/2 complexity=5 nesting=3 returns public expected "Adds items." calls=append,range
    index@22 lines=3 params=0/3 complexity=1 nesting=0 public async expected calls=render
    test_add@26 lines=2 params=0/0 complexity=1 nesting=0 public test calls=Cart,add
    "#);
    assert_eq!(facts.todos.iter().map(|todo| (todo.mark, todo.line)).collect::<Vec<_>>(), [("TODO", 23)]);
}

// covers: R6
#[test]
fn go() {
    let facts = facts_of(
        "cart.go",
        r#"
package shop

import (
	"fmt"
	"example.com/shop/item"
)

const MaxItems = 10

// Cart is what somebody wants to buy.
type Cart struct{ items []Item }

// Add adds items.
func (c *Cart) Add(item, other Item, count int) error {
	if err := check(item); err != nil {
		return err
	}
	for i := 0; i <= len(c.items); i++ {
		fmt.Println(c.items[i])
	}
	_ = c.save()
	return nil
}

func main() {}
"#,
    );
    insta::assert_snapshot!(told(&facts), @r#"
    import fmt@5
    import example.com/shop/item@6
    const MaxItems@9
    struct Cart@12
    Cart.Add@15 lines=10 params=3/3 complexity=3 nesting=1 returns public fallible "Add adds items." calls=Println,check,len,save
    main@26 lines=1 params=0/0 complexity=1 nesting=0 returns expected calls=
    "#);
    assert_eq!((facts.errors.checked, facts.errors.swallowed), (1, 1));
}

// covers: R6
#[test]
fn java() {
    let facts = facts_of(
        "src/Cart.java",
        r#"
package shop;

import java.util.List;

/** What somebody wants to buy. */
public class Cart implements Basket {
    static final int MAX_ITEMS = 10;
    private int size = 0;

    public Cart(int size) { this.size = size; }

    /** Adds one. */
    @Override
    public boolean add(Item item, int count) throws FullException {
        for (Item known : items) {
            if (known.equals(item)) { return false; }
        }
        try { save(item); } catch (IOException e) { }
        return true;
    }

    @Test
    void addsOneItem() { assertTrue(new Cart(1).add(item, 1)); }
}
"#,
    );
    insta::assert_snapshot!(told(&facts), @r#"
    import java.util.List@4
    const MAX_ITEMS@8
    class Cart@7
    Cart.Cart@11 lines=1 params=1/1 complexity=1 nesting=0 returns public expected calls=
    Cart.add@15 lines=7 params=2/2 complexity=4 nesting=2 returns public expected fallible "Adds one." calls=equals,save
    Cart.addsOneItem@24 lines=1 params=0/0 complexity=1 nesting=0 returns test expected calls=Cart,add,assertTrue
    "#);
    assert_eq!((facts.errors.catches, facts.errors.swallowed, facts.loops), (1, 1, 1));
}

// covers: R6
#[test]
fn javascript() {
    let facts = facts_of(
        "lib/cart.js",
        r#"
const fs = require('fs');
const exec = function (command) { return run(command); };
module.exports.total = (items) => items.length > 0 && sum(items);
function* pages() { while (true) { yield next(); } }
"#,
    );
    insta::assert_snapshot!(told(&facts), @r#"
    import fs@2
    exec@3 lines=1 params=0/1 complexity=1 nesting=0 calls=run
    total@4 lines=1 params=0/1 complexity=2 nesting=0 public calls=sum
    pages@5 lines=1 params=0/0 complexity=2 nesting=1 calls=next
    "#);
}

// covers: R6
#[test]
fn what_is_broken_still_tells_the_rest() {
    let facts = facts_of("a.rs", "fn good() {}\nfn bad( {{{ let = ;\nstruct Later;\n");
    assert!(facts.broken);
    assert_eq!(facts.functions[0].name, "good");
    let facts = facts_of("a.py", "def good(a: int):\n    return a\n\ndef bad(:\n  x = = 1\n");
    assert!(facts.broken);
    assert_eq!((facts.functions[0].name.as_str(), facts.functions[0].typed_params), ("good", 1));
}
