//! A conversation that cannot be gone on with becomes a handoff to the next one of the same role: nothing
//! that it was asked, said or made is lost.

use super::{
    Context, Deliverable, Handoff, Header, Issue, Memory, NextSteps, SESSION_LOST, Severity, Status,
    Transition,
};
use crate::role::Role;

/// Kept of a prompt, and of what was said: the end is what matters for going on.
const PROMPT_CHARS: usize = 20_000;
const SAID_CHARS: usize = 8_000;

/// What is known about a conversation that broke.
#[derive(Clone, Copy, Debug)]
pub struct BrokenSession<'a> {
    pub role: Option<Role>,
    pub session: &'a str,
    pub feature: &'a str,
    /// `phase/operation`
    pub step: &'a str,
    pub prompt: &'a str,
    /// What the agent had said so far.
    pub partial: &'a str,
    /// Files that it had made or changed, relative to the project.
    pub files: &'a [String],
    /// Why it cannot be gone on with.
    pub why: &'a str,
}

impl Handoff {
    /// Always complete. `id` is a fresh one, `at` the time (RFC 3339).
    pub fn from_session(broken: &BrokenSession<'_>, id: &str, at: &str) -> Handoff {
        // Without a role the agent had no limits; that is what an implementer has.
        let role = broken.role.unwrap_or(Role::Implementer);
        let phase = broken.step.split('/').next().unwrap_or_default();
        let said = or(last(broken.partial, SAID_CHARS), "nothing was said yet");
        Handoff {
            handoff: Header {
                from: role,
                to: role,
                timestamp: at.into(),
                kind: SESSION_LOST.into(),
                status: Status::Pending,
                handoff_id: id.into(),
            },
            context: Context {
                task_id: format!("{}/{}", broken.feature, broken.step),
                phase: or(phase.into(), "unknown"),
                scope: or(broken.step.into(), "the step"),
                dependencies: Vec::new(),
            },
            deliverable: Deliverable {
                kind: "partial".into(),
                location: ".".into(),
                summary: said,
                artifacts: broken.files.to_vec(),
            },
            next_steps: NextSteps {
                instructions: vec![
                    or(first(broken.prompt, PROMPT_CHARS), "go on with the step"),
                    "The session broke: look at what is there, keep what is good, and finish it.".into(),
                ],
                constraints: vec!["Do not do again what the summary and the artifacts show as done.".into()],
                acceptance_criteria: vec!["What the first instruction asks for is done.".into()],
            },
            issues: vec![Issue {
                severity: Severity::High,
                description: format!(
                    "the session `{}` is broken: {}",
                    broken.session,
                    or(broken.why.into(), "lost")
                ),
                recommendation: "begin a new session with this handoff".into(),
            }],
            memory: Memory::default(),
            session: Some(or(broken.session.into(), "unknown")),
            transitions: vec![Transition { status: Status::Pending, at: at.into(), reason: None }],
        }
    }
}

fn or(text: String, otherwise: &str) -> String {
    if text.trim().is_empty() { otherwise.into() } else { text }
}

fn first(text: &str, chars: usize) -> String {
    let text = text.trim();
    let mut short: String = text.chars().take(chars).collect();
    if short.len() < text.len() {
        short.push_str(" […]");
    }
    short
}

fn last(text: &str, chars: usize) -> String {
    let text = text.trim();
    let surplus = text.chars().count().saturating_sub(chars);
    let short: String = text.chars().skip(surplus).collect();
    if surplus > 0 { format!("[…] {short}") } else { short }
}
