//! Three ways to play a chain: all definitions in every request, tools found by a search, tools called from code.
//!
//! All of them are played at their best: the model makes no detours, writes nothing but calls and code, and reads
//! every number right. Only the one failed try of each way is there, where it is asked for.

use std::collections::BTreeSet;

use sage_engine::tokens;
use sage_script::tools::{Detail, search};
use serde_json::{Value, json};

use super::chain::{Chain, written};
use super::frozen::Set;
use super::sandbox::Sandbox;
use super::talk::{Spent, Talk};
use crate::cli::failure::Failure;
use crate::mcp::definitions;

/// Tools that one search loads; those of the vendors give 3 to 5.
const HITS: usize = 5;
const SEARCH_TOOL: &str = r#"{"name":"tool_search","description":"Search for tools by what they do. The definitions of the tools that fit best are loaded and can be called then.","input_schema":{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do"},"limit":{"type":"integer"}},"required":["query"]}}"#;
/// Of this program's own MCP server: what a model needs for code mode.
const CODE_TOOLS: [&str; 2] = ["sage_tools_search", "sage_code_run"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Naive,
    ToolSearch,
    CodeMode,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Naive, Way::ToolSearch, Way::CodeMode];

    pub fn name(self) -> &'static str {
        match self {
            Way::Naive => "naive",
            Way::ToolSearch => "tool search",
            Way::CodeMode => "code mode",
        }
    }
}

pub struct Played {
    pub spent: Spent,
    pub answer: Value,
}

pub struct Stage<'a> {
    pub chain: &'a Chain,
    pub set: Set<'a>,
    pub sandbox: &'a dyn Sandbox,
    /// Whether each way fails once.
    pub retry: bool,
}

impl Stage<'_> {
    pub fn play(&self, way: Way) -> Result<Played, Failure> {
        let (mut talk, answer) = match way {
            Way::Naive => self.naive()?,
            Way::ToolSearch => self.tool_search()?,
            Way::CodeMode => self.code_mode()?,
        };
        talk.request(&answer.to_string());
        Ok(Played { spent: talk.spent, answer })
    }

    fn naive(&self) -> Result<(Talk, Value), Failure> {
        let mut talk = Talk::new(self.set.tokens(), self.chain.question);
        let answer = self.call(&mut talk)?;
        Ok((talk, answer))
    }

    fn tool_search(&self) -> Result<(Talk, Value), Failure> {
        let mut talk = Talk::new(tokens::count(SEARCH_TOOL), self.chain.question);
        talk.request(&self.searches("tool_search", &json!({})));
        talk.learn(self.set.tokens_of(&self.found()?));
        let answer = self.call(&mut talk)?;
        Ok((talk, answer))
    }

    fn code_mode(&self) -> Result<(Talk, Value), Failure> {
        let mut talk = Talk::new(code_tools()?, self.chain.question);
        talk.request(&self.searches("sage_tools_search", &json!({"detail": "signatures", "limit": HITS})));
        self.found()?;
        for query in self.chain.searches {
            talk.learn(tokens::count(&search(self.set.tools, query, Detail::Signatures, HITS).text()));
        }
        let mut value = None;
        for (at, code) in self.chain.code.iter().enumerate() {
            if let (true, Some(wrong)) =
                (self.retry && at + 1 == self.chain.code.len(), &self.chain.wrong_code)
            {
                talk.request(&in_code_run(wrong));
                let ran = self.sandbox.run(wrong);
                if ran.value.is_some() {
                    return Err(Failure::failed(
                        "code with a wrong name ran: the bench measures no failed try",
                    ));
                }
                talk.trouble(&ran.told);
            }
            talk.request(&in_code_run(code));
            let ran = self.sandbox.run(code);
            talk.result(&ran.told);
            value = Some(ran.value.ok_or_else(|| Failure::failed(format!("the code failed: {}", ran.told)))?);
        }
        let answer = value.ok_or_else(|| Failure::failed("the chain has no code"))?;
        Ok((talk, answer))
    }

    /// Call by call, each result into the history.
    fn call(&self, talk: &mut Talk) -> Result<Value, Failure> {
        for (at, call) in self.chain.calls.iter().enumerate() {
            if let (true, Some((before, wrong))) = (self.retry, &self.chain.wrong_call)
                && *before == at
            {
                talk.request(&wrong.written);
                talk.trouble(&wrong.result);
            }
            talk.request(&call.written);
            talk.result(&call.result);
        }
        (self.chain.read)(&talk.seen).ok_or_else(|| Failure::failed("the results do not hold the answer"))
    }

    /// All searches are written in one response.
    fn searches(&self, name: &str, more: &Value) -> String {
        let one = |query: &&str| {
            let mut input = more.clone();
            input["query"] = (*query).into();
            written(name, &input)
        };
        self.chain.searches.iter().map(one).collect()
    }

    /// The tools that the searches find, among which are those of the chain.
    fn found(&self) -> Result<BTreeSet<usize>, Failure> {
        let hits = |query: &&str| search(self.set.tools, query, Detail::Names, HITS).hits;
        let found: BTreeSet<usize> = self.chain.searches.iter().flat_map(hits).map(|hit| hit.index).collect();
        for (server, name) in &self.chain.needs {
            let is_it = |index: &usize| {
                let tool = &self.set.tools[*index];
                tool.server == *server && tool.name == *name
            };
            if !found.iter().any(is_it) {
                let tools = self.set.tools.len();
                return Err(Failure::failed(format!(
                    "the search among {tools} tools does not find {server}/{name}"
                )));
            }
        }
        Ok(found)
    }
}

/// JSON with its escapes, as a model has to write it.
fn in_code_run(code: &str) -> String {
    written("sage_code_run", &json!({"code": code}))
}

/// Of the definitions that code mode needs, as a model's API gets them.
fn code_tools() -> Result<u64, Failure> {
    let mut sum = 0;
    for name in CODE_TOOLS {
        let tool = definitions::all().iter().find(|tool| tool.name == name);
        let tool =
            tool.ok_or_else(|| Failure::failed(format!("`{name}` is not a tool of sage's MCP server")))?;
        sum += tokens::of_json(&json!({
            "name": tool.name, "description": tool.description, "input_schema": tool.input_schema,
        }));
    }
    Ok(sum)
}
