//! Tool calls as they become known: the first word about one is often not the whole.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use sage_core::inquiry::Inquiry;
use sage_core::port::{AskKind, PermissionAsk};
use serde_json::Value;

use super::names;
use crate::agent::describe;

/// Open tool calls that are remembered; no agent has that many at once.
const OPEN_CALLS: usize = 1_000;

#[derive(Debug, Default)]
pub struct Tools {
    open: BTreeMap<String, Call>,
    /// Any tool has been used in this turn.
    pub used: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    pub id: String,
    name: Option<String>,
    title: String,
    kind: Option<ToolKind>,
    input: Value,
    paths: Vec<String>,
    /// What it shows beside its input.
    shows: String,
    /// What it does is known, so that it can be shown.
    known: bool,
    shown: bool,
    /// What it gave, and whether it failed.
    output: String,
    ended: Option<bool>,
}

/// What of a call is worth showing now.
#[derive(Debug, Default, PartialEq)]
pub struct Shown {
    pub call: String,
    /// The tool and its input, once.
    pub begun: Option<(String, Value)>,
    /// What it gave and whether it failed, once.
    pub ended: Option<(String, bool)>,
}

impl Tools {
    pub fn knows(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    pub fn begin(&mut self, call: ToolCall) -> &mut Call {
        let mut fields = ToolCallUpdateFields::new().title(call.title).name(call.name).content(call.content);
        fields = fields.locations(call.locations).raw_input(call.raw_input).status(call.status);
        if call.kind != ToolKind::Other {
            fields = fields.kind(call.kind);
        }
        self.update(ToolCallUpdate::new(call.tool_call_id, fields).meta(call.meta))
    }

    pub fn update(&mut self, update: ToolCallUpdate) -> &mut Call {
        self.used = true;
        let id = update.tool_call_id.0.to_string();
        if self.open.len() >= OPEN_CALLS && !self.open.contains_key(&id) {
            self.open.pop_first();
        }
        let call = self.open.entry(id.clone()).or_insert_with(|| Call { id, ..Call::default() });
        let named = update.meta.as_ref().and_then(names::of_meta);
        call.name = named.or(call.name.take());
        call.learn(update.fields);
        call
    }
}

impl Call {
    fn learn(&mut self, fields: ToolCallUpdateFields) {
        self.name = fields.name.or(self.name.take());
        self.kind = fields.kind.or(self.kind);
        self.title =
            fields.title.filter(|title| !title.is_empty()).unwrap_or(std::mem::take(&mut self.title));
        if let Some(input) = fields.raw_input.filter(|input| !is_blank(input)) {
            self.input = input;
        }
        let located = fields.locations.unwrap_or_default();
        let content = fields.content.unwrap_or_default();
        let paths = located.iter().map(|ToolCallLocation { path, .. }| path);
        let shows: Vec<&str> = content.iter().filter_map(shown).collect();
        if !shows.is_empty() {
            self.shows = shows.join("\n");
        }
        for path in paths.chain(content.iter().filter_map(changed)) {
            let path = path.to_string_lossy().into_owned();
            if !self.paths.contains(&path) {
                self.paths.push(path);
            }
        }
        self.output.extend(content.iter().filter_map(text));
        if self.output.is_empty() {
            self.output = fields.raw_output.as_ref().and_then(raw_text).unwrap_or_default();
        }
        match fields.status {
            Some(ToolCallStatus::Completed) => self.ended = Some(false),
            Some(ToolCallStatus::Failed) => self.ended = Some(true),
            _ => {}
        }
        let under_way = fields.status.is_some_and(|status| status != ToolCallStatus::Pending);
        self.known |= under_way || !is_blank(&self.input);
    }

    /// As soon as there is something to show: the tool and what it does, then what it gave.
    pub fn show(&mut self) -> Shown {
        let begins = self.known && !self.shown;
        self.shown |= begins;
        let begun = begins.then(|| (self.tool(), self.shown_input()));
        let ended = self.ended.take().filter(|_| self.shown);
        let ended = ended.map(|failed| (std::mem::take(&mut self.output), failed));
        Shown { call: self.id.clone(), begun, ended }
    }

    /// The title is made for people, where it is more than the tool's name.
    fn shown_input(&self) -> Value {
        if self.title.is_empty() || self.title == self.tool() {
            return self.input.clone();
        }
        self.title.clone().into()
    }

    /// The tool's name; agents that have none for it give it a title.
    pub fn tool(&self) -> String {
        let kind = || serde_json::to_value(self.kind?).ok()?.as_str().map(str::to_string);
        self.name.clone().or_else(kind).unwrap_or_else(|| self.title.clone())
    }

    /// Whether a tool that a step lists is this one. A title counts only without a name: the model may choose it.
    pub fn is(&self, tool: &str) -> bool {
        let name = self.name.as_deref().or_else(|| names::of_id(&self.id));
        names::covers(tool, name, self.kind) || (name.is_none() && self.title == tool)
    }

    /// Harmless by its kind.
    pub fn only_looks(&self) -> bool {
        matches!(self.kind, Some(ToolKind::Read | ToolKind::Search))
    }

    /// It would leave the mode in which the agent plans; what it shows is the plan.
    fn plan(&self) -> Option<String> {
        let own = self.input["plan"].as_str().filter(|plan| !plan.trim().is_empty());
        let plan = own.unwrap_or(&self.shows);
        (self.kind == Some(ToolKind::SwitchMode) && !plan.is_empty()).then(|| plan.to_string())
    }

    /// The question that this call is; `id` is unique in the attempt.
    pub fn ask(&self, id: String) -> PermissionAsk {
        if let Some(plan) = self.plan() {
            return PermissionAsk::of_person(&id, &self.tool(), self.input.clone(), Inquiry::Plan(plan));
        }
        let described = describe(&id, &self.tool(), self.input.clone());
        let kind = match self.kind {
            Some(ToolKind::Read | ToolKind::Search) => AskKind::Read,
            Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => AskKind::Write,
            Some(ToolKind::Execute) => AskKind::Run,
            Some(ToolKind::Fetch) => AskKind::Network,
            _ => described.kind,
        };
        let command =
            (kind == AskKind::Run).then(|| command(&self.input).unwrap_or_else(|| self.title.clone()));
        let paths = if self.paths.is_empty() { described.paths } else { self.paths.clone() };
        PermissionAsk { kind, command, paths, ..described }
    }
}

fn shown(content: &ToolCallContent) -> Option<&str> {
    match content {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Text(text) => Some(&text.text),
            _ => None,
        },
        _ => None,
    }
}

fn changed(content: &ToolCallContent) -> Option<&std::path::PathBuf> {
    match content {
        ToolCallContent::Diff(diff) => Some(&diff.path),
        _ => None,
    }
}

fn text(content: &ToolCallContent) -> Option<&str> {
    match content {
        ToolCallContent::Content(Content { content: ContentBlock::Text(text), .. }) => Some(&text.text),
        _ => None,
    }
}

/// What a tool gave, where the agent tells it only in its own form.
fn raw_text(output: &Value) -> Option<String> {
    let named = ["formatted_output", "aggregated_output", "output", "stdout", "error"];
    let text = output.as_str().or_else(|| named.iter().find_map(|name| output.get(name)?.as_str()))?;
    Some(text.to_string())
}

fn is_blank(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// A command line, or the list of its words.
fn command(input: &Value) -> Option<String> {
    let command = input.get("command").or_else(|| input.get("cmd"))?;
    match command {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.map(|words| words.join(" "))
        }
        _ => None,
    }
}
