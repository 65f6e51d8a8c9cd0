//! What is slow by its form, and what only looks like it.

use super::{Project, finding, found};

// covers: R6
#[test]
fn loops_that_grow_with_the_square_are_found() {
    let project = Project::new(&[
        (
            "a.py",
            "def match(users, orders):\n    for user in users:\n        for order in orders:\n            compare(user, order)\n\n\ndef fine(groups):\n    for group in groups:\n        members = group.members\n        for member in members:\n            greet(member)\n        for kind in ('a', 'b'):\n            greet(kind)\n",
        ),
        (
            "b.ts",
            "export function pairs(a: number[], b: number[]) {\n  for (const x of a) {\n    for (const y of b) { use(x, y); }\n  }\n}\n",
        ),
        (
            "c.go",
            "package c\nfunc Pairs(a, b []int) {\n\tfor _, x := range a {\n\t\tfor _, y := range b {\n\t\t\tuse(x, y)\n\t\t}\n\t\tfor _, z := range x.Items {\n\t\t\tuse(z)\n\t\t}\n\t}\n}\n",
        ),
    ]);
    let report = project.run("performance.profile");
    assert_eq!(
        found(&report),
        [
            "Nested loops over independent data in `Pairs` @ c.go:4",
            "Nested loops over independent data in `match` @ a.py:3",
            "Nested loops over independent data in `pairs` @ b.ts:3",
        ]
    );
    assert!(report["method"].as_str().unwrap().contains("not a profile"));
}

// covers: R6
#[test]
fn work_that_is_repeated_in_loops_is_found() {
    let project = Project::new(&[
        (
            "a.rs",
            "fn f(lines: &[String]) {\n    let mut seen = Vec::new();\n    for line in lines {\n        let pattern = Regex::new(\"a+\").unwrap();\n        if !seen.contains(&line) {\n            seen.push(line);\n        }\n    }\n}\n",
        ),
        (
            "b.py",
            "def g(ids, db, known=None):\n    text = ''\n    seen = []\n    for id in ids:\n        row = db.execute('select', id)\n        text += row\n        if id in seen:\n            seen.pop(0)\n        if id in known:\n            continue\n",
        ),
        (
            "C.java",
            "class C {\n    String join(List<String> parts) {\n        String text = \"\";\n        for (String part : parts) {\n            text += part;\n        }\n        return text;\n    }\n}\n",
        ),
        (
            "d.ts",
            "async function h(ids: string[]) {\n  for (const id of ids) {\n    await fetch(`/item/${id}`);\n  }\n}\n",
        ),
        ("benches/speed.rs", "fn main() {}\n"),
    ]);
    let report = project.run("audit.performance");
    assert_eq!(
        found(&report),
        [
            "1 benchmark file to measure with @ benches/speed.rs",
            "Insert or remove at the front in a loop in `g` @ b.py:8",
            "One await after the other in a loop in `h` @ d.ts:3",
            "Pattern compiled in a loop in `f` @ a.rs:4",
            "Query in a loop in `g` @ b.py:5",
            "Request in a loop in `h` @ d.ts:3",
            "Search through a list in a loop in `f` @ a.rs:5",
            "Search through a list in a loop in `g` @ b.py:7",
            "String built by joining in a loop in `C.join` @ C.java:5",
            "String built by joining in a loop in `g` @ b.py:6",
        ]
    );
    assert!(finding(&report, "Query in a loop")["detail"].as_str().unwrap().contains("N+1"));
}

// covers: R6
#[test]
fn blocking_calls_in_async_functions_are_found_unless_they_are_moved() {
    let project = Project::new(&[
        (
            "a.rs",
            "async fn bad() {\n    std::thread::sleep(TIME);\n}\nasync fn good() {\n    spawn_blocking(|| std::fs::read(path)).await;\n    tokio::fs::read(path).await;\n}\nfn plain() {\n    std::thread::sleep(TIME);\n}\n",
        ),
        ("b.py", "async def bad():\n    time.sleep(1)\n"),
    ]);
    let report = project.run("performance.profile");
    assert_eq!(
        found(&report),
        [
            "Blocking call in an async function in `bad` @ a.rs:2",
            "Blocking call in an async function in `bad` @ b.py:2",
        ]
    );
}
