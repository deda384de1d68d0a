//! The server and its HTTP API.

mod api;
mod attaching;
mod branches;
mod fuzz;
mod limits;
mod logs;
mod otlp;
mod pools;
mod saving;
mod serve;
mod terminals;
mod tls;
mod tokens;
mod watching;
