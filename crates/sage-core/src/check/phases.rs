//! Phases as wholes: empty ones, joins, cycles, orphans, repeats.

use super::Document;
use super::ancestry::Ancestry;
use super::names::Names;
use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::graph::Graph;
use crate::policy::Join;

pub fn check(names: &Names<'_>, document: &Document<'_, '_>, problems: &mut Diagnostics) {
    let phases = &names.template.phases;
    // What is there but could not be read has been reported; it is not empty on top of it.
    if let Some(span) = document.empty_list("phases").filter(|_| phases.is_empty()) {
        problems.push(Diagnostic::error("phases", span, "the workflow is empty: it has no phases"));
    }
    for (p, phase) in phases.iter().enumerate() {
        if phase.operations.is_empty() && document.has_no_operations(p) {
            let message = format!("phase `{}` is empty: it has no operations", printable(&phase.id));
            problems.push(Diagnostic::error(format_args!("phases[{p}].operations"), phase.span, message));
        }
        if let Join::AtLeastCount(count) | Join::FirstCount(count) = phase.join
            && count as usize > phase.operations.len()
            && !phase.operations.is_empty()
        {
            let members = phase.operations.len();
            let message =
                format!("the join asks for {count} successes, but the phase has {members} operations");
            problems.push(Diagnostic::error(format_args!("phases[{p}].join"), phase.span, message));
        }
    }
    warn_orphans(names, problems);
}

/// A phase that stands alone among phases that are connected is likely a forgotten dependency.
fn warn_orphans(names: &Names<'_>, problems: &mut Diagnostics) {
    let mut linked = vec![false; names.template.phases.len()];
    let mut any = false;
    let mut link = |from: usize, to: usize| {
        linked[from] = true;
        linked[to] = true;
        any |= from != to;
    };
    for (p, dependencies) in names.dependencies.iter().enumerate() {
        dependencies.iter().for_each(|before| link(p, *before as usize));
    }
    for (step, needs) in names.needs.iter().enumerate() {
        for need in needs {
            let (from, to) = (names.places[step].0 as usize, names.places[*need as usize].0 as usize);
            if from != to {
                link(from, to);
            }
        }
    }
    for (p, phase) in names.template.phases.iter().enumerate().filter(|(p, _)| any && !linked[*p]) {
        // An unknown dependency has been reported; it is not an orphan on top of it.
        if phase.dependencies.is_empty() {
            let message = format!("phase `{}` is not connected to the others", printable(&phase.id));
            let warning = Diagnostic::warning(format_args!("phases[{p}]"), phase.span, message);
            problems.push(warning.hint("it runs at once; if it should wait, give it `dependencies`"));
        }
    }
}

/// How its message begins: doors tell it from other mistakes.
pub const CYCLE: &str = "dependency cycle";

/// True if there is one; its path is reported.
pub fn find_cycle(names: &Names<'_>, problems: &mut Diagnostics) -> bool {
    let (steps, phases) = (names.places.len() as u32, names.template.phases.len() as u32);
    let (open, done) = (|p: u32| steps + p, |p: u32| steps + phases + p);
    let mut graph = Graph::new((steps + 2 * phases) as usize);
    for p in 0..phases {
        names.dependencies[p as usize].iter().for_each(|before| graph.edge(done(*before), open(p)));
    }
    for step in 0..steps {
        let (phase, _) = names.places[step as usize];
        graph.edge(open(phase), step);
        graph.edge(step, done(phase));
        names.needs[step as usize].iter().for_each(|need| graph.edge(*need, step));
    }
    let Err(cycle) = graph.order() else { return false };
    let (nodes, phase_of) = (cycle.0, |node: u32| (node - steps) % phases);
    let path = cycle_path(names, &nodes, steps);
    let (field, span) = match nodes.iter().find(|node| **node < steps && path[0].contains('/')) {
        Some(step) => {
            let (p, position) = names.places[*step as usize];
            (format!("phases[{p}].operations[{position}].needs"), names.operation(*step).span)
        }
        None => {
            let p = nodes.iter().find(|node| **node >= steps).map_or(0, |node| phase_of(*node));
            (format!("phases[{p}].dependencies"), names.phase(p).span)
        }
    };
    let message = format!("{CYCLE}: {}", path.join(" -> "));
    problems.push(Diagnostic::error(field, span, message).hint("each of these waits for the one before it"));
    true
}

/// The cycle as names. A step that is only passed on the way through its phase is not worth naming, and
/// neither is the gate of a phase whose step is named.
fn cycle_path(names: &Names<'_>, nodes: &[u32], steps: u32) -> Vec<String> {
    let phases = names.template.phases.len() as u32;
    let phase_of = |node: u32| match node < steps {
        true => names.places[node as usize].0,
        false => (node - steps) % phases,
    };
    let around = |i: usize, by: usize| nodes[(i + by) % nodes.len()];
    let named = |i: usize| {
        let node = nodes[i];
        let neighbours = [around(i, nodes.len() - 1), around(i, 1)];
        let between_gates = neighbours.iter().all(|n| *n >= steps);
        node < steps && !between_gates
    };
    let mut path: Vec<String> = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        let name = if named(i) {
            names.path(*node)
        } else {
            let beside = [(i + nodes.len() - 1) % nodes.len(), (i + 1) % nodes.len()];
            let shown = beside.iter().any(|n| named(*n) && phase_of(nodes[*n]) == phase_of(*node));
            if shown {
                continue;
            }
            names.phase(phase_of(*node)).id.clone()
        };
        if path.last() != Some(&name) {
            path.push(name);
        }
    }
    if path.len() > 1 && path.first() == path.last() {
        path.pop();
    }
    path.extend(path.first().cloned());
    path
}

pub fn check_repeats(names: &Names<'_>, ancestry: &Ancestry<'_, '_>, problems: &mut Diagnostics) {
    for (p, phase) in names.template.phases.iter().enumerate() {
        let Some(repeat) = &phase.repeat else { continue };
        let field = format_args!("phases[{p}].repeat.from");
        match names.find_phase(&repeat.from.name) {
            None => {
                let ids = names.template.phases.iter().map(|phase| phase.id.as_str());
                let message = format!("unknown phase `{}`", printable(&repeat.from.name));
                let hint = did_you_mean(&repeat.from.name, ids);
                problems.push(Diagnostic::error(field, repeat.from.span, message).hint_if(hint));
            }
            Some(from) if from as usize == p || ancestry.is_before(from, p as u32) => {}
            Some(_) => {
                let message = format!(
                    "`{}` does not come before `{}`, so it cannot be repeated from there",
                    printable(&repeat.from.name),
                    printable(&phase.id)
                );
                problems.push(Diagnostic::error(field, repeat.from.span, message));
            }
        }
    }
}
