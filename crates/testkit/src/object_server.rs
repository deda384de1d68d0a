//! A real object store with S3's interface: SeaweedFS, installed by `cargo xtask clients`.

use crate::{needs, until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// May do everything, including making a bucket.
const ADMIN: &str = "admin-key:admin-secret";
/// May read, write and list.
const USER: (&str, &str) = ("user-key", "user-secret");

/// The lowest port that a server is given.
const LOWEST: u16 = 10_000;

const IDENTITIES: &str = r#"{"identities": [
    {"name": "admin", "credentials": [{"accessKey": "admin-key", "secretKey": "admin-secret"}],
     "actions": ["Admin", "Read", "Write", "List", "Tagging"]},
    {"name": "user", "credentials": [{"accessKey": "user-key", "secretKey": "user-secret"}],
     "actions": ["Read", "Write", "List", "Tagging"]}
]}"#;

/// Starts a server, if it is installed: see [`needs`].
#[must_use]
pub fn object_server() -> Option<ObjectServer> {
    let program = needs::installed("SESSILE_TEST_OBJECT_SERVER")?;
    Some(ObjectServer::start(program.to_str().expect("a path")))
}

/// Returns the server that all tests of a program share, if it is installed. No test may stop it.
#[must_use]
pub fn shared_object_server() -> Option<&'static ObjectServer> {
    static SHARED: OnceLock<Option<ObjectServer>> = OnceLock::new();
    let start = || {
        let (started, receive) = std::sync::mpsc::channel();
        // It ends with the thread that started it, and a test's thread ends before the last test.
        std::thread::spawn(move || {
            let _ = started.send(object_server());
            loop {
                std::thread::park();
            }
        });
        receive.recv().expect("an object server")
    };
    SHARED.get_or_init(start).as_ref()
}

/// A server with one bucket, `saves`. It ends when this is dropped, or when the thread that
/// started it ends.
#[derive(Debug)]
pub struct ObjectServer {
    program: String,
    folder: tempfile::TempDir,
    ports: Vec<u16>,
    child: Child,
}

impl ObjectServer {
    fn start(program: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(folder.path().join("identities.json"), IDENTITIES).expect("a file");
        loop {
            let ports = free_ports(8);
            let mut child = spawn(program, &folder, &ports);
            if is_up(&mut child, ports[0]) && has_bucket(&mut child, ports[0]) {
                return Self { program: program.to_owned(), folder, ports, child };
            }
            // Another process has taken one of the ports.
        }
    }

    /// Restarts it at the same address with its data.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.program, &self.folder, &self.ports);
        assert!(is_up(&mut self.child, self.ports[0]), "no object server any more");
        until("the bucket", || asks(self.ports[0], "GET").then_some(()));
    }

    /// Kills it. Unwritten data is lost.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops the process: it accepts connections and answers nothing.
    ///
    /// # Panics
    /// When it is gone.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// # Panics
    /// When it is gone.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the object server");
    }

    /// Returns an object of the bucket.
    ///
    /// # Panics
    /// When curl cannot be run.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<Vec<u8>> {
        let got = asking(self.ports[0], "GET", &format!("/{name}")).output().expect("curl");
        got.status.success().then_some(got.stdout)
    }

    /// Returns the environment variables for a user that may read, write and list.
    #[must_use]
    pub fn user(&self) -> BTreeMap<String, String> {
        self.variables(USER)
    }

    /// Returns the environment variables for these credentials.
    #[must_use]
    pub fn variables(&self, (key, secret): (&str, &str)) -> BTreeMap<String, String> {
        let endpoint = format!("http://127.0.0.1:{}", self.ports[0]);
        [
            ("AWS_ACCESS_KEY_ID", key),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_ENDPOINT_URL", &endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns ports that are free now. The system gives none of these to a connection, so a
/// server that is restarted gets its own again.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
    let below = first.filter(|first| *first > LOWEST).unwrap_or(u16::MAX);
    let mut bound = Vec::new();
    while bound.len() < count {
        let random = RandomState::new().hash_one(bound.len());
        let port = LOWEST + (random % u64::from(below - LOWEST)) as u16;
        bound.extend(TcpListener::bind(("127.0.0.1", port)).ok().map(|listener| (port, listener)));
    }
    bound.iter().map(|(port, _)| *port).collect()
}

fn spawn(program: &str, folder: &tempfile::TempDir, ports: &[u16]) -> Child {
    let place = folder.path().display();
    let mut options = vec![
        format!("-dir={place}"),
        format!("-s3.config={place}/identities.json"),
        format!("-filer.localSocket={place}/filer.sock"),
        format!("-s3.localSocket={place}/s3.sock"),
    ];
    let names = [
        "s3.port",
        "s3.port.grpc",
        "filer.port",
        "filer.port.grpc",
        "master.port",
        "master.port.grpc",
        "volume.port",
        "volume.port.grpc",
    ];
    options.extend(names.iter().zip(ports).map(|(name, port)| format!("-{name}={port}")));
    let fixed = [
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-filer",
        "-s3",
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=30",
        "-volume.preStopSeconds=0",
    ];
    let mut command = Command::new(program);
    command
        .args(["-logtostderr=true", "server"])
        .args(fixed)
        .args(options)
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.path().join("log")).expect("a log"));
    dying_with_us(&mut command)
        .spawn()
        .expect("the object server; `cargo xtask clients` installs it")
}

/// Makes a process die with the thread that starts it.
pub(crate) fn dying_with_us(command: &mut Command) -> &mut Command {
    let die_with_us =
        || rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into);
    // SAFETY: one system call, which takes no pointers and does not allocate.
    unsafe { command.pre_exec(die_with_us) }
}

/// Makes the bucket. The parts of the server start one after the other, and until then it
/// refuses requests. If another process has taken one of its ports, it exits meanwhile.
fn has_bucket(child: &mut Child, port: u16) -> bool {
    until("a bucket", || match child.try_wait().expect("a child") {
        Some(_) => Some(false),
        None => asks(port, "PUT").then_some(true),
    })
}

/// Returns whether a request for the bucket succeeds.
fn asks(port: u16, method: &str) -> bool {
    asking(port, method, "").stdout(Stdio::null()).status().expect("curl").success()
}

fn asking(port: u16, method: &str, path: &str) -> Command {
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--fail", "--max-time", "10", "--request", method])
        .args(["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", ADMIN])
        .arg(format!("http://127.0.0.1:{port}/saves{path}"));
    command
}

/// Waits until it answers, and returns true; false if it has exited.
pub(crate) fn is_up(child: &mut Child, port: u16) -> bool {
    until("the object server", || {
        if child.try_wait().expect("a child").is_some() {
            return Some(false);
        }
        TcpStream::connect(("127.0.0.1", port)).ok().map(|_| true)
    })
}
