//! What is read, and what is not.

use proptest::prelude::*;

use super::*;

/// Every program with its arguments, in order.
pub fn programs(list: &List) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for command in list.0.iter().flat_map(|(_, pipeline)| &pipeline.0) {
        match &command.body {
            Body::Simple { words, .. } => all.push(words.iter().map(|word| word.text.clone()).collect()),
            Body::Group { list, .. } => all.extend(programs(list)),
        }
    }
    all
}

fn read(text: &str) -> Vec<Vec<String>> {
    programs(&parse(text).unwrap_or_else(|why| panic!("{text:?}: {why}")))
}

fn redirects(text: &str) -> Vec<String> {
    let list = parse(text).unwrap();
    let all = list.0.iter().flat_map(|(_, pipeline)| &pipeline.0).flat_map(|command| &command.redirects);
    all.map(|redirect| match redirect {
        Redirect::Read(word) => format!("<{}", word.text),
        Redirect::Write(word) => format!(">{}", word.text),
    })
    .collect()
}

#[test]
fn quotes_and_escapes_are_read_as_a_shell_does() {
    for (text, words) in [
        ("a b  c", vec!["a", "b", "c"]),
        ("a 'b c' \"d e\"", vec!["a", "b c", "d e"]),
        ("a b'c'\"d\"e", vec!["a", "bcde"]),
        (r#"a "b\"c" 'd\' e\ f"#, vec!["a", "b\"c", "d\\", "e f"]),
        (r#"a "\n\$x""#, vec!["a", "\\n$x"]),
        ("a \"\" ''", vec!["a", "", ""]),
        ("a b\\\nc \\\n d", vec!["a", "bc", "d"]),
        ("a \"b\nc\"", vec!["a", "b\nc"]),
        ("a 'it'\\''s'", vec!["a", "it's"]),
        ("a b#c #d", vec!["a", "b#c"]),
        ("a HEAD~1 x@{u} {} a=b", vec!["a", "HEAD~1", "x@{u}", "{}", "a=b"]),
        ("a \"cost $ 5\" 'x$'", vec!["a", "cost $ 5", "x$"]),
        ("a \"$(cat <<'E'\none\n  $(two) \"x\"\nE\n)\" b", vec!["a", "one\n  $(two) \"x\"", "b"]),
    ] {
        assert_eq!(read(text), [words], "{text:?}");
    }
}

#[test]
fn operators_and_groups_are_read() {
    let text = "a | b |& c && d || e; f\ng\n# h\n(i; j) && { k; l; } 2>&1 | m";
    let names: Vec<String> = read(text).into_iter().map(|words| words[0].clone()).collect();
    assert_eq!(names.join(""), "abcdefgijklm");
    assert_eq!(read("X=1 Y='2 3' a b"), [vec!["a", "b"]]);
    assert_eq!(read("! a").len() + read("time a").len() + read("! ( a )").len(), 3);
    assert_eq!(read("a &&\n\n b |\n c").len(), 3);
}

#[test]
fn redirections_are_read() {
    for (text, expected) in [
        ("a > b 2> c < d", vec![">b", ">c", "<d"]),
        ("a >> 'b c' 2>&1", vec![">b c"]),
        ("a >| b &> c &>>d", vec![">b", ">c", ">d"]),
        ("a 2>/dev/null >&2 2>&-", vec![">/dev/null"]),
        ("> a", vec![">a"]),
        ("(a) > b", vec![">b"]),
        ("a <<< b > c", vec![">c"]),
        ("a <<E > b\nx > y\nE\n", vec![">b"]),
        ("a <<'E' <<-F\n$x\nE\n\tok\n\tF\n", vec![]),
        ("a2>b", vec![">b"]),
    ] {
        assert_eq!(redirects(text), expected, "{text:?}");
    }
    assert_eq!(read("a <<E\nb\nE\nc"), [["a"], ["c"]]);
    assert_eq!(read("a <<A; b <<B\n1\nA\n2\nB\nc"), [["a"], ["b"], ["c"]]);
}

#[test]
fn what_is_not_certain_is_unclear() {
    for text in [
        "",
        "  # only a comment",
        "a $b",
        "a ${b}",
        "a $((1))",
        "a $(b)",
        "a `b`",
        "a \"`b`\"",
        "a $'b'",
        "a $\"b\"",
        "a \"$b\"",
        "a $1",
        "a $@",
        "a &",
        "a & b",
        "a 'b",
        "a \"b",
        "a \\",
        "a )",
        "( a",
        "()",
        "a (b)",
        "a() { b; }",
        "((a))",
        "[[ a ]]",
        "for a in b; do c; done",
        "if a; then b; fi",
        "while a; do b; done",
        "case a in b) c;; esac",
        "function a { b; }",
        "{ a",
        "{ a; } b",
        "a { b",
        "a }",
        "a {b,c}",
        "a b{1..3}",
        "a <(b)",
        "a >(b)",
        "a > *",
        "a >",
        "a >& b",
        "a <> b",
        "a 12> b",
        "a >!b",
        "a | | b",
        "a && ",
        "| a",
        "; a",
        "a ;; b",
        "a =b",
        "a ~b",
        "a x=~/b",
        "a <1-9>",
        "a <<E\nb",
        "a <<E\n$b\nE",
        "a <<$E\nb\n$E",
        "a <<E \"b\nc\"\nE",
        "a\rb",
        "a \u{0}b",
        "a\u{a0}b",
        "coproc a",
        "- a",
        "noglob a",
        "a \"$(cat <<E\n$(x)\nE\n)\"",
        "a $(cat <<'E'\nx\nE\n)",
        "a \"$(cat <<'E'; x\nE\n)\"",
        "a \"$(cat f)\"",
        "((((((((((a))))))))))",
        "( ( ( ( ( ( ( ( ( ( a ) ) ) ) ) ) ) ) ) )",
    ] {
        assert!(parse(text).is_err(), "{text:?}: {:?}", parse(text));
    }
}

#[test]
fn patterns_homes_and_exits_are_marked() {
    let words = |text: &str| {
        let list = parse(text).unwrap();
        let Body::Simple { words, .. } = list.0[0].1.0[0].body.clone() else { panic!() };
        words
    };
    let all = words("a *.b x?y '*' ~/c [ ~ $? \\*");
    let marked = |pick: fn(&Word) -> bool| -> Vec<usize> {
        all.iter().enumerate().filter(|(_, word)| pick(word)).map(|(at, _)| at).collect()
    };
    assert_eq!(marked(|word| word.pattern), [1, 2]);
    assert_eq!(marked(|word| word.leading_pattern), [1]);
    assert_eq!(marked(|word| word.home), [4, 6]);
    assert_eq!(marked(|word| word.status), [7]);
    assert!(words("''*")[0].leading_pattern && words("^a")[0].leading_pattern);
}

proptest! {
    /// Whatever is written, reading it ends.
    #[test]
    fn reading_never_panics(text in ".{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn reading_never_panics_on_shell(text in "[ab$(){}<>|&;'\"\\\\`~=#*?\\[\\]!\n\t 0-9E-]{0,60}") {
        let _ = parse(&text);
    }

    /// Words that are quoted come out as they went in, wherever they stand.
    #[test]
    fn quoted_words_are_kept(words in prop::collection::vec("[ -~\n]{0,12}", 1..6)) {
        let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let line = format!("echo {line} | cat && ( x {line} )");
        let found = programs(&parse(&line).unwrap());
        prop_assert_eq!(&found[0][1..], &words[..]);
        prop_assert_eq!(&found[2][1..], &words[..]);
    }
}
