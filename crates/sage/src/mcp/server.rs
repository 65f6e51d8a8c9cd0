//! The server: what it says of itself, and which tool a call means.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::Semaphore;

use super::args::Args;
use super::call::{Call, LIMIT};
use super::error::{Code, ToolError};
use super::tools::Which;
use super::workshop::Workshop;
use super::{definitions, resources};
use crate::cli::context::Context;

/// Threads at the disk at once: more would only wait there.
const AT_ONCE: usize = 16;

const INSTRUCTIONS: &str = "\
Sage runs workflows of AI agents on this machine, in the background, and never loses their work.
Templates: feature (something new), bugfix, enhancement, audit (a report), delivery (with critique, checks and
documentation), swarm (parallel implementers), and the project's own. Steps that name no agent are done by `offline`,
which drafts documents and writes no code; `options.agent` names another.
Start one with sage_workflow_execute; while it says `running`, call sage_workflow_status with waitMs 40000.
`paused` means that it waits: sage_inbox lists its questions and asks the user, who alone can answer them.
A run outlives this connection; nothing that is finished runs again after sage_workflow_resume.
sage_result pages through results. sage_tools_search and sage_code_run use the project's other MCP servers in code.
Errors have a code, a message and a hint that says what to do next.";

/// Sage as an MCP server. Cheap to clone: all clones are the same server.
#[derive(Clone, Debug)]
pub struct SageServer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The project's root; its configuration is read anew for every call, so that changes count at once.
    directory: PathBuf,
    slots: Arc<Semaphore>,
    workshop: Arc<Workshop>,
    /// Its client may answer for a person: it started this server, and no step is above it.
    person: bool,
}

impl SageServer {
    /// For the client that started this process, whose user can be asked. Reads nothing yet.
    pub fn new(context: Context) -> SageServer {
        SageServer::with(context, true)
    }

    /// For any client that has the token, which steps of the project can read: no answer is a person's.
    pub fn shared(context: Context) -> SageServer {
        SageServer::with(context, false)
    }

    fn with(context: Context, person: bool) -> SageServer {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        let workshop = Arc::default();
        SageServer(Arc::new(Shared { directory: context.project.root, slots, workshop, person }))
    }

    fn call(&self, request: RequestContext<RoleServer>) -> Call {
        let shared = &self.0;
        Call::new(shared.directory.clone(), shared.slots.clone(), shared.workshop.clone(), request)
            .by_person(shared.person)
    }
}

impl ServerHandler for SageServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let name = Implementation::new("sage", env!("CARGO_PKG_VERSION")).with_title("Sage");
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(definitions::all().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        definitions::all().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(which) = Which::parse(&request.name) else {
            let name: String = request.name.chars().take(80).collect();
            return Err(ErrorData::invalid_params(format!("unknown tool `{}`", name.escape_debug()), None));
        };
        let call = self.call(context).with(request.input_responses, request.request_state);
        let args = Args::new(request.arguments.unwrap_or_default());
        let answered =
            tokio::time::timeout_at((call.started + LIMIT).into(), which.answer(&call, args)).await;
        Ok(match answered {
            Ok(Ok(answer)) => answer.into_response(),
            Ok(Err(error)) => error.into_result().into(),
            Err(_) => late().into_result().into(),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        within(resources::list(&self.call(context))).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        within(resources::read(&self.call(context), &request.uri)).await.map(Into::into)
    }
}

/// Resources have no errors of their own: a disk that hangs is the server's.
async fn within<T>(read: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    let late = |_| ErrorData::internal_error("the disk did not answer within 45 s", None);
    tokio::time::timeout(LIMIT, read).await.map_err(late)?
}

fn late() -> ToolError {
    ToolError::new(Code::Timeout, "no answer within 45 s: the disk hangs, or another process holds a lock")
        .hint("what was begun may still be done: sage_workflow_list, then again")
}
