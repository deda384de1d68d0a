//! What the same interpreters can do at best: a bare loop over pipes that reads
//! a line, runs it and answers with a byte.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Floor {
    pub(crate) fn bash() -> anyhow::Result<Self> {
        Self::start("bash", &["--norc", "--noprofile", "-c", BASH])
    }

    pub(crate) fn python() -> anyhow::Result<Self> {
        Self::start("python3", &["-c", PYTHON])
    }

    pub(crate) fn node() -> anyhow::Result<Self> {
        Self::start("node", &["-e", NODE])
    }

    fn start(program: &str, args: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = crate::pipes(&mut child)?;
        Ok(Self { child, stdin, stdout })
    }

    pub(crate) fn call(&mut self, code: &str) -> anyhow::Result<()> {
        self.stdin.write_all(format!("{code}\n").as_bytes())?;
        let mut answer = [0];
        self.stdout.read_exact(&mut answer)?;
        Ok(())
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new process for one command, as most tools do it.
pub(crate) fn fresh(program: &str, flag: &str, code: &str) -> anyhow::Result<()> {
    let output = Command::new(program).arg(flag).arg(code).stdin(Stdio::null()).output()?;
    anyhow::ensure!(output.status.success(), "{program} {flag} {code} failed");
    Ok(())
}
