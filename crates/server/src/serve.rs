//! Serving until told to stop.

use crate::http::{self, App};
use std::io;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How long requests may take to finish after that. Nothing is lost by cutting
/// them off: runs go on in their keepers.
const GRACE: Duration = Duration::from_secs(2);

/// Serves HTTP until `stop` is there.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    app: App,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopping, stopped) = oneshot::channel();
    let server = axum::serve(listener, http::router(app)).with_graceful_shutdown(async move {
        stop.await;
        let _ = stopping.send(());
    });
    let grace_is_over = async {
        // Without a message the server has ended by itself.
        let _ = stopped.await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        outcome = server => outcome,
        () = grace_is_over => Ok(()),
    }
}
