//! The plan: the checked graph of steps that a template compiles to.
//!
//! A phase is two gates: its steps wait for `open`, its dependants for `done`. So n steps after m steps cost
//! n + m edges, not n x m. Steps are numbered in the order they are written; that number is the last word
//! wherever two steps are equal otherwise.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::graph::Graph;
use crate::template::{Operation, Phase, Template};

#[derive(Debug)]
pub struct Plan {
    pub template: Template,
    pub steps: Vec<PlanStep>,
    pub phases: Vec<PlanPhase>,
    /// Steps on the longest path.
    pub depth: u32,
    index: HashMap<Arc<str>, u32>,
}

#[derive(Debug)]
pub struct PlanStep {
    pub path: Arc<str>,
    pub phase: u32,
    /// Position in its phase.
    pub position: u32,
    pub needs: Vec<u32>,
    pub needed_by: Vec<u32>,
    /// Steps on the longest path from here to an end, itself included.
    pub height: u32,
    /// The batch in which `sage graph` shows it: steps on the longest path before it.
    pub level: u32,
}

#[derive(Debug)]
pub struct PlanPhase {
    pub dependencies: Vec<u32>,
    pub dependants: Vec<u32>,
    pub steps: Range<u32>,
}

/// What `check` must have refused before; kept as an error because templates also come from old journals.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    #[error("cycle: {0}")]
    Cycle(String),
    #[error("unknown dependency `{0}`")]
    Unknown(String),
    #[error("the workflow has no steps")]
    Empty,
    #[error("two steps are called `{0}`")]
    Duplicate(String),
}

impl Plan {
    pub fn new(template: Template) -> Result<Plan, PlanError> {
        let phases = link_phases(&template)?;
        let mut steps = Vec::new();
        let mut index = HashMap::new();
        for (p, phase) in template.phases.iter().enumerate() {
            for (position, operation) in phase.operations.iter().enumerate() {
                let path: Arc<str> = format!("{}/{}", phase.id, operation.id).into();
                if index.insert(path.clone(), steps.len() as u32).is_some() {
                    return Err(PlanError::Duplicate(path.to_string()));
                }
                steps.push(PlanStep {
                    path,
                    phase: p as u32,
                    position: position as u32,
                    needs: Vec::new(),
                    needed_by: Vec::new(),
                    height: 0,
                    level: 0,
                });
            }
        }
        if steps.is_empty() {
            return Err(PlanError::Empty);
        }
        let mut plan = Plan { template, steps, phases, depth: 0, index };
        plan.link_needs()?;
        plan.measure()?;
        Ok(plan)
    }

    pub fn find(&self, path: &str) -> Option<u32> {
        self.index.get(path).copied()
    }

    pub fn operation(&self, step: u32) -> &Operation {
        let step = &self.steps[step as usize];
        &self.template.phases[step.phase as usize].operations[step.position as usize]
    }

    pub fn phase(&self, phase: u32) -> &Phase {
        &self.template.phases[phase as usize]
    }

    /// Steps by level, each in plan order: the batches that `sage graph` shows.
    pub fn batches(&self) -> Vec<Vec<u32>> {
        let mut batches = vec![Vec::new(); self.depth as usize];
        for (n, step) in self.steps.iter().enumerate() {
            batches[step.level as usize].push(n as u32);
        }
        batches
    }

    /// The paths on one longest path, first step first.
    pub fn critical_path(&self) -> Vec<u32> {
        let mut path: Vec<u32> = Vec::new();
        for level in 0..self.depth {
            let fits = |n: &u32| {
                let step = &self.steps[*n as usize];
                step.level == level
                    && step.height == self.depth - level
                    && path.last().is_none_or(|&before| self.follows(before, *n))
            };
            let Some(next) = (0..self.steps.len() as u32).find(fits) else {
                break;
            };
            path.push(next);
        }
        path
    }

    fn follows(&self, before: u32, after: u32) -> bool {
        let after = &self.steps[after as usize];
        let phase_before = self.steps[before as usize].phase;
        after.needs.contains(&before)
            || self.phases[after.phase as usize].dependencies.contains(&phase_before)
    }

    /// Number of dependency edges as a person would count them in the template.
    pub fn edges(&self) -> usize {
        let needs: usize = self.steps.iter().map(|s| s.needs.len()).sum();
        let phases: usize = self.phases.iter().map(|p| p.dependencies.len()).sum();
        needs + phases
    }

