//! The server: one service over the keepers of many sessions, and the gateways in front of it.
//!
//! It holds nothing that cannot be lost: sessions live in their keepers, and their
//! records in the session directory. `keepers` finds them, `service` defines the
//! operations on them, and `http` and `mcp` are siblings over the service.

mod agents;
pub mod http;
mod keepers;
pub mod mcp;
mod metrics;
mod serve;
mod service;
mod socket;
mod tokens;

pub use agents::{CommandAgent, Key, Model, Variable};
pub use serve::{
    Lifetime, Listener, LocalError, LocalListener, Program, ServeOptions, Tls, TlsError, serve,
};
pub use sessile_agent::limits::Price;
pub use sessile_agent::model::ApiFormat;
pub use tokens::{Grant, TokenLimits, Tokens};

pub use service::{ErrorCode, Limits, Pool, Service, ServiceError, SessionDefaults};
