//! The templates of a project: by name, or by file. Those that come with Sage are there unless the project has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sage_agents::text_file;
use sage_core::check::{self, Catalogue, Loaded, workflow_calls};
use sage_core::diagnostic::{Diagnostic, Severity};
use sage_core::event::{Frozen, FrozenProgram};
use sage_core::port::script::Dialect;
use sage_core::read::read_template;
use sage_core::source::Format;
use sage_core::template::{Kind, Operation, Template};
use sage_fence::Fence;

use super::context::Context;
use super::failure::Failure;
use super::library::{Operations, Own, TEMPLATES};
use super::programs;
use crate::command_line::sage;

const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];
const MAX_BYTES: u64 = 64 << 20;

/// The project's templates and the operations that they can name.
#[derive(Debug)]
pub struct Catalog {
    dir: PathBuf,
    root: PathBuf,
    skills: PathBuf,
    operations: Operations,
    /// Looked for once: a project can have thousands.
    all: OnceLock<BTreeMap<String, Place>>,
}

/// Where a template is.
#[derive(Debug, Clone)]
pub enum Place {
    File(PathBuf),
    BuiltIn(&'static str),
}

/// A template with everything that a run freezes.
#[derive(Debug)]
pub struct Ready {
    pub template: Template,
    pub frozen: Frozen,
    pub others: Vec<Frozen>,
    /// The others as templates, in the same order, for checks.
    pub inner: Vec<Template>,
}

impl Catalog {
    pub fn of(context: &Context) -> Catalog {
        let (root, project) = (&context.project.root, &context.project);
        let bound = context.config.bindings();
        let operations = Operations::of(root, &project.operations(), &bound);
        let skills = project.dir.join("skills");
        let all = OnceLock::new();
        Catalog { dir: project.templates(), root: root.clone(), skills, operations, all }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Name -> where it is.
    pub fn all(&self) -> &BTreeMap<String, Place> {
        self.all.get_or_init(|| self.look_for_all())
    }

    fn look_for_all(&self) -> BTreeMap<String, Place> {
        let own = TEMPLATES.iter().map(|(name, text)| (name.to_string(), Place::BuiltIn(text)));
        let mut all: BTreeMap<String, Place> = own.collect();
        for path in programs::foreign(&self.root) {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_string);
            let names = programs::own_name(&path, &self.root).into_iter().chain(stem);
            all.extend(names.map(|name| (name, Place::File(path.clone()))));
        }
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        all.extend(entries.filter_map(|entry| {
            let path = entry.path();
            let plain = path.extension().and_then(|e| e.to_str()).is_some_and(|e| EXTENSIONS.contains(&e));
            let known = plain || programs::is_code(&path);
            let name = path.file_stem()?.to_str()?.to_string();
            known.then_some((name, Place::File(path)))
        }));
        all
    }

    /// A file if it looks like one or exists, else a template's name.
    pub fn find(&self, name: &str) -> Result<Place, Failure> {
        if [PathBuf::from(name), self.root.join(name)].iter().any(|path| path.is_dir())
            && !self.all().contains_key(name)
        {
            return Err(
                Failure::usage(format!("`{name}` is a directory, not a template")).hint("sage templates")
            );
        }
        let mut extensions = EXTENSIONS.iter().chain(&programs::EXTENSIONS);
        let looks_like_file = name.contains('/') || extensions.any(|e| name.ends_with(&format!(".{e}")));
        if looks_like_file {
            let places = [PathBuf::from(name), self.root.join(name)];
            let found = places.into_iter().find(|path| path.is_file());
            return found
                .map(Place::File)
                .ok_or_else(|| Failure::usage(format!("no template file `{name}`")));
        }
        let all = self.all();
        if let Some(place) = all.get(name) {
            return Ok(place.clone());
        }
        let message = format!("no template `{name}`: not in `{}` and not built in", self.dir.display());
        let failure = Failure::usage(message);
        let nearest = sage_core::diagnostic::did_you_mean(name, all.keys().map(String::as_str));
        Err(match nearest {
            Some(hint) => failure.hint(hint),
            None => failure.hint("sage templates").hint(sage("templates new").arg(name)),
        })
    }

    /// Whether a template's name or file means a file of the project.
    pub fn is_of_project(&self, name: &str) -> bool {
        let Ok(Place::File(path)) = self.find(name) else { return false };
        let root = self.root.canonicalize();
        path.canonicalize().is_ok_and(|path| root.is_ok_and(|root| path.starts_with(root)))
    }

    /// A named operation as a step of its own.
    pub fn operation(&self, name: &str) -> Option<Operation> {
        self.operations.library.get(name)?.alone()
    }

    /// A named operation that the project defines.
    pub fn own_operation(&self, name: &str) -> Option<&Own> {
        self.operations.own(name)
    }

    /// Names of the operations that the project defines.
    pub fn own_operations(&self) -> impl Iterator<Item = &str> {
        self.operations.own_names()
    }

