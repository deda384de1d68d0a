//! The message to the user who has started a server.

use serde::Serialize;
use std::path::{Path, PathBuf};

/// The message when the server is ready.
pub(super) struct Greeting {
    pub(super) url: String,
    /// The file with the owner's token, if one is needed.
    pub(super) token: Option<PathBuf>,
    pub(super) adopted: usize,
}

impl Greeting {
    pub(super) fn text(&self) -> String {
        let url = &self.url;
        let found = match self.adopted {
            0 => String::new(),
            1 => "1 live session was found and goes on.\n".to_owned(),
            n => format!("{n} live sessions were found and go on.\n"),
        };
        let who = match &self.token {
            Some(file) => format!("Callers need the token in {}.\n", file.display()),
            None => "Everybody on this machine may call: no token is asked for.\n".to_owned(),
        };
        let bearer = self
            .token
            .as_deref()
            .map(|file| format!(" -H \"Authorization: Bearer $(cat {})\"", quoted(file)));
        let order = r#"{"action": "exec", "command": "echo hello"}"#;
        format!(
            "Sessile is at {url} (API: {url}/docs)\n{who}{found}\n\
             Call it:\n  curl -s {url}/v1/tools/runtime{} \\\n    \
             -H 'Content-Type: application/json' -d '{order}'\n\n\
             Add it to an MCP client:\n{}",
            bearer.unwrap_or_default(),
            self.mcp(url)
        )
    }

    /// Returns the MCP configuration, without the token itself: the output may be kept
    /// somewhere.
    fn mcp(&self, url: &str) -> String {
        let mut headers = None;
        let mut note = String::new();
        if let Some(file) = &self.token {
            headers = Some(McpHeaders { authorization: "Bearer TOKEN" });
            note = format!(
                "  (TOKEN is in {}; `sessile token show --raw` prints it)\n",
                file.display()
            );
        }
        let http = McpServer::Http { r#type: "http", url: format!("{url}/mcp"), headers };
        let stdio = McpServer::Stdio { command: "sessile", args: ["mcp"] };
        let (http, stdio) = (client_file(http), client_file(stdio));
        format!("  {http}\n{note}or, without this server:\n  {stdio}\n")
    }
}

/// The configuration file of an MCP client.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct McpClientFile {
    mcp_servers: McpServers,
}

#[derive(Serialize)]
struct McpServers {
    sessile: McpServer,
}

#[derive(Serialize)]
#[serde(untagged)]
enum McpServer {
    Http {
        r#type: &'static str,
        url: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        headers: Option<McpHeaders>,
    },
    Stdio {
        command: &'static str,
        args: [&'static str; 1],
    },
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct McpHeaders {
    authorization: &'static str,
}

fn client_file(sessile: McpServer) -> String {
    let file = McpClientFile { mcp_servers: McpServers { sessile } };
    // Cannot fail: these are structs with string keys.
    serde_json::to_string(&file).unwrap_or_default()
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
