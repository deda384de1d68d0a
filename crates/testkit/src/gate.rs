//! A run that continues for as long as a test wants.

use crate::{Harness, Server};
use serde_json::json;

/// If it is dropped without being opened, the run continues until its session ends.
#[derive(Debug)]
#[must_use]
pub struct Gate<'h> {
    harness: &'h Harness,
}

impl<'h> Gate<'h> {
    /// Starts a run in bash that sets `x=late` and then waits.
    ///
    /// # Panics
    /// When it cannot be begun.
    #[track_caller]
    pub fn occupy(harness: &'h Harness, server: &Server, session: &str) -> Self {
        let made = std::process::Command::new("mkfifo").arg(harness.path("gate")).status();
        assert!(made.expect("mkfifo").success());
        let body = json!({"command": "x=late; echo begun > begun; read line < gate", "wait": 0});
        let _ = server.post(&format!("{session}/exec"), &body).is(202);
        harness.wait_for_file("begun");
        Self { harness }
    }

    /// Lets the run end.
    ///
    /// # Panics
    /// When it is not there.
    pub fn open(self) {
        std::fs::File::options().write(true).open(self.harness.path("gate")).expect("a gate");
    }
}
