//! What a model can use while it answers. More than files (MCP servers, code) plugs in as another `ToolBox`.

use std::sync::Arc;

use sage_core::port::BoxFuture;
use sage_core::role::Access;
use serde_json::Value;

use crate::agent::Feed;

/// Most of a result that a model is given: more costs money with every turn that follows.
const RESULT_CHARS: usize = 200_000;

#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub input_schema: Value,
}

pub trait ToolBox: Send + Sync {
    fn tools(&self) -> Vec<ToolSpec>;

    /// Text or JSON for the model; a failure is told to the model, too, and ends nothing.
    fn call<'a>(&'a self, name: &'a str, input: &'a Value) -> BoxFuture<'a, Result<Value, String>>;
}

/// Opens a box for each conversation; what is in it belongs to whoever put the program together.
#[derive(Clone)]
pub struct MoreTools(Arc<Open>);

/// By what the step may do, and which servers it names.
type Open = dyn Fn(Access, Option<&[String]>) -> Box<dyn ToolBox> + Send + Sync;

impl std::fmt::Debug for MoreTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MoreTools")
    }
}

impl MoreTools {
    pub fn new(
        open: impl Fn(Access, Option<&[String]>) -> Box<dyn ToolBox> + Send + Sync + 'static,
    ) -> MoreTools {
        MoreTools(Arc::new(open))
    }

    pub fn open(&self, access: Access, servers: Option<&[String]>) -> Box<dyn ToolBox> {
        (self.0)(access, servers)
    }
}

/// Several boxes as one; only the tools that the step may use.
pub struct Toolboxes {
    boxes: Vec<Box<dyn ToolBox>>,
    /// Each with the number of its box.
    offered: Vec<(usize, ToolSpec)>,
}

impl std::fmt::Debug for Toolboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolboxes").field("offered", &self.offered).finish_non_exhaustive()
    }
}

impl Toolboxes {
    /// `wanted` are the step's `tools`; without any, all are offered. Of equal names the first counts.
    pub fn new(boxes: Vec<Box<dyn ToolBox>>, wanted: &[String], feed: &Feed) -> Toolboxes {
        let mut offered: Vec<(usize, ToolSpec)> = Vec::new();
        for (index, tools) in boxes.iter().enumerate() {
            for tool in tools.tools() {
                let known = offered.iter().any(|(_, other)| other.name == tool.name);
                if !known && (wanted.is_empty() || wanted.contains(&tool.name)) {
                    offered.push((index, tool));
                }
            }
        }
        // A step that falls back from another agent names that one's tools: no reason to fail.
        for name in wanted.iter().filter(|name| !offered.iter().any(|(_, tool)| tool.name == **name)) {
            feed.note(&format!("there is no tool `{name}` here"));
        }
        Toolboxes { boxes, offered }
    }

    pub fn specs(&self) -> Vec<ToolSpec> {
        self.offered.iter().map(|(_, tool)| tool.clone()).collect()
    }

    /// The result as text, cut where it would be too much.
    pub async fn call(&self, name: &str, input: &Value) -> Result<String, String> {
        let Some((index, _)) = self.offered.iter().find(|(_, tool)| tool.name == name) else {
            let names: Vec<&str> = self.offered.iter().map(|(_, tool)| tool.name.as_str()).collect();
            return Err(format!("there is no tool `{name}`; there are: {}", names.join(", ")));
        };
        match self.boxes[*index].call(name, input).await {
            Ok(Value::String(text)) => Ok(shortened(text)),
            Ok(value) => Ok(shortened(value.to_string())),
            Err(message) => Err(shortened(message)),
        }
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(RESULT_CHARS) {
        Some((end, _)) => format!("{}\n[cut off: the result has {} bytes]", &text[..end], text.len()),
        None => text,
    }
}
