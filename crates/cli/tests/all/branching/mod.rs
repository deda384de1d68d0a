//! Forks, checkpoints and going back.

mod branches;
mod checkpoints;
mod forks;
mod forks_python;
mod node;
mod rewinding_files;
mod templates;
