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
        "passing" | "pass" => Some(Counts::new(number, 0, 0)),
        "failing" | "fail" => Some(Counts::new(number, number, 0)),
        "pending" | "skip" if !rest.contains(' ') => Some(Counts::new(0, 0, number)),
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
            let of = |word: &str| number_before(rest, word).unwrap_or(0);
            let failed = of("failed").max(std::mem::take(&mut suites));
            let aside = of("skipped") + of("todo") + of("pending");
            found.push(Counts::new(of("passed") + failed, failed, aside));
        } else if let Some(more) = mocha(line) {
            found.push(more);
        }
    }
    found.extend((suites > 0).then_some(Counts::new(suites, suites, 0)));
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
    let (mut counts, mut empty): (Option<Counts>, usize) = (None, 0);
    for (at, line) in lines.iter().map(|line| line.trim_start()).enumerate() {
        // The tests of a file stand above it, further in.
        let is_empty = at == 0 || !lines[at - 1].starts_with("    ");
        empty += usize::from(is_empty && is_file(line));
        let Some(rest) = after(line, &["# ", "ℹ "]) else { continue };
        let number =
            |word: &str| rest.strip_prefix(word).and_then(|number| number.trim().parse::<usize>().ok());
        if let Some(ran) = number("tests ") {
            counts = Some(Counts::new(ran, 0, 0).plus(counts.unwrap_or_default()));
        } else if let (Some(failed), Some(counts)) =
            (number("fail ").or_else(|| number("cancelled ")), counts.as_mut())
        {
            counts.failed += failed;
        } else if let (Some(skipped), Some(counts)) =
            (number("skipped ").or_else(|| number("todo ")), counts.as_mut())
        {
            counts.aside += skipped;
        }
    }
    let ran = |counts: &Counts| counts.ran.saturating_sub(counts.aside + empty).max(counts.failed);
    counts.map(|counts| Counts { ran: ran(&counts), ..counts })
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
        rest.split(' ').next().and_then(|number| number.parse::<usize>().ok())?;
        Some(if is_aside(rest) { Counts::new(0, 0, 1) } else { Counts::new(1, failed, 0) })
    };
    Some(lines.iter().filter_map(test).fold(Counts::default(), Counts::plus))
}

/// Marks of a test that passed or failed, before its name.
const MARKS: &[&str] = &["✔ ", "✓ ", "√ ", "✖ ", "✕ ", "✗ ", "× "];

/// TAP's `ok 1 - adds up`; else `✔ adds up (1.2ms)` of node, mocha, jest and vitest, and mocha's `1) adds up`.
pub fn names<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let found: Vec<&str> = (0..lines.len()).filter_map(|at| tap_name(at, lines)).collect();
    if !found.is_empty() {
        return found;
    }
    // What failed is listed once more at the end.
    let again = |line: &&&str| line.trim() == "✖ failing tests:" || mocha(line.trim()).is_some();
    lines.iter().take_while(|line| !again(line)).filter_map(|line| marked(line)).collect()
}

fn tap_name<'a>(at: usize, lines: &[&'a str]) -> Option<&'a str> {
    let line = lines[at].trim_start();
    let rest = line.strip_prefix("not ok ").or_else(|| line.strip_prefix("ok "))?;
    let (number, name) = rest.split_once(' ')?;
    number.parse::<usize>().ok()?;
    // A suite is no test; what it is stands below it.
    let below =
        lines[at + 1..].iter().map(|line| line.trim()).take_while(|line| !line.is_empty() && *line != "...");
    let is_suite = below.take(TAP_FIELDS).any(|line| line == "type: 'suite'");
    (!is_suite && !is_aside(name) && !is_file(line)).then(|| name.trim_start_matches("- ").trim())
}

/// More lines than node writes below a test that passed.
const TAP_FIELDS: usize = 8;

fn marked(line: &str) -> Option<&str> {
    let line = line.trim();
    let numbered = || {
        let (number, name) = line.split_once(") ")?;
        number.parse::<usize>().ok().map(|_| name)
    };
    let name = MARKS.iter().find_map(|mark| line.strip_prefix(mark)).or_else(numbered)?;
    let name = name
        .rsplit_once(" (")
        .filter(|(_, time)| is_time(time.trim_end_matches(')')))
        .map_or(name, |it| it.0);
    let name = name.rsplit_once(' ').filter(|(_, time)| is_time(time)).map_or(name, |it| it.0);
    Some(name.rsplit(" > ").next().unwrap_or(name).trim())
}

/// `1.2ms`, `3 ms`, `1s`
fn is_time(text: &str) -> bool {
    let number = text.strip_suffix("ms").or_else(|| text.strip_suffix('s'));
    number.is_some_and(|number| number.trim_end().parse::<f64>().is_ok())
}
