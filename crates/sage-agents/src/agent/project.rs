//! What of a project's own configuration of an agent counts for a step: `params.project`.
//!
//! Nothing by default: settings carry permissions, variables and hooks, skills and agents carry instructions. Each part
//! has to be trusted.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::outcome::Miss;
use crate::params::Params;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProjectPart {
    /// With everything else that the agent finds in its folder.
    Settings,
    Skills,
    Agents,
}

impl ProjectPart {
    pub const ALL: [ProjectPart; 3] = [ProjectPart::Settings, ProjectPart::Skills, ProjectPart::Agents];

    pub fn name(self) -> &'static str {
        match self {
            ProjectPart::Settings => "settings",
            ProjectPart::Skills => "skills",
            ProjectPart::Agents => "agents",
        }
    }

    /// Those that a parameter switches on; `Err` is a name that is none.
    pub fn of(value: &Value) -> Result<Vec<ProjectPart>, String> {
        let part = |name: &str| ProjectPart::ALL.into_iter().find(|part| part.name() == name);
        let named = |name: &Value| name.as_str().and_then(part).ok_or_else(|| name.to_string());
        match value {
            Value::Bool(true) => Ok(ProjectPart::ALL.to_vec()),
            Value::Bool(false) | Value::Null => Ok(Vec::new()),
            Value::Array(list) => list.iter().map(named).collect(),
            one => Ok(vec![named(one)?]),
        }
    }
}

/// Whether a person has trusted a part, asked when a step needs it.
#[derive(Clone)]
pub struct TrustedParts(Arc<dyn Fn(ProjectPart) -> bool + Send + Sync>);

impl TrustedParts {
    pub fn new(holds: impl Fn(ProjectPart) -> bool + Send + Sync + 'static) -> TrustedParts {
        TrustedParts(Arc::new(holds))
    }

    /// The parts that a step wants.
    pub fn wanted(&self, params: Params<'_>) -> Result<Vec<ProjectPart>, Miss> {
        let parts = ProjectPart::of(params.get("project").unwrap_or(&Value::Null));
        let parts = parts.map_err(|name| Miss::invalid(format!("`project`: there is no part {name}")))?;
        match parts.iter().find(|part| !(self.0)(**part)) {
            Some(part) => {
                let name = part.name();
                let message = format!(
                    "the {name} of this project for the agent are not trusted; hint: sage trust claude.{name}"
                );
                Err(Miss::invalid(message))
            }
            None => Ok(parts),
        }
    }
}

impl Default for TrustedParts {
    fn default() -> TrustedParts {
        TrustedParts::new(|_| false)
    }
}

impl fmt::Debug for TrustedParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrustedParts")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R17
    #[test]
    fn parts_are_switched_on_by_name_and_only_if_they_are_trusted() {
        use ProjectPart::{Agents, Settings, Skills};
        assert_eq!(ProjectPart::of(&json!(true)), Ok(vec![Settings, Skills, Agents]));
        assert_eq!(ProjectPart::of(&json!(["agents", "skills"])), Ok(vec![Agents, Skills]));
        assert_eq!(ProjectPart::of(&json!("skills")), Ok(vec![Skills]));
        assert_eq!(ProjectPart::of(&json!(false)), Ok(Vec::new()));
        assert_eq!(ProjectPart::of(&json!(["hooks"])), Err("\"hooks\"".into()));
        let trusted = TrustedParts::new(|part| part == Skills);
        let wanted = |value: Value| {
            let params = serde_json::Map::from_iter([("project".to_string(), value)]);
            trusted.wanted(Params(&params)).is_ok()
        };
        assert!(wanted(json!(["skills"])) && wanted(json!(false)) && !wanted(json!(true)));
    }
}
