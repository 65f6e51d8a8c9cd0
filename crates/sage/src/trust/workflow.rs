//! Templates and operations of a project as definitions.
//!
//! A template of the project that a person names is like a make target: it runs, with everything that it uses.
//! Under any other template (built in, of `sage.toml`, of another folder, or one that has the name of a built-in
//! one) the project's templates and operations that have powers need trust; those that are only text are told.

use std::collections::{BTreeMap, BTreeSet};

use sage_core::event::Frozen;
use sage_core::template::Template;
use serde_json::json;

use super::launcher::Started;
use super::powers::{powers, started, widens};
use super::{Definition, Trust};
use crate::cli::catalog::{Catalog, Place, Ready};
use crate::cli::context::Context;
use crate::cli::library::TEMPLATES;

/// What a run uses of the project without that a person has named it.
#[derive(Debug, Default)]
pub struct Used {
    /// What has powers: to be trusted.
    pub definitions: Vec<Definition>,
    /// The files of all of it.
    pub files: Vec<String>,
}

impl Used {
    /// `typed` is the template as a person named it.
    pub fn of(catalog: &Catalog, ready: &Ready, typed: Option<&str>) -> Used {
        let is_built_in = |name: &str| TEMPLATES.iter().any(|(known, _)| *known == name);
        let named = typed.filter(|name| !is_built_in(name));
        if named.is_some_and(|name| catalog.is_of_project(name)) {
            return Used::default();
        }
        let mut used = Used::default();
        if named.is_none() {
            used.template(catalog, &ready.frozen, &ready.template);
        }
        let others = ready.others.iter().zip(&ready.inner);
        others
            .filter(|(frozen, _)| catalog.is_of_project(&frozen.name))
            .for_each(|(frozen, template)| used.template(catalog, frozen, template));
        let frozen = ready.others.iter().chain([&ready.frozen]);
        let names: BTreeSet<&String> = frozen.flat_map(|it| it.operations.keys()).collect();
        names.into_iter().for_each(|name| used.operation(catalog, name));
        used
    }

    fn template(&mut self, catalog: &Catalog, frozen: &Frozen, template: &Template) {
        let Some(file) = &frozen.file else { return };
        self.files.push(file.clone());
        let operations = || template.phases.iter().flat_map(|phase| &phase.operations);
        let mut does: Vec<String> = Vec::new();
        for operation in operations() {
            // What a named operation does is a definition of its own.
            let own = catalog.operation(&operation.type_name).map(|it| powers(&it)).unwrap_or_default();
            does.extend(powers(operation).into_iter().filter(|power| !own.contains(power)));
        }
        if !does.is_empty() {
            let root = catalog.root();
            let starts =
                operations().fold(Started::default(), |all, operation| started(root, all, operation));
            let written = json!([frozen.text, frozen.programs]);
            let name = &frozen.name;
            self.definitions.push(Definition::template(root, name, file, does, &starts, &written));
        }
    }

    fn operation(&mut self, catalog: &Catalog, name: &str) {
        let Some(own) = catalog.own_operation(name) else { return };
        self.files.push(own.file.clone());
        let Some(operation) = catalog.operation(name) else { return };
        let mut does = powers(&operation);
        does.extend(widens(operation.role, own.replaced_role));
        if !does.is_empty() {
            let root = catalog.root();
            let starts = started(root, Started::default(), &operation);
            self.definitions.push(Definition::operation(root, name, &own.file, does, &starts, &own.written));
        }
    }
}

/// What a run of a built-in template, or of the one that `sage.toml` names, would ask for.
pub fn asked_for(context: &Context) -> Vec<Definition> {
    let catalog = Catalog::of(context);
    let default = context.config.file.template.as_deref();
    let names = TEMPLATES.iter().map(|(name, _)| *name).chain(default);
    unique(names.flat_map(|name| of_template(&catalog, name)))
}

/// Also what a run would ask for that nobody has typed yet: every template and operation of the project with powers.
pub fn all(context: &Context) -> Vec<Definition> {
    let catalog = Catalog::of(context);
    let mut used = Used::default();
    catalog.own_operations().for_each(|name| used.operation(&catalog, name));
    // Each alone: those that it calls are among them.
    for (name, place) in catalog.all() {
        if let (Place::File(_), Ok(mut frozen)) = (place, catalog.freeze(name))
            && let Some(template) = catalog.read(&mut frozen).template
        {
            used.template(&catalog, &frozen, &template);
        }
    }
    unique(asked_for(context).into_iter().chain(used.definitions))
}

/// Those of them that have no trust.
pub fn untrusted(definitions: Vec<Definition>, trust: &Trust) -> Vec<Definition> {
    definitions.into_iter().filter(|it| !trust.holds(it)).collect()
}

fn of_template(catalog: &Catalog, name: &str) -> Vec<Definition> {
    // One that is not valid runs nothing.
    let ready = catalog.load(name, &mut |_, _, _| {});
    ready.map(|ready| Used::of(catalog, &ready, None).definitions).unwrap_or_default()
}

fn unique(definitions: impl Iterator<Item = Definition>) -> Vec<Definition> {
    let by_name: BTreeMap<String, Definition> = definitions.map(|it| (it.name.clone(), it)).collect();
    by_name.into_values().collect()
}
