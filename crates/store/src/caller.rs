//! caller.json: the program that a session ends with, if it does with one.

use crate::directory::{Directory, StoreError};
use sessile_protocol::Program;

const FILE: &str = "caller.json";

impl Directory {
    /// What cannot be read is nobody.
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
