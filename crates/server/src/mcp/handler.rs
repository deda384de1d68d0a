//! The handler that the SDK calls.

use super::answer::ToolReply;
use super::calls::{CallName, Calls};
use super::progress::Progress;
use super::tools::{OfferedTools, ToolName};
use super::turns::{Turn, Turns};
use super::waiting::Waiter;
use super::workspace_services::WorkspaceServices;
use super::{branches, http, runtime, saving, sessions, terminals, watching};
use crate::service::{Caller, Service, ServiceError};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
    CustomRequest, CustomResult, ErrorCode, ErrorData, Extensions, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use sessile_gateway::tool::whole_number;
use std::sync::Arc;
use std::time::{Duration, Instant};

const INSTRUCTIONS: &str = "Live shells, Python and Node that remember. Variables, working \
directory, imports and background processes of one call are there in the next one, also after \
this client was restarted.";

/// Answers the calls of all clients.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) home: Arc<WorkspaceServices>,
    pub(super) calls: Arc<Calls>,
    pub(super) turns: Arc<Turns>,
    pub(super) wait: Duration,
    pub(super) surface: Surface,
}

/// The transport that calls come over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Surface {
    /// From the user's own client.
    Stdio(OfferedTools),
    /// From the caller that the request names.
    Http,
}

/// The sender of a call.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) caller: Caller,
    pub(super) offer: OfferedTools,
    /// Distinguishes it from other clients with the same token.
    pub(super) name: Option<String>,
}

impl Handler {
    /// Whether a closed connection cancels the call. Over HTTP, the stateless version has
    /// no other way to cancel. In other versions it only says that the client is gone,
    /// which leaves a run alone.
    fn is_cancelled_by_leaving(&self, context: &RequestContext<RoleServer>) -> bool {
        let is_stateless = context
            .protocol_version()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        matches!(self.surface, Surface::Http) && is_stateless
    }

    fn client(&self, extensions: &Extensions) -> Result<Client, ErrorData> {
        match self.surface {
            Surface::Stdio(offer) => Ok(Client { caller: Caller::owner(), offer, name: None }),
            Surface::Http => extensions
                .get()
                .and_then(http::client)
                .ok_or_else(|| ErrorData::internal_error("who calls is not known", None)),
        }
    }

    async fn answer(
        &self,
        tool: ToolName,
        waiter: &Waiter<'_>,
        params: CallToolRequestParams,
    ) -> CallToolResult {
        let mut arguments = params.arguments.unwrap_or_default();
        let service = self.home.main();
        if let Err(refusal) = tool.check(&arguments) {
            return ToolReply::refused(&refusal).into_result();
        }
        if let Err(refusal) = name_session(service, waiter, &mut arguments).await {
            return ToolReply::refused(&refusal).into_result();
        }
        let outcome = match tool {
            ToolName::Runtime => runtime::answer(&self.home, waiter, arguments).await,
            ToolName::SessionStart => sessions::start(service, waiter, &arguments).await,
            ToolName::SessionExec => sessions::exec(service, waiter, &arguments).await,
            ToolName::SessionScreen => terminals::screen(service, waiter, &arguments).await,
            ToolName::SessionKeys => terminals::keys(service, waiter, &arguments).await,
            ToolName::SessionResize => terminals::resize(service, waiter, &arguments).await,
            ToolName::SessionJobs => sessions::jobs(service, waiter, &arguments).await,
            ToolName::SessionState => sessions::state(service, waiter, &arguments).await,
            ToolName::SessionReset => sessions::reset(service, waiter, &arguments).await,
            ToolName::SessionBranch(tool) => {
                branches::answer(service, waiter, tool, &arguments).await
            }
            ToolName::SessionSave => saving::save(service, waiter, &arguments).await,
            ToolName::SessionRestore => saving::restore(service, waiter, &arguments).await,
            ToolName::SessionLogs => watching::logs(service, waiter, &arguments).await,
            ToolName::SessionTop => watching::top(service, waiter, &arguments).await,
            ToolName::SessionEnd => sessions::end(service, waiter, &arguments).await,
            ToolName::SessionList => sessions::list(service, waiter, &arguments).await,
        };
        outcome.unwrap_or_else(|refusal| ToolReply::refused(&refusal)).into_result()
    }
}

