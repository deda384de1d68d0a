//! Printing. A reader that closes the pipe ends the output, not in a panic.

use std::io::{self, Write};

/// One JSON document, on one line.
pub(crate) fn json(value: &serde_json::Value) -> anyhow::Result<()> {
    let mut text = value.to_string();
    text.push('\n');
    all(&mut io::stdout().lock(), text.as_bytes())
}

pub(crate) fn all(to: &mut impl Write, bytes: &[u8]) -> anyhow::Result<()> {
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
