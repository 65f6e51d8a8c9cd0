//! The MCP servers of a project, as code calls them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sage_agents::mcp::{Tool, untrusted};
use sage_core::approval::Rules;
use sage_core::port::BoxFuture;
use sage_script::code::Tools;
use sage_script::tools::ToolDef;
use serde_json::{Map, Value};

use super::guard::Guard;

/// For a server to start and name its tools. One that takes longer is left out for now.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A person runs code by its name.
    Person,
    /// A model wrote it, or a step runs it.
    Model,
}

#[derive(Debug)]
pub struct HubTools {
    guard: Guard,
    catalogue: RwLock<Arc<[ToolDef]>>,
    /// Only tools that change nothing, says their server.
    reads: bool,
    /// Only these servers.
    only: Option<Vec<String>>,
    rules: Rules,
    author: Author,
}

impl HubTools {
    /// `rules` say which destructive tools may be called.
    pub fn new(guard: Guard, rules: Rules, author: Author) -> HubTools {
        HubTools { guard, catalogue: RwLock::new(Arc::new([])), reads: false, only: None, rules, author }
    }

    /// What may destroy something needs a rule. A tool that says nothing about itself may; of those a person who
    /// runs code knows more than a model does.
    async fn refuses_destruction(&self, server: &str, tool: &str) -> Option<String> {
        if self.rules.allows_tool(server, tool) {
            return None;
        }
        let known = self.guard.hub().tool(server, tool).await.ok()?;
        let needs_rule = known.says_destructive || (known.destructive && self.author == Author::Model);
        needs_rule.then(|| {
            format!(
                "`{server}/{tool}` may destroy something, and no rule allows it; to allow it, add to sage.toml: \
                 [approvals] tools = [\"{server}/{tool}\"]"
            )
        })
    }

    /// For whoever may not change anything.
    pub fn only_reading(self) -> HubTools {
        HubTools { reads: true, ..self }
    }

    /// For whoever is given some servers.
    pub fn only(self, servers: &[String]) -> HubTools {
        HubTools { only: Some(servers.to_vec()), ..self }
    }

    fn has(&self, server: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|it| it == server))
    }

    /// What is not in the catalogue of a reader is not called either, whatever its code says.
    fn refuses(&self, server: &str, tool: &str) -> bool {
        let limited = self.reads || self.only.is_some();
        limited && !self.catalogue().iter().any(|known| known.server == server && known.name == tool)
    }

    /// All servers at the same time.
    async fn ask(&self) -> Vec<String> {
        let mut asking = tokio::task::JoinSet::new();
        let hub = self.guard.hub();
        let mut notes = hub.take_notes();
        let left_out = hub.untrusted().filter(|name| self.has(name));
        notes.extend(left_out.map(|name| format!("left out: {}", untrusted(name))));
        for name in hub.names().filter(|name| self.has(name)).map(str::to_string).collect::<Vec<_>>() {
            if let Some(why) = self.guard.held(&name) {
                notes.push(format!("left out: {why}"));
                continue;
            }
            let hub = Arc::clone(hub);
            asking.spawn(async move {
                let tools = tokio::time::timeout(PATIENCE, hub.tools_of(&name)).await;
                (name, tools)
            });
        }
        let mut answers = asking.join_all().await;
        answers.sort_by(|one, other| one.0.cmp(&other.0));
        let mut all = Vec::new();
        for (name, answer) in answers {
            match answer {
                Ok(Ok(tools)) => {
                    notes.extend(tools.iter().filter_map(|tool| tool.refused.clone()));
                    let usable = |tool: &&Tool| tool.refused.is_none() && (tool.read_only || !self.reads);
                    all.extend(tools.iter().filter(usable).map(definition));
                }
                Ok(Err(failure)) => notes.push(format!("left out: {failure}")),
                Err(_) => {
                    let waited = PATIENCE.as_secs();
                    notes.push(format!("left out: server `{name}` did not tell its tools within {waited} s"));
                }
            }
        }
        *self.catalogue.write().unwrap_or_else(PoisonError::into_inner) = all.into();
        notes
    }
}

pub fn definition(tool: &Tool) -> ToolDef {
    ToolDef {
        server: tool.server.clone(),
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        output_schema: tool.output_schema.clone(),
        read_only: tool.read_only,
        destructive: tool.destructive,
    }
}

impl Tools for HubTools {
    fn catalogue(&self) -> Arc<[ToolDef]> {
        Arc::clone(&self.catalogue.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn refresh(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(self.ask())
    }

    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            if !self.has(server) {
                return Err(format!("there is no server `{server}` here"));
            }
            if self.refuses(server, tool) {
                return Err(format!("`{server}/{tool}` may change something, and this step may only read"));
            }
            if let Some(why) = self.refuses_destruction(server, tool).await {
                return Err(why);
            }
            let input = match input {
                Value::Object(map) => map,
                Value::Null => Map::new(),
                _ => return Err("it takes one object: `{ name: value }`".into()),
            };
            let answer =
                self.guard.call(server, tool, input, None).await.map_err(|failure| failure.message)?;
            if answer.is_error { Err(answer.text) } else { Ok(answer.value) }
        })
    }
}
