//! The conversation with a program that speaks the protocol, from its first word to its answer.
//!
//! ```text
//! initialize -> [authenticate] -> session/new | resume | load | fork -> [settings] -> session/prompt -> answer
//!                                                                              stop -> session/cancel -^
//! ```

use std::path::Path;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthenticateRequest, CancelNotification, ClientCapabilities,
    ClientSessionCapabilities, ContentBlock, ElicitationCapabilities, ElicitationFormCapabilities,
    FileSystemCapabilities, ForkSessionRequest, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionRequest, NewSessionRequest, NoticeCapabilities, PromptRequest, PromptResponse,
    ResumeSessionRequest, StopReason, SystemPrompt, TextContent,
};
use agent_client_protocol::{Agent, Error, ErrorCode, JsonRpcMessage, UntypedMessage};
use sage_core::policy::FailureClass;
use sage_core::port::{Messages, PromptFile, Refusal, Stop, StopSignal};
use serde_json::Value;

use super::hear::Ears;
use super::settings::{Change, Offered};
use super::{auth, content, failure, files, servers};
use crate::agent::{Conversation, Feed, Order};
use crate::outcome::Miss;
use crate::prompt_files::in_words;
use crate::session::message_text;

/// How long an agent may take to end a turn that was cancelled; then its program is ended.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// For an agent that does not even say that it does not know a request.
const PING_PATIENCE: Duration = Duration::from_secs(5);

/// Plans that are sent back in one turn, at most.
const PLANS: usize = 10;
/// Agents that tell only of their last response what it used.
const LAST_ONLY: &[&str] = &["OpenCode"];

fn text_block(text: impl Into<String>) -> Vec<ContentBlock> {
    vec![ContentBlock::Text(TextContent::new(text))]
}

/// How the conversation ended.
#[derive(Debug)]
pub enum Said {
    Answer(PromptResponse),
    /// Told to stop; the agent may have said what it had used until then.
    Stopped(Option<PromptResponse>),
    UnknownConversation,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Silence {
    /// The agent has not even introduced itself.
    NoWelcome,
    /// The program is gone; its end says more.
    Gone,
    Miss(Miss),
}

impl From<Miss> for Silence {
    fn from(miss: Miss) -> Silence {
        Silence::Miss(miss)
    }
}

pub struct Dialog<'a> {
    pub to: ConnectionTo<Agent>,
    pub order: &'a Order,
    pub feed: &'a Feed,
    pub ears: &'a Ears<'a>,
    pub stop: StopSignal,
    /// Where copies of the prompt's files are.
    pub scratch: &'a Path,
    pub messages: &'a Messages,
}

