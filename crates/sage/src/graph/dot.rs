//! Graphviz: phases are clusters, `needs` are edges between steps.

use sage_core::plan::Plan;
use sage_core::run::Run;
use sage_core::template::Kind;

use super::label::{self, Class};
use crate::display::text::clean;

pub fn dot(plan: &Plan) -> String {
    digraph(plan, None)
}

/// As `dot`, with colours and a class per state.
pub fn dot_run(run: &Run) -> String {
    digraph(run.plan(), Some(run))
}

fn digraph(plan: &Plan, run: Option<&Run>) -> String {
    let mut out = format!("digraph \"{}\" {{\n", escape(&plan.template.name));
    out.push_str("  rankdir=TB;\n  compound=true;\n  fontname=\"sans-serif\";\n");
    out.push_str(
        "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"sans-serif\"];\n",
    );
    for (p, phase) in plan.phases.iter().enumerate() {
        let policy = label::policy_text(plan, p as u32);
        let policy = if policy.is_empty() { policy } else { format!("\\n{}", escape(&policy)) };
        out.push_str(&format!(
            "  subgraph cluster_{p} {{\n    label=\"{}{policy}\";\n",
            escape(&plan.phase(p as u32).id)
        ));
        for step in phase.steps.clone() {
            out.push_str(&format!("    s{step} [{}];\n", attributes(plan, step, run)));
        }
        out.push_str("  }\n");
    }
    for (p, phase) in plan.phases.iter().enumerate() {
        for &before in &phase.dependencies {
            let (from, to) = (&plan.phases[before as usize].steps, &phase.steps);
            // Edges join steps; `ltail` and `lhead` cut them at the clusters' borders.
            if let (Some(from), Some(to)) = (from.clone().last(), to.clone().next()) {
                out.push_str(&format!("  s{from} -> s{to} [ltail=cluster_{before}, lhead=cluster_{p}];\n"));
            }
        }
    }
    for (n, step) in plan.steps.iter().enumerate() {
        step.needs.iter().for_each(|need| out.push_str(&format!("  s{need} -> s{n};\n")));
    }
    out.push_str("}\n");
    out
}

fn attributes(plan: &Plan, step: u32, run: Option<&Run>) -> String {
    let operation = plan.operation(step);
    let mut out = format!("label=\"{}\\n{}\"", escape(&operation.id), escape(&label::kind_text(plan, step)));
    match operation.kind {
        Kind::Approval => out.push_str(", shape=hexagon"),
        _ if operation.foreach.is_some() => out.push_str(", peripheries=2"),
        Kind::Workflow => out.push_str(", shape=folder"),
        _ => {}
    }
    if let Some(run) = run {
        let class = Class::of(run, label::step_of(run, step));
        let (fill, line) = class.colours();
        out.push_str(&format!(", class=\"{}\", fillcolor=\"{fill}\", color=\"{line}\"", class.name()));
    }
    out
}

/// Inside of a quoted string only the quote and the backslash mean something.
fn escape(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}
