//! Who is who: phases and steps by name, `needs` and `dependencies` resolved to numbers.
//!
//! Steps are numbered through the whole template in the order they are written. Whatever cannot be resolved
//! is reported here and left out, so that later checks see a graph without holes.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Diagnostics, LOOKED_AT, did_you_mean, printable};
use crate::template::{Operation, Phase, Span, Template};

pub struct Names<'t> {
    pub template: &'t Template,
    phases: HashMap<&'t str, u32>,
    steps: HashMap<(u32, &'t str), u32>,
    /// Phase and position of each step.
    pub places: Vec<(u32, u32)>,
    /// First step of each phase.
    pub first: Vec<u32>,
    /// Resolved, per phase and per step.
    pub dependencies: Vec<Vec<u32>>,
    pub needs: Vec<Vec<u32>>,
    paths: OnceCell<Vec<String>>,
}

impl<'t> Names<'t> {
    pub fn new(template: &'t Template, problems: &mut Diagnostics) -> Names<'t> {
        let count = template.phases.iter().map(|phase| phase.operations.len()).sum();
        let mut names = Names {
            template,
            phases: HashMap::with_capacity(template.phases.len()),
            steps: HashMap::with_capacity(count),
            places: Vec::with_capacity(count),
            first: Vec::with_capacity(template.phases.len()),
            dependencies: vec![Vec::new(); template.phases.len()],
            needs: vec![Vec::new(); count],
            paths: OnceCell::new(),
        };
        names.number(problems);
        names.resolve_dependencies(problems);
        names.resolve_needs(problems);
        names
    }

    fn number(&mut self, problems: &mut Diagnostics) {
        for (p, phase) in self.template.phases.iter().enumerate() {
            self.first.push(self.places.len() as u32);
            if let Some(first) = self.phases.get(phase.id.as_str()).filter(|_| !phase.id.is_empty()) {
                let first = self.template.phases[*first as usize].span;
                let field = format!("phases[{p}].id");
                problems.push(duplicate("phase", &phase.id, field, phase.span, first));
            } else {
                self.phases.insert(&phase.id, p as u32);
            }
            for (position, operation) in phase.operations.iter().enumerate() {
                let step = self.places.len() as u32;
                self.places.push((p as u32, position as u32));
                let key = (p as u32, operation.id.as_str());
                if let Some(first) = self.steps.get(&key).filter(|_| !operation.id.is_empty()) {
                    let first = phase.operations[self.places[*first as usize].1 as usize].span;
                    let field = format!("phases[{p}].operations[{position}].id");
                    problems.push(duplicate("operation", &operation.id, field, operation.span, first));
                } else {
                    self.steps.insert(key, step);
                }
            }
        }
    }

    fn resolve_dependencies(&mut self, problems: &mut Diagnostics) {
        for (p, phase) in self.template.phases.iter().enumerate() {
            for (index, dependency) in phase.dependencies.iter().enumerate() {
                let field = format_args!("phases[{p}].dependencies[{index}]");
                match self.phases.get(dependency.name.as_str()) {
                    Some(found) if *found as usize == p => {
                        let message = format!("phase `{}` depends on itself", printable(&phase.id));
                        problems.push(Diagnostic::error(field, dependency.span, message));
                    }
                    Some(found) => self.dependencies[p].push(*found),
                    None => {
                        let message = format!("unknown dependency `{}`", printable(&dependency.name));
                        let hint =
                            problems.wants_hints().then(|| self.phase_hint(&dependency.name)).flatten();
                        problems.push(Diagnostic::error(field, dependency.span, message).hint_if(hint));
                    }
                }
            }
        }
    }

    fn phase_hint(&self, wrong: &str) -> Option<String> {
        if self.find_path(wrong).is_some() {
            return Some(format!("`dependencies` are phases; put `needs: [{wrong}]` on an operation"));
        }
        did_you_mean(wrong, self.template.phases.iter().map(|phase| phase.id.as_str()))
    }

    fn resolve_needs(&mut self, problems: &mut Diagnostics) {
        for step in 0..self.places.len() as u32 {
            let (p, position) = self.places[step as usize];
            let operation = self.operation(step);
            for (index, need) in operation.needs.iter().enumerate() {
                let field = format_args!("phases[{p}].operations[{position}].needs[{index}]");
                match self.find_from(p, &need.name) {
                    Some(found) if found == step => {
                        let message = format!("operation `{}` needs itself", printable(&operation.id));
                        problems.push(Diagnostic::error(field, need.span, message));
                    }
                    Some(found) => self.needs[step as usize].push(found),
                    None => {
                        let message = format!("unknown step `{}`", printable(&need.name));
                        let hint = problems.wants_hints().then(|| self.step_hint(p, &need.name)).flatten();
                        problems.push(Diagnostic::error(field, need.span, message).hint_if(hint));
                    }
                }
            }
        }
    }

    /// What `needs` may say: `phase/operation`, or an operation of the same phase.
    pub fn find_from(&self, phase: u32, name: &str) -> Option<u32> {
        self.find_path(name).or_else(|| self.steps.get(&(phase, name)).copied())
    }

    pub fn find_path(&self, path: &str) -> Option<u32> {
        let (phase, operation) = path.split_once('/')?;
        self.steps.get(&(*self.phases.get(phase)?, operation)).copied()
    }

    pub fn find_phase(&self, id: &str) -> Option<u32> {
        self.phases.get(id).copied()
    }

    pub fn step_hint(&self, phase: u32, wrong: &str) -> Option<String> {
        if let Some(found) = self.phases.get(wrong) {
            let steps = self.first[*found as usize]..;
            let example = steps.take(self.phase(*found).operations.len()).next();
            let example = example.map_or_else(String::new, |step| format!(" such as `{}`", self.path(step)));
            return Some(format!(
                "`{wrong}` is a phase: list it in `dependencies`, or name its steps{example}"
            ));
        }
        let siblings = self.phase(phase).operations.iter().take(LOOKED_AT).map(|o| o.id.as_str());
        self.path_hint(wrong).or_else(|| did_you_mean(wrong, siblings))
    }

    pub fn path_hint(&self, wrong: &str) -> Option<String> {
        let paths = self.paths.get_or_init(|| {
            (0..self.places.len().min(LOOKED_AT) as u32).map(|step| self.path(step)).collect()
        });
        let by_path = did_you_mean(wrong, paths.iter().map(String::as_str));
        by_path.or_else(|| {
            // Only the operation's name was given: any step of that name is meant.
            let ending = format!("/{wrong}");
            paths.iter().find(|path| path.ends_with(&ending)).map(|path| format!("did you mean `{path}`?"))
        })
    }

    pub fn phase(&self, phase: u32) -> &'t Phase {
        &self.template.phases[phase as usize]
    }

    pub fn operation(&self, step: u32) -> &'t Operation {
        let (phase, position) = self.places[step as usize];
        &self.phase(phase).operations[position as usize]
    }

    pub fn path(&self, step: u32) -> String {
        let (phase, _) = self.places[step as usize];
        format!("{}/{}", self.phase(phase).id, self.operation(step).id)
    }
}

fn duplicate(what: &str, id: &str, field: String, span: Span, first: Span) -> Diagnostic {
    Diagnostic::error(field, span, format!("duplicate {what} id `{}`", printable(id))).also(first, "first")
}
