//! Python and Node, and what holds for every language.

mod node;
mod python;
mod python_libraries;
mod shared;
