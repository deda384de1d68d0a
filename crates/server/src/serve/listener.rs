//! The source of connections: the network, or the user's own programs.

use super::local::LocalListener;
use std::io;
use tokio::net::{TcpListener, TcpStream, UnixStream};

#[derive(Debug)]
pub enum Listener {
    Network(TcpListener),
    Local(LocalListener),
}

/// An accepted connection, before any request.
#[derive(Debug)]
pub(super) enum Stream {
    Network(TcpStream),
    Local(UnixStream),
}

impl Listener {
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Network(listener) => Ok(Stream::Network(listener.accept().await?.0)),
            Self::Local(listener) => Ok(Stream::Local(listener.accept().await?)),
        }
    }

    /// Stops listening, unless a client has just connected.
    pub(super) fn withdraw(&self) -> Option<Stream> {
        match self {
            Self::Network(_) => None,
            Self::Local(listener) => listener.withdraw().map(Stream::Local),
        }
    }
}
