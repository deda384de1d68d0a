//! The events for a WebSocket client: of one run, or of a whole session.
//!
//! They come from a separate task, because a request to the keeper must not be cancelled
//! when an order arrives.

use super::super::stream::EventData;
use super::message::ServerMessage;
use crate::service::{Follower, ServiceError, SessionFollower, TranscriptEvent};
use tokio::sync::mpsc;

pub(super) struct EventFeed {
    events: mpsc::Receiver<String>,
    _task: AbortOnDrop,
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl EventFeed {
    /// Follows one run.
    pub(super) fn run(mut follower: Follower) -> Self {
        Self::spawn(|sender| async move {
            let run = follower.run;
            while let Some((cursor, event)) = follower.next().await? {
                let data = EventData::of(run, cursor, &event);
                let told =
                    ServerMessage::Event { name: event.name(), id: cursor.to_string(), data };
                if sender.send(told.text()).await.is_err() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Follows all runs of a session.
    pub(super) fn session(mut follower: SessionFollower) -> Self {
        Self::spawn(|sender| async move {
            while let Some(happening) = follower.next().await? {
                let text = match &happening {
                    TranscriptEvent::Ended(status) => ServerMessage::ended(status.as_str()).text(),
                    TranscriptEvent::Run(event) => {
                        let (name, id) = (event.name(), follower.position().to_string());
                        ServerMessage::Event { name, id, data: event.fields() }.text()
                    }
                };
                if sender.send(text).await.is_err() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn spawn<WithContinuity>(tell: impl FnOnce(mpsc::Sender<String>) -> WithContinuity) -> Self
    where
        WithContinuity: Future<Output = Result<(), ServiceError>> + Send + 'static,
    {
        // Capacity 1: a client that does not read holds up this task, not the run.
        let (sender, events) = mpsc::channel(1);
        let told = tell(sender.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = told.await {
                let _ = sender.send(ServerMessage::error(&error).text()).await;
            }
        });
        Self { events, _task: AbortOnDrop(task) }
    }

    /// Returns the next event; `None` after the last.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.events.recv().await
    }
}
