//! Compilers and linkers: the first error, because the others often follow from it.

/// `shop.c:5:24: error: ...`, `Shop.java:4: error: ...`, `a.ts(1,7): error TS2322: ...`, `./main.go:6:2: ...`
pub fn error(lines: &[&str]) -> Option<String> {
    let told = |line: &&&str| is_located(line) || is_go(line) || is_linker(line) || is_assertion(line);
    lines.iter().find(told).map(|line| line.trim().to_string())
}

/// A file and a number before the word `error`.
fn is_located(line: &str) -> bool {
    let words = [": error", ": fatal error", " - error"];
    let Some(place) = words.iter().find_map(|word| line.split_once(word)).map(|(place, _)| place) else {
        return false;
    };
    let file = place.split([':', '(']).next().unwrap_or_default();
    let numbered = place[file.len()..].bytes().any(|byte| byte.is_ascii_digit());
    numbered && !file.is_empty() && !file.contains(' ')
}

fn is_go(line: &str) -> bool {
    let Some((file, rest)) = line.split_once(".go:") else { return false };
    let number = rest.split(':').next().unwrap_or_default();
    !file.contains(' ') && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_linker(line: &str) -> bool {
    line.contains("undefined reference to ") || line.contains("ld: symbol(s) not found")
}

/// `assert` of C.
fn is_assertion(line: &str) -> bool {
    line.contains(": Assertion `") && line.ends_with("failed.")
}
