//! Reports of tests: JUnit's XML, and pytest's list of what failed last.

use serde_json::Value;

use super::trace::{Frame, Trace, traces};

/// The failed cases of a JUnit report. The line is that of the case.
pub(super) fn junit(text: &str) -> Vec<Trace> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("<testcase").map(|start| at + start) {
        let next = text[start + 9..].find("<testcase").map_or(text.len(), |next| start + 9 + next);
        found.extend(case(&text[start..next]).map(|mut trace| {
            trace.line = text[..start].matches('\n').count();
            trace
        }));
        at = next;
    }
    found
}

fn case(text: &str) -> Option<Trace> {
    let (_, failure) = text.split_once("<failure").or_else(|| text.split_once("<error"))?;
    let head = text.split('>').next().unwrap_or(text);
    let (tag, rest) = failure.split_once('>')?;
    let body = rest.split("</failure>").next().unwrap_or(rest).split("</error>").next().unwrap_or(rest);
    let body = if tag.ends_with('/') { String::new() } else { unescaped(body.trim()) };
    let name = attribute(head, "name").unwrap_or_default();
    let inner = traces(&body).into_iter().max_by_key(|trace| trace.frames.len());
    let first = || body.lines().next().unwrap_or("failed").to_string();
    let message = attribute(tag, "message").or_else(|| inner.as_ref().map(|trace| trace.message.clone()));
    let mut frames = inner.map(|trace| trace.frames).unwrap_or_default();
    if let Some(path) = attribute(head, "file") {
        let line = attribute(head, "line").and_then(|line| line.parse().ok()).unwrap_or(0);
        frames.push(Frame::new(&path, line, &name));
    }
    let message = format!("{name}: {}", message.unwrap_or_else(first).replace('\n', " "));
    Some(Trace { sort: "failed test", message, frames, line: 0 })
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, after) = tag.split_once(&format!(" {name}=\""))?;
    after.split_once('"').map(|(value, _)| unescaped(value))
}

fn unescaped(text: &str) -> String {
    let text = text.trim_start_matches("<![CDATA[").trim_end_matches("]]>");
    let pairs =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#10;", "\n"), ("&amp;", "&")];
    pairs.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to))
}

/// `{"tests/test_pay.py::test_pay": true}`
pub(super) fn last_failed(text: &str) -> Vec<Trace> {
    let Ok(Value::Object(tests)) = serde_json::from_str(text) else { return Vec::new() };
    let told = |test: &String| {
        let (path, name) = test.split_once("::").unwrap_or((test, ""));
        let message = format!("{}: failed when pytest last ran", if name.is_empty() { path } else { name });
        let line = text.lines().position(|line| line.contains(test.as_str())).unwrap_or(0);
        Trace { sort: "failed test", message, frames: vec![Frame::new(path, 0, name)], line }
    };
    tests.keys().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R6
    #[test]
    fn failures_of_junit_with_their_traces() {
        let text = "<testsuite>\n<testcase name=\"good\" classname=\"A\"/>\n<testcase classname=\"com.shop.PayTest\" \
                    name=\"pays\"><failure message=\"expected &lt;1&gt;\" type=\"X\">java.lang.AssertionError: expected\n\
                    \tat com.shop.PayTest.pays(PayTest.java:9)\n</failure></testcase>\n<testcase name=\"b\"><error \
                    message=\"gone\"/></testcase>\n</testsuite>";
        let found = junit(text);
        let told: Vec<(usize, &str, usize)> =
            found.iter().map(|trace| (trace.line, trace.message.as_str(), trace.frames.len())).collect();
        assert_eq!(told, [(2, "pays: expected <1>", 1), (5, "b: gone", 0)]);
        assert_eq!(found[0].frames[0], Frame::new("com/shop/PayTest.java", 9, "com.shop.PayTest.pays"));
        assert_eq!(junit("not xml <testcase"), []);
    }

    // covers: R6
    #[test]
    fn what_pytest_remembers() {
        let found = last_failed("{\n  \"tests/test_a.py::test_x[1]\": true\n}");
        assert_eq!(found[0].message, "test_x[1]: failed when pytest last ran");
        assert_eq!(
            (found[0].line, &found[0].frames),
            (1, &vec![Frame::new("tests/test_a.py", 0, "test_x[1]")])
        );
        assert_eq!(last_failed("{}"), []);
    }
}
