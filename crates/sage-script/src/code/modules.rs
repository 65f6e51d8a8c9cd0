//! What code can import: the functions of servers, and skills. Everything else is told what there is instead.

use sage_core::diagnostic::nearest;

use super::wire::Module;
use crate::tools::ToolDef;
use crate::typing;

/// Names in a message.
const FEW: usize = 20;

/// Skills that code may import as `skills/<name>`.
pub trait Skills: Send + Sync {
    fn names(&self) -> Vec<String>;

    /// The TypeScript of one, or why it cannot be used.
    fn text(&self, name: &str) -> Result<String, String>;
}

/// None at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSkills;

impl Skills for NoSkills {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn text(&self, _: &str) -> Result<String, String> {
        Err("there are no skills here".into())
    }
}

/// The text of a module by its name, or what there is instead.
pub fn module(wanted: &str, catalogue: &[ToolDef], skills: &dyn Skills) -> Module {
    let plain = wanted.trim_end_matches(".ts").trim_end_matches(".js").trim_end_matches("/index");
    if let Some(rest) = plain.strip_prefix("servers/") {
        return server(wanted, rest, catalogue, skills);
    }
    if let Some(name) = plain.strip_prefix("skills/") {
        return match skills.text(name) {
            Ok(text) => Module::TypeScript(text),
            Err(why) => Module::Missing { why },
        };
    }
    Module::Missing { why: missing(wanted, catalogue, skills) }
}

fn server(wanted: &str, rest: &str, catalogue: &[ToolDef], skills: &dyn Skills) -> Module {
    let (name, function) = match rest.split_once('/') {
        Some((name, function)) => (name, Some(function)),
        None => (rest, None),
    };
    let servers = typing::servers(catalogue);
    let Some(mut server) = servers.into_iter().find(|server| server.module == name || server.name == name)
    else {
        return Module::Missing { why: missing(wanted, catalogue, skills) };
    };
    if let Some(function) = function {
        let named = |it: &typing::Function| it.name == function || catalogue[it.index].name == function;
        if !server.functions.iter().any(named) {
            let names = server.functions.iter().map(|it| it.name.as_str());
            let near =
                nearest(function, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Module::Missing { why: format!("`servers/{}` has no `{function}`{near}", server.module) };
        }
        server.functions.retain(named);
    }
    Module::Script(typing::script(&server, catalogue))
}

fn missing(wanted: &str, catalogue: &[ToolDef], skills: &dyn Skills) -> String {
    let mut names = vec!["sage".to_string()];
    names.extend(typing::servers(catalogue).iter().map(|server| format!("servers/{}", server.module)));
    names.extend(skills.names().iter().map(|name| format!("skills/{name}")));
    let near =
        nearest(wanted, names.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`? "));
    let more = if names.len() > FEW { format!(" and {} more", names.len() - FEW) } else { String::new() };
    names.truncate(FEW);
    format!(
        "there is no module `{}`; {}there are: {}{more}. Code has no files, network or packages",
        wanted.escape_debug(),
        near.unwrap_or_default(),
        names.join(", "),
    )
}
