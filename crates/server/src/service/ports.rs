//! Connections to servers that run in sessions.

use super::{Caller, ErrorCode, Service, ServiceError, internal};
use crate::keepers::{Place, blocking};
use sessile_client::{ClientError, OpenPort};
use sessile_protocol::{Answer, Port, PortsView, Request, SessionId};
use sessile_store::SessionStatus;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// A listener on the same machine accepts a connection at once, or its queue is full.
const PATIENCE: Duration = Duration::from_secs(5);

impl Service {
    /// Returns where the processes of a session listen; nothing without a keeper.
    pub(crate) async fn ports(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Vec<Port>, ServiceError> {
        let place = self.place(caller, id).await?;
        Ok(self.ports_view(&place).await?.ports)
    }

    /// Connects to a port that a process of the session listens on.
    pub(crate) async fn connect(
        &self,
        caller: &Caller,
        id: &SessionId,
        port: u16,
    ) -> Result<TcpStream, ServiceError> {
        let place = self.place(caller, id).await?;
        let view = self.ports_view(&place).await?;
        let place = match OpenPort::find(&view, port) {
            Ok(open) => open,
            Err(error) => {
                not_ended(&place).await?;
                return Err(error.into());
            }
        };
        let mut refused = None;
        for address in place.addresses().to_owned() {
            match connect(place.clone(), address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| internal("a port without an address")))
    }

    async fn ports_view(&self, place: &Arc<Place>) -> Result<PortsView, ServiceError> {
        let Some(mut reached) = self.reach_if_live(place).await? else {
            return Ok(PortsView::default());
        };
        let Answer::Ports(view) = reached.call(Request::Ports).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(view)
    }
}

/// Refuses a session that has ended: no server can be started in it.
async fn not_ended(place: &Place) -> Result<(), ServiceError> {
    let directory = place.directory.clone();
    let ended = move || {
        let metadata = directory.observed_metadata()?;
        Ok((metadata.status == SessionStatus::Terminated)
            .then(|| ClientError::ended(&directory, &metadata)))
    };
    blocking(ended).await?.map_or(Ok(()), |ended| Err(ended.into()))
}

async fn connect(place: OpenPort, address: SocketAddr) -> Result<TcpStream, ServiceError> {
    let failed = |what: String| ServiceError::new(ErrorCode::PortFailed, what);
    let socket = blocking(move || Ok(place.socket(address)?)).await?;
    let socket = TcpSocket::from_std_stream(std::net::TcpStream::from(socket));
    match timeout(PATIENCE, socket.connect(address)).await {
        Ok(Ok(stream)) => {
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(failed(format!("the port takes no connection: {error}"))),
        Err(_) => Err(failed("the port takes no connection: its queue is full".to_owned())),
    }
}
