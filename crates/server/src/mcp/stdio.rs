//! MCP over stdin and stdout, for a client that has started this process.

use super::calls::Calls;
use super::handler::{Handler, Surface};
use super::inspected_input::InspectedInput;
use super::{OfferedTools, WorkspaceServices};
use rmcp::model::ErrorData;
use rmcp::service::{
    RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// The longest message: a command of 16 MiB, as JSON.
const LONGEST: usize = 48 << 20;

/// Messages, with an error to the client for each invalid line.
struct WithErrors<T> {
    lines: T,
    complaints: UnboundedReceiver<String>,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for WithErrors<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.lines.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Both branches are cancel-safe: what was not taken stays in its channel or stream.
            let complaint = tokio::select! {
                biased;
                Some(complaint) = self.complaints.recv() => complaint,
                message = self.lines.receive() => return message,
            };
            let error = ErrorData::parse_error(complaint, None);
            // Fails if the client is gone, which the next read reports.
            let _ = self.lines.send(TxJsonRpcMessage::<RoleServer>::error(error, None)).await;
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.lines.close().await
    }
}

/// Serves until the client closes stdin. Calls in progress are then answered at once;
/// runs go on.
///
/// # Errors
/// When the client does not speak MCP.
pub async fn serve(home: WorkspaceServices, offer: OfferedTools, wait: Duration) -> io::Result<()> {
    let handler = Handler {
        home: Arc::new(home),
        calls: Arc::new(Calls::default()),
        turns: Arc::default(),
        wait,
        surface: Surface::Stdio(offer),
    };
    let (stdin, stdout) = stdio_pipes();
    let (stdin, complaints) = InspectedInput::new(stdin, handler.calls.clone(), LONGEST);
    let lines =
        AsyncRwTransport::<RoleServer, _, _>::new(stdin, stdout).with_max_line_length(LONGEST);
    match serve_server(handler, WithErrors { lines, complaints }).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            Ok(())
        }
        // The client only checked that the server starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}
