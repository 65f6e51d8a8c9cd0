//! What the protocol's conformance suites want to see: a server with made-up tools, resources and prompts, mounted
//! on the same transports as the real one. Only in debug builds: `sage serve --conformance`.
//!
//! ```text
//! tools     answers at once, with notifications, or after asking an old client in between
//! rounds    answers with what it needs, and goes on when it is called again (2026-07-28)
//! lasting   answers with a handle, works on, and is asked for the result
//! ```

mod content;
mod lasting;
mod listed;
mod rounds;
mod tools;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager as Lasting;
use serde_json::json;
use tokio::sync::broadcast;

use listed::Listed;

type Context = RequestContext<RoleServer>;

/// Lists that changed while somebody listens; few, because somebody who does not read them loses only them.
const CHANGES: usize = 16;

#[derive(Clone)]
pub struct Fixtures(Arc<Shared>);

struct Shared {
    listed: Listed,
    lasting: Lasting,
    /// States that were given away, with the round that they stand for.
    states: Mutex<HashMap<String, u8>>,
    changes: broadcast::Sender<Change>,
    /// Ears of subscriptions that were accepted and do not listen yet: what changes in between is theirs, too.
    accepted: Mutex<VecDeque<broadcast::Receiver<Change>>>,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Tools,
    Prompts,
}

impl std::fmt::Debug for Fixtures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fixtures")
    }
}

impl Fixtures {
    pub fn new() -> std::io::Result<Fixtures> {
        Ok(Fixtures(Arc::new(Shared {
            listed: Listed::read()?,
            lasting: Lasting::new(),
            states: Mutex::default(),
            changes: broadcast::channel(CHANGES).0,
            accepted: Mutex::default(),
        })))
    }
}

#[expect(deprecated, reason = "old clients still log and subscribe this way")]
impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {"listChanged": true}, "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "logging": {}, "completions": {}, "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        ServerConfig::new(serde_json::from_value(capabilities).unwrap_or_default())
            .with_server_info(Implementation::new("sage-conformance", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.listed.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.listed.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let shared = &self.0;
        if let Some(answer) = lasting::call(shared, &call, &context).await {
            return answer;
        }
        if let Some(answer) = rounds::call(shared, &call, &context) {
            return answer;
        }
        tools::call(shared, &call, &context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.0.listed.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if asked.name == rounds::PROMPT {
            return rounds::prompt(&asked);
        }
        content::prompt(&asked).map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.0.listed.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(self.0.listed.templates.clone()))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        content::resource(&asked.uri).map(Into::into)
    }

    async fn complete(&self, asked: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let all = ["paris", "park", "party"].map(String::from);
        let fits = all.into_iter().filter(|value| value.starts_with(&asked.argument.value)).collect();
        let values = CompletionInfo::new(fits).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(values))
    }

    async fn set_level(&self, _: rmcp::model::SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = self.0.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.push_back(self.0.changes.subscribe());
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let first = self.0.accepted.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let mut changes = first.unwrap_or_else(|| self.0.changes.subscribe());
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = subscription.cancelled() => return Ok(()),
            };
            // Those that nobody asked for are refused by the sink.
            let _ = match change {
                Ok(Change::Tools) => subscription.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => subscription.sink().notify_prompt_list_changed().await,
                Err(_) => continue,
            };
        }
    }

    async fn get_task(&self, asked: GetTaskParams, _: Context) -> Result<GetTaskResult, ErrorData> {
        self.0.lasting.get_task(&asked.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, asked: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.0.lasting.update_task(&asked.task_id, asked.input_responses)
    }

    async fn cancel_task(&self, asked: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.0.lasting.cancel_task(&asked.task_id)
    }
}
