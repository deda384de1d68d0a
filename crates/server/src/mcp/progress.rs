//! Progress notifications for a waiting client.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use sessile_gateway::text;
use std::time::{Duration, Instant};

/// The interval. Clients that restart their timeout at each notification allow more.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    begun: Instant,
}

impl Progress {
    /// Returns it if the client has asked for progress.
    pub(super) fn wanted(context: &RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self { peer: context.peer.clone(), token, begun: Instant::now() })
    }

    /// Reports the last line of the run's output, or else how long it has taken.
    pub(super) async fn send(&self, end: &[u8]) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let message = text::last_line(end).unwrap_or_else(|| format!("running for {seconds:.0} s"));
        let word = ProgressNotificationParam::new(self.token.clone(), seconds);
        // Fails if the client is gone; its run goes on.
        let _ = self.peer.notify_progress(word.with_message(message)).await;
    }
}
