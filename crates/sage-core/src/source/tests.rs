//! Hostile and honest text through both parsers.

use serde_json::json;

use super::*;

fn json_errors(text: &str) -> String {
    show(text, Format::Json)
}

fn yaml_errors(text: &str) -> String {
    show(text, Format::Yaml)
}

/// All diagnostics as plain text.
fn show(text: &str, format: Format) -> String {
    let (_, problems) = parse(text, format);
    let source = SourceText::new("t", text);
    problems.iter().map(|problem| source.show(problem).to_string()).collect()
}

fn first_message(text: &str, format: Format) -> String {
    let (node, problems) = parse(text, format);
    match problems.into_iter().next() {
        Some(problem) => problem.message,
        None => format!("no error: {node:?}"),
    }
}

fn value(text: &str, format: Format) -> serde_json::Value {
    let (node, problems) = parse(text, format);
    assert!(problems.is_empty(), "{text:?}: {problems:?}");
    node.unwrap().to_json()
}

// covers: R6
#[test]
fn wrong_indentation_and_colons_get_advice() {
    let table = [
        ("a:\n  - id: p\n     operations: 1\n", "= hint: indent `operations` like the fields beside it"),
        ("a:\n  run: echo key: value\n", "= hint: quote the value: `run: 'echo key: value'`"),
        ("a:\n  - run: it's a: b\n", "= hint: quote the value: `run: 'it''s a: b'`"),
        ("a:\n\tb: 1\n", "= hint: indent with spaces"),
    ];
    for (text, hint) in table {
        let told = yaml_errors(text);
        assert!(told.contains(hint), "{text}: {told}");
    }
}

#[test]
fn json_gives_values_and_spans() {
    let text = "{\"a\": [1, -2.5, \"x\\n\\u00e9\\ud83d\\ude00\"],\r\n \"b\": {\"c\": null, \"d\": true}}";
    assert_eq!(
        value(text, Format::Json),
        json!({"a": [1, -2.5, "x\n\u{e9}\u{1f600}"], "b": {"c": null, "d": true}})
    );
    let (node, _) = parse(text, Format::Json);
    let node = node.unwrap();
    let b = node.get("b").unwrap();
    assert_eq!(&text[b.span.start as usize..b.span.end as usize], "{\"c\": null, \"d\": true}");
    let (key, _) = &node.as_map().unwrap()[1];
    assert_eq!(&text[key.span.start as usize..key.span.end as usize], "\"b\"");
}

#[test]
fn yaml_gives_values_and_spans() {
    let text =
        "# \u{e9}\u{1f600} comment\na:\n  - 1\n  - caf\u{e9}\nb: {c: ~, d: true}\ne: |\n  two\n  lines\n";
    assert_eq!(
        value(text, Format::Yaml),
        json!({"a": [1, "caf\u{e9}"], "b": {"c": null, "d": true}, "e": "two\nlines\n"})
    );
    let (node, _) = parse(text, Format::Yaml);
    let node = node.unwrap();
    let part = |span: Span| &text[span.start as usize..span.end as usize];
    assert_eq!(part(node.get("a").unwrap().span), "- 1\n  - caf\u{e9}");
    assert_eq!(part(node.get("b").unwrap().span), "{c: ~, d: true}");
    let (key, _) = &node.as_map().unwrap()[1];
    assert_eq!(part(key.span), "b");
}

#[test]
fn crlf_and_wide_characters_keep_positions() {
    let text = "a: \u{1f600}\r\nb: [x,\r\n  y]\r\n";
    let (node, _) = parse(text, Format::Yaml);
    let node = node.unwrap();
    let span = node.get("b").unwrap().span;
    assert_eq!(&text[span.start as usize..span.end as usize], "[x,\r\n  y]");
}

