//! jest, vitest and `node --test`.

use super::{Counts, Failure, Places, number_before};

pub fn failures(lines: &[&str], places: &Places) -> Vec<Failure> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) =
            jest(line).or_else(|| vitest(line)).or_else(|| tap(line)).or_else(|| spec(at, lines))
        else {
            continue;
        };
        let ends = |line: &str| jest(line).is_some() || vitest(line).is_some() || tap(line).is_some();
        let said: Vec<&str> =
            lines[at + 1..].iter().take(80).copied().take_while(|line| !ends(line)).collect();
        let (detail, evidence) = (message(&said), place(&said, places));
        found.push(Failure { name: name.to_string(), detail, evidence });
    }
    found
}

/// `  ● Cart › adds up`
fn jest(line: &str) -> Option<&str> {
    let name = line.strip_prefix("  ● ")?;
    (!name.starts_with("Console")).then_some(name.trim())
}

/// ` FAIL  src/cart.test.ts > Cart > adds up`
fn vitest(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("FAIL  ").filter(|rest| rest.contains(" > ")).map(str::trim)
}

/// `not ok 3 - adds up`
fn tap(line: &str) -> Option<&str> {
    let (number, name) = line.trim_start().strip_prefix("not ok ")?.split_once(" - ")?;
    number.parse::<usize>().ok().map(|_| name.trim())
}

/// `✖ adds up (1.2ms)` with what went wrong below; the list of files at the end has none.
fn spec<'a>(at: usize, lines: &[&'a str]) -> Option<&'a str> {
    let name = lines[at].trim_start().strip_prefix("✖ ")?;
    let below = lines.get(at + 1)?.trim_start();
    let told = ["AssertionError", "Error", "TypeError", "ReferenceError", "'test", "["];
    told.iter().any(|start| below.starts_with(start)).then_some(())?;
    Some(name.rsplit_once(" (").map_or(name, |(name, _)| name))
}

/// The first line that names an error, and what follows it up to the first place.
fn message(said: &[&str]) -> String {
    let tells = |line: &&&str| {
        let line = line.trim_start();
        line.contains("Error") || line.starts_with("expect(") || line.starts_with("error: ")
    };
    let start = said.iter().position(|line| tells(&line)).unwrap_or(0);
    let stack = |line: &str| line.trim_start().starts_with("at ") || line.trim_start().starts_with('❯');
    // TAP goes on with fields of its own.
    let ends = |line: &str| stack(line) || line.trim_start().starts_with("code: ");
    let told = |line: &&&str| !line.trim().is_empty() && line.trim() != "error: |-";
    let lines = said[start..].iter().take_while(|line| !ends(line)).filter(told);
    lines.take(8).map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}

/// A frame of the stack in the project, or TAP's `location`.
fn place(said: &[&str], places: &Places) -> Vec<String> {
    let frame = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with("at ") || line.starts_with('❯') || line.starts_with("location: ")
    };
    let place = said.iter().filter(frame).find_map(|line| places.first_in(line));
    place.into_iter().collect()
}

/// `3 passing (5ms)` and `1 failing`; bun says `3 pass` and `0 fail`.
fn mocha(line: &str) -> Option<Counts> {
    let (number, rest) = line.split_once(' ')?;
    let number = number.parse().ok()?;
    match rest.split(' ').next()? {
        "passing" | "pass" => Some(Counts { ran: number, failed: 0 }),
        "failing" | "fail" => Some(Counts { ran: number, failed: number }),
        _ => None,
    }
}

/// `Tests: 1 failed, 2 passed, 3 total`; `Tests  1 failed | 2 passed (3)`; `# tests 3` with `# fail 1`.
pub fn counts(lines: &[&str]) -> Option<Counts> {
    let mut counts: Option<Counts> = None;
    for line in lines {
        let line = line.trim_start();
        let summary = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests  "));
        if let Some(rest) = summary {
            let failed = number_before(rest, "failed").unwrap_or(0);
            counts = Some(Counts { ran: number_before(rest, "passed").unwrap_or(0) + failed, failed });
            continue;
        }
        if let Some(more) = mocha(line) {
            let known = counts.unwrap_or_default();
            counts = Some(Counts { ran: known.ran + more.ran, failed: known.failed + more.failed });
            continue;
        }
        let Some(rest) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) else { continue };
        let number = |word: &str| rest.strip_prefix(word).and_then(|number| number.trim().parse().ok());
        if let Some(ran) = number("tests ") {
            counts = Some(Counts { ran, failed: 0 });
        } else if let (Some(failed), Some(counts)) = (number("fail "), counts.as_mut()) {
            counts.failed = failed;
        } else if let (Some(skipped), Some(counts)) = (number("skipped "), counts.as_mut()) {
            counts.ran = counts.ran.saturating_sub(skipped);
        }
    }
    counts
}
