//! The `llm` agent: a model behind HTTP, without any program in between.
//!
//! ```text
//! dialogue --Ask--> wire (anthropic | responses | chat) --body--> http --> endpoint
//!    |  ^  <-Reply-   ^ fold                                         |
//!    |  |             +---- events <---- sse <---- bytes ------------+
//!    |  +-- results -- tools (files of the project; others plug in)
//!    +-- history: the session's conversation, saved before each request
//! ```
//! What must stay true: nothing is sent twice by itself (the engine owns retries), an answer counts only after
//! its terminal event, and usage is what the endpoint said, in classes that do not overlap.

mod anthropic;
mod chat;
mod dialogue;
mod endpoint;
mod exchange;
mod files;
mod history;
mod http;
mod patience;
mod person;
mod quota;
mod reply;
mod responses;
mod sse;
mod structured;
#[cfg(test)]
mod tests;
mod tools;
mod trouble;
mod wire;

use sage_core::port::{BoxFuture, Usage};

pub use tools::{MoreTools, ToolBox, ToolSpec, Toolboxes};

use crate::agent::{Agent, AgentConfig, Auth, Capabilities, Feed, Hears, Order, Probe, Reach, Turn};
use crate::attempt::Attempt;
use dialogue::Dialogue;
use endpoint::Endpoint;
use files::FileTools;
use history::{History, Lost};
use person::{ASK_PERSON, AskPerson};

#[derive(Clone, Copy, Debug)]
pub struct Llm;

impl Agent for Llm {
    fn name(&self) -> &'static str {
        "llm"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            fork: true,
            schema: true,
            live_usage: true,
            max_turns: true,
            questions: true,
            effort: true,
            mcp: true,
            ..Capabilities::default()
        }
    }

    /// The address and whether there is a key. Nobody is asked: that could cost money.
    fn probe<'a>(&'a self, config: &'a AgentConfig) -> BoxFuture<'a, Probe> {
        let probe = match endpoint::locate(config) {
            Err(why) => Probe { hint: Some(why), ..Probe::default() },
            Ok(place) => {
                let hint = place.missing_key(config);
                let auth = if hint.is_some() { Auth::Missing } else { Auth::Ready };
                Probe { found: Some(place.url), version: None, auth, hint }
            }
        };
        Box::pin(std::future::ready(probe))
    }

    fn chooses_id(&self) -> bool {
        true
    }

    fn hears(&self) -> Hears {
        Hears::Now
    }

    fn turn<'a>(&'a self, attempt: &'a Attempt<'a>, order: &'a Order, feed: &'a Feed) -> BoxFuture<'a, Turn> {
        Box::pin(async move {
            let endpoint = match Endpoint::new(order, attempt.params()) {
                Ok(endpoint) => endpoint,
                Err(miss) => return Turn::missed(miss),
            };
            let history = match History::open(order, endpoint.api, &attempt.config.redactor) {
                Ok(history) => history,
                Err(Lost(why)) => {
                    feed.note(&format!("the conversation cannot go on: {why}"));
                    let miss = crate::outcome::Miss::invalid(why);
                    return Turn { unknown_conversation: true, ..Turn::new(Err(miss), Usage::default()) };
                }
            };
            if order.agent_type.is_some() {
                feed.note("`agentType` is only for claude");
            }
            let files = FileTools::new(Reach::of(attempt, order));
            let mut boxes: Vec<Box<dyn ToolBox>> = vec![Box::new(files)];
            let more = attempt
                .config
                .more_tools
                .iter()
                .filter(|_| order.mcp.as_ref().is_none_or(|it| !it.is_empty()));
            boxes.extend(more.map(|more| more.open(order.access, order.mcp.as_deref())));
            let mut wanted = order.tools.clone();
            if order.questions == Some(true) {
                boxes.push(Box::new(AskPerson::new(attempt.cx.questions.clone().in_directory(&order.cwd))));
                wanted.extend((!wanted.is_empty()).then(|| ASK_PERSON.to_string()));
            }
            let tools = Toolboxes::new(boxes, &wanted, feed);
            Dialogue::new(attempt, order, feed, endpoint, history, &tools).hold().await
        })
    }
}
