//! The server and its HTTP API.

mod api;
mod attaching;
mod branches;
mod callers;
mod fuzz;
mod limits;
mod logs;
mod names;
mod otlp;
mod pools;
mod saving;
mod serve;
mod stopped;
mod terminals;
mod tls;
mod tokens;
mod watching;
