//! What a review finds, and what it leaves alone.

use super::{Project, finding, found};

// covers: R6
#[test]
fn copies_are_found_although_variables_are_renamed() {
    let body = |name: &str, list: &str, limit: u32| {
        format!(
            "pub fn {name}({list}: &[Item]) -> u32 {{\n    let mut sum = 0;\n    for item in {list} {{\n        if item.price > {limit} && item.is_open() {{\n            sum += item.price * item.count;\n        }}\n        if item.count == 0 {{\n            warn(item.name.as_str());\n        }}\n    }}\n    log(sum);\n    sum\n}}\n"
        )
    };
    let project =
        Project::new(&[("src/a.rs", &body("total", "items", 10)), ("src/b.rs", &body("price", "goods", 77))]);
    let report = project.run("quality.review");
    assert_eq!(found(&report), ["`total` and `price` share 13 lines @ src/a.rs:1"]);
    assert_eq!(finding(&report, "share")["evidence"][1], "src/b.rs:1");
}

// covers: R6
#[test]
fn functions_that_are_too_much_are_told_with_their_measure() {
    let long: String = (0..80).map(|n| format!("    step_{n}(a)\n")).collect();
    let deep = "def deep(a, b, c, d, e, f, g):\n    for x in a:\n        if x:\n            while b:\n                with c:\n                    if d:\n                        go(e)\n";
    let project = Project::new(&[("a.py", &format!("def long(a):\n{long}\n\n{deep}"))]);
    let report = project.run("quality.review");
    assert_eq!(
        found(&report),
        ["`deep` has 5 levels of nesting @ a.py:84", "`long` has 80 lines of code @ a.py:1"]
    );
    assert!(finding(&report, "`deep`")["detail"].as_str().unwrap().contains("7 parameters"));
}

// covers: R6
#[test]
fn leftovers_are_found_and_what_is_used_is_not() {
    let project = Project::new(&[
        (
            "src/a.rs",
            "fn unused_thing() {}\nfn used() {}\npub fn open() { used(); }\n// FIXME: this is wrong\nimpl Drop for A {\n    fn drop(&mut self) {}\n}\n",
        ),
        ("src/b.go", "package b\nfunc onlyInTemplate() {}\nfunc alone() {}\n"),
        ("page.html", "<p>{{ onlyInTemplate }}</p>"),
        (
            "src/c.py",
            "def f():\n    wait(1847)\n\ndef g():\n    wait(1847)\n    wait(404)\n\ndef h():\n    wait(1847)\n    wait(404)\n    wait(404)\n",
        ),
    ]);
    let report = project.run("quality.review");
    assert_eq!(
        found(&report),
        [
            "1847 stands in 3 places without a name @ src/c.py:2",
            "FIXME in `src/a.rs` @ src/a.rs:4",
            "`alone` looks unused @ src/b.go:3",
            "`unused_thing` looks unused @ src/a.rs:1",
        ]
    );
}
