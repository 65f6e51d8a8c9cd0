//! Names for code: the tool `get-sum` is the function `getSum`, its server a module that can be imported.
//!
//! Every name is found back: two tools of a server never share one, also not where letters' case does not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::tools::ToolDef;

/// Longer ones help nobody.
const MAX_NAME: usize = 64;

/// Words that cannot name a function or would hide one that code needs.
const RESERVED: &[&str] = &[
    "abstract",
    "any",
    "arguments",
    "as",
    "async",
    "await",
    "boolean",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constructor",
    "continue",
    "debugger",
    "declare",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "from",
    "function",
    "get",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "is",
    "keyof",
    "let",
    "module",
    "namespace",
    "never",
    "new",
    "null",
    "number",
    "object",
    "of",
    "package",
    "private",
    "protected",
    "public",
    "readonly",
    "require",
    "return",
    "satisfies",
    "set",
    "static",
    "string",
    "super",
    "switch",
    "symbol",
    "then",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "unknown",
    "using",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "callTool",
    "input",
    "Promise",
    "Object",
    "Array",
    "JSON",
    "Math",
    "Date",
    "Error",
    "String",
    "Number",
    "Record",
    "console",
    "tools",
    "handles",
    "globalThis",
    "NaN",
    "Infinity",
    "__proto__",
];

/// A server as code imports it, with the functions of its tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Server {
    /// As it is called outside.
    pub name: String,
    /// `servers/<module>`
    pub module: String,
    pub functions: Vec<Function>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// As code calls it.
    pub name: String,
    /// What its types begin with: `GetSum` of `GetSumInput`.
    pub type_name: String,
    /// Where its definition is in the list that this was made of.
    pub index: usize,
}

/// All servers of a catalogue, in the order of their names; tools keep theirs.
pub fn servers(catalogue: &[ToolDef]) -> Vec<Server> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, tool) in catalogue.iter().enumerate() {
        by_name.entry(&tool.server).or_default().push(index);
    }
    let mut modules = BTreeSet::new();
    let all = by_name.into_iter().map(|(name, tools)| {
        let module = free(module_name(name), &mut modules);
        let mut used = BTreeSet::new();
        let function = |index: usize| {
            let name = free(function_name(&catalogue[index].name), &mut used);
            Function { type_name: pascal(&name), name, index }
        };
        Server { name: name.to_string(), module, functions: tools.into_iter().map(function).collect() }
    });
    all.collect()
}

/// `get-sum`, `get_sum` and `Get Sum` as `getSum`; a word of the language gets a line behind it.
pub fn function_name(tool: &str) -> String {
    let mut name = String::new();
    let mut upper = false;
    for c in tool.chars() {
        if !c.is_ascii_alphanumeric() && c != '$' {
            upper = !name.is_empty();
            continue;
        }
        match (upper, name.is_empty()) {
            (true, _) => name.push(c.to_ascii_uppercase()),
            (false, true) => name.push(c.to_ascii_lowercase()),
            (false, false) => name.push(c),
        }
        upper = false;
        if name.len() == MAX_NAME {
            break;
        }
    }
    // `URLFetch` began in capitals: keep them rather than writing `uRLFetch`.
    let capitals = tool.chars().take_while(char::is_ascii_uppercase).count();
    if capitals > 1 && name.len() >= capitals {
        name = format!("{}{}", name[..capitals].to_ascii_lowercase(), &name[capitals..]);
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if name == "_" {
        name.push_str("tool");
    }
    if RESERVED.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// `getSum` as `GetSum`.
pub fn pascal(name: &str) -> String {
    let mut chars = name.trim_start_matches('_').chars();
    match chars.next() {
        Some(first) if first.is_ascii_digit() => format!("T{first}{}", chars.as_str()),
        Some(first) => format!("{}{}", first.to_ascii_uppercase(), chars.as_str()),
        None => "Tool".into(),
    }
}

/// Letters, digits, `-` and `_`: nothing that could leave the folder of the servers.
fn module_name(server: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = server.chars().map(clean).take(MAX_NAME).collect();
    if name.is_empty() { "server".into() } else { name }
}

/// The name itself or, if it is taken, with the next free number.
fn free(name: String, used: &mut BTreeSet<String>) -> String {
    if used.insert(name.to_ascii_lowercase()) {
        return name;
    }
    let numbered = (2u64..).map(|number| format!("{name}_{number}"));
    let mut unused = numbered.skip_while(|name| used.contains(&name.to_ascii_lowercase()));
    let found = unused.next().unwrap_or(name);
    used.insert(found.to_ascii_lowercase());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(server: &str, name: &str) -> ToolDef {
        ToolDef { server: server.into(), name: name.into(), ..ToolDef::default() }
    }

    // covers: R21
    #[test]
    fn tools_become_functions_that_are_found_back() {
        let names = |all: &[&str]| -> Vec<String> {
            let tools: Vec<ToolDef> = all.iter().map(|name| tool("s", name)).collect();
            servers(&tools)[0].functions.iter().map(|function| function.name.clone()).collect()
        };
        assert_eq!(
            names(&["get-sum", "get_sum", "getSum", "GETSUM"]),
            ["getSum", "getSum_2", "getSum_3", "getsum_4"]
        );
        assert_eq!(
            names(&["delete", "2fa", "", "…", "URLFetch", "API-post-search", "a.b/c d"]),
            ["delete_", "_2fa", "_tool", "_tool_2", "urlfetch", "apiPostSearch", "aBCD"]
        );
        assert_eq!(pascal("_2fa"), "T2fa");
    }

    #[test]
    fn modules_of_servers_cannot_leave_their_folder() {
        let tools = [tool("../../etc", "a"), tool("git hub", "b"), tool("git-hub", "c")];
        let modules: Vec<String> = servers(&tools).into_iter().map(|server| server.module).collect();
        assert_eq!(modules, ["------etc", "git-hub", "git-hub_2"]);
    }

    #[test]
    fn a_thousand_equal_names_take_no_time() {
        let tools: Vec<ToolDef> = (0..1_000).map(|_| tool("s", "same")).collect();
        assert_eq!(servers(&tools)[0].functions[999].name, "same_1000");
    }
}
