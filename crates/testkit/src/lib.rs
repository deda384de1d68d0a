//! A harness for tests on the real `sessile` binary and real processes.
//!
//! ```ignore
//! let h = harness!();
//! let s = h.session();
//! s.run("x=41");
//! s.run("echo $((x+1))").prints("42\n").exits(0).is_kept();
//! ```
//!
//! Each [`Harness`] has its own directory and marks all processes that it starts. When it
//! is dropped, it ends its sessions and fails the test if anything is left: a process, or
//! scratch space in memory. So every test also tests the end.
//!
//! Nothing here sleeps for a fixed time: [`Process`] waits for a process's end, [`until`]
//! for a condition, and both panic after [`PATIENCE`].

mod answer;
mod azure_server;
mod branching;
mod cases;
mod chance;
mod client;
mod events;
mod gate;
mod harness;
pub mod http;
mod link;
pub mod local;
mod machine;
mod model_server;
pub mod needs;
mod object_server;
mod process;
mod server;
mod session;
mod site;
mod terminal;
mod tty;
mod wait;

pub use answer::Answer;
pub use azure_server::{AzureServer, azure_server};
pub use cases::cases;
pub use chance::Chance;
pub use client::{Client, Output};
pub use events::{Event, Events, Socket};
pub use gate::Gate;
pub use harness::{Harness, install};
pub use link::{Link, completed, order};
pub use local::LocalServer;
pub use model_server::{Format, ModelServer, Say, Trouble};
pub use object_server::{ObjectServer, object_server, shared_object_server};
pub use process::{Process, processes_with};
pub use server::{Server, curl, session_path};
pub use session::{Session, memory_of};
pub use site::{NameServer, Site};
pub use tty::Tty;
pub use wait::{PATIENCE, at_once, until};

/// Makes a harness for the binary that cargo built for the calling integration test: only
/// there is the variable with its path set.
#[macro_export]
macro_rules! harness {
    () => {
        $crate::Harness::new(env!("CARGO_BIN_EXE_sessile"))
    };
}
