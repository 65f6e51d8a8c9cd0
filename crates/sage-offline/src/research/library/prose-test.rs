use super::*;

fn told(text: &str) -> Vec<String> {
    let tell = |piece: &Piece| format!("{} {}: {}", piece.line, piece.headings.join(" > "), piece.text);
    pieces(text).iter().map(tell).collect()
}

// covers: R6
#[test]
fn markdown_by_headings_and_paragraphs() {
    let text = "---\ntitle: x\n---\n# Shop\n\n[![build](a.svg)](ci)\n\nSells **books** to [readers](https://x.y) \
                who like <b>paper</b>, and\nnothing else to anybody.\n\n## Payments ##\n\n```sh\nshop pay\n```\n\
                Cards only:\n- visa\n- master\n\n| a | b |\n|---|---|\n| one | two |\n";
    assert_eq!(
        told(text),
        [
            "8 Shop: Sells books to readers who like paper, and nothing else to anybody.",
            "16 Shop > Payments: Cards only: visa master a \u{2013} b one \u{2013} two",
        ]
    );
    assert_eq!(pieces(text)[0].code, "shop pay\n");
}

// covers: R6
#[test]
fn underlined_headings_and_points() {
    let text = "Shop\n====\n\nPart\n----\n\n1. The first point says something of some length, enough to stand.\n\
                2. The second point says something of some length, enough to stand.\n\nOther\n-----\n\nThe end.\n";
    let found: Vec<(usize, String)> = points(text).iter().map(|p| (p.line, p.headings.join(" > "))).collect();
    assert_eq!(found, [(7, "Shop > Part".into()), (8, "Shop > Part".into()), (13, "Shop > Other".into())]);
}

// covers: R6
#[test]
fn a_table_of_contents_and_comments_are_nothing() {
    assert_eq!(
        told("# A\n- [One](#one)\n- [Two](#two)\n<!-- hidden\nwords -->\n[`a b`]: https://x.y\n"),
        Vec::<String>::new()
    );
    assert_eq!(
        plain("a < b, [x], 2*3, *so* **it** `*.rs <T>` ![pic](y)"),
        "a < b, [x], 2*3, so it `*.rs <T>`"
    );
    assert_eq!(told(""), Vec::<String>::new());
}
