use crate::display::{self, Form};
use crate::reader::Reader;
use crate::settings::Settings;
use anyhow::{Context, bail};
use clap::Args;
use rustix::event::{PollFd, PollFlags};
use serde::Serialize;
use sessile_client::{Client, ClientError, OpenPort};
use sessile_gateway::answer;
use sessile_protocol::{Answer, PortsView, Request, SessionId};
use sessile_store::{Directory, Liveness, SessionStatus};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limit of concurrent connections. Each has two threads; a browser's page opens a few dozen.
const CONNECTIONS: usize = 256;

/// Make a server inside a session reachable
///
/// Listens on this machine, prints the address, and passes every connection on
/// to the session's port, until Ctrl-C or the end of the session. Only ports of
/// the session's own processes can be reached. Anyone who can connect to the
/// address can use the port: keep it on 127.0.0.1. Without a port, lists the
/// open ports.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile port sess_…\n  \
    sessile port sess_… 8000\n  \
    sessile port sess_… 8000 --listen 127.0.0.1:8000")]
pub(crate) struct Port {
    /// The session
    id: String,
    /// The port in the session
    port: Option<u16>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", requires = "port")]
    listen: SocketAddr,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Port {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = settings.session(&self.id)?;
        let mut reader = Reader::find(settings, id.as_str())?;
        let directory = reader.directory.clone();
        let Some(keeper) = reader.live() else {
            let metadata = directory.observed_metadata()?;
            match metadata.status {
                SessionStatus::Terminated => bail!(ClientError::ended(&directory, &metadata)),
                SessionStatus::Starting
                | SessionStatus::Active
                | SessionStatus::Lost
                | SessionStatus::Unknown => {
                    bail!("nothing of session {id} is running, and so nothing listens")
                }
            }
        };
        let open = ports(keeper)?;
        let form = Form::of_stdout(self.json);
        let Some(port) = self.port else {
            form.print(
                || open.ports.iter().map(answer::Port::from).collect::<Vec<_>>(),
                |page| display::jobs::ports(&open.ports, page),
            )?;
            return Ok(ExitCode::SUCCESS);
        };
        OpenPort::find(&open, port)?;
        let listener = TcpListener::bind(self.listen)
            .with_context(|| format!("cannot listen on {}", self.listen))?;
        let address = listener.local_addr()?;
        form.print(
            || Forwarding { session_id: &id, port, address },
            |_| format!("http://{address} is port {port} of {id}; Ctrl-C ends that\n"),
        )?;
        let forward = Forward { id, directory, port, places: Arc::default() };
        forward.serve(&listener, keeper)
    }
}

/// The address at which a session's port is reached.
#[derive(Debug, Serialize)]
struct Forwarding<'a> {
    session_id: &'a SessionId,
    port: u16,
    address: SocketAddr,
}

fn ports(keeper: &mut Client) -> anyhow::Result<PortsView> {
    let Answer::Ports(view) = keeper.call(Request::Ports)? else {
        bail!(ClientError::Unexpected);
    };
    Ok(view)
}

#[derive(Clone, Debug)]
struct Forward {
    id: SessionId,
    directory: Directory,
    port: u16,
    /// Number of open connections.
    places: Arc<AtomicUsize>,
}

impl Forward {
    /// Serves until the session has ended. Its keeper then closes the connection, on
    /// which nothing else comes.
    fn serve(&self, listener: &TcpListener, keeper: &Client) -> anyhow::Result<ExitCode> {
        loop {
            let mut fds =
                [PollFd::new(listener, PollFlags::IN), PollFd::new(keeper, PollFlags::IN)];
            match rustix::event::poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(io::Error::from(error).into()),
            }
            if !fds[1].revents().is_empty() {
                eprintln!("Session {} has ended.", self.id);
                return Ok(ExitCode::SUCCESS);
            }
            // A connection that was closed before it was accepted is not our error.
            if let Ok((from, _)) = listener.accept() {
                self.take(from);
            }
        }
    }

    fn take(&self, from: TcpStream) {
        if self.places.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            self.places.fetch_sub(1, Ordering::Relaxed);
            eprintln!("There are {CONNECTIONS} connections already; one more was closed.");
            return;
        }
        let here = self.clone();
        let thread = std::thread::Builder::new().spawn(move || {
            if let Err(error) = here.connect().and_then(|to| relay(&from, &to)) {
                eprintln!("Error: {error:#}");
            }
            here.places.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = thread {
            self.places.fetch_sub(1, Ordering::Relaxed);
            eprintln!("Error: a connection was closed: {error}");
        }
    }

    /// Finds the port for each connection: the server may have been restarted, and may
    /// listen elsewhere.
    fn connect(&self) -> anyhow::Result<TcpStream> {
        let Liveness::Live(socket) = self.directory.connect() else {
            bail!("the session has ended");
        };
        let open = ports(&mut Client::new(socket))?;
        Ok(OpenPort::find(&open, self.port)?.connect()?)
    }
}

/// Copies both ways, each until its end: a client that has sent everything may still read.
fn relay(from: &TcpStream, to: &TcpStream) -> anyhow::Result<()> {
    for stream in [from, to] {
        stream.set_nodelay(true)?;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| pass(from, to));
        pass(to, from);
    });
    Ok(())
}

/// Copies one way. An error on one side ends both.
fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let outcome = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    if outcome.is_err() {
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
