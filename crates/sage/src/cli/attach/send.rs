//! A person's message to the agent of a running step.

use sage_agents::AgentConfig;
use sage_agents::agent::{Hears, hears};
use sage_engine::control::Signal;
use sage_engine::open::OpenError;
use serde_json::{Value, json};

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::signal::deliver;
use crate::command_line::sage;
use crate::trust::Door;
use crate::trust::person::refuse_steps;

/// A record of the journal holds it, and a prompt.
const TEXT_BYTES: usize = 32 << 10;

/// A message that is in the journal, and when its agent takes it in.
#[derive(Debug)]
pub struct Sent {
    agent: String,
    hears: Hears,
}

impl Sent {
    pub fn text(&self) -> String {
        let agent = &self.agent;
        match self.hears {
            Hears::AfterTurn => {
                format!("queued: {agent} reads messages between turns; it gets this one when its turn ends")
            }
            Hears::Now | Hears::Never => format!("sent: {agent} gets it with its next request"),
        }
    }

    pub fn json(&self, feature: &str, step: &str) -> Value {
        let heard = if self.hears == Hears::AfterTurn { "afterTurn" } else { "now" };
        json!({"type": "message", "success": true, "feature": feature, "step": step, "agent": self.agent,
            "delivered": heard})
    }
}

pub fn send(context: &Context, feature: &str, step: &str, text: &str) -> Result<Sent, Failure> {
    let command = sage("attach").arg(feature).arg(step);
    refuse_steps("send a message to an agent", &command.to_string())?;
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::usage("the message is empty").hint(command.option("-m", "<text>")));
    }
    if text.len() > TEXT_BYTES {
        let message = format!("the message has {} bytes; at most {TEXT_BYTES} can be sent", text.len());
        return Err(Failure::usage(message).hint("write it to a file of the project and send its name"));
    }
    let run = context.engine().read(feature)?.run;
    let agent = run.find(step).and_then(|id| run.agent_of(id)).unwrap_or_default().to_string();
    let hears = hears_of(context, &agent);
    // A step that does not run, or has no agent, is refused with its own reason.
    let signal = Signal::Message { step: step.into(), text: text.into(), by: Door::of_command().by() };
    let runs = run.find(step).is_some_and(|id| run.state_name(id) == "running");
    if !agent.is_empty() && runs && hears == Hears::Never {
        let why =
            format!("agent `{agent}` cannot be spoken to while it works, and its conversation cannot go on");
        return Err(OpenError::NotListening { feature: feature.into(), step: step.into(), why }.into());
    }
    deliver(context, feature, signal)?;
    Ok(Sent { agent, hears })
}

pub fn config_of(context: &Context, agent: &str) -> Option<AgentConfig> {
    context.config.agents().get(agent).cloned().or_else(|| AgentConfig::built_in(agent))
}

fn hears_of(context: &Context, agent: &str) -> Hears {
    config_of(context, agent).map_or(Hears::Never, |config| hears(&config, context.config.switches.sessions))
}
