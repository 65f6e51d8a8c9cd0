//! A session's model, and the mode in which the agent asks before it acts.
//!
//! Agents offer both as `configOptions`, or in older ways: `modes`, and `models` (Gemini), which the protocol
//! has dropped.

use agent_client_protocol::v1::schema::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelect,
    SessionConfigSelectOptions, SessionModeState,
};
use sage_core::role::{Access, Paths};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::effort;

/// Modes in which an agent asks before it changes anything, by the ids that agents have for them.
const ASKING: &[&str] = &["default", "workspace-write", "ask", "manual"];
/// Modes for those who may not change everything.
const READ_ONLY: &[&str] = &["read-only", "default", "ask", "manual"];

/// The mode in which an agent makes a plan first.
const PLAN: &str = "plan";

/// What the answer to `session/new` and its like offers. What cannot be read is not offered.
#[derive(Debug, Default)]
pub struct Offered {
    options: Vec<SessionConfigOption>,
    modes: Option<SessionModeState>,
    models: Vec<String>,
    model: Option<String>,
}

/// A request that changes a setting: its method and parameters.
pub type Change = (&'static str, Value);

impl Offered {
    pub fn read(answer: &Value) -> Offered {
        let list = answer.get("configOptions").and_then(Value::as_array);
        let options =
            list.into_iter().flatten().filter_map(|option| SessionConfigOption::deserialize(option).ok());
        let models = answer.pointer("/models/availableModels").and_then(Value::as_array);
        let ids = models.into_iter().flatten().filter_map(|model| model.get("modelId")?.as_str());
        Offered {
            options: options.collect(),
            modes: answer.get("modes").and_then(|modes| SessionModeState::deserialize(modes).ok()),
            models: ids.map(str::to_string).collect(),
            model: answer.pointer("/models/currentModelId").and_then(Value::as_str).map(str::to_string),
        }
    }

    /// The model that the session has.
    pub fn current_model(&self) -> Option<String> {
        let select = self.select(&SessionConfigOptionCategory::Model);
        let id = select.map(|(_, select)| select.current_value.to_string()).or_else(|| self.model.clone());
        id.map(|id| model_name(&id).to_string())
    }

    /// `None` if the agent leaves no choice of a model.
    pub fn model(&self, session: &str, wanted: &str) -> Option<Change> {
        if let Some((id, select)) = self.select(&SessionConfigOptionCategory::Model) {
            let value = named(select, wanted).unwrap_or_else(|| wanted.to_string());
            return Some(set_option(session, id, &value));
        }
        let params = json!({"sessionId": session, "modelId": wanted});
        (!self.models.is_empty()).then_some(("session/set_model", params))
    }

    /// All models that are offered, for messages.
    pub fn models(&self) -> Vec<String> {
        match self.select(&SessionConfigOptionCategory::Model) {
            Some((_, select)) => values(select).into_iter().map(|(value, _)| value).collect(),
            None => self.models.clone(),
        }
    }

    /// How much the agent thinks; `None` if it leaves no choice of that.
    pub fn effort(&self, session: &str, wanted: &str) -> Option<Change> {
        let (id, select) = self.select(&SessionConfigOptionCategory::ThoughtLevel)?;
        let levels: Vec<String> = values(select).into_iter().map(|(value, _)| value).collect();
        let known: Vec<&str> = levels.iter().map(String::as_str).collect();
        let level = effort::nearest(wanted, &known)?;
        known.contains(&level).then(|| set_option(session, id, level))
    }

    /// `None` if the agent has no such mode.
    pub fn plan_mode(&self, session: &str) -> Option<Change> {
        let plans = self.options.iter().find(|option| match &option.kind {
            SessionConfigKind::Select(select) => values(select).iter().any(|(value, _)| value == PLAN),
            _ => false,
        });
        if let Some(option) = plans {
            return Some(set_option(session, option.id.to_string(), PLAN));
        }
        let modes = self.modes.as_ref()?;
        let known = modes.available_modes.iter().any(|mode| mode.id.to_string() == PLAN);
        known.then(|| ("session/set_mode", json!({"sessionId": session, "modeId": PLAN})))
    }

    /// `None` if the agent is in a fit mode already, or knows none that we know.
    pub fn mode(&self, session: &str, access: Access) -> Option<Change> {
        let free = access.paths == Paths::All && access.run;
        let fit = if free { ASKING } else { READ_ONLY };
        if let Some((id, select)) = self.select(&SessionConfigOptionCategory::Mode) {
            let known: Vec<String> = values(select).into_iter().map(|(value, _)| value).collect();
            let mode = better(fit, &select.current_value.to_string(), &known)?;
            return Some(set_option(session, id, mode));
        }
        let modes = self.modes.as_ref()?;
        let known: Vec<String> = modes.available_modes.iter().map(|mode| mode.id.to_string()).collect();
        let mode = better(fit, &modes.current_mode_id.to_string(), &known)?;
        Some(("session/set_mode", json!({"sessionId": session, "modeId": mode})))
    }

    fn select(&self, category: &SessionConfigOptionCategory) -> Option<(String, &SessionConfigSelect)> {
        self.options.iter().filter(|option| option.category.as_ref() == Some(category)).find_map(|option| {
            match &option.kind {
                SessionConfigKind::Select(select) => Some((option.id.to_string(), select)),
                _ => None,
            }
        })
    }
}

/// Of what Qwen Code writes as `$runtime|openai|gpt-5.4(openai)`.
fn model_name(id: &str) -> &str {
    let name = id.rsplit('|').next().unwrap_or(id);
    name.strip_suffix(')').and_then(|name| name.rsplit_once('(')).map_or(name, |(name, _)| name)
}

/// The first fit mode that the agent knows, unless it is there already.
fn better(fit: &[&'static str], current: &str, known: &[String]) -> Option<&'static str> {
    let mode = *fit.iter().find(|mode| known.iter().any(|known| known == *mode))?;
    (mode != current).then_some(mode)
}

fn set_option(session: &str, id: String, value: &str) -> Change {
    ("session/set_config_option", json!({"sessionId": session, "configId": id, "value": value}))
}

/// Values with their names.
fn values(select: &SessionConfigSelect) -> Vec<(String, String)> {
    let pairs = |options: &[agent_client_protocol::v1::schema::SessionConfigSelectOption]| {
        options.iter().map(|option| (option.value.to_string(), option.name.clone())).collect::<Vec<_>>()
    };
    match &select.options {
        SessionConfigSelectOptions::Ungrouped(options) => pairs(options),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| pairs(&group.options)).collect()
        }
        _ => Vec::new(),
    }
}

/// People write a model as its value or as its name.
fn named(select: &SessionConfigSelect, wanted: &str) -> Option<String> {
    let is = |(value, name): &(String, String)| value == wanted || name.eq_ignore_ascii_case(wanted);
    values(select).into_iter().find(is).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use sage_core::role::Role;

    use super::*;

    fn claude() -> Value {
        let option = |id: &str, current: &str, values: &[&str]| {
            let options: Vec<Value> =
                values.iter().map(|it| json!({"value": it, "name": format!("The {it}")})).collect();
            json!({"id": id, "name": id, "category": id, "type": "select", "currentValue": current, "options": options})
        };
        json!({"configOptions": [
            option("mode", "auto", &["default", "auto"]), {"nonsense": 1}, option("model", "opus", &["opus", "haiku"])
        ]})
    }

    #[test]
    fn models_are_set_in_the_way_that_the_agent_offers() {
        let offered = Offered::read(&claude());
        let (method, params) = offered.model("s", "the haiku").unwrap();
        assert_eq!((method, &params["value"]), ("session/set_config_option", &json!("haiku")));
        assert_eq!(offered.model("s", "other").unwrap().1["value"], "other");
        assert_eq!(offered.models(), ["opus", "haiku"]);
        assert_eq!(offered.current_model().as_deref(), Some("opus"));
        let gemini = json!({"models": {"availableModels": [{"modelId": "flash"}], "currentModelId": "pro"}});
        let gemini = Offered::read(&gemini);
        assert_eq!(gemini.current_model().as_deref(), Some("pro"));
        assert_eq!(gemini.model("s", "flash").unwrap().0, "session/set_model");
        assert_eq!(Offered::read(&json!({})).model("s", "x"), None);
        for id in ["$runtime|openai|gpt-5.4(openai)", "gpt-5.4(openai)", "gpt-5.4"] {
            assert_eq!(model_name(id), "gpt-5.4");
        }
    }

    #[test]
    fn how_much_it_thinks_is_set_where_there_is_a_choice() {
        let options: Vec<Value> = ["low", "high"].iter().map(|it| json!({"value": it, "name": it})).collect();
        let option = json!({"id": "e", "name": "E", "category": "thought_level", "type": "select", "currentValue": "low", "options": options});
        let offered = Offered::read(&json!({"configOptions": [option]}));
        assert_eq!(
            offered.effort("s", "max").unwrap().1,
            json!({"sessionId": "s", "configId": "e", "value": "high"})
        );
        assert_eq!((offered.effort("s", "odd"), Offered::read(&claude()).effort("s", "low")), (None, None));
    }

    // covers: S6
    #[test]
    fn an_agent_is_put_into_a_mode_in_which_it_asks() {
        let implementer = Role::Implementer.access();
        assert_eq!(Offered::read(&claude()).mode("s", implementer).unwrap().1["value"], "default");
        let modes = |current: &str, ids: &[&str]| {
            let list: Vec<Value> = ids.iter().map(|id| json!({"id": id, "name": id})).collect();
            Offered::read(&json!({"modes": {"currentModeId": current, "availableModes": list}}))
        };
        let codex = modes("agent", &["read-only", "workspace-write", "agent"]);
        assert_eq!(codex.mode("s", implementer).unwrap().1["modeId"], "workspace-write");
        assert_eq!(codex.mode("s", Role::Auditor.access()).unwrap().1["modeId"], "read-only");
        assert_eq!(codex.mode("s", Role::Planner.access()).unwrap().1["modeId"], "read-only");
        assert_eq!(modes("default", &["default", "yolo"]).mode("s", Role::Auditor.access()), None);
        assert_eq!(modes("x", &["x", "y"]).mode("s", implementer), None);
    }
}
