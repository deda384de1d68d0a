//! What a client of a WebSocket is told: the events of a run, or all that
//! happens in a session.
//!
//! They come from a task of their own, because a question to the keeper must not
//! be given up when an order comes.

use super::super::stream;
use super::complaint;
use crate::service::{Follower, Happening, ServiceError, SessionFollower};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(super) struct Watched {
    events: mpsc::Receiver<Value>,
    _task: AbortOnDrop,
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Watched {
    /// One run.
    pub(super) fn run(mut follower: Follower) -> Self {
        Self::spawn(|sender| async move {
            let run = follower.run;
            while let Some((cursor, event)) = follower.next().await? {
                let mut data = stream::data(run, cursor, &event);
                data["type"] = event.name().into();
                data["id"] = cursor.to_string().into();
                if sender.send(data).await.is_err() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// All runs of a session.
    pub(super) fn session(mut follower: SessionFollower) -> Self {
        Self::spawn(|sender| async move {
            while let Some(happening) = follower.next().await? {
                let data = match happening {
                    Happening::Ended(status) => json!({"type": "ended", "status": status.as_str()}),
                    Happening::Run(event) => {
                        let mut data = json!(event.fields());
                        data["type"] = event.name().into();
                        data["id"] = follower.position().to_string().into();
                        data
                    }
                };
                if sender.send(data).await.is_err() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn spawn<WithContinuity>(tell: impl FnOnce(mpsc::Sender<Value>) -> WithContinuity) -> Self
    where
        WithContinuity: Future<Output = Result<(), ServiceError>> + Send + 'static,
    {
        // One: a client that does not read holds up the task, not the run.
        let (sender, events) = mpsc::channel(1);
        let told = tell(sender.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = told.await {
                let _ = sender.send(complaint(&error)).await;
            }
        });
        Self { events, _task: AbortOnDrop(task) }
    }

    /// The next event; `None` after the last.
    pub(super) async fn next(&mut self) -> Option<Value> {
        self.events.recv().await
    }
}
