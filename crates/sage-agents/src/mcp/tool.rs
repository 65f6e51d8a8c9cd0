//! A tool as its server describes it.

use sage_core::digest::Digest;
use sage_core::secret::Redactor;
use serde_json::{Value, json};

/// The definition of one tool. Hints are its server's word and no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub server: String,
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub read_only: bool,
    /// It says so, or says nothing about it.
    pub destructive: bool,
    /// It says so itself. Not part of what is trusted: `destructive` is.
    pub says_destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
    /// SHA-256 of its definition, in hex.
    pub hash: String,
    /// Why it must not be called: it is not what was trusted.
    pub refused: Option<String>,
}

impl Tool {
    pub fn new(server: &str, told: rmcp::model::Tool) -> Tool {
        let hints = told.annotations.unwrap_or_default();
        let read_only = hints.read_only_hint.unwrap_or(false);
        let mut tool = Tool {
            server: server.to_owned(),
            name: told.name.into_owned(),
            title: told.title.or(hints.title),
            description: told.description.unwrap_or_default().into_owned(),
            input_schema: Value::Object((*told.input_schema).clone()),
            output_schema: told.output_schema.map(|schema| Value::Object((*schema).clone())),
            read_only,
            // What only reads destroys nothing, whatever else is said or not said.
            destructive: !read_only && hints.destructive_hint.unwrap_or(true),
            says_destructive: !read_only && hints.destructive_hint == Some(true),
            idempotent: read_only || hints.idempotent_hint.unwrap_or(false),
            open_world: hints.open_world_hint.unwrap_or(true),
            hash: String::new(),
            refused: None,
        };
        tool.hash = Digest::of_json(&tool.definition()).to_string();
        tool
    }

    /// Definitions are kept: without the values of keys.
    pub fn redact(&mut self, redactor: &Redactor) {
        self.title.iter_mut().chain([&mut self.description]).for_each(|text| redactor.string(text));
        self.output_schema.iter_mut().chain([&mut self.input_schema]).for_each(|it| redactor.value(it));
        self.hash = Digest::of_json(&self.definition()).to_string();
    }

    /// What is trusted when a tool is: a change of any of it is a change of the tool.
    pub fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "hints": {
                "readOnly": self.read_only,
                "destructive": self.destructive,
                "idempotent": self.idempotent,
                "openWorld": self.open_world,
            },
        })
    }

    /// Calling it twice is as good as once.
    pub fn is_repeatable(&self) -> bool {
        self.read_only || self.idempotent
    }

    /// The first sentence of its description, or its title, cut at `chars`.
    pub fn summary(&self, chars: usize) -> String {
        let text = if self.description.trim().is_empty() {
            self.title.as_deref().unwrap_or_default()
        } else {
            self.description.trim()
        };
        let line = text.lines().next().unwrap_or_default();
        let sentence = line.split_inclusive(". ").next().unwrap_or_default().trim_end();
        let mut short: String = sentence.chars().take(chars).collect();
        if short.len() < sentence.len() {
            short.push('…');
        }
        short
    }
}
