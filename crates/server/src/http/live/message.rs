//! The server's messages on a WebSocket, and their JSON.

use crate::service::{ScreenDrawing, ServiceError};
use serde::Serialize;
use sessile_gateway::ErrorDetail;
use sessile_protocol::RunNo;

/// One message. `data` belongs to an event of a run, or of a session.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ServerMessage<'a, Data = ()> {
    /// An event, with the position from which a reconnecting client continues.
    Event {
        #[serde(rename = "type")]
        name: &'a str,
        id: String,
        #[serde(flatten)]
        data: Data,
    },
    Plain(PlainMessage<'a>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum PlainMessage<'a> {
    /// The session has ended.
    Ended {
        status: &'a str,
    },
    /// An order was accepted; the run has this number.
    Accepted {
        run: RunNo,
    },
    Resized {
        run: RunNo,
        size: Size,
        /// Whether the run has a terminal; if not, nothing was done.
        terminal: bool,
    },
    Error {
        error: ErrorDetail,
    },
    /// Escape sequences that draw the current screen of a terminal.
    Screen {
        run: RunNo,
        data: String,
        size: Size,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct Size {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

impl PlainMessage<'_> {
    pub(super) fn drawn(run: RunNo, drawn: ScreenDrawing) -> Self {
        let size = Size { columns: drawn.size.cols, rows: drawn.size.rows };
        Self::Screen { run, data: drawn.data, size }
    }
}

impl<'a> From<PlainMessage<'a>> for ServerMessage<'a> {
    fn from(plain: PlainMessage<'a>) -> Self {
        Self::Plain(plain)
    }
}

impl<'a> ServerMessage<'a> {
    pub(super) fn ended(status: &'a str) -> Self {
        Self::Plain(PlainMessage::Ended { status })
    }

    pub(super) fn error(error: &ServiceError) -> Self {
        Self::Plain(PlainMessage::Error { error: ErrorDetail::from(&**error) })
    }
}

impl<Data: Serialize> ServerMessage<'_, Data> {
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
