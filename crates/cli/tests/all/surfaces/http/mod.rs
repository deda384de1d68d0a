//! The server and its HTTP API.

mod api;
mod attaching;
mod branches;
mod callers;
mod files;
mod fuzz;
mod limits;
mod local;
mod logs;
mod names;
mod otlp;
mod pools;
mod ports;
mod requests;
mod saving;
mod serve;
mod silent;
mod starting;
mod stopped;
mod terminals;
mod tls;
mod tokens;
mod watching;
