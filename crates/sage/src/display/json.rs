//! One JSON object a line: every event of the journal, and what the fold derives from it (P11).

use sage_core::run::{Output, Run};
use sage_core::wire::{Summary, rfc3339, told};
use serde_json::{Value, json};

use super::tail::News;

/// The event itself, then what monitors are told of it.
pub(crate) fn tell(news: &News<'_>, out: &mut String) {
    if news.silent {
        return;
    }
    let mut lines = String::new();
    push(&mut lines, news, news.record.kind, news.record.data);
    for told in told(news.event, news.run) {
        push(&mut lines, news, told.kind, &told.fields.to_string());
    }
    out.push_str(&crate::say::json(&lines));
}

/// `{"type":..,"seq":..,"ts":..}` with the fields of `data`, byte for byte as the journal has them.
fn push(out: &mut String, news: &News<'_>, kind: &str, data: &str) {
    let head = json!({"type": kind, "seq": news.record.seq, "ts": rfc3339(news.record.ts_ms)}).to_string();
    let fields = data.trim().strip_prefix('{').unwrap_or("}").trim_start();
    out.push_str(head.trim_end_matches('}'));
    if !fields.starts_with('}') {
        out.push(',');
    }
    out.push_str(fields);
    out.push('\n');
}

/// The last line of `--json`: `{"type":"summary", ...}`, without a line break, of a run that its owner has left. `value`
/// turns an output into JSON, wherever it lies.
pub fn summary_json(run: &Run, value: &dyn Fn(&Output) -> Value) -> String {
    let summary = Summary::of(run, false, run.updated_ms, value);
    let summary = serde_json::to_value(summary).unwrap_or_default();
    let mut line = json!({"type": "summary"});
    if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), summary) {
        line.extend(fields);
    }
    crate::say::json(&line.to_string()).into_owned()
}
