//! Word to a client that waits.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use sessile_gateway::text;
use std::time::{Duration, Instant};

/// How often: clients that restart their clock at each word allow for more.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    begun: Instant,
}

impl Progress {
    /// For a client that has asked for it.
    pub(super) fn wanted(context: &RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self { peer: context.peer.clone(), token, begun: Instant::now() })
    }

    /// How long it has taken, and what the run wrote last.
    pub(super) async fn tell(&self, end: &[u8]) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let message = text::last_line(end).unwrap_or_else(|| format!("running for {seconds:.0} s"));
        let word = ProgressNotificationParam::new(self.token.clone(), seconds);
        // A client that does not get it has gone; its run goes on.
        let _ = self.peer.notify_progress(word.with_message(message)).await;
    }
}
