//! Mermaid flowchart: phases are subgraphs, `needs` are edges between steps.

use sage_core::plan::Plan;
use sage_core::run::Run;
use sage_core::template::Kind;

use super::label::{self, Class};
use crate::display::text::clean;

pub fn mermaid(plan: &Plan) -> String {
    flowchart(plan, None)
}

/// As `mermaid`, with a class per state.
pub fn mermaid_run(run: &Run) -> String {
    flowchart(run.plan(), Some(run))
}

fn flowchart(plan: &Plan, run: Option<&Run>) -> String {
    let mut out = String::from("flowchart TD\n");
    for (p, phase) in plan.phases.iter().enumerate() {
        let policy = label::policy_text(plan, p as u32);
        let policy = if policy.is_empty() { policy } else { format!(" ({policy})") };
        let title = escape(&format!("{}{policy}", plan.phase(p as u32).id));
        out.push_str(&format!("  subgraph p{p}[\"{title}\"]\n"));
        for step in phase.steps.clone() {
            out.push_str(&format!("    {}\n", node(plan, step)));
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

fn classes(plan: &Plan, run: &Run) -> String {
    let mut out = String::new();
    for class in Class::ALL {
        let of_class = |&step: &u32| Class::of(run, label::step_of(run, step)) == class;
        let steps: Vec<String> =
            (0..plan.steps.len() as u32).filter(of_class).map(|step| format!("s{step}")).collect();
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
