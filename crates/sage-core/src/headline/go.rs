//! Tests and panics of Go; its compiler is among the others.

use super::named;

/// `TestTwo: shop_test.go:7: Total = 2, want 3`
pub fn test(lines: &[&str]) -> Option<String> {
    let failed = |line: &str| line.trim().strip_prefix("--- FAIL: ").map(str::to_string);
    let mut at = lines.iter().position(|line| failed(line).is_some())?;
    // A subtest says more than the test around it.
    while lines.get(at + 1).is_some_and(|line| failed(line).is_some()) {
        at += 1;
    }
    let name = failed(lines[at])?;
    let message = lines.get(at + 1).filter(|line| line.starts_with(' ') || line.starts_with("panic: "));
    Some(named(name.split(" (").next().unwrap_or(&name), message.copied().unwrap_or_default()))
}

pub fn panic(lines: &[&str]) -> Option<String> {
    lines.iter().find(|line| line.starts_with("goroutine "))?;
    let panic = |line: &&&str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    lines.iter().find(panic).map(|line| line.to_string())
}