    /// A template's text; its operations are added once it has been read.
    pub fn freeze(&self, name: &str) -> Result<Frozen, Failure> {
        match self.find(name)? {
            Place::File(path) => freeze_file(&path, &self.root),
            Place::BuiltIn(text) => Ok(Frozen::new(name, Format::Yaml, text)),
        }
    }

    /// Tells what is wrong with the project's operations.
    pub fn report_operations(&self, template: &str, report: &mut dyn FnMut(&str, &Loaded, &str)) {
        self.operations.report(template, report);
    }

    /// Reads and checks a template, and freezes the operations that it names.
    pub fn read(&self, frozen: &mut Frozen) -> Loaded {
        let mut loaded = check::load(&frozen.text, frozen.format, &self.operations.library, self);
        self.refuse_broken(&mut loaded);
        let named = loaded.template.iter().flat_map(|template| &template.phases);
        let types = named.flat_map(|phase| &phase.operations).map(|operation| &operation.type_name);
        let known =
            types.filter_map(|name| Some((name.clone(), self.operations.library.get(name)?.text.clone())));
        frozen.operations = known.collect();
        self.read_programs(frozen, &mut loaded);
        loaded
    }

    /// Freezes the code of `script` steps, what it imports, and the operations that it may call.
    fn read_programs(&self, frozen: &mut Frozen, loaded: &mut Loaded) {
        let phases = loaded.template.iter().flat_map(|template| &template.phases);
        let scripts = phases.flat_map(|phase| &phase.operations).filter(|o| o.kind == Kind::Script);
        let mut wrong = Vec::new();
        for operation in scripts {
            let given = |name: &str| operation.params.get(name).and_then(serde_json::Value::as_str);
            let (file, text) = match (given("file"), given("code")) {
                (Some(file), _) => match self.program_text(file, frozen) {
                    Ok(text) => (file.to_string(), text),
                    Err(why) => {
                        let message = format!("code `{file}` cannot be read: {why}");
                        let problem = Diagnostic::error("", operation.span, message);
                        loaded.diagnostics.push(problem);
                        continue;
                    }
                },
                (None, Some(code)) => (format!("{}.ts", operation.id), code.to_string()),
                (None, None) => continue,
            };
            let mut found = programs::complete(&file, &text, &self.root, &self.skills);
            wrong.append(&mut found.wrong);
            let knows = |name: &str| self.find(name).map(drop).map_err(|why| why.hints.join("; "));
            wrong.extend(programs::unknown_workflows(&file, &text, knows));
            let library = &self.operations.library;
            let texts: Vec<&str> =
                [text.as_str()].into_iter().chain(found.modules.iter().map(|m| m.text.as_str())).collect();
            let has = |word: String| texts.iter().any(|text| text.contains(&word));
            let quoted = |name: &&str| ['"', '\'', '`'].iter().any(|m| has(format!("{m}{name}{m}")));
            let named = library.names().filter(quoted).filter_map(|name| Some((name, library.get(name)?)));
            frozen
                .operations
                .extend(named.map(|(name, operation)| (name.to_string(), operation.text.clone())));
            frozen.programs.insert(file, FrozenProgram { text, modules: found.modules });
        }
        loaded.shown.append(&mut wrong);
        let refused = loaded.shown.iter().any(|shown| shown.severity == Severity::Error);
        if refused || loaded.diagnostics.iter().any(Diagnostic::is_error) {
            loaded.template = None;
        }
    }

    /// As it was frozen, or as its file is; the file stays in the project.
    fn program_text(&self, file: &str, frozen: &Frozen) -> Result<String, String> {
        if let Some(program) = frozen.programs.get(file) {
            return Ok(program.text.clone());
        }
        let most = sage_script::strip::MAX_BYTES as u64;
        let bytes = Fence::new(&self.root).read(Path::new(file), most).map_err(|why| why.to_string())?;
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_string())
    }

    /// A template that names a broken operation is not valid, also where a built-in one has the same name.
    fn refuse_broken(&self, loaded: &mut Loaded) {
        let named = loaded.template.iter().flat_map(|template| &template.phases);
        let types = named.flat_map(|phase| &phase.operations).map(|operation| &operation.type_name);
        let broken: BTreeSet<String> = types
            .filter_map(|name| {
                Some(format!("operation `{name}`: {} has mistakes", self.operations.broken(name)?))
            })
            .collect();
        if !broken.is_empty() {
            loaded.template = None;
            let problem = |message| Diagnostic::error("", Default::default(), message);
            loaded.diagnostics.extend(broken.into_iter().map(problem));
        }
    }

    /// Whether a run that took this template would take another one now.
    pub fn has_changed(&self, frozen: &Frozen) -> bool {
        let now = match &frozen.file {
            Some(file) => freeze_file(&self.root.join(file), &self.root),
            None => self.freeze(&frozen.name),
        };
        let Ok(mut now) = now else { return false };
        self.read(&mut now);
        (&now.text, &now.operations, &now.programs) != (&frozen.text, &frozen.operations, &frozen.programs)
    }

