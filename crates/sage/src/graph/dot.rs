//! Graphviz: phases are clusters, `needs` are edges between steps.

use sage_core::plan::Plan;
use sage_core::template::Kind;

use super::Drawn;
use super::label::{self, Class};
use crate::display::text::clean;

/// Calls of one script that are shown: pictures of more cannot be read.
const CALL_NODES: usize = 100;

pub fn dot(plan: &Plan) -> String {
    digraph(plan, None)
}

/// As `dot`, with colours and a class per state.
pub fn dot_run(run: Drawn<'_>) -> String {
    digraph(run.run.plan(), Some(run))
}

fn digraph(plan: &Plan, run: Option<Drawn<'_>>) -> String {
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
            run.into_iter().for_each(|run| out.push_str(&calls(run, step)));
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

fn attributes(plan: &Plan, step: u32, run: Option<Drawn<'_>>) -> String {
    let operation = plan.operation(step);
    let mut out = format!("label=\"{}\\n{}\"", escape(&operation.id), escape(&label::kind_text(plan, step)));
    match operation.kind {
        Kind::Approval => out.push_str(", shape=hexagon"),
        _ if operation.foreach.is_some() => out.push_str(", peripheries=2"),
        Kind::Workflow => out.push_str(", shape=folder"),
        _ => {}
    }
    if let Some(run) = run {
        out.push_str(&looks(Class::of(run, label::step_of(run.run, step))));
    }
    out
}

fn looks(class: Class) -> String {
    let (fill, line) = class.colours();
    format!(", class=\"{}\", fillcolor=\"{fill}\", color=\"{line}\"", class.name())
}

/// What a script has called, below it.
fn calls(run: Drawn<'_>, step: u32) -> String {
    let (groups, left_out) = label::call_groups(run, label::step_of(run.run, step), CALL_NODES);
    let mut out = String::new();
    for (at, group) in groups.iter().enumerate() {
        let text = format!("{}\\n{}", escape(&group.name), escape(&group.kind_text(run.run)));
        let looks = looks(Class::of(run, group.shown));
        out.push_str(&format!("    s{step}c{at} [label=\"{text}\"{looks}];\n    s{step} -> s{step}c{at};\n"));
    }
    if left_out > 0 {
        out.push_str(&format!("    s{step}more [label=\"{left_out} more\"];\n    s{step} -> s{step}more;\n"));
    }
    out
}

/// Inside of a quoted string only the quote and the backslash mean something.
fn escape(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}
