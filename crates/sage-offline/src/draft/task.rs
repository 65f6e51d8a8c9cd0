//! A task of a plan: ours, or one that another agent wrote.

use serde::Serialize;
use serde_json::Value;

use super::earlier::Earlier;
use super::fuzzy;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub id: String,
    pub title: String,
    pub detail: String,
    pub files: Vec<String>,
    pub depends_on: Vec<String>,
    pub acceptance: Vec<String>,
    /// `P0` to `P3`
    pub priority: String,
    /// A decision that only a person can make.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
}

impl Task {
    /// From any agent's plan; nothing without a title.
    fn read(value: &Value, number: usize) -> Option<Task> {
        let text = |keys: &[&str]| {
            let found = keys.iter().find_map(|key| value.get(*key)?.as_str().map(str::trim));
            found.unwrap_or_default().to_string()
        };
        let list = |keys: &[&str]| fuzzy::texts(keys.iter().find_map(|key| value.get(*key)));
        let title = value.as_str().map_or_else(|| text(&["title", "name", "summary"]), str::to_string);
        let id = text(&["id"]);
        let priority = text(&["priority"]).to_uppercase();
        let known = ["P0", "P1", "P2", "P3"].contains(&priority.as_str());
        (!title.is_empty()).then(|| Task {
            id: if id.is_empty() { format!("T{number}") } else { id },
            title,
            detail: text(&["detail", "description", "details"]),
            files: list(&["files", "paths"]),
            depends_on: list(&["dependsOn", "depends_on", "blockedBy", "dependencies"]),
            acceptance: list(&["acceptance", "acceptanceCriteria", "acceptance_criteria", "criteria"]),
            priority: if known { priority } else { "P2".to_string() },
            person: value.get("person") == Some(&Value::Bool(true)),
        })
    }

    pub fn read_all(list: Option<&Value>) -> Vec<Task> {
        let items = list.and_then(Value::as_array).into_iter().flatten().enumerate();
        items.filter_map(|(at, item)| Task::read(item, at + 1)).collect()
    }

    /// The tasks of the newest plan among the steps before.
    pub fn planned(earlier: &Earlier) -> Vec<Task> {
        Task::read_all(earlier.with_list("tasks").and_then(|plan| plan.get("tasks")))
    }

    /// The same as a ticket.
    pub fn ticket(&self) -> Value {
        let mut ticket = serde_json::json!({"id": self.id, "title": self.title, "detail": self.detail,
            "files": self.files, "acceptance": self.acceptance, "blockedBy": self.depends_on,
            "priority": self.priority});
        if self.person {
            ticket["person"] = Value::Bool(true);
        }
        ticket
    }
}
