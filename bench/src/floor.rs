//! The best that the same interpreters can do: a bare loop that reads a line, runs it and
//! answers with a byte. bash reads a pipe, Python and Node a socket.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

const BASH: &str = r#"while IFS= read -r line; do eval "$line"; echo; done"#;
const PYTHON: &str = "
import os
buffer = b''
names = {}
while True:
    chunk = os.read(0, 65536)
    if not chunk:
        break
    exec(compile(chunk, '<run>', 'exec'), names)
    os.write(1, b'\\n')
";
const NODE: &str = "
const vm = require('node:vm'), fs = require('node:fs');
process.stdin.on('data', (chunk) => {
  vm.runInThisContext(chunk.toString());
  fs.writeSync(1, '\\n');
});
";

#[derive(Debug)]
pub(crate) struct Floor {
    child: Child,
    to: File,
    from: File,
}

impl Floor {
    pub(crate) fn bash() -> anyhow::Result<Self> {
        let mut child = Command::new("bash")
            .args(["--norc", "--noprofile", "-c", BASH])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = crate::pipes(&mut child)?;
        let (to, from) = (OwnedFd::from(stdin).into(), OwnedFd::from(stdout).into());
        Ok(Self { child, to, from })
    }

    pub(crate) fn python() -> anyhow::Result<Self> {
        Self::on_socket("python3", "-c", PYTHON)
    }

    pub(crate) fn node() -> anyhow::Result<Self> {
        Self::on_socket("node", "-e", NODE)
    }

    fn on_socket(program: &str, flag: &str, code: &str) -> anyhow::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(program)
            .args([flag, code])
            .stdin(OwnedFd::from(theirs.try_clone()?))
            .stdout(OwnedFd::from(theirs))
            .spawn()?;
        let to = OwnedFd::from(ours.try_clone()?).into();
        Ok(Self { child, to, from: OwnedFd::from(ours).into() })
    }

    /// Returns both ends, for a caller that talks to many.
    pub(crate) fn files(&self) -> anyhow::Result<(File, File)> {
        Ok((self.to.try_clone()?, self.from.try_clone()?))
    }

    pub(crate) fn call(&mut self, code: &str) -> anyhow::Result<()> {
        self.to.write_all(format!("{code}\n").as_bytes())?;
        let mut answer = [0];
        self.from.read_exact(&mut answer)?;
        Ok(())
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a new process for one command, as most tools do it.
pub(crate) fn fresh(program: &str, flag: &str, code: &str) -> anyhow::Result<()> {
    let output = Command::new(program).arg(flag).arg(code).stdin(Stdio::null()).output()?;
    anyhow::ensure!(output.status.success(), "{program} {flag} {code} failed");
    Ok(())
}
