//! MCP over stdin and stdout, for a client that has started us.

use super::calls::Calls;
use super::handler::{Handler, Surface};
use super::{Home, Offer};
use rmcp::service::{RoleServer, ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The longest message: a command of 16 MiB, as JSON.
const LONGEST: usize = 48 << 20;

/// Serves until the client closes our stdin. Runs go on.
///
/// # Errors
/// When the client does not speak MCP.
pub async fn serve(home: Home, offer: Offer, wait: Duration) -> io::Result<()> {
    let handler = Handler {
        home: Arc::new(home),
        calls: Arc::new(Calls::default()),
        wait,
        surface: Surface::Stdio(offer),
    };
    let (stdin, stdout) = stdio_pipes();
    let transport =
        AsyncRwTransport::<RoleServer, _, _>::new(stdin, stdout).with_max_line_length(LONGEST);
    match serve_server(handler, transport).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            Ok(())
        }
        // A client that only looked whether we are there.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}