    /// Loads, checks, and freezes with all templates that it uses. Prints what is wrong with it.
    pub fn load(&self, name: &str, report: &mut dyn FnMut(&str, &Loaded, &str)) -> Result<Ready, Failure> {
        let frozen = self.freeze(name)?;
        self.load_frozen(frozen, report)
    }

    pub fn load_frozen(
        &self,
        mut frozen: Frozen,
        report: &mut dyn FnMut(&str, &Loaded, &str),
    ) -> Result<Ready, Failure> {
        self.report_operations(&frozen.text, report);
        let file = frozen.file.clone().unwrap_or_else(|| frozen.name.clone());
        let loaded = self.read(&mut frozen);
        report(&file, &loaded, &frozen.text);
        let Some(template) = loaded.template else { return Err(invalid(&file)) };
        self.complete(template, frozen, report)
    }

    /// A checked template with the ones that it uses.
    pub fn complete(
        &self,
        template: Template,
        frozen: Frozen,
        report: &mut dyn FnMut(&str, &Loaded, &str),
    ) -> Result<Ready, Failure> {
        let (others, inner) = self.others(&template, &frozen, report)?;
        Ok(Ready { template, frozen, others, inner })
    }

    /// Templates that `workflow` steps name, and those that these name. A rendered name may mean any. Those that only
    /// a computed name in code can mean are taken along as they are: a broken one fails the call that names it, and
    /// what they need is not checked before the run.
    fn others(
        &self,
        template: &Template,
        own: &Frozen,
        report: &mut dyn FnMut(&str, &Loaded, &str),
    ) -> Result<(Vec<Frozen>, Vec<Template>), Failure> {
        let Called { mut needed, mut any } = self.called(template, own);
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut others: Vec<(Frozen, Template)> = Vec::new();
        while let Some(name) = needed.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let mut frozen = self.freeze(&name)?;
            let file = frozen.file.clone().unwrap_or_else(|| name.clone());
            let loaded = self.read(&mut frozen);
            report(&file, &loaded, &frozen.text);
            let Some(inner) = loaded.template else { return Err(invalid(&file)) };
            let called = self.called(&inner, &frozen);
            needed.extend(called.needed);
            any |= called.any;
            others.push((Frozen { name, ..frozen }, inner));
        }
        let rest = if any {
            self.all().keys().filter(|name| !seen.contains(*name)).cloned().collect()
        } else {
            vec![]
        };
        others.extend(rest.into_iter().filter_map(|name| {
            let mut frozen = self.freeze(&name).ok()?;
            let template = self.read(&mut frozen).template?;
            Some((Frozen { name, ..frozen }, template))
        }));
        others.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        Ok(others.into_iter().unzip())
    }

    fn called(&self, template: &Template, frozen: &Frozen) -> Called {
        let calls = workflow_calls(template);
        if calls.iter().any(|name| sage_core::expr::is_dynamic(name)) {
            return Called { needed: self.all().keys().cloned().collect(), any: false };
        }
        let mut called = Called { needed: calls.into_iter().map(str::to_string).collect(), any: false };
        for (file, program) in &frozen.programs {
            let found = programs::complete(file, &program.text, &self.root, &self.skills);
            // Of a script of Claude Code a call of an unknown workflow fails when it is made.
            let lenient = Dialect::of(&program.text) == Dialect::Claude;
            let known = |name: &String| !lenient || self.find(name).is_ok();
            called.needed.extend(found.workflows.into_iter().filter(known));
            called.any |= found.calls_any;
        }
        called
    }
}

/// What a template can call.
struct Called {
    needed: Vec<String>,
    /// Any workflow, by a computed name in its code.
    any: bool,
}

fn invalid(file: &str) -> Failure {
    Failure::usage(format!("`{file}` is not a valid template; nothing was run"))
}

pub fn freeze_file(path: &Path, root: &Path) -> Result<Frozen, Failure> {
    if programs::is_code(path) {
        return programs::freeze(path, root);
    }
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::usage(format!("cannot read `{shown}`: {error}"));
    let text = text_file::read_in(root, path, MAX_BYTES).map_err(|e| unreadable(&e))?;
    let name = path.file_stem().map_or_else(|| shown.clone(), |stem| stem.to_string_lossy().into_owned());
    Ok(Frozen { file: Some(shown.clone()), ..Frozen::new(name, Format::of_file(&shown), text) })
}

impl Catalogue for Catalog {
    fn names(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    fn calls(&self, name: &str) -> Option<Vec<String>> {
        if !self.all().contains_key(name) {
            return None;
        }
        let frozen = self.freeze(name).ok()?;
        let (node, _) = sage_core::source::parse(&frozen.text, frozen.format);
        // A template that does not load calls nothing; it is reported when it is loaded itself.
        let template = node.and_then(|node| read_template(&node, &self.operations.library).0);
        Some(template.map_or_else(Vec::new, |t| workflow_calls(&t).into_iter().map(str::to_string).collect()))
    }
}
