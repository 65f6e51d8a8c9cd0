//! RSpec and PHPUnit.

use super::{Counts, Failure, Places, number_before};

/// `rspec ./spec/cart_spec.rb:12 # Cart adds up`, and `1) CartTest::testTotal` of PHPUnit.
pub fn failures(lines: &[&str], places: &Places) -> Vec<Failure> {
    let rspec = lines.iter().filter_map(|line| {
        let (place, name) = line.strip_prefix("rspec ")?.split_once(" # ")?;
        let evidence = places.first_in(place.trim_start_matches("./")).into_iter().collect();
        Some(Failure { name: name.trim().to_string(), detail: String::new(), evidence })
    });
    let phpunit = lines.iter().enumerate().filter_map(|(at, line)| {
        let (number, name) = line.split_once(") ")?;
        number.parse::<usize>().ok().filter(|_| name.contains("::") && !name.contains(' '))?;
        let detail = lines.get(at + 1).copied().unwrap_or_default().to_string();
        Some(Failure { name: name.to_string(), detail, evidence: Vec::new() })
    });
    // Skipped tests are listed in the same way.
    let has_failed = counts(lines).is_some_and(|counts| counts.failed > 0);
    rspec.chain(phpunit.filter(|_| has_failed)).collect()
}

/// `3 examples, 1 failure, 1 pending`; `Tests: 3, Assertions: 3, Failures: 1.` and `OK (3 tests, 3 assertions)`.
pub fn counts(lines: &[&str]) -> Option<Counts> {
    lines.iter().filter_map(|line| rspec(line).or_else(|| phpunit(line))).reduce(Counts::plus)
}

fn rspec(line: &str) -> Option<Counts> {
    let (number, rest) = line.split_once(" example")?;
    let all: usize = number.trim().parse().ok()?;
    let of = |words: [&str; 2]| words.iter().find_map(|word| number_before(rest, word)).unwrap_or(0);
    rest.contains(" failure").then_some(())?;
    let failed = of(["failure", "failures"]) + of(["error", "errors"]);
    let aside = of(["pending", "pending"]);
    Some(Counts::new(all.saturating_sub(aside).max(failed), failed, aside))
}

fn phpunit(line: &str) -> Option<Counts> {
    if let Some(rest) = line.strip_prefix("OK (").filter(|rest| rest.contains(" assertion")) {
        return Some(Counts::new(rest.split(' ').next()?.parse().ok()?, 0, 0));
    }
    line.starts_with("Tests: ").then_some(())?;
    let of = |name: &str| {
        let part = line
            .trim_end_matches('.')
            .split(", ")
            .find_map(|part| part.strip_prefix(name)?.strip_prefix(": "));
        part.and_then(|number| number.parse::<usize>().ok())
    };
    of("Assertions")?;
    let sum = |names: &[&str]| names.iter().filter_map(|name| of(name)).sum::<usize>();
    let (failed, aside) = (sum(&["Failures", "Errors"]), sum(&["Skipped", "Incomplete"]));
    Some(Counts::new(of("Tests")?.saturating_sub(aside).max(failed), failed, aside))
}
