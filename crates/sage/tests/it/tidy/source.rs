//! A source file, split into code, comments and strings: as much Rust as the rules need, and no more.

/// One file. `code` has the same lines as `text`, with comments and the insides of strings blanked out.
#[derive(Debug)]
pub struct Source {
    pub path: String,
    pub text: String,
    code: String,
    /// Lines that are compiled for tests only.
    tests: Vec<bool>,
    /// Strings and doc comments, with the line on which they start.
    told: Vec<(usize, String)>,
}

#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

impl Source {
    pub fn new(path: String, text: String) -> Source {
        let Blanked { code, told } = blank(&text);
        let tests = test_lines(&code);
        Source { path, text, code, tests, told }
    }

    /// A file of tests: `tests.rs`, in a folder `tests`, or a program that only tests start.
    pub fn is_test(&self) -> bool {
        let ending = self.path.ends_with("/tests.rs") || self.path.ends_with("-test.rs");
        ending || self.path.contains("/tests/")
    }

    pub fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Without the lines of tests.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code_lines().filter(|(number, _)| !self.tests[number - 1])
    }

    /// What a person may get to read: strings and doc comments outside of tests.
    pub fn told(&self) -> impl Iterator<Item = (usize, &str)> {
        let told = self.told.iter().filter(|(number, _)| !self.tests[number - 1]);
        told.map(|(number, text)| (*number, text.as_str()))
    }

    /// Every function with a body that is not a test.
    pub fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        let mut from = 0;
        while let Some(at) = self.code[from..].find("fn ").map(|found| from + found) {
            from = at + 3;
            let line = line_of(&self.code, at);
            let starts_word = self.code[..at].chars().next_back().is_none_or(|c| !is_word(c));
            if !starts_word || self.tests[line - 1] {
                continue;
            }
            let rest = &self.code[from..];
            let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
            if let Some(end) = body_end(rest).filter(|_| !name.is_empty()) {
                let lines = self.code[at..from + end].lines().count();
                functions.push(Function { name, line, lines });
            }
        }
        functions
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Where the item's body ends, counted from the start of `code`; `None` for an item that ends with `;`.
fn body_end(code: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut brackets = 0usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '{' => depth += 1,
            '}' if depth <= 1 => return (depth == 1).then_some(at + 1),
            '}' => depth -= 1,
            ';' if depth == 0 && brackets == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The lines of items under `#[cfg(test)]` and of functions under `#[test]`.
fn test_lines(code: &str) -> Vec<bool> {
    let mut tests = vec![false; code.lines().count()];
    for mark in ["#[cfg(test)]", "#[cfg(all(test", "#[test]"] {
        for (at, _) in code.match_indices(mark) {
            let rest = &code[at..];
            let end = match (body_end(rest), rest.find(';')) {
                (Some(end), _) => end,
                (None, Some(end)) => end,
                (None, None) => rest.len(),
            };
            let (first, last) = (line_of(code, at), line_of(code, at + end.min(rest.len() - 1)));
            tests[first - 1..last].fill(true);
        }
    }
    tests
}

#[derive(Debug, Default)]
struct Blanked {
    code: String,
    told: Vec<(usize, String)>,
}

/// Blanks comments and the insides of strings and characters; line breaks stay.
fn blank(text: &str) -> Blanked {
    let mut out = Blanked::default();
    let mut rest = text;
    let mut line = 1;
    while let Some(c) = rest.chars().next() {
        let before = out.code.chars().next_back();
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            out.tell(line, rest[..length].strip_prefix("///"));
            out.blanks(&rest[..length]);
            length
        } else if rest.starts_with("/*") {
            let length = block_comment(rest);
            out.blanks(&rest[..length]);
            length
        } else if let Some((open, close)) =
            raw_string(rest).filter(|_| before.is_none_or(|c| !is_word(c) || c == 'b'))
        {
            out.string(line, rest, open, close)
        } else if c == '"' {
            out.string(line, rest, 1, string_end(rest))
        } else if let Some(length) = character(rest) {
            out.blanks(&rest[..length]);
            length
        } else {
            out.code.push(c);
            c.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    out
}

impl Blanked {
    fn blanks(&mut self, text: &str) {
        self.code.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
    }

    fn tell(&mut self, line: usize, text: Option<&str>) {
        self.told.extend(text.map(|text| (line, text.to_owned())));
    }

    /// Keeps the quotes, so that a call with a literal still looks like one.
    fn string(&mut self, line: usize, text: &str, open: usize, close: usize) -> usize {
        self.tell(line, Some(&text[open..close]));
        self.code.push('"');
        self.blanks(&text[open..close]);
        self.code.push('"');
        // The closing quote and, of a raw string, as many `#` as it began with.
        let hashes = text[..open].matches('#').count();
        (close + 1 + hashes).min(text.len())
    }
}

/// Where the inside of a plain string ends.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// Where the inside of `r"..."` or `r#"..."#` begins and ends.
fn raw_string(text: &str) -> Option<(usize, usize)> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].strip_prefix('"')?;
    let open = 1 + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some((open, text[open..].find(&end).map_or(text.len(), |at| open + at)))
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a character literal; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    if first == '\\' {
        let end = inner.char_indices().skip(2).find(|(_, c)| *c == '\'')?.0;
        return Some(1 + end + 1);
    }
    let after = first.len_utf8();
    inner[after..].starts_with('\'').then_some(1 + after + 1)
}

#[cfg(test)]
mod tests {
    use super::Source;

    fn source(text: &str) -> Source {
        Source::new("x.rs".into(), text.into())
    }

    #[test]
    fn strings_comments_and_characters_are_no_code() {
        let text = "let a = \"fn b() {\"; // fn c() {\nlet d = r#\"}\"{\"#; let e = '{'; /* { /* } */ */ let f: &'static str = \"\\\"\";\n";
        let found = source(text);
        assert!(!found.code.contains(['{', '}']), "{}", found.code);
        assert!(found.code.contains("&'static str"));
        assert_eq!(found.code.lines().count(), 2);
    }

    #[test]
    fn functions_are_measured_and_tests_are_not() {
        let text = "fn a(\n  x: [u8; 3],\n) {\n  if x { }\n}\ntrait T { fn b(); }\n#[cfg(test)]\nmod tests {\n  fn c() {}\n}\nfn d() {}\n";
        let found = source(text);
        let names: Vec<_> = found.functions().into_iter().map(|f| (f.name, f.line, f.lines)).collect();
        assert_eq!(names, [("a".into(), 1, 5), ("d".into(), 11, 1)]);
        assert_eq!(found.product_lines().count(), 7);
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_is_one_line() {
        let found = source("#[cfg(test)]\nmod tests;\nfn a() {}\n");
        assert_eq!(found.functions().len(), 1);
    }
}
