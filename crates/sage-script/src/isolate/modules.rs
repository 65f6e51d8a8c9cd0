//! Modules that exist in memory only.
//!
//! `./x.ts` is meant from the folder of the module that imports it; other names (`sage`, `servers/github`) are
//! as they are. What does not exist is an error that names what does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Exception, Module, Result};
use sage_core::diagnostic::nearest;

/// Names that an error lists.
const LISTED: usize = 20;

/// JavaScript by the name that it is imported by.
#[derive(Clone, Debug, Default)]
pub(super) struct Modules(Rc<RefCell<BTreeMap<String, String>>>);

impl Modules {
    pub fn add(&self, path: &str, code: String) {
        self.0.borrow_mut().insert(normal("", path), code);
    }

    pub fn get(&self, path: &str) -> Option<String> {
        self.0.borrow().get(path).cloned()
    }

    /// `./rank` and `./rank.js` find `./rank.ts`; `servers/x` finds `servers/x/index.ts`.
    fn find(&self, path: &str) -> Option<String> {
        let modules = self.0.borrow();
        let stem = path.strip_suffix(".js").unwrap_or(path);
        let known = [path.to_owned(), format!("{stem}.ts"), format!("{path}.js"), format!("{path}/index.ts")];
        known.into_iter().find(|path| modules.contains_key(path))
    }

    fn missing(&self, base: &str, name: &str, path: &str) -> String {
        let modules = self.0.borrow();
        let names = || modules.keys().map(String::as_str).filter(|known| *known != base);
        if name.starts_with("node:") || name.contains("://") {
            return format!("`{name}` cannot be imported: scripts have no files, no network and no Node");
        }
        let hint = match nearest(path, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names().next().is_none() => "there are no modules to import".to_owned(),
            None => format!("there are: {}", names().take(LISTED).collect::<Vec<_>>().join(", ")),
        };
        format!("no module `{name}`; {hint}")
    }
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let path = normal(base, name);
        self.find(&path).ok_or_else(|| Exception::throw_reference(ctx, &self.missing(base, name, &path)))
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let code = self.get(name).ok_or_else(|| Error::new_loading(name))?;
        Module::declare(ctx.clone(), name, code)
    }
}

/// `./lib/../x.ts` from `./lib/y.ts` is `./x.ts`; nothing leads above the first folder.
fn normal(base: &str, name: &str) -> String {
    if !name.starts_with("./") && !name.starts_with("../") {
        return name.to_owned();
    }
    let folder = base.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("./{}", parts.join("/"))
}