    fn link_needs(&mut self) -> Result<(), PlanError> {
        for n in 0..self.steps.len() as u32 {
            let phase = &self.template.phases[self.steps[n as usize].phase as usize];
            let operation = &phase.operations[self.steps[n as usize].position as usize];
            let mut needs = Vec::with_capacity(operation.needs.len());
            for need in &operation.needs {
                let inside = || self.find(&format!("{}/{}", phase.id, need.name));
                let found = self.find(&need.name).or_else(inside);
                needs.push(found.ok_or_else(|| PlanError::Unknown(need.name.clone()))?);
            }
            needs.sort_unstable();
            needs.dedup();
            for &need in &needs {
                self.steps[need as usize].needed_by.push(n);
            }
            self.steps[n as usize].needs = needs;
        }
        Ok(())
    }

    /// Nodes: the steps, then each phase's `open` gate, then each phase's `done` gate.
    fn graph(&self) -> Graph {
        let (steps, phases) = (self.steps.len() as u32, self.phases.len() as u32);
        let open = |p: u32| steps + p;
        let done = |p: u32| steps + phases + p;
        let mut graph = Graph::new((steps + 2 * phases) as usize);
        for (p, phase) in self.phases.iter().enumerate() {
            let p = p as u32;
            phase.dependencies.iter().for_each(|&before| graph.edge(done(before), open(p)));
            for step in phase.steps.clone() {
                graph.edge(open(p), step);
                graph.edge(step, done(p));
            }
        }
        for (n, step) in self.steps.iter().enumerate() {
            step.needs.iter().for_each(|&need| graph.edge(need, n as u32));
        }
        graph
    }

    fn measure(&mut self) -> Result<(), PlanError> {
        let graph = self.graph();
        let steps = self.steps.len() as u32;
        let weight = |node: u32| u32::from(node < steps);
        let order = graph.order().map_err(|cycle| PlanError::Cycle(self.cycle_text(&cycle.0)))?;
        let (depth, height) = (graph.depth(&order, weight), graph.height(&order, weight));
        for (n, step) in self.steps.iter_mut().enumerate() {
            step.level = depth[n];
            step.height = height[n];
        }
        self.depth = self.steps.iter().map(|s| s.level + 1).max().unwrap_or(0);
        Ok(())
    }

    /// `a -> b -> a`. Gates are told by their phase's name, once.
    fn cycle_text(&self, nodes: &[u32]) -> String {
        let (steps, phases) = (self.steps.len(), self.phases.len());
        let has_steps = nodes.iter().any(|&n| (n as usize) < steps);
        let has_gates = nodes.iter().any(|&n| (n as usize) >= steps);
        let mut names: Vec<&str> = Vec::new();
        for &node in nodes {
            let node = node as usize;
            let name = if node < steps {
                // Within a cycle of whole phases, any member stands for its phase: name the phase only.
                if has_gates && has_steps && self.only_phases(nodes) {
                    continue;
                } else {
                    &*self.steps[node].path
                }
            } else {
                self.template.phases[(node - steps) % phases].id.as_str()
            };
            if names.last() != Some(&name) {
                names.push(name);
            }
        }
        if names.len() > 1 && names.first() == names.last() {
            names.pop();
        }
        let first = names.first().copied().unwrap_or_default();
        names.push(first);
        names.join(" -> ")
    }

    /// True if every step of the cycle is entered from its own phase's gate, i.e. no `needs` takes part.
    fn only_phases(&self, nodes: &[u32]) -> bool {
        let steps = self.steps.len();
        let before = |i: usize| nodes[(i + nodes.len() - 1) % nodes.len()] as usize;
        (0..nodes.len()).filter(|&i| (nodes[i] as usize) < steps).all(|i| before(i) >= steps)
    }
}

fn link_phases(template: &Template) -> Result<Vec<PlanPhase>, PlanError> {
    let ids: HashMap<&str, u32> =
        template.phases.iter().enumerate().map(|(n, phase)| (phase.id.as_str(), n as u32)).collect();
    let mut phases: Vec<PlanPhase> = Vec::with_capacity(template.phases.len());
    let mut first = 0u32;
    for phase in &template.phases {
        let mut dependencies = Vec::with_capacity(phase.dependencies.len());
        for dependency in &phase.dependencies {
            let id = ids.get(dependency.name.as_str()).copied();
            dependencies.push(id.ok_or_else(|| PlanError::Unknown(dependency.name.clone()))?);
        }
        dependencies.sort_unstable();
        dependencies.dedup();
        let end = first + phase.operations.len() as u32;
        phases.push(PlanPhase { dependencies, dependants: Vec::new(), steps: first..end });
        first = end;
    }
    for n in 0..phases.len() {
        for before in phases[n].dependencies.clone() {
            phases[before as usize].dependants.push(n as u32);
        }
    }
    Ok(phases)
}
