//! JSON Schema to a TypeScript type. The schemas are those of third parties: any of them ends in a type, in
//! bounded time and space, and where it says too much or nothing the type is `unknown`.
//!
//! ```text
//! schema --Types::of--> text      $ref -> the name of a type that is declared once (wanted -> declarations)
//! ```

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::doc;
use super::name::{function_name, pascal};

/// Of schemas that are looked at for one tool.
const MAX_PARTS: u32 = 2_000;
const MAX_DEPTH: u32 = 24;
/// More alternatives than this say less than `string`.
const MAX_ALTERNATIVES: usize = 64;
const MAX_REFERENCES: usize = 64;

/// How the text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For a file: fields on lines of their own, with their comments.
    Lines,
    /// For a signature.
    Inline,
}

/// The types of one tool.
#[derive(Debug)]
pub struct Types<'s> {
    root: &'s Value,
    /// What names of referenced types begin with.
    prefix: &'s str,
    form: Form,
    parts_left: u32,
    /// Of `$ref`: what it points to, and the name of the type.
    named: Vec<(String, String)>,
    taken: BTreeSet<String>,
    /// References that are open, of an inline form.
    open: Vec<String>,
}

impl<'s> Types<'s> {
    pub fn new(root: &'s Value, prefix: &'s str, form: Form) -> Types<'s> {
        let taken = ["Input", "Output"].map(|end| format!("{prefix}{end}"));
        Types {
            root,
            prefix,
            form,
            parts_left: MAX_PARTS,
            named: Vec::new(),
            taken: taken.into_iter().collect(),
            open: Vec::new(),
        }
    }

    /// Goes on with the same names in another schema of the tool; its references are its own.
    pub fn turn_to(&mut self, root: &'s Value) {
        self.root = root;
        self.parts_left = MAX_PARTS;
        self.named.clear();
    }

    pub fn root(&mut self) -> String {
        self.of(self.root, 0)
    }

    /// `export type ...` of everything that was referred to, also by these themselves.
    pub fn declarations(&mut self) -> String {
        let mut out = String::new();
        let mut next = 0;
        while let Some((pointer, name)) = self.named.get(next).cloned() {
            let target = self.root.pointer(&pointer).unwrap_or(&Value::Null);
            let text = self.of(target, 0);
            out.push_str(&format!("export type {name} = {text};\n\n"));
            next += 1;
        }
        out
    }

    fn of(&mut self, schema: &Value, depth: u32) -> String {
        let Value::Object(map) = schema else {
            return if schema == &Value::Bool(false) { "never".into() } else { "unknown".into() };
        };
        if self.parts_left == 0 || depth > MAX_DEPTH {
            return "unknown".into();
        }
        self.parts_left -= 1;
        if let Some(pointer) = map.get("$ref").and_then(Value::as_str) {
            return self.reference(pointer, depth);
        }
        let mut parts = Vec::new();
        if let Some(value) = map.get("const") {
            parts.push(literal(value));
        } else if let Some(Value::Array(values)) = map.get("enum") {
            parts.push(alternatives(values.iter().map(literal)));
        } else {
            for word in ["oneOf", "anyOf"] {
                if let Some(Value::Array(some)) = map.get(word) {
                    let some: Vec<&Value> = some.iter().take(MAX_ALTERNATIVES + 1).collect();
                    parts.push(alternatives(some.into_iter().map(|one| self.of(one, depth + 1))));
                }
            }
            if let Some(Value::Array(all)) = map.get("allOf") {
                parts.extend(all.iter().take(MAX_ALTERNATIVES).map(|one| self.of(one, depth + 1)));
            }
            let own = self.own(map, depth);
            if parts.is_empty() || own != "unknown" {
                parts.insert(0, own);
            }
        }
        let text = all_of(parts);
        match map.get("nullable") == Some(&Value::Bool(true)) && text != "unknown" {
            true => format!("{} | null", grouped(text)),
            false => text,
        }
    }

    /// By its `type`, or what it looks like without one.
    fn own(&mut self, map: &Map<String, Value>, depth: u32) -> String {
        match map.get("type") {
            Some(Value::String(kind)) => self.kind(kind, map, depth),
            Some(Value::Array(kinds)) => {
                let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).take(8).collect();
                alternatives(kinds.into_iter().map(|kind| self.kind(kind, map, depth)))
            }
            _ if ["properties", "additionalProperties", "patternProperties"]
                .iter()
                .any(|it| map.contains_key(*it)) =>
            {
                self.object(map, depth)
            }
            _ if map.contains_key("items") || map.contains_key("prefixItems") => self.array(map, depth),
            _ => "unknown".into(),
        }
    }

    fn kind(&mut self, kind: &str, map: &Map<String, Value>, depth: u32) -> String {
        match kind {
            "string" | "boolean" | "number" | "null" => kind.into(),
            "integer" => "number".into(),
            "array" => self.array(map, depth),
            "object" => self.object(map, depth),
            _ => "unknown".into(),
        }
    }

    fn array(&mut self, map: &Map<String, Value>, depth: u32) -> String {
        let (fixed, rest) = match (map.get("prefixItems"), map.get("items")) {
            (Some(Value::Array(fixed)), rest) => (fixed.as_slice(), rest),
            (_, Some(Value::Array(fixed))) => (fixed.as_slice(), map.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        if fixed.is_empty() {
            let item = rest.map_or_else(|| "unknown".into(), |item| self.of(item, depth + 1));
            return format!("{}[]", grouped(item));
        }
        let least = map.get("minItems").and_then(Value::as_u64).map_or(0, |least| least as usize);
        let mut items = Vec::new();
        for (at, item) in fixed.iter().take(MAX_ALTERNATIVES).enumerate() {
            let text = self.of(item, depth + 1);
            items.push(if at < least.max(1) { text } else { format!("{}?", grouped(text)) });
        }
        match rest {
            Some(Value::Bool(false)) => {}
            Some(rest) => {
                let rest = self.of(rest, depth + 1);
                items.push(format!("...{}[]", grouped(rest)));
            }
            None => items.push("...unknown[]".into()),
        }
        format!("[{}]", items.join(", "))
    }

    fn object(&mut self, map: &Map<String, Value>, depth: u32) -> String {
        let empty = Map::new();
        let fields = map.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let more = map.get("additionalProperties");
        if fields.is_empty() {
            return self.record(map, more, depth);
        }
        let required: BTreeSet<&str> = required(map).collect();
        let mut parts = Vec::new();
        for (name, schema) in fields {
            if self.parts_left == 0 {
                parts.push((String::new(), "[more: string]: unknown".to_string()));
                break;
            }
            let mark = if required.contains(name.as_str()) { "" } else { "?" };
            let text = self.of(schema, depth + 1);
            parts.push((doc::of_field(schema), format!("{}{mark}: {text}", key(name))));
        }
        if matches!(more, Some(Value::Bool(true) | Value::Object(_))) {
            parts.push((String::new(), "[more: string]: unknown".to_string()));
        }
        self.braces(&parts, depth)
    }

    fn record(&mut self, map: &Map<String, Value>, more: Option<&Value>, depth: u32) -> String {
        let pattern = map.get("patternProperties").and_then(Value::as_object);
        match (more, pattern.and_then(|pattern| pattern.values().next())) {
            (Some(Value::Bool(false)), None) => "Record<string, never>".into(),
            (_, Some(_)) | (Some(Value::Bool(_)) | None, None) => "Record<string, unknown>".into(),
            (Some(more), None) => format!("Record<string, {}>", self.of(more, depth + 1)),
        }
    }

    fn braces(&self, parts: &[(String, String)], depth: u32) -> String {
        if self.form == Form::Inline {
            let fields: Vec<&str> = parts.iter().map(|(_, field)| field.as_str()).collect();
            return format!("{{ {} }}", fields.join("; "));
        }
        let indent = 2 * (depth as usize + 1);
        let field = |(said, text): &(String, String)| {
            let said = doc::comment(said, 2 * doc::MAX_FIELD_CHARS, indent);
            format!("{said}{}{text};\n", " ".repeat(indent))
        };
        let fields: String = parts.iter().map(field).collect();
        format!("{{\n{fields}{}}}", " ".repeat(indent - 2))
    }

    /// Only what is in the same document; others are not fetched.
    fn reference(&mut self, reference: &str, depth: u32) -> String {
        let Some(pointer) = reference.strip_prefix('#').map(percent_decoded) else { return "unknown".into() };
        let Some(target) = self.root.pointer(&pointer) else { return "unknown".into() };
        if self.form == Form::Inline {
            if self.open.contains(&pointer) || depth > 3 {
                return "object".into();
            }
            self.open.push(pointer);
            let text = self.of(target, depth + 1);
            self.open.pop();
            return text;
        }
        if let Some((_, name)) = self.named.iter().find(|(known, _)| *known == pointer) {
            return name.clone();
        }
        if self.named.len() == MAX_REFERENCES {
            return "unknown".into();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let base =
            format!("{}{}", self.prefix, pascal(&function_name(if last.is_empty() { "root" } else { last })));
        let names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}{number}")));
        let name = names.into_iter().find(|name| !self.taken.contains(name)).unwrap_or(base);
        self.taken.insert(name.clone());
        self.named.push((pointer, name.clone()));
        name
    }
}

/// The names that an object must have.
pub fn required(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn percent_decoded(text: &str) -> String {
    text.replace("%24", "$").replace("%20", " ").replace("%25", "%")
}

/// A field's name as code writes it.
pub fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let simple = name.chars().all(plain) && name.starts_with(|c: char| !c.is_ascii_digit());
    match simple && name != "__proto__" {
        true => name.to_string(),
        false => Value::from(name).to_string(),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => "unknown".into(),
        Value::String(text) if text.len() > 200 => "string".into(),
        simple => simple.to_string(),
    }
}

/// `A | B`, each once.
fn alternatives(all: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for one in all.take(MAX_ALTERNATIVES + 1) {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    match seen.len() {
        0 => "never".into(),
        count if count > MAX_ALTERNATIVES => {
            let texts = seen.iter().all(|one| one.starts_with('"'));
            if texts { "string".into() } else { "unknown".into() }
        }
        1 => seen.remove(0),
        _ if seen.iter().any(|one| one == "unknown") => "unknown".into(),
        _ => {
            let parts: Vec<String> = seen
                .into_iter()
                .map(|one| if one.contains(" & ") { format!("({one})") } else { one })
                .collect();
            parts.join(" | ")
        }
    }
}

fn all_of(mut parts: Vec<String>) -> String {
    parts.retain(|part| part != "unknown");
    match parts.len() {
        0 => "unknown".into(),
        1 => parts.remove(0),
        _ => parts.into_iter().map(grouped).collect::<Vec<_>>().join(" & "),
    }
}

/// In parentheses where something follows that binds stronger.
fn grouped(text: String) -> String {
    let plain =
        text.starts_with('{') && text.ends_with('}') && !text.contains("} | ") && !text.contains("} & ");
    match plain || !(text.contains(" | ") || text.contains(" & ")) {
        true => text,
        false => format!("({text})"),
    }
}