// covers: RELIABILITY 42
#[test]
fn json_is_strict() {
    let table = [
        ("", "the template is empty"),
        ("{} x", "unexpected text after the end of the JSON value"),
        ("{} {}", "unexpected text after the end of the JSON value"),
        ("[1] 2", "unexpected text after the end of the JSON value"),
        ("{\"a\": 1e999}", "the number is too large"),
        ("{\"a\": -1e999}", "the number is too large"),
        ("{\"a\": 123456789012345678901234567890}", "the number does not fit in 64 bits"),
        ("{\"a\": 01}", "expected `,` or `}`"),
        ("{\"a\": +1}", "unary plus on numbers is not allowed"),
        ("{\"a\": .5}", "leading or trailing decimal points on numbers are not allowed"),
        ("{\"a\": 0x10}", "hexadecimal numbers are not allowed"),
        ("{\"a\": NaN}", "unexpected token"),
        ("[nope ]", "expected a value, found `nope`"),
        ("{\"a\": -Infinity}", "infinity and NaN are not allowed"),
        ("{\"a\": 1,}", "JSON has no trailing commas"),
        ("[1,]", "JSON has no trailing commas"),
        ("[1 2]", "expected `,` or `]`"),
        ("[,1]", "expected a value, found `,`"),
        ("{\"a\" 1}", "expected `:` after the key"),
        ("{a: 1}", "expected a key in double quotes"),
        ("{'a': 1}", "single-quoted strings are not allowed"),
        ("{\"a\": 1} // c", "JSON has no comments"),
        ("/* c */ {}", "JSON has no comments"),
        ("{\"a\": \"x\ny\"}", "a line break or control character in text must be escaped, as in `\\n`"),
        ("{\"a\u{1}\": 1}", "a line break or control character in text must be escaped, as in `\\n`"),
        ("{\u{a0}}", "only spaces, tabs and line breaks may stand between JSON tokens"),
        ("{", "the text ends where `}` should be"),
        ("[1", "the text ends where `,` or `]` should be"),
        ("{\"a\":", "the text ends where a value should be"),
        ("\"abc", "unterminated string literal"),
        ("\u{FEFF}\u{FEFF}{}", "unexpected token"),
    ];
    for (text, expected) in table {
        assert_eq!(first_message(text, Format::Json), expected, "{text:?}");
    }
    for text in
        ["\"\\x41\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\u12\"", "tru", "nul", "\0", "\u{1f4a3}"]
    {
        assert!(!first_message(text, Format::Json).starts_with("no error"), "{text:?}");
    }
}

// covers: RELIABILITY 42
#[test]
fn a_byte_order_mark_is_skipped_and_positions_stay_right() {
    for (format, text) in
        [(Format::Json, "\u{FEFF}{\"a\": 1, \"a\": 2}"), (Format::Yaml, "\u{FEFF}a: 1\na: 2\n")]
    {
        let (node, problems) = parse(text, format);
        assert!(node.is_some());
        let span = problems[0].span;
        assert_eq!(text[span.start as usize..span.end as usize].trim_matches('"'), "a");
        assert_ne!(span, problems[0].also.as_ref().unwrap().0);
    }
}

