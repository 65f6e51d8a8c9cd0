//! `pytest` and `unittest`.

use super::{Counts, Failure, Places};

pub fn failures(lines: &[&str], places: &Places) -> Vec<Failure> {
    let mut found = unittest(lines, places);
    let pytest = lines.iter().filter_map(|line| {
        let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
        let (name, detail) = rest.split_once(" - ").unwrap_or((rest, ""));
        let path = name.split("::").next()?;
        // `ERROR - text` and log lines are not tests.
        path.ends_with(".py").then_some(())?;
        let evidence = place_of(lines, path, name, places);
        Some(Failure { name: name.trim().to_string(), detail: detail.to_string(), evidence })
    });
    found.extend(pytest);
    found
}

/// `tests/test_x.py:12: AssertionError` stands below the heading with the test's name.
fn place_of(lines: &[&str], path: &str, name: &str, places: &Places) -> Vec<String> {
    let short = name.split("::").skip(1).collect::<Vec<_>>().join(".");
    let is_heading = |line: &&str| line.starts_with("____") && line.trim_matches(['_', ' ']) == short;
    let start = lines.iter().position(is_heading).map_or(0, |at| at + 1);
    let section = lines[start..].iter().take_while(|line| !line.starts_with("____"));
    let place = section.filter(|line| line.starts_with(path)).find_map(|line| places.first_in(line));
    place.into_iter().collect()
}

/// `FAIL: test_a (tests.test_shop.CartTest.test_a)`, a ruler, and a traceback whose last line says what.
fn unittest(lines: &[&str], places: &Places) -> Vec<Failure> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) else {
            continue;
        };
        let Some((test, home)) =
            rest.split_once(" (").filter(|_| at > 0 && lines[at - 1].starts_with("===="))
        else {
            continue;
        };
        let home = home.split(')').next().unwrap_or_default();
        let whole = home.ends_with(&format!(".{test}")) || home == test;
        let name = if whole { home.to_string() } else { format!("{home}.{test}") };
        let rules = |line: &str| line.starts_with("====") || line.starts_with("Ran ");
        let trace: Vec<&str> = lines[at + 1..].iter().copied().take_while(|line| !rules(line)).collect();
        found.push(Failure { name, detail: message(&trace), evidence: last_place(&trace, places) });
    }
    found
}

/// The lines after the last one of the traceback itself.
fn message(trace: &[&str]) -> String {
    let inside = |line: &&str| line.starts_with("  ") || line.starts_with("Traceback");
    let start = trace.iter().rposition(inside).map_or(0, |at| at + 1);
    let said = trace[start..].iter().take_while(|line| !line.starts_with("----"));
    said.filter(|line| !line.trim().is_empty()).copied().collect::<Vec<_>>().join("\n")
}

fn last_place(trace: &[&str], places: &Places) -> Vec<String> {
    let place = |line: &&str| {
        let (path, rest) = line.trim().strip_prefix("File \"")?.split_once("\", line ")?;
        places.of(path, rest.split(',').next()?)
    };
    trace.iter().filter_map(place).next_back().into_iter().collect()
}

/// Of `skipped=3, expected failures=1)`: tests that did not pass.
fn aside(facts: &str) -> usize {
    of_facts(facts, &["skipped=", "expected failures="])
}

fn of_facts(facts: &str, names: &[&str]) -> usize {
    let parts = facts.trim_end_matches(')').split(", ");
    parts
        .filter_map(|part| names.iter().find_map(|name| part.strip_prefix(name)?.parse::<usize>().ok()))
        .sum()
}

/// `Ran 10 tests in 0.1s` and `FAILED (failures=1, errors=2)`; pytest's last line.
pub fn counts(lines: &[&str]) -> Option<Counts> {
    let mut counts: Option<Counts> = None;
    for line in lines {
        if let Some(ran) = line.strip_prefix("Ran ").filter(|rest| rest.contains(" test")) {
            let ran = ran.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
            counts = Some(Counts::new(ran, 0, 0).plus(counts.unwrap_or_default()));
        } else if let (Some(rest), Some(counts)) =
            (line.strip_prefix("OK (").or_else(|| line.strip_prefix("FAILED (")), counts.as_mut())
        {
            let aside = aside(rest);
            counts.ran = counts.ran.saturating_sub(aside);
            counts.aside += aside;
            counts.failed += of_facts(rest, &["failures=", "errors=", "unexpected successes="]);
        } else if let Some(more) = pytest(line) {
            counts = Some(more.plus(counts.unwrap_or_default()));
        }
    }
    counts.or_else(|| lines.iter().filter_map(|line| dots(line)).reduce(Counts::plus))
}

/// `..s.F                  [100%]`: with `-qq` that is all that pytest prints.
fn dots(line: &str) -> Option<Counts> {
    let (signs, rest) = line.trim_end().split_once(char::is_whitespace)?;
    let percent = rest.trim().strip_prefix('[')?.strip_suffix("%]")?;
    percent.trim().parse::<u8>().ok().filter(|_| signs.chars().all(|sign| ".sxXFE".contains(sign)))?;
    let count = |wanted: &str| signs.chars().filter(|sign| wanted.contains(*sign)).count();
    let failed = count("FE");
    Some(Counts::new(count(".") + failed, failed, count("sxX")))
}

/// `=== 1 failed, 2 passed in 0.12s ===`, with `-q` without the rulers.
fn pytest(line: &str) -> Option<Counts> {
    let (facts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    time.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    if facts == "no tests ran" {
        return Some(Counts::default());
    }
    let (mut ran, mut failed, mut aside) = (0, 0, 0);
    for fact in facts.split(", ") {
        let (number, word) = fact.split_once(' ')?;
        let number: usize = number.parse().ok()?;
        match word {
            "passed" => ran += number,
            "failed" => (ran, failed) = (ran + number, failed + number),
            // A test that passed may have one as well, after its end.
            "error" | "errors" | "subtests failed" => failed += number,
            "subtests passed" | "subtests skipped" => {}
            "skipped" | "deselected" | "xfailed" | "xpassed" => aside += number,
            "warning" | "warnings" | "rerun" => {}
            _ => return None,
        }
    }
    Some(Counts::new(ran, failed, aside))
}

/// `PASSED tests/test_cart.py::CartTest::test_total[1]` of `pytest -rp`, and what `unittest -v` prints.
pub fn names<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let pytest = |line: &&'a str| {
        let rest = line.strip_prefix("PASSED ").or_else(|| line.strip_prefix("FAILED "))?;
        let test = rest.split(" - ").next().unwrap_or(rest);
        let (_, name) = test.split('[').next().unwrap_or(test).rsplit_once("::")?;
        Some(name.trim())
    };
    let mut found: Vec<&str> = lines.iter().filter_map(pytest).collect();
    for (at, line) in lines.iter().enumerate() {
        let Some((name, rest)) = begun(line) else { continue };
        // Its description stands on a line of its own.
        let ended = if rest.is_empty() { lines.get(at + 1).copied().unwrap_or_default() } else { rest };
        let aside = [" ... skipped", " ... expected failure"].iter().any(|end| ended.contains(end));
        found.extend((!aside).then_some(name));
    }
    found
}

/// `test_total (test_cart.CartTest.test_total) ... ok`
fn begun(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(" (")?;
    let (home, rest) = rest.split_once(')')?;
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let plain = is_word(name) && home.contains('.') && home.split('.').all(is_word);
    (plain && (rest.is_empty() || rest.starts_with(" ..."))).then_some((name, rest))
}