/// Replaces a session's name in the arguments by its id.
async fn name_session(
    service: &Service,
    waiter: &Waiter<'_>,
    arguments: &mut Map<String, Value>,
) -> Result<(), ServiceError> {
    if let Some(session) = arguments.get_mut("session_id")
        && let Some(text) = session.as_str()
    {
        *session = json!(service.resolve(waiter.caller, text).await?);
    }
    Ok(())
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("sessile", env!("CARGO_PKG_VERSION")).with_title("Sessile");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = self.client(&context.extensions)?;
        let tools = client.offer.tools().into_iter().map(ToolName::definition).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        OfferedTools::All.find(name).map(ToolName::definition)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // A client may want its answer earlier.
        let wanted = params.arguments.as_ref().and_then(|all| whole_number(all.get("wait_ms")?));
        let wait = wanted.map_or(self.wait, |ms| self.wait.min(Duration::from_millis(ms)));
        let deadline = Instant::now() + wait;
        let client = self.client(&context.extensions)?;
        let tool = client.offer.find(&params.name).ok_or_else(|| {
            let known: Vec<&str> = client.offer.tools().iter().map(|tool| tool.as_str()).collect();
            let (name, known) = (shown(&params.name), known.join(", "));
            ErrorData::invalid_params(format!("there is no tool {name}; there is {known}"), None)
        })?;
        let name = client.call(context.id.clone());
        let call = self.calls.open(name);
        let turn = match self.surface {
            Surface::Stdio(_) => self.turns.take(tool, params.arguments.as_ref()).await,
            // Concurrent HTTP requests have no order.
            Surface::Http => Turn::default(),
        };
        let progress = Progress::wanted(&context);
        let waiter = Waiter { caller: &client.caller, call, turn, progress, deadline };
        if matches!(self.surface, Surface::Stdio(_)) && context.ct.is_cancelled() {
            waiter.call.cancel();
        }
        let hang_up = async {
            if self.is_cancelled_by_leaving(&context) {
                context.ct.cancelled().await;
                waiter.call.cancel();
            }
            std::future::pending::<std::convert::Infallible>().await
        };
        tokio::select! {
            answer = self.answer(tool, &waiter, params) => Ok(answer.into()),
            never = hang_up => match never {},
        }
    }

    async fn get_prompt(
        &self,
        _request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(no_method("prompts/get"))
    }

    async fn read_resource(
        &self,
        _request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Err(no_method("resources/read"))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // One that is known comes here when its params are not what it takes.
        match request.method.as_str() {
            "tools/call" => Err(wrong_params(
                "tools/call takes an object with `name`, a string, and `arguments`, an object",
            )),
            known @ ("tools/list" | "ping" | "initialize" | "server/discover") => {
                Err(wrong_params(&format!("the params of {known} are not what it takes")))
            }
            other => Err(no_method(other)),
        }
    }

    async fn on_cancelled(
        &self,
        cancelled: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        if let (Some(request), Ok(client)) =
            (cancelled.request_id, self.client(&context.extensions))
        {
            self.calls.cancel(&client.call(request));
        }
    }
}

/// How many characters of a client's own text an error repeats.
const REPEATED: usize = 100;

/// Shortens an unknown name for an error message.
fn shown(name: &str) -> String {
    match name.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn no_method(method: &str) -> ErrorData {
    let message = format!(
        "this server has no {}: it offers tools, by tools/list and tools/call",
        shown(method)
    );
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

fn wrong_params(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, why.to_owned(), None)
}

impl Client {
    pub(super) fn call(&self, request: rmcp::model::RequestId) -> CallName {
        let (token, client) = (self.caller.token.clone(), self.name.clone());
        CallName { token, client, request }
    }
}
