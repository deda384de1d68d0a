//! What every request passes before its handler: the log, the check of its caller, the
//! check of its query, and the limit on how long its body may be silent.
//!
//! All of it is one layer. axum copies every layer for each request, and each copy takes
//! some allocations.

use super::query::KnownParameters;
use super::{App, auth, log};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

#[derive(Clone, Debug)]
pub(super) struct Entrance {
    pub(super) app: App,
    pub(super) names: Arc<KnownParameters>,
    /// How long a body may be silent.
    pub(super) patience: Duration,
}

pub(super) async fn pass(
    State(entrance): State<Arc<Entrance>>,
    request: Request,
    next: Next,
) -> Response {
    let Entrance { app, names, patience } = &*entrance;
    let request = request.map(|body| Body::new(LimitedBody::new(body, *patience)));
    let checked = |request| {
        auth::checked(app, request, async |request| match names.check(&request) {
            Ok(()) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        })
    };
    log::logged(request, checked).await
}

/// A body that fails when nothing comes for a while. It has a timer only while it waits:
/// most bodies are there at once.
struct LimitedBody {
    body: Body,
    patience: Duration,
    silence: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, thiserror::Error)]
#[error("nothing of the body came for {0:?}")]
struct SilentBody(Duration);

impl LimitedBody {
    fn new(body: Body, patience: Duration) -> Self {
        Self { body, patience, silence: None }
    }
}

impl HttpBody for LimitedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.silence = None;
            return Poll::Ready(frame.map(|frame| Ok(frame?)));
        }
        let patience = self.patience;
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(patience)));
        match silence.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(SilentBody(patience).into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};

    #[tokio::test]
    async fn a_body_that_falls_silent_fails() {
        let pieces = stream::iter([Ok::<_, axum::BoxError>("a"), Ok("b")]);
        let silent = Body::from_stream(pieces.chain(stream::pending()));
        let body = LimitedBody::new(silent, Duration::from_millis(1));
        let mut body = Body::new(body).into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "a");
        assert_eq!(body.next().await.unwrap().unwrap(), "b");
        assert!(body.next().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_body_that_comes_in_pieces_arrives_without_a_timer_at_its_end() {
        let pieces = stream::unfold(0, |n| async move {
            tokio::task::yield_now().await;
            (n < 3).then_some((Ok::<_, axum::BoxError>("x"), n + 1))
        });
        let mut body = LimitedBody::new(Body::from_stream(pieces), Duration::from_secs(3600));
        let mut frame = async || {
            let next = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            (next.await.map(|frame| frame.unwrap().into_data().unwrap()), body.silence.is_some())
        };
        for _ in 0..3 {
            assert_eq!(frame().await, (Some(Bytes::from_static(b"x")), false));
        }
        assert_eq!(frame().await, (None, false));
    }
}
