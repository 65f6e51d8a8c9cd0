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

/// `not ok 3 - adds up`; bats has no dash. One that is marked as unfinished has not failed.
fn tap(line: &str) -> Option<&str> {
    let (number, name) = line.trim_start().strip_prefix("not ok ")?.split_once(' ')?;
    number.parse::<usize>().ok().filter(|_| !is_aside(name))?;
    Some(name.trim_start_matches("- ").trim())
}

/// `# SKIP` and `# TODO` of TAP.
fn is_aside(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("# skip") || name.contains("# todo")
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

/// `Tests: 1 failed, 2 passed, 3 total`; `Tests  1 failed | 2 passed (3)`; `# tests 3` with `# fail 1`; plain TAP.
pub fn counts(lines: &[&str]) -> Option<Counts> {
    let mut found = Vec::new();
    // Files that could not even be loaded have no tests that failed.
    let mut suites = 0;
    for line in lines.iter().map(|line| line.trim_start()) {
        if let Some(rest) = after(line, &["Test Suites:", "Test Files  "]) {
            suites += number_before(rest, "failed").unwrap_or(0);
        } else if let Some(rest) = after(line, &["Tests:", "Tests  "]).filter(|rest| says_tests(rest)) {
            let failed = number_before(rest, "failed").unwrap_or(0).max(std::mem::take(&mut suites));
            found.push(Counts { ran: number_before(rest, "passed").unwrap_or(0) + failed, failed });
        } else if let Some(more) = mocha(line) {
            found.push(more);
        }
    }
    found.extend((suites > 0).then_some(Counts { ran: suites, failed: suites }));
    found.extend(node(lines).or_else(|| plain_tap(lines)));
    found.into_iter().reduce(Counts::plus)
}

/// Not PHPUnit's `Tests: 3, Assertions: 3` and not ScalaTest's `Tests: succeeded 3`.
fn says_tests(rest: &str) -> bool {
    let words = ["passed", "failed", "skipped", "todo", "pending", "total"];
    words.iter().any(|word| number_before(rest, word).is_some()) && !rest.contains("Assertions:")
}

fn after<'a>(line: &'a str, starts: &[&str]) -> Option<&'a str> {
    starts.iter().find_map(|start| line.strip_prefix(start))
}

/// The sums of `node --test`, one block for each time it ran. A file without tests counts as a test there.
fn node(lines: &[&str]) -> Option<Counts> {
    let (mut counts, mut aside): (Option<Counts>, usize) = (None, 0);
    for (at, line) in lines.iter().map(|line| line.trim_start()).enumerate() {
        // The tests of a file stand above it, further in.
        let is_empty = at == 0 || !lines[at - 1].starts_with("    ");
        aside += usize::from(is_empty && is_file(line));
        let Some(rest) = after(line, &["# ", "ℹ "]) else { continue };
        let number =
            |word: &str| rest.strip_prefix(word).and_then(|number| number.trim().parse::<usize>().ok());
        if let Some(ran) = number("tests ") {
            counts = Some(Counts { ran, failed: 0 }.plus(counts.unwrap_or_default()));
        } else if let (Some(failed), Some(counts)) =
            (number("fail ").or_else(|| number("cancelled ")), counts.as_mut())
        {
            counts.failed += failed;
        } else if let Some(skipped) = number("skipped ").or_else(|| number("todo ")) {
            aside += skipped;
        }
    }
    counts.map(|counts| Counts { ran: counts.ran.saturating_sub(aside).max(counts.failed), ..counts })
}

/// `ok 2 - /project/empty.test.js` or `✔ empty.test.js (35ms)`
fn is_file(line: &str) -> bool {
    let tap = line.strip_prefix("ok ").and_then(|rest| rest.split_once(" - ")).map(|(_, name)| name);
    let spec = line.strip_prefix("✔ ").map(|rest| rest.rsplit_once(" (").map_or(rest, |(name, _)| name));
    let ends = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"];
    tap.or(spec).is_some_and(|name| !name.contains(' ') && ends.iter().any(|end| name.ends_with(end)))
}

/// `1..2` with `ok 1 adds` and `not ok 2 sums`: bats, prove.
fn plain_tap(lines: &[&str]) -> Option<Counts> {
    let is_plan =
        |line: &&str| line.strip_prefix("1..").is_some_and(|count| count.trim().parse::<usize>().is_ok());
    lines.iter().any(is_plan).then_some(())?;
    let test = |line: &&str| {
        let (failed, rest) = match line.strip_prefix("not ok ") {
            Some(rest) => (1, rest),
            None => (0, line.strip_prefix("ok ")?),
        };
        let number = rest.split(' ').next().and_then(|number| number.parse::<usize>().ok());
        number.filter(|_| !is_aside(rest)).map(|_| Counts { ran: 1, failed })
    };
    Some(lines.iter().filter_map(test).fold(Counts::default(), Counts::plus))
}
