//! Mermaid flowchart: phases are subgraphs, `needs` are edges between steps.

use sage_core::plan::Plan;
use sage_core::template::Kind;

use super::Drawn;
use super::label::{self, Class};
use crate::display::text::clean;

/// Calls of one script that are shown: pictures of more cannot be read.
const CALL_NODES: usize = 100;

pub fn mermaid(plan: &Plan) -> String {
    flowchart(plan, None)
}

/// As `mermaid`, with a class per state.
pub fn mermaid_run(run: Drawn<'_>) -> String {
    flowchart(run.run.plan(), Some(run))
}

fn flowchart(plan: &Plan, run: Option<Drawn<'_>>) -> String {
    let mut out = String::from("flowchart TD\n");
    for (p, phase) in plan.phases.iter().enumerate() {
        let policy = label::policy_text(plan, p as u32);
        let policy = if policy.is_empty() { policy } else { format!(" ({policy})") };
        let title = escape(&format!("{}{policy}", plan.phase(p as u32).id));
        out.push_str(&format!("  subgraph p{p}[\"{title}\"]\n"));
        for step in phase.steps.clone() {
            out.push_str(&format!("    {}\n", node(plan, step)));
            run.into_iter().for_each(|run| out.push_str(&call_nodes(run, step)));
        }
        out.push_str("  end\n");
    }
    for (p, phase) in plan.phases.iter().enumerate() {
        phase.dependencies.iter().for_each(|before| out.push_str(&format!("  p{before} --> p{p}\n")));
    }
    for (n, step) in plan.steps.iter().enumerate() {
        step.needs.iter().for_each(|need| out.push_str(&format!("  s{need} --> s{n}\n")));
    }
    if let Some(run) = run {
        (0..plan.steps.len() as u32).for_each(|step| out.push_str(&call_edges(run, step)));
        out.push_str(&classes(plan, run));
    }
    out
}

/// The shape tells what it is: a question, something that holds many, an agent, or plain work.
fn node(plan: &Plan, step: u32) -> String {
    let operation = plan.operation(step);
    let text = format!("\"{}<br/>{}\"", escape(&operation.id), escape(&label::kind_text(plan, step)));
    match operation.kind {
        Kind::Approval => format!("s{step}{{{{{text}}}}}"),
        Kind::Workflow => format!("s{step}[[{text}]]"),
        _ if operation.foreach.is_some() => format!("s{step}[[{text}]]"),
        Kind::Agent => format!("s{step}({text})"),
        _ => format!("s{step}[{text}]"),
    }
}

/// What a script has called, beside it.
fn call_nodes(run: Drawn<'_>, step: u32) -> String {
    let (groups, left_out) = label::call_groups(run, label::step_of(run.run, step), CALL_NODES);
    let mut out = String::new();
    for (at, group) in groups.iter().enumerate() {
        let text = format!("\"{}<br/>{}\"", escape(&group.name), escape(&group.kind_text(run.run)));
        let node = match run.run.operation(group.shown).kind {
            Kind::Approval => format!("{{{{{text}}}}}"),
            Kind::Workflow => format!("[[{text}]]"),
            Kind::Agent => format!("({text})"),
            _ => format!("[{text}]"),
        };
        out.push_str(&format!("    s{step}c{at}{node}\n"));
    }
    if left_out > 0 {
        out.push_str(&format!("    s{step}more[\"{left_out} more\"]\n"));
    }
    out
}

fn call_edges(run: Drawn<'_>, step: u32) -> String {
    let (groups, left_out) = label::call_groups(run, label::step_of(run.run, step), CALL_NODES);
    let mut out: String = (0..groups.len()).map(|at| format!("  s{step} --> s{step}c{at}\n")).collect();
    if left_out > 0 {
        out.push_str(&format!("  s{step} --> s{step}more\n"));
    }
    out
}

fn classes(plan: &Plan, run: Drawn<'_>) -> String {
    let mut nodes: Vec<(String, Class)> = Vec::new();
    for step in 0..plan.steps.len() as u32 {
        let id = label::step_of(run.run, step);
        nodes.push((format!("s{step}"), Class::of(run, id)));
        let groups = label::call_groups(run, id, CALL_NODES).0;
        let call =
            |(at, group): (usize, &label::CallGroup)| (format!("s{step}c{at}"), Class::of(run, group.shown));
        nodes.extend(groups.iter().enumerate().map(call));
    }
    let mut out = String::new();
    for class in Class::ALL {
        let of_class = nodes.iter().filter(|(_, of)| *of == class);
        let steps: Vec<&str> = of_class.map(|(name, _)| name.as_str()).collect();
        if !steps.is_empty() {
            let (fill, line) = class.colours();
            let name = class.name();
            out.push_str(&format!("  classDef {name} fill:{fill},stroke:{line},color:#111827\n"));
            out.push_str(&format!("  class {} {name}\n", steps.join(",")));
        }
    }
    out
}

/// Everything but letters, digits and harmless signs becomes Mermaid's `#code;`.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | ',' | ':' | '@') {
            out.push(c);
        } else {
            out.push_str(&format!("#{};", u32::from(c)));
        }
    }
    out
}
