//! What the fixtures offer, as it is listed: `fixtures.json`.

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub struct Listed {
    pub tools: Vec<Tool>,
    pub prompts: Vec<Prompt>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    /// Schemas of what users are asked, by name.
    pub questions: Value,
}

impl Listed {
    pub fn read() -> std::io::Result<Listed> {
        Ok(serde_json::from_str(include_str!("fixtures.json"))?)
    }
}