// covers: RELIABILITY 42
#[test]
fn deep_nesting_is_refused_at_once() {
    let started = std::time::Instant::now();
    for (open, format) in [
        ("[", Format::Json),
        ("{\"a\":", Format::Json),
        ("[", Format::Yaml),
        ("- ", Format::Yaml),
        ("{a: ", Format::Yaml),
        ("? ", Format::Yaml),
    ] {
        let message = first_message(&open.repeat(100_000), format);
        assert!(message.contains("levels deep") || format == Format::Yaml, "{open}: {message}");
        assert!(!message.starts_with("no error"), "{open}");
    }
    let exactly = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    for format in [Format::Json, Format::Yaml] {
        value(&exactly, format);
        let more = format!("[{exactly}]");
        assert!(first_message(&more, format).contains("levels deep"));
    }
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

// covers: RELIABILITY 42
#[test]
fn nine_megabytes_of_brackets_are_only_a_list() {
    let text = format!("[{}[]]", "[],".repeat(3_000_000));
    let (node, problems) = parse(&text, Format::Json);
    assert!(problems.is_empty());
    match node.unwrap().data {
        Data::Seq(items) => assert_eq!(items.len(), 3_000_001),
        other => panic!("{other:?}"),
    }
}

// covers: RELIABILITY 42
#[test]
fn what_is_too_large_is_refused_before_parsing() {
    let text = " ".repeat(MAX_BYTES + 1);
    for format in [Format::Json, Format::Yaml] {
        assert!(first_message(&text, format).contains("more than 64 MiB"));
    }
}

// covers: RELIABILITY 42, RELIABILITY 43
#[test]
fn duplicate_keys_are_told_with_both_places() {
    insta::assert_snapshot!(json_errors("{\n  \"a\": {\"b\": 1,\n    \"b\": 2}\n}"), @r#"
    error: duplicate key `b`
     --> t:3:5
      |
    3 |     "b": 2}
      |     ^^^
      = first: t:2:9
    "#);
    insta::assert_snapshot!(yaml_errors("phases:\n  - id: x\n    \"id\": y\n"), @r#"
    error: duplicate key `id`
     --> t:3:5
      |
    3 |     "id": y
      |     ^^^^
      = first: t:2:5
    "#);
    let (_, problems) = parse("phases:\n  - {}\n  - {id: x, id: y}\n", Format::Yaml);
    assert_eq!(problems[0].field, "phases[1]");
    let many: String = (0..50).map(|n| format!("k{n}: 1\n")).collect::<String>() + "k7: 2\n";
    assert_eq!(first_message(&many, Format::Yaml), "duplicate key `k7`");
    let (_, problems) = parse("{\"a\": 1, \"\\u0061\": 2}", Format::Json);
    assert_eq!(problems.len(), 1, "escapes do not hide a duplicate");
}

// covers: RELIABILITY 43
#[test]
fn yaml_1_2_means_what_it_says() {
    let text = "a: no\nb: on\nc: yes\nd: 'true'\ne: true\nf: 0o17\ng: 0x1F\nh: 1_000\ni: 12:30\nj: 1.5e3\nk: +7\nl: .5\nm: 2024-01-01\nn:\no: \"\"\np: 007\nq: 1e\nr: -\"x\"\ns: 30d\n";
    assert_eq!(
        value(text, Format::Yaml),
        json!({"a": "no", "b": "on", "c": "yes", "d": "true", "e": true, "f": 15, "g": 31, "h": "1_000",
               "i": "12:30", "j": 1500.0, "k": 7, "l": 0.5, "m": "2024-01-01", "n": null, "o": "", "p": 7,
               "q": "1e", "r": "-\"x\"", "s": "30d"})
    );
    assert_eq!(value("{\"a\": [1, \"b\"]}", Format::Yaml), json!({"a": [1, "b"]}));
    assert_eq!(value("--- \na: 1\n...\n", Format::Yaml), json!({"a": 1}));
}

// covers: RELIABILITY 43
#[test]
fn yaml_surprises_are_refused() {
    let table = [
        ("", "the template is empty"),
        ("# only a comment\n", "the template is empty"),
        ("a: !!python/object:os.system x", "YAML tags such as `!!str` are not accepted"),
        ("a: !!str 1", "YAML tags such as `!!str` are not accepted"),
        ("a: ! x", "YAML tags such as `!!str` are not accepted"),
        ("a: &x 1", "YAML anchors and aliases (`&name`, `*name`) are not accepted"),
        ("base: &b {x: 1}\na: *b", "YAML anchors and aliases (`&name`, `*name`) are not accepted"),
        ("a:\n  <<: {x: 1}", "the merge key `<<` is not part of YAML 1.2"),
        ("a: 1\n---\nb: 2", "a template is one YAML document, this file has several"),
        ("? [a]\n: 1", "a key must be text, not a list or an object"),
        ("a: .nan", "`.nan` is not a number that a template can use"),
        ("a: -.inf", "`.inf` is not a number that a template can use"),
        ("a: 1e999", "the number is too large"),
        ("a: 99999999999999999999", "the number does not fit in 64 bits"),
        ("a: 0xFFFFFFFFFFFFFFFFF", "the number does not fit in 64 bits"),
    ];
    for (text, expected) in table {
        assert_eq!(first_message(text, Format::Yaml), expected, "{text:?}");
    }
    for text in ["a: [1", "a: 'x", "a:\n\tb: 1", "a: 1\n b: 2", "a: b: c", "a: \"\\q\"", "@x"] {
        assert!(!first_message(text, Format::Yaml).starts_with("no error"), "{text:?}");
    }
    assert_eq!(
        value("a: \"<<\"\n\"<<\": 1\n", Format::Yaml),
        json!({"a": "<<", "<<": 1}),
        "quoted it is a key"
    );
}

// covers: RELIABILITY 43
#[test]
fn a_billion_laughs_end_at_once() {
    let mut text = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for (this, before) in ('b'..='z').zip('a'..) {
        text += &format!("{this}: &{this} [{}]\n", vec![format!("*{before}"); 9].join(", "));
    }
    let started = std::time::Instant::now();
    assert!(first_message(&text, Format::Yaml).contains("anchors and aliases"));
    assert!(started.elapsed().as_secs() < 2);
}

#[test]
fn a_yaml_error_shows_its_place() {
    insta::assert_snapshot!(yaml_errors("name: x\nphases: [a, b\nother: 1\n"), @r"
    error: illegal placement of ':' indicator
     --> t:3:6
      |
    3 | other: 1
      |      ^
    ");
    insta::assert_snapshot!(yaml_errors("a: &x 1"), @r"
    error: YAML anchors and aliases (`&name`, `*name`) are not accepted
     --> t:1:4
      |
    1 | a: &x 1
      |    ^^^^
      = hint: write the value out, or quote the text if it starts with `*` or `&`
    ");
}

#[test]
fn a_very_long_line_is_cut_around_the_place() {
    let text = format!("{{\"{}\": 1, \"dup\": 1, \"dup\": 2, \"{}\": 3}}", "x".repeat(300), "y".repeat(300));
    insta::assert_snapshot!(json_errors(&text), @r#"
    error: duplicate key `dup`
     --> t:1:319
      |
    1 | ...xxxxxxxxxxxxxxxxxxxxxxxx": 1, "dup": 1, "dup": 2, "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy...
      |                                            ^^^^^
      = first: t:1:309
    "#);
}

// covers: R17
#[test]
fn control_characters_of_a_template_never_reach_the_terminal() {
    let text = "{\"\u{1b}[31mred\u{202E}\": 1, \"\u{9b}x\": 2}".replace('\u{1b}', "\\u001b");
    let doubled = text.replace('}', ", \"\\u001b[31mred\u{202E}\": 2}");
    let shown = json_errors(&doubled);
    assert!(shown.contains("duplicate key"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{202E}', '\u{9b}']), "{shown}");
}

#[test]
fn formats_are_told_by_the_extension() {
    assert_eq!(Format::of_file("x.JSON"), Format::Json);
    assert_eq!(Format::of_file("x.yaml"), Format::Yaml);
    assert_eq!(Format::of_file("x"), Format::Yaml);
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // covers: RELIABILITY 42, RELIABILITY 43
        #[test]
        fn no_text_makes_a_parser_panic(text in "[\\[\\]{}:,\"'#&*!|>%@`?\\-\\\\ \n\ta-c0-9\u{e9}\u{1f600}.+eE~<]{0,80}") {
            for format in [Format::Json, Format::Yaml] {
                let (_, problems) = parse(&text, format);
                let source = SourceText::new("t", &text);
                for problem in &problems {
                    let _ = source.show(problem).to_string();
                }
            }
        }

        #[test]
        fn what_serde_writes_is_read_back_by_both(keys in proptest::collection::btree_map("[a-z\u{e9}\"\\\\\n]{0,6}", "\\PC{0,8}", 0..6)) {
            let written = serde_json::to_value(&keys).unwrap();
            let text = serde_json::to_string_pretty(&written).unwrap();
            prop_assert_eq!(value(&text, Format::Json), written.clone());
        }
    }
}
