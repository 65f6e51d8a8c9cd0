//! `[approvals]` of sage.toml.

use serde::Deserialize;

use super::mode::Mode;
use super::pattern::matches;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Rules {
    pub mode: Mode,
    /// Whose rules count as well.
    pub inherit: Option<Inherit>,
    /// Tools and commands that only read need no person.
    pub read_only: bool,
    /// The project's own checks and local commits need no person.
    pub checks: bool,
    /// Files in the project that may be written without asking; `*` stands for anything.
    pub paths: Vec<String>,
    /// Commands that may run without asking; `*` stands for anything.
    pub commands: Vec<String>,
    /// Tools that may be used without asking.
    pub tools: Vec<String>,
    /// Tools and commands that are never used.
    pub deny: Vec<String>,
    /// While the run has spent less than this, nobody is asked.
    pub under_usd: Option<f64>,
    /// What happens when nobody answers in time: `allow` or `deny`.
    pub default: Otherwise,
    pub deadline: Option<String>,
    /// What becomes of an agent's own questions.
    pub questions: Inquiries,
}

/// Who answers an agent that wants to know something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Inquiries {
    /// A person, as long as one may be there.
    #[default]
    Ask,
    /// The agent itself.
    Decide,
}

/// Another program's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inherit {
    /// Permissions of Claude Code's settings.
    Claude,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Otherwise {
    Allow,
    #[default]
    Deny,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            mode: Mode::Ask,
            inherit: None,
            read_only: true,
            checks: true,
            paths: vec!["*".into()],
            commands: Vec::new(),
            tools: Vec::new(),
            deny: Vec::new(),
            under_usd: None,
            default: Otherwise::Deny,
            deadline: None,
            questions: Inquiries::Ask,
        }
    }
}

impl Rules {
    /// Whether they allow anything that would otherwise be asked.
    pub fn grants(&self) -> bool {
        *self != self.clone().without_grants()
    }

    /// The same rules, as far as they deny or ask.
    #[must_use]
    pub fn without_grants(self) -> Rules {
        let Rules { mode, inherit, commands, tools, under_usd, default, .. } = Rules::default();
        Rules { mode, inherit, commands, tools, under_usd, default, ..self }
    }

    /// Whether a tool of an MCP server may be used without asking. Rules name it as `server/tool`, or as agents do.
    pub fn allows_tool(&self, server: &str, tool: &str) -> bool {
        let names = [format!("{server}/{tool}"), format!("mcp__{server}__{tool}")];
        let named = |patterns: &[String]| {
            patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
        };
        (self.mode == Mode::All || named(&self.tools)) && !named(&self.deny)
    }
}
