//! `go test`.

use super::{Counts, Failure, Places};

pub fn failures(lines: &[&str], places: &Places) -> Vec<Failure> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = failed(line) else { continue };
        let inside = |line: &&&str| line.starts_with(' ') && failed(line).is_none();
        let said: Vec<&str> = lines[at + 1..].iter().take_while(inside).copied().collect();
        // Output of `-v` stands above the verdict.
        let above: Vec<&str> = lines[..at].iter().rev().take_while(inside).copied().collect();
        let said = if said.is_empty() { above.into_iter().rev().collect() } else { said };
        let package = lines[at..].iter().find_map(|line| line.strip_prefix("FAIL\t")?.split('\t').next());
        let evidence = said.iter().find_map(|line| place(line, package, places));
        let detail = said.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
        found.push(Failure { name: name.to_string(), detail, evidence: evidence.into_iter().collect() });
    }
    found
}

/// `--- FAIL: TestRefund/too_much (0.00s)`
fn failed(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("--- FAIL: ").map(|rest| rest.split(" (").next().unwrap_or(rest))
}

/// `cart_test.go:12: message`: the file's name only; its folder is the end of the package's path.
fn place(line: &str, package: Option<&str>, places: &Places) -> Option<String> {
    let (file, rest) = line.trim().split_once(':')?;
    let number = rest.split(':').next()?;
    let folders: Vec<&str> = package.unwrap_or_default().split('/').collect();
    let within = (0..folders.len()).map(|from| format!("{}/{file}", folders[from..].join("/")));
    within.chain([file.to_string()]).find_map(|path| places.of(&path, number))
}

/// `--- PASS` lines come with `-v` only, so packages are all that can be said otherwise: nothing.
pub fn counts(lines: &[&str]) -> Option<Counts> {
    let count = |start: &str| lines.iter().filter(|line| line.trim_start().starts_with(start)).count();
    let (passed, failed) =
        (count("--- PASS: ") + events(lines, "pass"), count("--- FAIL: ") + events(lines, "fail"));
    let aside = count("--- SKIP: ") + events(lines, "skip");
    if passed + failed > 0 {
        // Without `-v` only failures have a line: how many passed is not known.
        return (passed > 0).then_some(Counts::new(passed + failed, failed, aside));
    }
    if aside > 0 {
        return Some(Counts::new(0, 0, aside));
    }
    let tested = tested(lines) || lines.iter().any(|line| line.starts_with("FAIL"));
    let none = lines.iter().filter(|line| is_empty(line)).any(|line| line.starts_with(['?', 'o', '\t']));
    (none && !tested).then_some(Counts::default())
}

/// `--- PASS: TestTotal (0.00s)`: one for each of its parts, too.
pub fn names<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let name = |line: &&'a str| {
        let line = line.trim_start();
        let rest = line.strip_prefix("--- PASS: ").or_else(|| line.strip_prefix("--- FAIL: "))?;
        rest.split([' ', '/']).next()
    };
    lines.iter().filter_map(name).collect()
}

/// Packages whose tests passed or failed.
pub fn packages(lines: &[&str]) -> usize {
    let ended =
        |line: &&&str| line.starts_with("ok  \t") || line.starts_with("ok\t") || line.starts_with("FAIL\t");
    lines.iter().filter(|line| ended(line) && !is_empty(line)).count()
}

/// `go test -json`: `{"Action":"pass","Package":"x","Test":"TestA"}`
fn events(lines: &[&str], action: &str) -> usize {
    let action = format!("\"Action\":\"{action}\"");
    let is_it = |line: &&&str| line.starts_with('{') && line.contains(&action) && line.contains("\"Test\":");
    lines.iter().filter(is_it).count()
}

/// `ok      example.com/x    0.003s`: the tests of a package passed.
pub fn tested(lines: &[&str]) -> bool {
    lines.iter().any(|line| (line.starts_with("ok  \t") || line.starts_with("ok\t")) && !is_empty(line))
}

fn is_empty(line: &str) -> bool {
    line.contains("[no test files]") || line.contains("[no tests to run]")
}