impl Dialog<'_> {
    pub async fn hold(&self) -> Result<Said, Silence> {
        let opened = tokio::select! {
            opened = self.open() => opened?,
            () = self.stop.reached(Stop::Graceful) => return Ok(Said::Stopped(None)),
        };
        match opened {
            Some((session, agent)) => self.talk(&session, &agent).await,
            None => Ok(Said::UnknownConversation),
        }
    }

    /// The order's prompt, then whatever people said while the agent worked on it.
    async fn talk(&self, session: &str, agent: &AgentCapabilities) -> Result<Said, Silence> {
        let (text, files) = self.content(agent);
        self.feed.sent(self.order.system.as_deref().filter(|_| takes_system(agent)), &text);
        let blocks = text_block(text).into_iter().chain(files).collect();
        let mut said = self.prompt(session, blocks).await?;
        while let Said::Answer(response) = &said
            && response.stop_reason == StopReason::EndTurn
        {
            let messages = self.messages.take_last();
            if messages.is_empty() {
                break;
            }
            self.ears.answered(response);
            messages.iter().for_each(|message| self.feed.heard(message));
            said = self.prompt(session, text_block(message_text(&messages))).await?;
        }
        Ok(said)
    }

    /// The session and what the agent can do; `None` if it does not know the conversation.
    async fn open(&self) -> Result<Option<(String, AgentCapabilities)>, Silence> {
        let agent = self.introduce().await?;
        let name = agent.agent_info.as_ref().map_or("", |info| info.name.as_str());
        self.ears.heard().told.last_only = LAST_ONLY.contains(&name);
        let Some(request) = self.session_request(&agent.agent_capabilities)? else {
            return Ok(None);
        };
        let loads = request.method() == "session/load";
        let mut answer = self.ask(request.clone()).await;
        if answer.as_ref().is_err_and(|error| error.code == ErrorCode::AUTH_REQUIRED) {
            self.log_in(&agent).await?;
            answer = self.ask(request).await;
        }
        let is_new = matches!(self.order.conversation, Conversation::New { .. });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if gone(&error) => return Err(Silence::Gone),
            Err(error) if error.code == ErrorCode::AUTH_REQUIRED => {
                return Err(auth::missing(&agent.auth_methods, &self.order.config).into());
            }
            Err(error) if is_new => return Err(failure::miss(&error).into()),
            Err(error) => {
                self.feed.note(&format!("the conversation cannot go on: {}", error.message));
                return Ok(None);
            }
        };
        let session = self.session_id(&answer)?;
        self.feed.conversation(&session);
        if loads {
            self.hear_history_out().await;
        }
        let offered = Offered::read(&answer);
        let of_model = self.set_up(&session, &offered).await?;
        self.set_effort(&session, of_model.as_ref().unwrap_or(&offered)).await?;
        Ok(Some((session, agent.agent_capabilities)))
    }

    async fn introduce(&self) -> Result<InitializeResponse, Silence> {
        let access = self.order.access;
        let reads = !files::are_read_by_agent(&self.order.config);
        let files = FileSystemCapabilities::new().read_text_file(reads).write_text_file(access.write);
        let forms = || ElicitationCapabilities::new().form(ElicitationFormCapabilities::new());
        let asks = (self.order.questions != Some(false)).then(forms);
        let session = ClientSessionCapabilities::new().notices(NoticeCapabilities::default());
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new().fs(files).session(session).elicitation(asks))
            .client_info(Implementation::new("sage", env!("CARGO_PKG_VERSION")));
        let answer = self.to.send_request(request).block_task().await;
        // The protocol itself sees to it that both speak the same version.
        answer.map_err(|error| match gone(&error) {
            true => Silence::NoWelcome,
            false => {
                Miss::invalid(format!("the agent cannot be spoken with: {}", failure::text(&error))).into()
            }
        })
    }

    async fn log_in(&self, agent: &InitializeResponse) -> Result<(), Silence> {
        let missing = || auth::missing(&agent.auth_methods, &self.order.config);
        let method = auth::method(&agent.auth_methods, &self.order.config).ok_or_else(missing)?;
        self.feed.note(&format!("logs in: {method}"));
        let answer = self.to.send_request(AuthenticateRequest::new(method)).block_task().await;
        match answer {
            Ok(_) => Ok(()),
            Err(error) if gone(&error) => Err(Silence::Gone),
            Err(_) => Err(missing().into()),
        }
    }

    /// How this conversation is begun or taken up again; `None` if the agent has no way to.
    fn session_request(&self, agent: &AgentCapabilities) -> Result<Option<UntypedMessage>, Silence> {
        let cwd = &self.order.cwd;
        let servers = servers::servers(self.order, &agent.mcp_capabilities)?;
        let system = self.order.system.as_deref().filter(|_| takes_system(agent));
        let system = system.map(|text| SystemPrompt::new(vec![ContentBlock::Text(TextContent::new(text))]));
        let can = &agent.session_capabilities;
        let request = match &self.order.conversation {
            Conversation::New { .. } => {
                NewSessionRequest::new(cwd).mcp_servers(servers).system_prompt(system).to_untyped_message()
            }
            Conversation::Resume { id, .. } if can.resume.is_some() => {
                let request = ResumeSessionRequest::new(id.clone(), cwd).mcp_servers(servers);
                request.system_prompt(system).to_untyped_message()
            }
            Conversation::Resume { id, .. } if agent.load_session => {
                let request = LoadSessionRequest::new(id.clone(), cwd).mcp_servers(servers);
                request.system_prompt(system).to_untyped_message()
            }
            Conversation::Fork { of, .. } if can.fork.is_some() => {
                let request = ForkSessionRequest::new(of.clone(), cwd).mcp_servers(servers);
                request.system_prompt(system).to_untyped_message()
            }
            Conversation::Resume { .. } | Conversation::Fork { .. } => return Ok(None),
        };
        request.map(Some).map_err(|error| Silence::Miss(failure::miss(&error)))
    }

    /// A session that is loaded tells its history before it answers; Gemini goes on with it afterwards. Whoever
    /// answers anything else is through with it, and nobody knows this request.
    async fn hear_history_out(&self) {
        let Ok(request) = UntypedMessage::new("_sage/ping", serde_json::json!({})) else { return };
        let _ = tokio::time::timeout(PING_PATIENCE, self.ask(request)).await;
    }

    async fn ask(&self, request: UntypedMessage) -> Result<Value, Error> {
        self.to.send_request(request).block_task().await
    }

    fn session_id(&self, answer: &Value) -> Result<String, Silence> {
        if let Conversation::Resume { id, .. } = &self.order.conversation {
            return Ok(id.clone());
        }
        let id = answer.get("sessionId").and_then(Value::as_str);
        let id = id.ok_or_else(|| Miss::invalid("the agent has opened a session without an id"))?;
        Ok(id.to_string())
    }

    /// What is offered after another model was chosen, where the agent says so.
    async fn set_up(&self, session: &str, offered: &Offered) -> Result<Option<Offered>, Silence> {
        let planning = offered.plan_mode(session).filter(|_| self.order.plans);
        if self.order.plans && planning.is_none() {
            let name = &self.order.config.name;
            return Err(Miss::invalid(format!("agent `{name}` has no plan mode")).into());
        }
        // Some agents have both, some one mode for either.
        for change in offered.mode(session, self.order.access).into_iter().chain(planning) {
            if let Err(error) = self.set(change).await? {
                self.feed.note(&format!("the mode cannot be set: {}", error.message));
            }
        }
        if self.order.agent_type.is_some() {
            self.feed.note("`agentType` is only for claude");
        }
        self.ears.heard().told.model = self.order.model.clone().or_else(|| offered.current_model());
        let Some(wanted) = &self.order.model else { return Ok(None) };
        let Some(change) = offered.model(session, wanted) else {
            self.feed.note(&format!("the agent leaves no choice of a model; `{wanted}` is not set"));
            return Ok(None);
        };
        let error = match self.set(change).await? {
            Ok(answer) => return Ok(answer.get("configOptions").map(|_| Offered::read(&answer))),
            Err(error) => error,
        };
        let name = &self.order.config.name;
        let models = offered.models().join(", ");
        let why = &error.message;
        let message =
            format!("agent `{name}` does not take the model `{wanted}`: {why}; it offers: {models}");
        Err(Miss::of_endpoint(FailureClass::Invalid, message, Refusal::default()).into())
    }

    /// After the model: levels are its own.
    async fn set_effort(&self, session: &str, offered: &Offered) -> Result<(), Silence> {
        if let Some(wanted) = &self.order.effort {
            match offered.effort(session, wanted) {
                Some(change) => {
                    if let Err(error) = self.set(change).await? {
                        self.feed.note(&format!("`effort` cannot be set: {}", error.message));
                    }
                }
                None => self.feed.note("the agent leaves no choice of `effort`"),
            }
        }
        Ok(())
    }

    async fn set(&self, (method, params): Change) -> Result<Result<Value, Error>, Silence> {
        let request = UntypedMessage::new(method, params);
        let request = request.map_err(|error| Silence::Miss(failure::miss(&error)))?;
        match self.ask(request).await {
            Err(error) if gone(&error) => Err(Silence::Gone),
            answer => Ok(answer),
        }
    }

    async fn prompt(&self, session: &str, blocks: Vec<ContentBlock>) -> Result<Said, Silence> {
        self.ears.ask_now(session);
        let mut said = self.say(session, blocks).await?;
        // An agent whose plan was not approved may end its turn there; it has another try.
        for _ in 0..PLANS {
            let Some(why) = self.ears.take_refused_plan().filter(|_| matches!(said, Said::Answer(_))) else {
                break;
            };
            let words = format!("Your plan was not approved: {why}\nMake another one.");
            said = self.say(session, text_block(words)).await?;
        }
        Ok(said)
    }

    /// The text of the prompt with those of its files that are told in words, and the others as blocks.
    fn content(&self, agent: &AgentCapabilities) -> (String, Vec<ContentBlock>) {
        let blocks = content::blocks(&self.order.files, &agent.prompt_capabilities);
        let as_block = |file: &PromptFile| content::is_block(file, &agent.prompt_capabilities);
        let words = in_words(self.scratch, &self.order.files, as_block);
        (format!("{}{words}", self.prompt_text(takes_system(agent))), blocks)
    }

    async fn say(&self, session: &str, blocks: Vec<ContentBlock>) -> Result<Said, Silence> {
        let request = PromptRequest::new(session.to_string(), blocks);
        let mut answer = std::pin::pin!(self.to.send_request(request).block_task());
        let answered = tokio::select! {
            answer = &mut answer => answer,
            () = self.stop.reached(Stop::Graceful) => {
                // A program that is gone cannot be told, and need not be.
                let _ = self.to.send_notification(CancelNotification::new(session.to_string()));
                let late = tokio::time::timeout(CANCEL_PATIENCE, answer).await;
                return Ok(Said::Stopped(late.ok().and_then(Result::ok)));
            }
        };
        answered.map(Said::Answer).map_err(|error| match gone(&error) {
            true => Silence::Gone,
            false => failure::miss(&error).into(),
        })
    }

    /// An agent without an ear for a system prompt or a schema hears them with the prompt.
    fn prompt_text(&self, has_system: bool) -> String {
        let mut text = String::new();
        if let Some(system) = self.order.system.as_ref().filter(|_| !has_system) {
            text.push_str(&format!("{system}\n\n"));
        }
        text.push_str(&self.order.prompt);
        if let Some(schema) = &self.order.schema {
            text.push_str(&format!(
                "\n\nYour last message must be JSON that fits this JSON Schema, and nothing else:\n{schema}"
            ));
        }
        text
    }
}

fn takes_system(agent: &AgentCapabilities) -> bool {
    agent.session_capabilities.system_prompt.is_some()
}

fn gone(error: &Error) -> bool {
    agent_client_protocol::is_incoming_transport_closed(error)
        || agent_client_protocol::is_connection_terminated(error)
}
