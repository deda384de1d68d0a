//! What the conformance suite expects of a server: tools, resources and prompts with
//! given names and contents.

#![expect(deprecated, reason = "logging and subscriptions are of older versions, which we serve")]

use super::super::answer::ToolReply;
use super::super::handler::Handler;
use super::super::pictures::Picture;
use super::super::progress::Progress;
use crate::service::{ErrorCode, ServiceError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A sound without a sample.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Our tools and the suite's. Calls of other tools go to ours.
#[derive(Clone, Debug)]
pub(super) struct Fixtures {
    pub(super) ours: Handler,
}

#[derive(Clone, Copy, Debug)]
enum FixtureTool {
    Text,
    Image,
    Audio,
    Resource,
    Mixed,
    Logging,
    Error,
    Progress,
    Schema,
}

impl FixtureTool {
    const ALL: [Self; 9] = [
        Self::Text,
        Self::Image,
        Self::Audio,
        Self::Resource,
        Self::Mixed,
        Self::Logging,
        Self::Error,
        Self::Progress,
        Self::Schema,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Text => "test_simple_text",
            Self::Image => "test_image_content",
            Self::Audio => "test_audio_content",
            Self::Resource => "test_embedded_resource",
            Self::Mixed => "test_multiple_content_types",
            Self::Logging => "test_tool_with_logging",
            Self::Error => "test_error_handling",
            Self::Progress => "test_tool_with_progress",
            Self::Schema => "json_schema_2020_12_tool",
        }
    }

    fn definition(self) -> Tool {
        let schema = match self {
            Self::Schema => json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {"type": "object", "properties": {
                    "street": {"type": "string"}, "city": {"type": "string"},
                }}},
                "properties": {
                    "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                },
                "additionalProperties": false,
            }),
            Self::Text
            | Self::Image
            | Self::Audio
            | Self::Resource
            | Self::Mixed
            | Self::Logging
            | Self::Error
            | Self::Progress => json!({"type": "object", "properties": {}}),
        };
        Tool::new(self.name(), "a fixture of the conformance suite", made::<Map<_, _>>(schema))
    }

    async fn call(self, context: &RequestContext<RoleServer>) -> CallToolResult {
        let said = |text: &str| ToolReply::of(Map::new(), text.to_owned());
        match self {
            Self::Text => said("This is a simple text response for testing.").into_result(),
            Self::Image => said("a pixel").with_pictures(pixel().into()).into_result(),
            Self::Audio => CallToolResult::success(vec![ContentBlock::audio(SILENCE, "audio/wav")]),
            Self::Resource => CallToolResult::success(vec![resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            )]),
            Self::Mixed => {
                let reply = said("Multiple content types test:").with_pictures(pixel().into());
                let mut result = reply.into_result();
                let (uri, text) =
                    ("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
                result.content.push(resource(uri, "application/json", text));
                result
            }
            Self::Logging => {
                for text in
                    ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    let word =
                        LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
                    context.peer.notify_logging_message(word).await.expect("a client");
                }
                said("done").into_result()
            }
            Self::Error => {
                let message = "this tool intentionally returns an error for testing";
                let error = ServiceError::new(ErrorCode::BadRequest, message);
                ToolReply::refused(&error).into_result()
            }
            Self::Progress => {
                let progress = Progress::wanted(context).expect("a token");
                for line in ["0 of 100", "50 of 100", "100 of 100"] {
                    progress.send(line.as_bytes()).await;
                }
                said("done").into_result()
            }
            Self::Schema => said("done").into_result(),
        }
    }
}

fn pixel() -> Picture {
    Picture::png(&STANDARD.decode(PIXEL).expect("base64"))
}

/// Converts a result written as JSON.
fn made<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a result")
}

fn resource(uri: &str, kind: &str, text: &str) -> ContentBlock {
    made(json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}))
}

fn unknown(what: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no {what}"), None)
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        let mut info = self.ours.get_info();
        info.capabilities = capabilities;
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.ours.list_tools(page, context).await?;
        list.tools.extend(FixtureTool::ALL.map(FixtureTool::definition));
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.ours.get_tool(name)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match FixtureTool::ALL.into_iter().find(|tool| tool.name() == params.name) {
            Some(tool) => Ok(tool.call(&context).await.into()),
            None => self.ours.call_tool(params, context).await,
        }
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(made(json!({"resources": [
            {"uri": "test://static-text", "name": "text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "binary", "mimeType": "image/png"},
            {"uri": "test://watched-resource", "name": "watched", "mimeType": "text/plain"},
        ]})))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(made(json!({"resourceTemplates": [
            {"uriTemplate": "test://template/{id}/data", "name": "template"},
        ]})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let content = match (uri.as_str(), id) {
            (_, Some(id)) => {
                let text = json!({"id": id, "data": format!("Data for ID: {id}")}).to_string();
                json!({"uri": uri, "mimeType": "application/json", "text": text})
            }
            ("test://static-binary", None) => {
                json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL})
            }
            ("test://static-text" | "test://watched-resource", None) => {
                let text = "This is the content of the static text resource.";
                json!({"uri": uri, "mimeType": "text/plain", "text": text})
            }
            (other, None) => return Err(unknown(other)),
        };
        Ok(made::<ReadResourceResult>(json!({"contents": [content]})).into())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({"name": name, "required": true});
        Ok(made(json!({"prompts": [
            {"name": "test_simple_prompt", "description": "without arguments"},
            {"name": "test_prompt_with_arguments", "description": "with arguments",
                "arguments": [argument("arg1"), argument("arg2")]},
            {"name": "test_prompt_with_embedded_resource", "description": "with a resource",
                "arguments": [argument("resourceUri")]},
            {"name": "test_prompt_with_image", "description": "with a picture"},
        ]})))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let given = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let content = match request.name.as_str() {
            "test_simple_prompt" => {
                json!({"type": "text", "text": "This is a simple prompt for testing."})
            }
            "test_prompt_with_arguments" => {
                let (first, second) = (given("arg1"), given("arg2"));
                let text = format!("Prompt with arguments: arg1='{first}', arg2='{second}'");
                json!({"type": "text", "text": text})
            }
            "test_prompt_with_embedded_resource" => json!(resource(
                &given("resourceUri"),
                "text/plain",
                "Embedded resource content for testing."
            )),
            "test_prompt_with_image" => {
                json!({"type": "image", "data": PIXEL, "mimeType": "image/png"})
            }
            other => return Err(unknown(other)),
        };
        let messages = json!([{"role": "user", "content": content}]);
        Ok(made::<GetPromptResult>(json!({"messages": messages})).into())
    }
}
