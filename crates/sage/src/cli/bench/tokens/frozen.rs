//! What was recorded of real servers: their definitions and their answers, part of the binary.

use std::collections::BTreeSet;

use sage_engine::tokens;
use sage_script::tools::ToolDef;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::failure::Failure;

const SERVERS: &str = include_str!("../../../../bench-data/tokens/servers.jsonl");
const RESULTS: &str = include_str!("../../../../bench-data/tokens/results.jsonl");

/// The smallest set: the tools of the chain among others of the same servers. Larger sets begin with it.
const FIRST: [(&str, &str); 10] = [
    ("sqlite", "read_query"),
    ("filesystem", "read_text_file"),
    ("git", "git_log"),
    ("git", "git_show"),
    ("filesystem", "list_directory"),
    ("filesystem", "search_files"),
    ("git", "git_status"),
    ("git", "git_diff"),
    ("sqlite", "list_tables"),
    ("sqlite", "describe_table"),
];

#[derive(Deserialize)]
struct Server {
    server: String,
    tools: Vec<Value>,
}

/// A call and what a server really answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    pub server: String,
    pub tool: String,
    pub arguments: Value,
    pub is_error: bool,
    /// The server sent the text as `content` of an object too.
    pub structured: bool,
    pub text: String,
}

impl Recorded {
    /// As a client hands it to code.
    pub fn value(&self) -> Value {
        if self.structured { json!({"content": self.text}) } else { self.text.clone().into() }
    }
}

/// The definitions in the order in which sets are filled, and the tokens that each costs in a request.
pub struct Frozen {
    pub servers: usize,
    pub tools: Vec<ToolDef>,
    tokens: Vec<u64>,
    pub results: Vec<Recorded>,
}

impl Frozen {
    pub fn read() -> Result<Frozen, Failure> {
        let servers: Vec<Server> = lines(SERVERS)?;
        let listed = servers.iter().flat_map(|it| it.tools.iter().map(|tool| (it.server.as_str(), tool)));
        let mut tools: Vec<ToolDef> =
            listed.filter_map(|(server, tool)| ToolDef::from_listing(server, tool)).collect();
        let place = |tool: &ToolDef| FIRST.iter().position(|it| *it == (&tool.server, &tool.name));
        // Stable: the rest stays in the order of the file.
        tools.sort_by_key(|tool| place(tool).unwrap_or(FIRST.len()));
        let tokens = tools.iter().map(|tool| tokens::of_json(&definition(tool))).collect();
        Ok(Frozen { servers: servers.len(), tools, tokens, results: lines(RESULTS)? })
    }

    /// The first tools.
    pub fn set(&self, size: usize) -> Set<'_> {
        let size = size.min(self.tools.len());
        Set { tools: &self.tools[..size], tokens: &self.tokens[..size] }
    }

    /// The answer to exactly this call.
    pub fn result(&self, server: &str, tool: &str, arguments: &Value) -> Result<&Recorded, Failure> {
        let same = |it: &&Recorded| it.server == server && it.tool == tool && it.arguments == *arguments;
        let found = self.results.iter().find(same);
        found.ok_or_else(|| {
            Failure::failed(format!("no answer of `{server}/{tool}` to {arguments} is recorded"))
        })
    }
}

/// The tools that a conversation can use.
#[derive(Clone, Copy)]
pub struct Set<'a> {
    pub tools: &'a [ToolDef],
    tokens: &'a [u64],
}

impl Set<'_> {
    /// Of all definitions.
    pub fn tokens(&self) -> u64 {
        self.tokens.iter().sum()
    }

    /// Of some of them, each counted once.
    pub fn tokens_of(&self, indexes: &BTreeSet<usize>) -> u64 {
        indexes.iter().filter_map(|index| self.tokens.get(*index)).sum()
    }
}

/// As a model's API gets it: servers share names, so clients put the server before the tool.
fn definition(tool: &ToolDef) -> Value {
    let name = wire_name(&tool.server, &tool.name);
    json!({"name": name, "description": tool.description, "input_schema": tool.input_schema})
}

pub fn wire_name(server: &str, tool: &str) -> String {
    format!("{server}__{tool}")
}

fn lines<T: for<'a> Deserialize<'a>>(text: &str) -> Result<Vec<T>, Failure> {
    let read = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    read.map_err(|error| Failure::failed(format!("the bench's own data is not valid: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R19
    #[test]
    fn the_sets_are_of_several_real_servers() {
        let frozen = Frozen::read().unwrap();
        assert!(frozen.servers >= 5 && frozen.tools.len() >= 200, "{} tools", frozen.tools.len());
        let first: Vec<(&str, &str)> =
            frozen.set(10).tools.iter().map(|it| (it.server.as_str(), it.name.as_str())).collect();
        assert_eq!(first, FIRST);
        let all: BTreeSet<usize> = (0..10).collect();
        assert_eq!(frozen.set(10).tokens(), frozen.set(200).tokens_of(&all));
        assert!(frozen.results.iter().any(|it| it.is_error) && frozen.results.iter().any(|it| it.structured));
        let bytes: usize = frozen.results.iter().map(|it| it.text.len()).sum();
        assert!((30_000..150_000).contains(&bytes), "{bytes} bytes of results");
    }
}
