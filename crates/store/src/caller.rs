//! caller.json: the program that a session is bound to, if any.

use crate::directory::{Directory, StoreError};
use sessile_protocol::Program;

const FILE: &str = "caller.json";

impl Directory {
    /// Returns the program; none if the file cannot be read.
    #[must_use]
    pub fn caller(&self) -> Option<Program> {
        self.read_json(FILE).ok()
    }

    /// # Errors
    /// When it cannot be written.
    pub fn write_caller(&self, program: Program) -> Result<(), StoreError> {
        self.write_json(FILE, &program)
    }
}
