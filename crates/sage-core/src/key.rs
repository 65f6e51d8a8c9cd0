//! The key of a step: the hash of everything that determines its result (DESIGN §5).
//!
//! It is made of named parts, so that a changed key can be explained: `sage explain` compares the parts of
//! two starts. Position and order are no parts: a fan-out may be shuffled, phases may be moved.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::role::Role;
use crate::run::{Output, Run, StepId};
use crate::template::{Isolation, Kind};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyParts(BTreeMap<String, Digest>);

impl KeyParts {
    pub fn add(&mut self, name: impl Into<String>, digest: Digest) {
        self.0.insert(name.into(), digest);
    }

    pub fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.add(name, Digest::of(text.as_bytes()));
        }
    }

    /// The rendered call: parameters, and the prompt on its own because people edit prompts.
    pub fn rendered(&mut self, params: &Map<String, Value>) {
        let mut rest = params.clone();
        if let Some(Value::String(prompt)) = rest.shift_remove("prompt") {
            self.text("prompt", Some(&prompt));
        }
        self.add("params", Digest::of_json(&Value::Object(rest)));
    }

    pub fn key(&self) -> Digest {
        let mut hash = Sha256::new();
        for (name, digest) in &self.0 {
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(digest.0);
        }
        Digest(hash.finalize().into())
    }

    /// For the journal: enough of each part to see that it changed.
    pub fn shortened(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, digest)| (name.clone(), digest.short())).collect()
    }
}

impl Run {
    /// All parts of a step's key but the rendered call.
    pub fn key_base(&self, id: StepId) -> KeyParts {
        let mut parts = KeyParts::default();
        let (step, operation) = (self.step(id), self.operation(id));
        parts.text("path", Some(&Run::path_without_index(&self.key_path(id))));
        parts.text("kind", Some(operation.kind.name()));
        // An agent is told which operation it does, whatever its prompt says.
        if operation.type_name != operation.kind.name() {
            parts.text("operation", Some(&operation.type_name));
        }
        parts.text("agent", operation.agent.as_deref());
        parts.text("model", operation.model.as_deref());
        parts.text("role", operation.role.map(Role::name));
        if operation.isolation != Isolation::None {
            parts.text("isolation", Some(operation.isolation.name()));
        }
        parts.text("filter", operation.filter.as_ref().map(|f| f.text.as_str()));
        if let Some(most) = operation.max_tokens {
            parts.text("maxTokens", Some(&most.to_string()));
        }
        if let Some(expect) = &operation.expect {
            parts.add("expect", Digest::of_json(expect));
        }
        if let Some(schema) = &operation.schema {
            parts.add("schema", Digest::of_json(schema));
        }
        if step.item.is_some() || self.scope(step.scope).parent.is_some() {
            parts.add("item", self.identity_below(id));
        }
        if step.call.is_some() {
            return parts;
        }
        if matches!(operation.kind, Kind::Shell | Kind::Agent) {
            parts.add("inputs", self.inputs_digest(id));
        }
        if operation.kind == Kind::Synthesize {
            parts.add("sources", self.sources_digest(id));
        }
        self.add_dependencies(id, &mut parts);
        parts
    }

    /// What a script calls may get another name or place in it: the call itself is in its identity.
    fn key_path(&self, id: StepId) -> String {
        let step = self.step(id);
        if let (Some(_), Some((script, _))) = (&step.call, step.item) {
            return self.key_path(script);
        }
        let scope = self.scope(step.scope);
        let inside = step.path.strip_prefix(&*scope.prefix).filter(|_| !scope.prefix.is_empty());
        match (scope.parent, inside) {
            (Some(parent), Some(inside)) => format!("{}/{inside}", self.key_path(parent)),
            _ => step.path.to_string(),
        }
    }

    fn inputs_digest(&self, id: StepId) -> Digest {
        match &self.scope(self.step(id).scope).inputs {
            Some(payload) => payload.sha,
            None => Digest::of_json(&Value::Object(self.inputs.clone())),
        }
    }

    fn add_dependencies(&self, id: StepId, parts: &mut KeyParts) {
        let step = self.step(id);
        let scope = self.scope(step.scope);
        for &need in &scope.plan.steps[step.plan_step as usize].needs {
            let need = self.step(scope.steps[need as usize]);
            let sha = need.output.as_ref().map_or_else(Output::none, |o| o.sha());
            parts.add(format!("result of {}", Run::path_without_index(&need.path)), sha);
        }
        let number = self.phase(step.phase).plan_phase;
        for &before in &scope.plan.phases[number as usize].dependencies {
            let phase = self.phase(scope.phases[before as usize]);
            let digest = phase.digest.unwrap_or_else(Output::none);
            parts.add(format!("results of phase {}", phase.label(&scope.plan)), digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{CORE_VERSION, Frozen, RunStarted};
    use crate::run::Run;

    /// The offline agent does what the operation's name says, whatever the prompt is.
    // covers: S2, R6
    #[test]
    fn another_operation_is_another_step() {
        let key = |name: &str| {
            let operation = format!("{{ id: x, type: {name}, agent: a, prompt: same }}");
            let text = format!("name: t\nphases:\n  - id: p\n    operations: {operation}\n");
            let mut template = Frozen::new("t", crate::source::Format::Yaml, text);
            template.operations = ["one", "two"].map(|name| (name.into(), "Do it".into())).into();
            let started = RunStarted {
                core: CORE_VERSION,
                run: "run_1".into(),
                feature: "f".into(),
                title: "f".into(),
                template,
                templates: Vec::new(),
                inputs: Default::default(),
                settings: Default::default(),
                number: None,
            };
            let run = Run::start(&started, 0).unwrap();
            run.key_base(run.find("p/x").unwrap()).key()
        };
        assert_eq!(key("one"), key("one"));
        assert_ne!(key("one"), key("two"));
        assert_ne!(key("one"), key("agent"));
    }
}
