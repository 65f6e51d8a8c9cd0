//! What helps a model to mend its code: the line that is meant, and the names that exist.

use sage_core::diagnostic::nearest;

use crate::tools::ToolDef;
use crate::typing::{self, Server};

/// Functions in a hint.
const FEW: usize = 30;

/// The line that the first frame names: `3 |   const x = github.serch()`.
pub fn excerpt(message: &str, name: &str, code: &str) -> Option<String> {
    let line = place(message, name)?;
    let text = code.lines().nth(line.checked_sub(1)?)?;
    let cut: String = text.chars().take(160).collect();
    Some(format!("{line} | {}", cut.trim_end()))
}

/// The line of the first `name:line:column` of a message.
fn place(message: &str, name: &str) -> Option<usize> {
    let (_, rest) = message.split_once(&format!("{name}:"))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// What to write instead, if that can be told.
pub fn hint(message: &str, name: &str, code: &str, catalogue: &[ToolDef]) -> Option<String> {
    let servers = typing::servers(catalogue);
    two_values(message)
        .or_else(|| missing_export(message, &servers))
        .or_else(|| failed_tool(message, catalogue, &servers))
        .or_else(|| misspelled(message, name, code, &servers))
}

/// QuickJS, of code that also returns: `unsupported keyword: export`.
fn two_values(message: &str) -> Option<String> {
    let both = message.contains("unsupported keyword: export");
    both.then(|| {
        "code that exports does not return: write `export default value` instead of `return value`".into()
    })
}

/// QuickJS: `Could not find export 'serch' in module 'servers/github'`.
fn missing_export(message: &str, servers: &[Server]) -> Option<String> {
    let rest = message.split_once("find export '")?.1;
    let (wrong, rest) = rest.split_once('\'')?;
    let module = rest.split_once("module '")?.1.split_once('\'')?.0;
    if module == "sage" {
        return Some("`sage` has: callTool, tools, handles, input".into());
    }
    let server = servers.iter().find(|server| module.strip_prefix("servers/") == Some(&server.module))?;
    let names: Vec<&str> = server.functions.iter().map(|function| function.name.as_str()).collect();
    let near = nearest(wrong, names.iter().copied()).map(|near| format!("did you mean `{near}`? "));
    let more = if names.len() > FEW { ", ..." } else { "" };
    let few: Vec<&str> = names.into_iter().take(FEW).collect();
    Some(format!("{}`{module}` has: {}{more}", near.unwrap_or_default(), few.join(", ")))
}

/// `github/search: ...`: how it is called.
fn failed_tool(message: &str, catalogue: &[ToolDef], servers: &[Server]) -> Option<String> {
    let named = message.strip_prefix("ToolError: ")?.split(": ").next()?;
    let tool = catalogue.iter().position(|tool| named == format!("{}/{}", tool.server, tool.name))?;
    let server = servers.iter().find(|server| server.name == catalogue[tool].server)?;
    let function = server.functions.iter().find(|function| function.index == tool)?;
    Some(typing::signature(&catalogue[tool], server, function))
}

/// A word of the line that is nearly a function of a server that the code imports.
fn misspelled(message: &str, name: &str, code: &str, servers: &[Server]) -> Option<String> {
    let asks = ["not a function", "is not defined", "undefined"].iter().any(|words| message.contains(words));
    let line = code.lines().nth(place(message, name)?.checked_sub(1)?).filter(|_| asks)?;
    let words: Vec<&str> = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).collect();
    let imported = |server: &&Server| code.contains(&format!("servers/{}", server.module));
    for server in servers.iter().filter(imported) {
        let names: Vec<&str> = server.functions.iter().map(|function| function.name.as_str()).collect();
        for word in words.iter().filter(|word| word.len() > 2 && !names.contains(*word)) {
            if let Some(near) = nearest(word, names.iter().copied()) {
                return Some(format!("`servers/{}` has no `{word}`; did you mean `{near}`?", server.module));
            }
        }
    }
    None
}
