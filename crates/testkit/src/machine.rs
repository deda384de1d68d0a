//! A mount namespace with other mounts than this machine, in which commands run.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The mounts exist as long as this value lives.
#[derive(Debug)]
pub(crate) struct Machine(Child);

impl Machine {
    /// Makes the namespace, and runs a script in it as root, which mounts something.
    pub(crate) fn new(script: &str) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-ec"]);
        command.arg(format!("{script}\necho\nexec cat"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("a mount namespace");
        let stdout = child.stdout.as_mut().expect("its output");
        stdout.read_exact(&mut [0]).expect("what the script mounts");
        Self(child)
    }

    /// Returns a command for a program inside, as a user who may be in a group, without
    /// arguments.
    pub(crate) fn command(
        &self,
        at: &Path,
        program: &Path,
        user: Option<(u32, Option<u32>)>,
    ) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.0.id().to_string(), "sh", "-c"]);
        command.arg("cd \"$0\" && exec \"$@\"").arg(at);
        if let Some((user, group)) = user {
            let user = user.to_string();
            command.args(["setpriv", "--reuid", &user, "--regid", &user]);
            match group {
                None => command.arg("--clear-groups"),
                Some(group) => command.args(["--groups", &group.to_string()]),
            };
        }
        command.arg(program);
        command
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
