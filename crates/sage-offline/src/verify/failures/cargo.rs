//! `cargo test`, `cargo nextest` and errors of rustc.

use super::{Counts, Failure, Places, number_before};

pub fn failures(lines: &[&str], places: &Places) -> Vec<Failure> {
    let mut found = compiler(lines, places);
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = failed_test(line) {
            found.push(test(name, at, lines, places));
        }
    }
    found
}

fn failed_test(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("test ") {
        return rest.strip_suffix(" ... FAILED").map(|name| name.split(" - ").next().unwrap_or(name));
    }
    // `        FAIL [   0.005s] (1/3) shop payments::tests::refunds`
    let rest = line.strip_prefix("FAIL [")?;
    let name = rest.split_whitespace().last()?;
    rest.contains("s]").then_some(name)
}

/// What the test printed: the panic and its place.
fn test(name: &str, seen: usize, lines: &[&str], places: &Places) -> Failure {
    let heading = format!("---- {name} stdout ----");
    let start = lines.iter().position(|line| line.trim() == heading).unwrap_or(seen);
    let said: Vec<&str> =
        lines[start + 1..].iter().take_while(|line| !line.starts_with("---- ")).copied().collect();
    let panicked = said.iter().position(|line| line.contains("panicked at "));
    let Some(at) = panicked else { return Failure { name: name.to_string(), ..Failure::default() } };
    let place =
        said[at].split("panicked at ").nth(1).and_then(|place| places.first_in(place.trim_end_matches(':')));
    let message =
        said[at + 1..].iter().take_while(|line| !line.trim().is_empty() && !line.starts_with("note: "));
    let detail = message.copied().collect::<Vec<_>>().join("\n");
    Failure { name: name.to_string(), detail, evidence: place.into_iter().collect() }
}

/// `error[E0425]: ...` with ` --> src/lib.rs:3:5` below it.
fn compiler(lines: &[&str], places: &Places) -> Vec<Failure> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let error = line.starts_with("error[") || line.starts_with("error: ");
        let arrow = lines.get(at + 1).and_then(|next| next.trim().strip_prefix("--> "));
        if let Some(arrow) = arrow.filter(|_| error) {
            let evidence = places.first_in(arrow).into_iter().collect();
            found.push(Failure { name: line.to_string(), detail: arrow.to_string(), evidence });
        }
    }
    found
}

/// `test result: FAILED. 3 passed; 1 failed; ...` of each binary; nextest's `Summary`.
pub fn counts(lines: &[&str]) -> Option<Counts> {
    let count = |line: &&str| {
        let line = line.trim();
        let nextest = line.starts_with("Summary [") && line.contains(" run: ");
        (line.starts_with("test result: ") || nextest).then(|| {
            let of = |word: &str| number_before(line, word).unwrap_or(0);
            let timed_out =
                line.split_once(" timed out").and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok());
            let failed = of("failed") + timed_out.unwrap_or(0);
            Counts::new(
                of("passed") + failed,
                failed,
                of("ignored") + if nextest { of("skipped") } else { 0 },
            )
        })
    };
    lines.iter().filter_map(count).reduce(Counts::plus)
}

/// `test cart::tests::adds ... ok`, and nextest's `PASS [   0.005s] (1/3) shop cart::tests::adds`.
pub fn names<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let told = lines.iter().map(|line| line.trim()).take_while(|line| !line.starts_with("Summary ["));
    told.filter_map(name).collect()
}

fn name(line: &str) -> Option<&str> {
    let name = match line.strip_prefix("test ") {
        Some(rest) => {
            let name = rest.strip_suffix(" ... ok").or_else(|| rest.strip_suffix(" ... FAILED"))?;
            // A test of the documentation moves with its line.
            name.split(" (line ").next().unwrap_or(name)
        }
        None => {
            let rest = line.strip_prefix("PASS [").or_else(|| line.strip_prefix("FAIL ["))?;
            rest.contains("s]").then(|| rest.split_whitespace().last())??
        }
    };
    Some(if name.contains(".rs - ") { name } else { name.rsplit("::").next().unwrap_or(name) })
}
