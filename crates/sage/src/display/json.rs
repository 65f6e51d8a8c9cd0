//! One JSON object a line: every event of the journal, and what the fold derives from it (P11).

use sage_core::event::Event;
use sage_core::run::{Output, PhaseId, Run};
use sage_core::wire::{self, Summary, WorkflowMetrics, rfc3339};
use serde_json::{Value, json};

use super::phases::PhaseWatch;
use super::tail::News;
use super::walk;

#[derive(Debug, Default)]
pub(crate) struct Json {
    phases: PhaseWatch,
}

impl Json {
    pub fn tell(&mut self, news: &News<'_>, out: &mut String) {
        let judged = self.phases.newly_judged(news.run, news.event);
        if news.silent {
            return;
        }
        push(out, news, news.record.kind, news.record.data.get());
        for phase in judged {
            push(out, news, "group.completed", &group(news.run, phase).to_string());
        }
        if matches!(news.event, Event::RunFinished(_) | Event::RunCancelled(_) | Event::RunPaused(_)) {
            push(out, news, "workflow.performance", &performance(news.run).to_string());
        }
    }
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

fn group(run: &Run, id: PhaseId) -> Value {
    let phase = run.phase(id);
    json!({
        "group": run.phase_path(id),
        "duration": walk::phase_ms(run, phase, phase.judged_ms),
        "stagesCompleted": phase.ok,
        "stages": phase.members.len(),
        "status": wire::phase_status(phase.open, phase.judged),
    })
}

fn performance(run: &Run) -> Value {
    let metrics = serde_json::to_value(WorkflowMetrics::of(run)).unwrap_or_default();
    json!({ "feature": run.feature, "workflowId": run.id, "status": run.status.name(), "metrics": metrics })
}

/// The last line of `--json`: `{"type":"summary", ...}`, without a line break. `value` turns an output into
/// JSON, wherever it lies.
pub fn summary_json(run: &Run, value: &dyn Fn(&Output) -> Value) -> String {
    let summary = serde_json::to_value(Summary::of(run, value)).unwrap_or_default();
    let mut line = json!({"type": "summary"});
    if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), summary) {
        line.extend(fields);
    }
    line.to_string()
}
